/** The lobby: set up a table, find and join one, or load a recorded game. */

import { ask, keys, pathOf, randomKey } from "./api.js";
import { kept, ofTab } from "./browser.js";
import { errorLine, glyph, h, waitLine } from "./dom.js";
import { setUpForm } from "./setup.js";
import { ANIMALS, capital, namesOf, plural, rulesWords, SEATS, t } from "./words.js";

/** @import {Entry, Page, View} from "./types.js" */

/** Show the lobby. `position` and `players` are those of a game to continue, if there is one. @type {Page} */
export function lobbyPage(main, signal, position = "", ...players) {
  const setUp = h("section.card.set-up", { "aria-labelledby": "set-up-title" });
  const openTables = h("section.card", { "aria-labelledby": "open-title" });
  const ownTables = h("section.card", { "aria-labelledby": "own-title", hidden: true });
  const column = h("div.column", ownTables, openTables, recordedGame());
  main.append(hero(), h("div.lobby", setUp, column));

  async function begin() {
    if (signal.aborted) return;
    try {
      const setup = await ask("api/setup");
      if (signal.aborted) return;
      if (setup.ready) {
        setUp.replaceChildren(...setUpForm(setup, position, players));
        showOwnTables(ownTables);
        showOpen();
      } else {
        setUp.replaceChildren(waitLine(t("The server is warming up …")));
        setTimeout(begin, 1000);
      }
    } catch (reason) {
      setUp.replaceChildren(errorLine(reason).element);
      setTimeout(begin, 3000);
    }
  }

  async function showOpen() {
    if (signal.aborted) return;
    const { tables } = await ask("api/tables").catch(() => ({ tables: [] }));
    const none = t("No table has an open seat. Set one up with a seat for anyone on this server.");
    const list = tables.length ? h("ul.tables", ...tables.map(openTable)) : h("p.quiet", none);
    openTables.replaceChildren(h("h2", { id: "open-title" }, t("Open tables")), list);
    setTimeout(showOpen, 4000);
  }

  begin();
}

function hero() {
  const animals = ANIMALS.map((_, color) => glyph(`piece-${color}`));
  const parade = h("div.parade", { "aria-hidden": "true" }, ...animals);
  const words = h("p", t("Five paths, five dice, five animals. Roll, keep, move: the most points win."));
  const learn = h("a.button", { href: "#/learn" }, t("Learn the game"));
  const puzzle = h("a.button", { href: "#/puzzle" }, capital(t("puzzle of the day")));
  const analysis = h("a.button", { href: "#/analysis" }, t("Analysis board"));
  const links = h("nav.buttons", { "aria-label": t("Start") }, learn, puzzle, analysis);
  return h("header.hero", h("h1", t("Way of the Dragon")), words, parade, links);
}

/** @param {Entry} entry */
function openTable({ table, rules, seats, open }) {
  const who = seats.filter(({ taken }) => taken).map(({ name }) => name);
  const free = plural(open.length, "{count} open seat", "{count} open seats");
  const words = who.length ? t("Join {names}", { names: who.join(", ") }) : t("Join a game");
  const link = h("a", { href: `#/open/${table}` }, words);
  return h("li", link, h("span.quiet", `${free} · ${rulesWords(rules)}`));
}

/** @param {HTMLElement} section */
async function showOwnTables(section) {
  const latest = Object.keys(keys.all()).reverse().slice(0, 8);
  const items = (await Promise.all(latest.map(ownTable))).filter((item) => item !== null);
  section.hidden = items.length === 0;
  section.replaceChildren(h("h2", { id: "own-title" }, t("Your tables")), h("ul.tables", ...items));
}

/** Make the entry of a table of this browser; forget a deleted table. @param {string} table */
async function ownTable(table) {
  const key = keys.of(table)?.key ?? "";
  try {
    /** @type {View} */
    const { seats, status, turn } = await ask(pathOf(table), { key });
    const names = namesOf(seats).join(", ");
    const ended = status === "over" ? t("over") : t("Waiting for players");
    const state = status === "playing" ? t("turn {turn}", { turn: turn + 1 }) : ended;
    return h("li", h("a", { href: `#/table/${table}` }, names), h("span.quiet", state));
  } catch (refusal) {
    if ([403, 404].includes(/** @type {any} */ (refusal).status)) keys.drop(table);
    return null;
  }
}

function recordedGame() {
  const label = t("text of a game or a position");
  const placeholder = t("Paste a text from “Copy the game” here");
  const look = { rows: "5", spellcheck: "false", required: true, "aria-label": label, placeholder };
  const text = h("textarea", look);

  /** @param {Event} event */
  function open(event) {
    event.preventDefault();
    ofTab.set("wotd-game", { text: text.value, review: true });
    location.hash = "#/game";
  }

  const buttons = h("div.buttons", h("button", t("Step through")));
  const title = h("h2", { id: "recorded-title" }, t("Recorded game"));
  const form = h("form", { onsubmit: open }, text, buttons);
  return h("section.card", { "aria-labelledby": "recorded-title" }, title, form);
}

/** Join a table, given its id and an invitation, if any. @type {Page} */
export async function joinPage(main, _signal, table, invitation) {
  if (keys.of(table)) return location.replace(`#/table/${table}`);
  const asked = invitation ? { invitation } : {};
  const own = randomKey(); // a repeated request takes no second seat
  const what = h("p");
  const error = errorLine();
  const stored = kept.get("wotd-name", "");
  const name = h("input", { name: "name", maxlength: "24", autocomplete: "nickname", value: stored });
  const buttons = h("div.buttons", h("button.primary", t("Take the seat")));
  const form = h("form", { onsubmit: join }, h("label", t("Your name"), name), buttons);
  main.append(h("section.card.narrow", h("h1", t("Join a game")), what, form, error.element));

  /** @param {Event} event */
  async function join(event) {
    event.preventDefault();
    const called = name.value.trim();
    if (called) kept.set("wotd-name", called);
    try {
      const body = { name: called, ...asked, key: own };
      const { key } = await ask(`${pathOf(table)}/join`, { body });
      keys.add(table, { key });
      location.replace(`#/table/${table}`);
    } catch (reason) {
      error.show(reason);
    }
  }

  try {
    what.textContent = invitationWords(await ask(`${pathOf(table)}/invitation`, { body: asked }));
  } catch (reason) {
    error.show(reason);
    form.hidden = true;
  }
}

/** @param {{seat: number|null, table: Entry}} found the seat is null for any open one */
function invitationWords({ seat, table: entry }) {
  const place = seat === null ? t("an open seat") : t("seat {letter}", { letter: SEATS[seat] });
  const names = entry.seats.filter(({ taken }) => taken).map(({ name }) => name);
  const values = { place, names: names.join(", ") };
  const free = names.length
    ? t("There is {place} for you, with {names}.", values)
    : t("There is {place} for you.", values);
  const help = entry.help ? ` ${capital(t("win chances and hints are on"))}.` : "";
  return `${free} ${capital(rulesWords(entry.rules))}.${help}`;
}
