/** A running game on the screen: the base of the pages that play, and its optional sounds, which are off at first. */

import { diceRow } from "./board.js";
import { kept } from "./browser.js";
import { placesAfter } from "./choosing.js";
import { Decision } from "./decision.js";
import { attribute, errorLine, h, say, waitLine } from "./dom.js";
import { makeHints, makeLog, makeSeats } from "./panels.js";
import { factsOf, newsOf, t, titleOf } from "./words.js";

/** @import {Child, Help, View} from "./types.js" */

/** The frequencies of the tones, in Hz, and their distance in seconds. */
const SOUNDS = {
  roll: { tones: [190, 240, 170, 210], distance: 0.05 },
  turn: { tones: [523, 659], distance: 0.12 },
};
const LOUDNESS = 0.08;
const LENGTH = 0.15; // seconds of a tone

/** @type {AudioContext|null} */
let audio = null;

/** Play a sound if sounds are on. @param {keyof typeof SOUNDS} name */
export function play(name) {
  if (!kept.get("wotd-sound", false)) return;
  audio ??= new AudioContext();
  const { tones, distance } = SOUNDS[name];
  tones.forEach((frequency, i) => {
    const context = /** @type {AudioContext} */ (audio);
    const start = context.currentTime + i * distance;
    const gain = new GainNode(context, { gain: LOUDNESS });
    gain.gain.setTargetAtTime(0, start, LENGTH / 3);
    const tone = new OscillatorNode(context, { frequency, type: "triangle" });
    tone.connect(gain).connect(context.destination);
    tone.start(start);
    tone.stop(start + LENGTH);
  });
}

/** Make the box that turns sounds on and off. */
export function soundTick() {
  const tick = h("input", { type: "checkbox", checked: kept.get("wotd-sound", false), onchange: change });
  function change() {
    kept.set("wotd-sound", tick.checked);
    play("turn");
  }
  return h("label.tick", tick, t("Sound"));
}

/** Shows the views of a game. Subclasses call `showView` for every new view, and take decisions by `take`. */
export class PlayPage {
  /** The last view; null before the first one. @type {View} */
  view = /** @type {any} */ (null);
  /** @type {Help|null} */
  help = null;
  /** The places that were pressed for a decision, by its ply. @type {Map<number, boolean[]>} */
  pressed = new Map();
  /** The ply of the decision that has been sent. */
  acted = -1;

  /** @param {HTMLElement} main @param {AbortSignal} signal @param {string} title until the first view */
  constructor(main, signal, title) {
    this.main = main;
    this.title = h("h1", { id: "whose", tabindex: "-1" }, title);
    this.facts = h("p.sub");
    this.news = h("p.sub.happened");
    this.seats = makeSeats();
    this.decision = new Decision(signal, this);
    this.error = errorLine();
    this.hints = makeHints((action) => this.decision.act(action));
    this.decision.parts.push(this.hints.element);
    this.log = makeLog();
    const { boardPlace, dock, choices } = this.decision;
    const head = h("header.turn", this.title, this.facts, this.news);
    const parts = [head, this.error.element, this.seats.element, boardPlace, dock];
    this.play = h("section.play", { "aria-labelledby": "whose" }, ...parts);
    this.side = h("div.side", this.hints.element, choices, this.log.element);
    main.append(h("div.table", this.play, this.side));
  }

  /** @param {View} fresh */
  showView(fresh) {
    const before = this.view;
    const sameGame = before?.game === fresh.game;
    const moved = !sameGame || before?.ply !== fresh.ply;
    const log = (before?.log ?? []).slice(0, fresh.log_from).concat(fresh.log);
    const news = sameGame && before ? log.slice(before.log.length) : [];
    const view = { ...fresh, log };
    this.view = view;
    if (!sameGame) this.pressed.clear();
    if (moved) {
      this.pend(-1);
      this.error.hide();
    }
    const words = titleOf(view);
    this.title.textContent = words;
    this.title.title = words;
    this.title.className = view.choices.length ? "mine" : "";
    this.facts.textContent = factsOf(view);
    const last = log[log.length - 1];
    const dice = last?.dice.every((face) => face >= 0) && diceRow(last.dice, last.keep ?? []);
    this.news.replaceChildren(...h("p", dice, newsOf(view)).childNodes);
    this.news.title = newsOf(view);
    document.title = `${words} · ${t("Way of the Dragon")}`;
    this.play.dataset.status = view.status;
    const places = moved ? placesAfter(log, view.turn, ({ ply }) => this.pressed.get(ply) ?? null) : null;
    const rolled = news.some(({ roll }) => roll !== null);
    this.decision.show(view, places, rolled);
    if (rolled) play("roll");
    if (moved && before && this.decision.open && !before.choices.length) play("turn");
    const moves = news.flatMap(({ moves }) => moves);
    this.decision.board?.slide(moves, view.color);
    this.showHelp();
    this.log.show(view);
    const told = news.filter(({ seat }) => !view.mine.includes(seat)).map(({ words }) => `${words}.`);
    if (this.decision.open || view.status === "over") told.push(titleOf(view), factsOf(view));
    if (moved) say(told.join(" "));
    /** @type {(Element|null)[]} */
    const free = [document.body, this.main, this.title];
    if (!before && matchMedia("(max-height: 700px)").matches) this.play.scrollIntoView({ block: "start" });
    else if (moved && this.decision.open && free.includes(document.activeElement)) this.decision.focus();
    this.play.dataset.at = `${view.game}/${view.ply}`; // all of this position is shown
  }

  /** The content of the dock while this browser has no decision to take. @param {View} view @returns {Child[]} */
  dockParts({ seats, player }) {
    const { name, kind, connected } = seats[player];
    const away = connected ? `${t("{name} to play", { name })} …` : t("{name} is away …", { name });
    return [waitLine(kind === "agent" ? t("{name} is thinking …", { name }) : away, null)];
  }

  /** Show that a decision waits for the answer of the server, given its ply, or -1 for none. @param {number} ply */
  pend(ply) {
    this.acted = ply;
    attribute(this.decision.dock, "aria-busy", ply < 0 ? null : "true");
  }

  showHelp() {
    this.seats.show(this.view, this.help);
    this.hints.show(this.view, this.help);
  }

  /** @param {number} action */
  act(action) {
    if (this.acted === this.view.ply) return;
    const { ply, phase } = this.view;
    if (phase === "keep") this.pressed.set(ply, this.decision.held);
    this.pend(ply);
    if (!this.take(ply, action)) this.pend(-1);
  }

  /** Take decision number `ply`; return whether this was possible. @param {number} _ply @param {number} _action */
  take(_ply, _action) {
    return false;
  }
}
