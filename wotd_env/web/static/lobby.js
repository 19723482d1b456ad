/** Where tables are set up, found and joined. */

import { ask, keys, kept } from "./api.js";
import { ANIMALS, capital } from "./board.js";
import { glyph, h, say } from "./dom.js";

const KINDS = {
  here: "a person at this screen",
  invited: "a person by invitation link",
  open: "anyone on this server",
  agent: "an agent",
};
const RULE_WORDS = {
  none: "none (basic game)",
  own: "each animal its own",
  any: "any one, once a game",
  dragons: "most dragons rolled",
  loser: "the loser of the game before",
};

/**
 * Show the lobby.
 * @param {HTMLElement} main
 * @param {string} [position] a line to start from
 * @returns {() => void}
 */
export function lobbyPage(main, position = "") {
  let over = false;
  let timer = 0;
  const setUp = h("section", { class: "card set-up", "aria-labelledby": "set-up-title" });
  const openTables = h("section", { class: "card", "aria-labelledby": "open-title" });
  const ownTables = h("section", { class: "card", "aria-labelledby": "own-title", hidden: true });
  main.append(
    h(
      "header",
      { class: "hero" },
      h("h1", {}, "Way of the Dragon"),
      h("p", {}, "Five paths, five dice, five animals. Roll, keep, move; the most points win."),
      h(
        "div",
        { class: "parade", "aria-hidden": "true" },
        ...ANIMALS.map((_, color) => glyph(`piece-${color}`)),
      ),
    ),
    h("div", { class: "lobby" }, setUp, h("div", { class: "column" }, ownTables, openTables, recorded())),
  );

  async function begin() {
    try {
      const setup = await ask("/api/setup");
      if (over) return;
      if (!setup.ready) {
        setUp.replaceChildren(
          h("p", { class: "waits" }, h("span", { class: "dots" }), "The server is warming up …"),
        );
        timer = setTimeout(begin, 1000);
        return;
      }
      setUp.replaceChildren(...setUpForm(setup, position));
      showOwn();
      showOpen();
    } catch (refusal) {
      if (over) return;
      setUp.replaceChildren(h("p", { class: "error" }, /** @type {Error} */ (refusal).message));
      timer = setTimeout(begin, 3000);
    }
  }

  async function showOpen() {
    const { tables } = await ask("/api/tables").catch(() => ({ tables: [] }));
    if (over) return;
    openTables.replaceChildren(
      h("h2", { id: "open-title" }, "Open tables"),
      tables.length
        ? h("ul", { class: "tables" }, ...tables.map(openTable))
        : h(
            "p",
            { class: "quiet" },
            "No table has an open seat. Set one up with a seat for anyone on this server.",
          ),
    );
    timer = setTimeout(showOpen, 4000);
  }

  async function showOwn() {
    const mine = Object.entries(keys.all()).reverse().slice(0, 8);
    const items = await Promise.all(
      mine.map(async ([table, { key }]) => {
        try {
          const view = await ask(`/api/tables/${table}`, { key });
          const who = view.seats.map(({ name, letter }) => name || `seat ${letter}`).join(", ");
          const state = { waiting: "waits for players", playing: `turn ${view.turn + 1}`, over: "over" }[
            view.status
          ];
          return h("li", {}, h("a", { href: `#/table/${table}` }, who), h("span", { class: "quiet" }, state));
        } catch (refusal) {
          if ([403, 404].includes(/** @type {any} */ (refusal).status)) keys.drop(table);
          return null;
        }
      }),
    );
    const there = items.filter((item) => item !== null);
    if (over || !there.length) return;
    ownTables.hidden = false;
    ownTables.replaceChildren(
      h("h2", { id: "own-title" }, "Your tables"),
      h("ul", { class: "tables" }, ...there),
    );
  }

  begin();
  return () => {
    over = true;
    clearTimeout(timer);
  };
}

/** @param {any} entry of the list of open tables */
function openTable({ table, rules_words: words, seats, open }) {
  const who = seats
    .filter(({ taken }) => taken)
    .map(({ name, letter }) => name || `seat ${letter}`)
    .join(", ");
  const free = `${open.length} open seat${open.length === 1 ? "" : "s"}`;
  return h(
    "li",
    {},
    h("a", { href: `#/open/${table}` }, `Join ${who || "an empty table"}`),
    h("span", { class: "quiet" }, `${free} · ${words}`),
  );
}

