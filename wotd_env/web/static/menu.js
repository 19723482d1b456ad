/** The controls of a table: its speed, and the menu to share, resign, give a seat to an agent, or delete the table. */

import { agentsFor, ask, keys, pathOf } from "./api.js";
import { linkTo } from "./browser.js";
import { copyButton, errorLine, h, select, workButton } from "./dom.js";
import { soundTick } from "./play.js";
import { PACES, reasonWords, t } from "./words.js";

/** @import {Agent, Keys, Seat, View} from "./types.js" */

const USUAL = 0.8;
export const USUAL_AGENT = "easy";
const STRONG = "strong";

/** Whether only agents play, and this browser controls them. @param {View} view */
export const controlsAgents = ({ host, seats }) => host && seats.every(({ kind }) => kind === "agent");

export class Controls {
  /** The shown table; null before the first view. @type {View|null} */
  view = null;
  /** What the menu depends on, as text. */
  shown = "";
  /** The speed to continue with after a pause. */
  before = USUAL;

  /** @param {string} table @param {Keys} own @param {(reason: unknown) => void} failed shows an error of the speed */
  constructor(table, own, failed) {
    this.table = table;
    this.own = own;
    this.failed = failed;
    const gameText = async () => (await this.ask("text")).text;
    const share = h(
      "div.share",
      h("h3", t("Share")),
      copyButton(t("Copy the position"), () => this.view?.position ?? ""),
      copyButton(t("Copy the game"), gameText),
      own.watch && copyButton(t("Copy a link to watch"), linkTo(`watch/${table}/${own.watch}`, own.address)),
    );
    this.rest = h("div");
    const title = h("summary", t("Share, seats, resign"));
    this.menu = h("details.card.menu", title, share, this.rest, soundTick());
  }

  /** Send a request about the table. @param {string} what @param {object} [body] */
  ask(what, body) {
    return ask(`${pathOf(this.table)}/${what}`, { key: this.own.key, body });
  }

  /** @param {number|null} pace */
  setPace(pace) {
    return this.ask("pace", { pace }).catch(this.failed);
  }

  /** Let the next decision be taken at once, or with `rush` all until a person is to act. */
  async step(rush = false) {
    const { pace, ply, game } = /** @type {View} */ (this.view);
    if (pace !== null && !rush) await this.setPace(null);
    await this.ask("step", { ply, game, rush }).catch((refusal) => {
      if (refusal.status !== 409) this.failed(refusal); // 409: this decision has been taken meanwhile
    });
  }

  /** @param {View} view */
  speedSelect({ pace }) {
    const named = PACES.some(([seconds]) => seconds === String(pace));
    const other = ["", pace === null ? t("paused") : `${pace} s`];
    const options = named ? PACES : [other, ...PACES];
    const value = named ? String(pace) : "";
    const look = { "aria-label": t("Speed of agents"), "data-name": "speed", value };
    const element = select({ ...look, onchange: () => this.setPace(Number(element.value)) }, options);
    return element;
  }

  /** The buttons for a table of agents. @param {View} view */
  paceButtons(view) {
    const paused = view.pace === null;
    this.before = view.pace ?? this.before;
    const toggle = (/** @type {MouseEvent} */ { detail }) => {
      if (detail < 2) this.setPace(paused ? this.before : null); // a double click pauses once
    };
    const pausing = { "data-name": "pause", onclick: toggle };
    const look = { "data-name": "step", class: paused ? "primary" : "" };
    const pause = h("button", pausing, paused ? t("Continue") : t("Pause"));
    const step = h("button", { ...look, onclick: () => this.step() }, t("Step"));
    return [pause, step, this.speedSelect(view)];
  }

  async resign() {
    if (!this.view || !window.confirm(t("Resign this game?"))) return;
    const { game, player, mine } = this.view;
    await this.ask("resign", { game, seat: mine.includes(player) ? player : mine[0] });
  }

  async remove() {
    if (!window.confirm(t("Delete this table and all its games?"))) return;
    await ask(pathOf(this.table), { key: this.own.key, method: "DELETE" });
    keys.drop(this.table);
    location.hash = "#/";
  }

  /** Show the part of the menu that depends on the state of the table. @param {View} view */
  show(view) {
    this.view = view;
    const seats = view.gives.map((seat) => view.seats[seat]);
    const resigns = view.status === "playing" && view.mine.length > 0 && view.seats.length === 2;
    const slows = view.host && view.seats.some(({ kind }) => kind === "agent") && !controlsAgents(view);
    const names = seats.map(({ seat, name }) => [seat, name]);
    const now = JSON.stringify([names, view.lent, resigns, slows && view.pace, view.host]);
    if (now === this.shown) return;
    this.shown = now;
    const parts = [
      slows && h("h3", t("Speed of agents")),
      slows && this.speedSelect(view),
      seats.length > 0 && h("h3", t("Give a seat to an agent")),
      ...seats.map((seat) => this.handOverRow(seat)),
      this.backButton(view),
      (resigns || view.host) && h("h3", t("End")),
      resigns && workButton(t("Resign"), () => this.resign()),
      view.host && workButton(t("Delete the table"), () => this.remove()),
    ];
    this.rest.replaceChildren(h("div.share", ...parts));
  }

  /** @param {Seat} seat */
  handOverRow({ seat, name }) {
    const select = h("select", { "aria-label": t("agent for {name}", { name }) });
    const error = errorLine();
    const { rules } = /** @type {View} */ (this.view);
    agentsFor({ rules }).then((found) => {
      select.append(...agentOptions(found));
      select.value = ableAgent(found, STRONG);
    }, error.show);
    const button = workButton(t("Hand over"), () => this.give(seat, select.value));
    return h("div.hand-over", h("span.name", name), select, button, error.element);
  }

  /** Give a seat to an agent, by default a strong one. @param {number} seat @param {string} [agent] */
  async give(seat, agent) {
    const { rules, seats } = /** @type {View} */ (this.view);
    const found = agent ?? ableAgent(await agentsFor({ rules }), STRONG);
    const values = { agent: t(found), name: seats[seat].name };
    const question = t("Let {agent} play for {name}? A player can take the seat back at any time.", values);
    if (window.confirm(question)) await this.ask("seat", { seat, agent: found });
  }

  /** Make the button that takes the person's seats back from agents. @param {View} view */
  backButton({ lent }) {
    const take = async () => {
      for (const seat of lent) await this.ask("seat", { seat, agent: null });
    };
    return lent.length > 0 && workButton(t("Take the seat back"), take, { class: "primary" });
  }
}

/** Return an agent that can play, preferably `wanted`. @param {Agent[]} agents @param {string} wanted */
export function ableAgent(agents, wanted) {
  const able = agents.filter(({ why }) => !why).map(({ name }) => name);
  return [wanted, USUAL_AGENT].find((name) => able.includes(name)) ?? able[0] ?? wanted;
}

/** Make the options of agents: the strengths first, then the others. @param {Agent[]} agents */
export function agentOptions(agents) {
  const options = agents.map(({ name, words, level, why }) => {
    const label = level === null ? name : `${level} · ${t(name)}`;
    const shown = why ? reasonWords(why) : label; // a disabled one shows why it cannot play
    return h("option", { value: name, title: t(words), disabled: Boolean(why) }, shown);
  });
  return [
    h("optgroup", { label: t("By strength") }, ...options.filter((_, i) => agents[i].level !== null)),
    h("optgroup", { label: t("By policy") }, ...options.filter((_, i) => agents[i].level === null)),
  ];
}
