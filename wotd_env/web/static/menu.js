/** The menu of a table: share, resign, give a seat to an agent, delete. */

import { linkTo } from "./address.js";
import { agentsFor, ask, deleteTable, pathOf } from "./api.js";
import { copyButton, errorLine, h, workButton } from "./dom.js";
import { controlsAgents } from "./pace.js";
import { soundTick } from "./sound.js";
import { heard, t } from "./text.js";

/** @import {Keys} from "./api.js" */
/** @import {makePace} from "./pace.js" */
/** @import {Agent, Seat, View} from "./types.js" */

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
