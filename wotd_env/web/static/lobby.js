/** The lobby: set up a table, find one, or load a recorded game. */

import { ask, keys } from "./api.js";
import { errorLine, glyph, h, waitLine } from "./dom.js";
import { setUpForm } from "./setup.js";
import { ANIMALS, counted, seatName } from "./words.js";

/** @import {Entry, View} from "./types.js" */

const OWN_TABLES = 8;

/**
 * Show the lobby.
 * @param {HTMLElement} main
 * @param {string} [position] a line to start from
 * @param {string[]} [players] names of its players
 * @returns {() => void} what closes it
 */
export function lobbyPage(main, position = "", players = []) {
  let over = false;
  let timer = 0;
  const setUp = h("section", { class: "card set-up", "aria-labelledby": "set-up-title" });
  const openTables = h("section", { class: "card", "aria-labelledby": "open-title" });
  const ownTables = h("section", { class: "card", "aria-labelledby": "own-title", hidden: true });
  const column = h("div", { class: "column" }, ownTables, openTables, recordedGame());
  main.append(hero(), h("div", { class: "lobby" }, setUp, column));

  async function begin() {
    try {
      const setup = await ask("/api/setup");
      if (over) return;
      if (setup.ready) {
        setUp.replaceChildren(...setUpForm(setup, position, players));
        showOwnTables(ownTables);
        showOpen();
      } else {
        setUp.replaceChildren(waitLine("The server is warming up …"));
        timer = setTimeout(begin, 1000);
      }
    } catch (reason) {
      if (over) return;
      const error = errorLine();
      error.show(reason);
      setUp.replaceChildren(error.element);
      timer = setTimeout(begin, 3000);
    }
  }

  async function showOpen() {
    const { tables } = await ask("/api/tables").catch(() => ({ tables: [] }));
    if (over) return;
    const none = "No table has an open seat. Set one up with a seat for anyone on this server.";
    openTables.replaceChildren(
      h("h2", { id: "open-title" }, "Open tables"),
      tables.length
        ? h("ul", { class: "tables" }, ...tables.map(openTable))
        : h("p", { class: "quiet" }, none),
    );
    timer = setTimeout(showOpen, 4000);
  }

  begin();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

function hero() {
  const animals = ANIMALS.map((_, color) => glyph(`piece-${color}`));
  return h(
    "header",
    { class: "hero" },
    h("h1", {}, "Way of the Dragon"),
    h("p", {}, "Five paths, five dice, five animals. Roll, keep, move: the most points win."),
    h("div", { class: "parade", "aria-hidden": "true" }, ...animals),
  );
}

/** @param {Entry} entry */
function openTable({ table, rules_words: words, seats, open }) {
  const who = seats.filter(({ taken }) => taken).map(seatName);
  return h(
    "li",
    {},
    h("a", { href: `#/open/${table}` }, `Join ${who.join(", ") || "an empty table"}`),
    h("span", { class: "quiet" }, `${counted(open.length, "open seat")} · ${words}`),
  );
}

/** @param {HTMLElement} section */
async function showOwnTables(section) {
  const latest = Object.keys(keys.all()).reverse().slice(0, OWN_TABLES);
  const items = (await Promise.all(latest.map(ownTable))).filter((item) => item !== null);
  section.hidden = items.length === 0;
  section.replaceChildren(
    h("h2", { id: "own-title" }, "Your tables"),
    h("ul", { class: "tables" }, ...items),
  );
}

/**
 * Make the entry of a table of this browser; a table that is gone is forgotten.
 * @param {string} table
 */
async function ownTable(table) {
  try {
    /** @type {View} */
    const view = await ask(`/api/tables/${encodeURIComponent(table)}`, { key: keys.of(table)?.key });
    const state = { waiting: "waits for players", playing: `turn ${view.turn + 1}`, over: "over" };
    return h(
      "li",
      {},
      h("a", { href: `#/table/${table}` }, view.seats.map(seatName).join(", ")),
      h("span", { class: "quiet" }, state[/** @type {keyof typeof state} */ (view.status)]),
    );
  } catch (refusal) {
    if ([403, 404].includes(/** @type {any} */ (refusal).status)) keys.drop(table);
    return null;
  }
}

function recordedGame() {
  const text = h("textarea", {
    rows: "5",
    spellcheck: "false",
    "aria-label": "text of a game or a position",
    placeholder: "Paste a text from “Copy the game” here",
  });
  const graded = h("input", { type: "checkbox", checked: true });
  const error = errorLine();

  /** @param {Event} event */
  function open(event) {
    event.preventDefault();
    if (!text.value.trim()) {
      error.show("Paste the text of a game first.");
      return;
    }
    sessionStorage.setItem("wotd-game", JSON.stringify({ text: text.value, review: graded.checked }));
    location.hash = "#/game";
  }

  return h(
    "section",
    { class: "card", "aria-labelledby": "recorded-title" },
    h("h2", { id: "recorded-title" }, "Recorded game"),
    h(
      "form",
      { onsubmit: open },
      text,
      h("label", { class: "tick" }, graded, "Find errors and luck"),
      error.element,
      h("div", { class: "buttons" }, h("button", {}, "Step through")),
    ),
  );
}
