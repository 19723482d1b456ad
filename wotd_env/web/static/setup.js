/** The form that sets up a table. */

import { ask, createTable } from "./api.js";
import { kept } from "./browser.js";
import { errorLine, h, select } from "./dom.js";
import { ableAgent, agentOptions, USUAL_AGENT } from "./menu.js";
import { capital, PACES, reasonWords, SEATS, t } from "./words.js";

/** @import {Agent, Options, Range, Setup} from "./types.js" */

/**
 * @typedef {{kind: string, name: string, agent: string}} WantedSeat
 * @typedef {{seats: WantedSeat[], fields: Record<string, string>}} Settings of the last table, by the names of the fields
 */

const SETTINGS = "wotd-settings";

const KINDS = {
  here: t("a person at this screen"),
  invited: t("a person by invitation link"),
  open: t("anyone on this server"),
  agent: t("an agent"),
};
/** @type {Record<string, string>} */
const RULE_WORDS = {
  none: t("none (basic game)"),
  own: t("each animal its own"),
  any: t("any one, once per game"),
  dragons: t("most dragons rolled"),
  loser: t("the loser of the previous game"),
  null: t("in order"),
  random: t("random"),
};

/**
 * Make the form. `position` and `names` are those of a game to continue, or empty.
 * @param {Setup} setup @param {string} position @param {string[]} names
 */
export function setUpForm(setup, position, names) {
  const error = errorLine();
  const { least, most, default: usual } = setup.rules.players;
  const counts = Array.from({ length: most - least + 1 }, (_, i) => String(least + i));
  const options = { values: counts, default: String(names.length || usual) };
  const count = selectField(options, "players", t("Players"));
  const own = kept.get("wotd-name", "");
  /** @type {Settings|null} */
  const last = position ? null : kept.get(SETTINGS, null);
  const rows = Array.from({ length: most }, (_, seat) =>
    seatRow(seat, last?.seats[seat] ?? firstSeat(seat, names, setup.agents, own), setup),
  );
  const list = h("ol.seat-list");
  const note = h("p.quiet", { hidden: true });
  const moreRules = rulesFields(setup, position);
  const powers = selectField(setup.rules.powers, "powers", t("Powers of the animals"));
  const watch = h("button", { type: "button" }, t("Watch agents play"));
  const now = h("button.primary", { type: "button", onclick: () => open({}) }, t("Play now"));
  const buttons = h("div.buttons", h("button.primary", t("Start the game")), watch);
  const basics = h("div.fields", count, powers);
  const form = h("form", basics, h("div.seat-box", list, note), moreRules, error.element, buttons);
  for (const [name, value] of Object.entries(last?.fields ?? {})) {
    const field = /** @type {HTMLInputElement|null} */ (form.elements.namedItem(name));
    if (field?.type === "checkbox") field.checked = true;
    else if (field && name !== "position") field.value = value;
  }
  const dead = /** @type {HTMLInputElement} */ (form.elements.namedItem("dead_pieces"));
  const players = /** @type {HTMLSelectElement} */ (form.elements.namedItem("players"));
  let asked = 0;
  /** Finishes when the form is adapted to its last change. */
  let fitted = Promise.resolve();

  /** Adapt the form to its number of players, and offer the agents that play the rules. @returns {Promise<void>} */
  async function fit() {
    const fields = new FormData(form);
    const [rules, position] = [rulesOf(fields), textOf(fields, "position")];
    const most = setup.most_dead_pieces[rules.players - least][rules.spaces] ?? rules.dead_pieces; // undefined for wrong spaces
    rules.dead_pieces = Math.min(rules.dead_pieces, most);
    dead.max = String(most);
    dead.value = String(rules.dead_pieces);
    list.replaceChildren(...rows.slice(0, rules.players).map(({ element }) => element));
    const now = ++asked;
    const wanted = position ? { position } : { rules };
    const found = await ask("api/agents", { body: wanted }).catch(() => null);
    if (!found || now !== asked) return;
    if (found.players !== rules.players) {
      players.value = String(found.players); // of the position
      return fit();
    }
    /** @type {{agents: Agent[]}} */
    const { agents } = found;
    for (const row of rows) row.offer(agents);
    const reasons = agents.flatMap(({ why }) => (why ? [reasonWords(why)] : []));
    note.hidden = reasons.length === 0;
    note.textContent = `${reasons.join("; ")}.`;
  }

  /** @param {{kind?: string}} changes of all seats */
  async function open(changes) {
    await fitted;
    const fields = new FormData(form);
    const wanted = rows.slice(0, rulesOf(fields).players).map((row) => ({ ...row.wanted(), ...changes }));
    error.hide();
    const here = wanted.find(({ kind, name }) => kind === "here" && name);
    if (here) kept.set("wotd-name", here.name);
    const settings = { seats: rows.map((row) => row.wanted()), fields: Object.fromEntries(fields) };
    if (!position && !changes.kind) kept.set(SETTINGS, settings);
    try {
      location.hash = `#/table/${await createTable(requestOf(wanted, fields))}`;
    } catch (reason) {
      error.show(reason);
    }
  }

  const change = () => {
    fitted = fit();
  };
  form.addEventListener("change", change);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    open({});
  });
  watch.addEventListener("click", () => open({ kind: "agent" }));
  change();
  const title = h("h2", { id: "set-up-title" }, t("Set up a table"));
  return [h("div.buttons", title, now), form];
}