/** @param {any} setup @param {string} position */
function setUpForm(setup, position) {
  const { rules, agents, name_length: longest } = setup;
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const seatList = h("ol", { class: "seat-list" });
  /** @type {{kind: HTMLSelectElement, name: HTMLInputElement, agent: HTMLSelectElement}[]} */
  let rows = [];

  const players = h(
    "fieldset",
    { class: "segments" },
    h("legend", {}, "Players"),
    ...range(rules.players.least, rules.players.most).map((count) =>
      h(
        "label",
        {},
        h("input", {
          type: "radio",
          name: "players",
          value: String(count),
          checked: count === rules.players.default,
          onchange: () => seat(count),
        }),
        h("span", {}, String(count)),
      ),
    ),
  );
  const count = () => Number(players.querySelector("input:checked").value);

  /** @param {number} many */
  function seat(many) {
    rows = rows.slice(0, many);
    while (rows.length < many) rows.push(seatRow(rows.length));
    seatList.replaceChildren(
      ...rows.map(({ kind, name, agent }, i) =>
        h("li", {}, h("span", { class: "number" }, `Seat ${"ABCDE"[i]}`), kind, name, agent),
      ),
    );
    dead.max = String(5 * (5 - many));
    dead.value = String(Math.min(Number(dead.value), Number(dead.max)));
  }

  /** @param {number} i */
  function seatRow(i) {
    const letter = "ABCDE"[i];
    const kind = h(
      "select",
      { "aria-label": `who plays seat ${letter}`, value: i === 0 ? "here" : "agent", onchange: fit },
      ...Object.entries(KINDS).map(([value, words]) => h("option", { value }, words)),
    );
    const name = h("input", {
      "aria-label": `name of seat ${letter}`,
      placeholder: "name",
      maxlength: longest,
      autocomplete: "off",
      value: i === 0 ? kept.get("wotd-name", "") : "",
    });
    const agent = h(
      "select",
      { "aria-label": `agent of seat ${letter}`, value: "planner" },
      ...agents.map(({ name: value, words }) => h("option", { value, title: words }, value)),
    );
    function fit() {
      name.hidden = kind.value === "agent" || kind.value === "open";
      agent.hidden = kind.value !== "agent";
    }
    fit();
    return { kind, name, agent };
  }

  /** @param {string} field @param {string} label */
  function choice(field, label) {
    const { values, default: usual } = rules[field];
    const select = h(
      "select",
      { name: field, value: String(usual) },
      ...values.map((value) =>
        h(
          "option",
          { value: String(value) },
          RULE_WORDS[value] ?? (value === null ? "in order" : String(value)),
        ),
      ),
    );
    return h("label", {}, label, select);
  }

  /** @param {string} field @param {string} label */
  function number(field, label) {
    const { least, most, default: usual } = rules[field];
    return h(
      "label",
      {},
      label,
      h("input", {
        type: "number",
        name: field,
        min: least,
        max: most,
        value: String(usual),
        required: true,
      }),
    );
  }

  const deadField = number("dead_pieces", "Dead pieces");
  const dead = deadField.querySelector("input");
  const immunity = h(
    "label",
    { class: "tick" },
    h("input", { type: "checkbox", name: "immunity" }),
    "Animals on the path of their own colour cannot be swapped",
  );
  const line = h("input", {
    name: "position",
    value: position,
    spellcheck: "false",
    autocomplete: "off",
    placeholder: "..A....|B..../…",
  });
  const help = h(
    "select",
    { name: "help", value: "" },
    h("option", { value: "" }, "if all seats are at this screen or agents"),
    h("option", { value: "yes" }, "on"),
    h("option", { value: "no" }, "off"),
  );
  const pace = h(
    "select",
    { name: "pace", value: String(setup.pace.default) },
    h("option", { value: "0.2" }, "fast"),
    h("option", { value: String(setup.pace.default) }, "normal"),
    h("option", { value: "2" }, "slow"),
  );

  const form = h(
    "form",
    { onsubmit: create },
    players,
    seatList,
    choice("powers", "Powers of the animals"),
    h(
      "details",
      { open: Boolean(position) },
      h("summary", {}, "More rules"),
      h(
        "div",
        { class: "fields" },
        number("spaces", "Plain spaces of a path"),
        deadField,
        choice("colors", "Colours"),
        choice("start", "Who starts"),
        immunity,
        h("label", { class: "wide" }, "Win chances and hints", help),
        h("label", {}, "Agents play", pace),
        h("label", { class: "wide" }, "Start from a position, which brings its rules", line),
      ),
    ),
    error,
    h(
      "div",
      { class: "buttons" },
      h("button", { class: "primary" }, "Start the game"),
      h("button", { type: "button", onclick: watch }, "Watch agents play"),
    ),
  );

  /** @param {Event} event */
  function create(event) {
    event.preventDefault();
    open(
      rows
        .slice(0, count())
        .map(({ kind, name, agent }) =>
          kind.value === "agent"
            ? { kind: "agent", agent: agent.value }
            : { kind: kind.value, name: name.value.trim() },
        ),
    );
  }

  function watch() {
    open(rows.slice(0, count()).map(({ agent }) => ({ kind: "agent", agent: agent.value })));
  }

  /** @param {any[]} seats */
  async function open(seats) {
    const fields = new FormData(form);
    /** @type {Record<string, any>} */
    const body = { seats, pace: Number(fields.get("pace")) };
    const start = String(fields.get("position")).trim();
    if (start) body.position = start;
    else {
      const colors = fields.get("colors");
      body.rules = {
        players: count(),
        powers: fields.get("powers"),
        spaces: Number(fields.get("spaces")),
        dead_pieces: Number(fields.get("dead_pieces")),
        immunity: fields.has("immunity"),
        start: fields.get("start"),
        colors: colors === "null" ? null : colors,
      };
    }
    if (fields.get("help")) body.help = fields.get("help") === "yes";
    const here = seats.find(({ kind }) => kind === "here");
    if (here?.name) kept.set("wotd-name", here.name);
    error.hidden = true;
    try {
      const { table, key, watch: link, invitations } = await ask("/api/tables", { body });
      keys.add(table, { key, watch: link, invitations });
      location.hash = `#/table/${table}`;
    } catch (refusal) {
      error.textContent = /** @type {Error} */ (refusal).message;
      error.hidden = false;
    }
  }

  if (position) {
    const many = position.match(/ ([wfmeo]{2,5})[( ]/)?.[1].length;
    const button = many && players.querySelector(`input[value="${many}"]`);
    if (button) button.checked = true;
  }
  seat(count());
  return [h("h2", { id: "set-up-title" }, "Set up a table"), form];
}

function recorded() {
  const text = h("textarea", {
    rows: "5",
    spellcheck: "false",
    "aria-label": "text of a game or a position",
    placeholder: "The text of a game, as “Copy the game” gives it",
  });
  const graded = h("input", { type: "checkbox", checked: true });
  const error = h("p", { class: "error", role: "alert", hidden: true });
  return h(
    "section",
    { class: "card", "aria-labelledby": "recorded-title" },
    h("h2", { id: "recorded-title" }, "Recorded game"),
    h(
      "form",
      {
        onsubmit(event) {
          event.preventDefault();
          if (!text.value.trim()) {
            error.textContent = "Paste the text of a game first.";
            error.hidden = false;
            return;
          }
          sessionStorage.setItem("wotd-game", JSON.stringify({ text: text.value, review: graded.checked }));
          location.hash = "#/game";
        },
      },
      text,
      h("label", { class: "tick" }, graded, "Find errors and luck"),
      error,
      h("div", { class: "buttons" }, h("button", {}, "Step through")),
    ),
  );
}

/**
 * Join a table, by an invitation or at an open seat.
 * @param {HTMLElement} main
 * @param {string} table
 * @param {string|null} invitation
 * @returns {() => void}
 */
export function joinPage(main, table, invitation) {
  if (keys.of(table)) {
    location.replace(`#/table/${table}`);
    return () => {};
  }
  const what = h("p", {}, "");
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const name = h("input", {
    name: "name",
    maxlength: "24",
    autocomplete: "nickname",
    value: kept.get("wotd-name", ""),
  });
  const form = h(
    "form",
    { onsubmit: join },
    h("label", {}, "Your name", name),
    h("div", { class: "buttons" }, h("button", { class: "primary" }, "Take the seat")),
  );
  main.append(h("section", { class: "card narrow" }, h("h1", {}, "Join a game"), what, form, error));

  /** @param {unknown} refusal @param {boolean} [final] */
  function fail(refusal, final = false) {
    error.textContent = /** @type {Error} */ (refusal).message;
    error.hidden = false;
    form.hidden = final;
  }

  async function look() {
    try {
      const { seat, table: entry } = invitation
        ? await ask(`/api/tables/${table}/invitation`, { body: { invitation } })
        : { seat: null, table: (await ask(`/api/tables?table=${encodeURIComponent(table)}`)).tables[0] };
      if (!entry) return fail(new Error("This table has no open seat any more."), true);
      const others = entry.seats
        .filter((other) => other.taken)
        .map((other) => other.name || `seat ${other.letter ?? "ABCDE"[other.seat]}`);
      const place = seat === null ? "an open seat" : `seat ${"ABCDE"[seat]}`;
      what.textContent = `There is ${place} for you${others.length ? `, with ${others.join(", ")}` : ""}. ${capital(entry.rules_words)}.${entry.help ? " Win chances and hints are on." : ""}`;
    } catch (refusal) {
      fail(refusal, true);
    }
  }

  /** @param {Event} event */
  async function join(event) {
    event.preventDefault();
    const called = name.value.trim();
    if (called) kept.set("wotd-name", called);
    try {
      const { key } = await ask(`/api/tables/${table}/join`, {
        body: { name: called, ...(invitation ? { invitation } : {}) },
      });
      keys.add(table, { key });
      say("You have taken the seat.");
      location.replace(`#/table/${table}`);
    } catch (refusal) {
      fail(refusal);
    }
  }

  look();
  return () => {};
}

/** @param {number} least @param {number} most */
const range = (least, most) => Array.from({ length: most - least + 1 }, (_, i) => least + i);
