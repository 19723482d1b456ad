/** The controls of a table: its speed, and the menu to share, resign, give a seat to an agent, or delete. */

import { linkTo } from "./address.js";
import { agentsFor, ask, deleteTable, pathOf } from "./api.js";
import { copyButton, errorLine, h, select, workButton } from "./dom.js";
import { soundTick } from "./sound.js";
import { heard, t } from "./text.js";
import { PACES } from "./words.js";

/** @import {Keys} from "./api.js" */
/** @import {Agent, Seat, View} from "./types.js" */

const USUAL = 0.8;

/** Whether only agents play, and this browser controls them. @param {View} view */
export const controlsAgents = ({ host, seats }) => host && seats.every(({ kind }) => kind === "agent");

/**
 * Make the controls for the speed of a table. Errors go to `failed`.
 * @param {string} table @param {string} key @param {(reason: unknown) => void} failed
 */
export function makePace(table, key, failed) {
  let before = USUAL; // the speed to continue with after a pause

  /** @param {number|null} pace */
  const set = (pace) => ask(`${pathOf(table)}/pace`, { key, body: { pace } }).catch(failed);

  /** @param {View} view */
  async function step({ pace, ply }) {
    if (pace !== null) await set(null);
    await ask(`${pathOf(table)}/step`, { key, body: { ply } }).catch((refusal) => {
      if (refusal.status !== 409) failed(refusal); // 409: this decision has been taken meanwhile
    });
  }

  /** @param {View} view */
  function speedSelect({ pace }) {
    const options = Object.entries(PACES);
    const named = pace !== null && String(pace) in PACES;
    if (!named) options.unshift(["", pace === null ? t("paused") : `${pace} s`]);
    const value = named ? String(pace) : "";
    const look = { "aria-label": t("Speed of agents"), "data-name": "speed", value };
    const element = select({ ...look, onchange: () => set(Number(element.value)) }, options);
    return element;
  }

  /** The buttons for a table of agents. @param {View} view */
  function buttons(view) {
    const paused = view.pace === null;
    before = view.pace ?? before;
    const pausing = { "data-name": "pause", onclick: () => set(paused ? before : null) };
    const stepping = { "data-name": "step", class: paused ? "primary" : "", onclick: () => step(view) };
    const pause = h("button", pausing, paused ? t("Continue") : t("Pause"));
    return [pause, h("button", stepping, t("Step")), speedSelect(view)];
  }

  return { buttons, speedSelect };
}

/**
 * @param {string} table @param {Keys} own @param {ReturnType<typeof makePace>} pace
 * @param {() => View|null} viewNow returns null before the first view
 */
export function makeMenu(table, own, pace, viewNow) {
  const path = pathOf(table);
  const gameText = async () => (await ask(`${path}/text`, { key: own.key })).text;
  const share = h(
    "div.share",
    h("h3", t("Share")),
    copyButton(t("Copy the position"), () => viewNow()?.position ?? ""),
    copyButton(t("Copy the game"), gameText),
    workButton(t("Save the game"), save),
    own.watch && copyButton(t("Copy a link to watch"), linkTo(`watch/${table}/${own.watch}`)),
  );
  const rest = h("div");
  const title = h("summary", t("Share, seats, resign"));
  const element = h("details.card.menu", title, share, rest, soundTick());
  let shown = "";

  async function save() {
    const url = URL.createObjectURL(new Blob([await gameText()], { type: "text/plain" }));
    h("a", { href: url, download: `wotd-${table}.txt` }).click();
    URL.revokeObjectURL(url);
  }

  async function resign() {
    const view = viewNow();
    if (!view || !window.confirm(t("Resign this game?"))) return;
    const seat = view.mine.includes(view.player) ? view.player : view.mine[0];
    await ask(`${path}/resign`, { key: own.key, body: { game: view.game, seat } });
  }

  async function remove() {
    if (await deleteTable(table, own.key)) location.hash = "#/";
  }

  /** @param {View} view */
  function show(view) {
    const given = (/** @type {Seat} */ { mine, connected }) => mine || (view.host && !connected);
    const seats = view.seats.filter((seat) => seat.kind !== "agent" && given(seat));
    const resigns = view.status === "playing" && view.mine.length > 0 && view.seats.length === 2;
    const slows = view.host && view.seats.some(({ kind }) => kind === "agent") && !controlsAgents(view);
    const names = seats.map(({ seat, name }) => [seat, name]);
    const now = JSON.stringify([names, resigns, slows && view.pace, view.host]);
    if (now === shown) return;
    shown = now;
    const parts = [
      slows && h("h3", t("Speed of agents")),
      slows && pace.speedSelect(view),
      seats.length > 0 && h("h3", t("Give a seat to an agent")),
      ...seats.map((seat) => handOverRow(seat, view, `${path}/seat`, own.key)),
      (resigns || view.host) && h("h3", t("End")),
      resigns && workButton(t("Resign"), resign),
      view.host && workButton(t("Delete the table"), remove),
    ];
    rest.replaceChildren(h("div.share", ...parts));
  }

  return { element, show };
}

/** @param {Seat} seat @param {View} view @param {string} path @param {string} key */
function handOverRow(seat, view, path, key) {
  const select = h("select", { "aria-label": t("agent for {name}", { name: seat.name }) });
  const error = errorLine();
  agentsFor({ rules: view.rules }).then((found) => select.append(...agentOptions(found)), error.show);
  const handOver = () => ask(path, { key, body: { seat: seat.seat, agent: select.value } });
  const button = workButton(t("Hand over"), handOver);
  return h("div.hand-over", h("span.name", seat.name), select, button, error.element);
}

/** Make the options of agents: the strengths first, then the others. @param {Agent[]} agents */
export function agentOptions(agents) {
  const strengths = agents.filter(({ level }) => level !== null);
  const others = agents.filter(({ level }) => level === null);
  return [
    h("optgroup", { label: t("By strength") }, ...strengths.map(agentOption)),
    h("optgroup", { label: t("By policy") }, ...others.map(agentOption)),
  ];
}

/** Make the option of an agent; a disabled one shows why it cannot play. @param {Agent} agent */
function agentOption({ name, words, level, plays, why }) {
  const label = level === null ? name : `${level} · ${t(name)}`;
  return h("option", { value: name, title: t(words), disabled: !plays }, heard(why) || label);
}