/** @param {FormData} fields @param {string} name */
const textOf = (fields, name) => String(fields.get(name) ?? "").trim();

/** @param {FormData} fields */
function rulesOf(fields) {
  const colors = textOf(fields, "colors");
  return {
    players: Number(fields.get("players")),
    powers: textOf(fields, "powers"),
    spaces: Number(fields.get("spaces")),
    dead_pieces: Number(fields.get("dead_pieces")),
    immunity: fields.has("immunity"),
    start: textOf(fields, "start"),
    ...(colors === "null" ? {} : { colors }),
  };
}

/** @param {number} seat @param {WantedSeat} first @param {Setup} setup */
function seatRow(seat, first, setup) {
  const letter = SEATS[seat];
  const chosen = { "aria-label": t("who plays seat {letter}", { letter }), value: first.kind };
  const kind = select({ ...chosen, onchange: fit }, Object.entries(KINDS));
  const typed = { placeholder: t("name"), maxlength: setup.name_length, autocomplete: "off" };
  const called = { "aria-label": t("name of seat {letter}", { letter }), value: first.name };
  const name = h("input", { ...typed, ...called });
  const agent = h("select", { "aria-label": t("agent of seat {letter}", { letter }) });
  const number = h("span.number", capital(t("seat {letter}", { letter })));

  function fit() {
    name.hidden = kind.value !== "here";
    agent.hidden = kind.value !== "agent";
  }

  /** @param {Agent[]} agents */
  function offer(agents) {
    const selected = ableAgent(agents, agent.value || first.agent);
    agent.replaceChildren(...agentOptions(agents));
    agent.value = selected;
  }

  /** @returns {WantedSeat} */
  const wanted = () => ({ kind: kind.value, name: name.value.trim(), agent: agent.value });
  fit();
  offer(setup.agents);
  return { element: h("li", number, kind, name, agent), offer, wanted };
}

/** @param {Options} options @param {string} name @param {string} label */
function selectField({ values, default: usual }, name, label) {
  const words = (/** @type {string} */ value) => RULE_WORDS[value] ?? value;
  const options = values.map(String).map((value) => [value, words(value)]);
  return h("label", label, select({ name, value: String(usual) }, options));
}

/** @param {Range} range @param {string} name @param {string} label */
function numberField({ least, most, default: usual }, name, label) {
  const properties = { type: "number", name, min: least, max: most, value: String(usual), required: true };
  return h("label", label, h("input", properties));
}

/** @param {Setup} setup @param {string} position */
function rulesFields({ rules, pace }, position) {
  const tick = h("input", { type: "checkbox", name: "immunity" });
  const immunity = h("label.tick", tick, t("Animals on the path of their own color cannot be swapped"));
  const field = { name: "position", value: position, spellcheck: "false", autocomplete: "off" };
  const line = h("input", { ...field, placeholder: "..A....|B..../…" });
  const helps = { "": t("on if all seats are at this screen or agents"), yes: t("on"), no: t("off") };
  const help = select({ name: "help", value: "" }, Object.entries(helps));
  const speed = select({ name: "pace", value: String(pace.default) }, PACES);
  const times = ["30", "60", "120", "300"].map((seconds) => [seconds, `${seconds} s`]);
  const clock = select({ name: "clock", value: "" }, [["", t("no limit")], ...times]);
  const fields = h(
    "div.fields",
    numberField(rules.spaces, "spaces", t("Plain spaces of a path")),
    numberField(rules.dead_pieces, "dead_pieces", t("Dead pieces")),
    selectField(rules.colors, "colors", t("Colors")),
    selectField(rules.start, "start", t("Starting player")),
    immunity,
    h("label.wide", t("Win chances and hints"), help),
    h("label", t("Speed of agents"), speed),
    h("label", t("Time for a decision"), clock),
    h("label.wide", t("Start from a position (with its own rules)"), line),
  );
  return h("details", { open: Boolean(position) }, h("summary", t("More rules")), fields);
}

/**
 * Return the default player of a seat: that of `players`, if a game is continued. Otherwise seat A is for the person
 * `own`, and the others are for agents.
 * @param {number} seat @param {string[]} players @param {Agent[]} agents @param {string} own
 */
export function firstSeat(seat, players, agents, own) {
  const name = players[seat];
  if (name === undefined)
    return { kind: seat === 0 ? "here" : "agent", name: seat === 0 ? own : "", agent: USUAL_AGENT };
  if (agents.some((agent) => agent.name === name)) return { kind: "agent", name: "", agent: name };
  const nameless = name === `Player ${SEATS[seat]}`;
  return { kind: "here", name: nameless ? "" : name, agent: USUAL_AGENT };
}

/** Return the body of a request for a table. @param {WantedSeat[]} seats @param {FormData} fields */
export function requestOf(seats, fields) {
  const [position, help] = [textOf(fields, "position"), textOf(fields, "help")]; // `help` is "yes", "no" or empty
  return {
    seats: seats.map(({ kind, name, agent }) => (kind === "agent" ? { kind, agent } : { kind, name })),
    pace: Number(fields.get("pace")),
    clock: Number(fields.get("clock")) || null,
    ...(position ? { position } : { rules: rulesOf(fields) }),
    ...(help ? { help: help === "yes" } : {}),
  };
}
