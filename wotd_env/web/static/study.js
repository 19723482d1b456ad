/** Positions without a table. Each is shown like a table at which this browser has the seat to act. */

import { ask } from "./api.js";
import { sortedPlaces } from "./choosing.js";
import { Decision } from "./decision.js";
import { h, say } from "./dom.js";
import { makeSeats } from "./panels.js";
import { SEATS, t, worded } from "./words.js";

/** @import {Child, Choice, Study, View} from "./types.js" */

/** @param {string} position @returns {Promise<View>} */
export const studyAt = async (position) => viewOf(await ask("api/choices", { body: { position } }));

/** A person's seat without its number and name. */
export const PLAYER = { kind: "here", agent: null, taken: true, connected: true };

const NO_GAME = { game: 0, ply: 0, moved: [], roll_off: null, log: [], log_from: 0, result: null };
const NO_HOST = { table: "", host: false, waiting_for: [], help: false, pace: null, spectators: 0 };
const NO_CLOCK = { lent: [], gives: [], left: null, reach: null };
/** The fields of a view that mean something only at a table of the server, and the words that `worded` adds. */
export const NO_TABLE = { ...NO_GAME, ...NO_HOST, ...NO_CLOCK, rules_words: "" };

/** @param {Study} study @returns {View} */
export function viewOf(study) {
  const { players } = study.rules;
  const seats = Array.from({ length: players }, (_, seat) => {
    const other = players > 2 ? t("Player {letter}", { letter: SEATS[seat] }) : t("the opponent");
    return { ...PLAYER, seat, name: seat === study.player ? t("you") : other, mine: seat === study.player };
  });
  return worded({ ...NO_TABLE, ...study, status: "playing", seats, mine: [study.player] });
}

/** Return the view after a choice, before any roll. @param {View} view @param {Choice} choice */
export function viewAfter(view, choice) {
  const pieces = view.pieces.map((spaces) => [...spaces]);
  for (const { seat, path, to } of choice.moves) pieces[seat][path] = to;
  return { ...view, pieces, scores: choice.scores, moved: choice.moves, choices: [] };
}

/** Base of the pages that ask for a choice in a position, `view`, and then show its effect. */
export class StudyPage {
  /** The accepted choice, if any. @type {Choice|null} */
  answer = null;

  /** @param {AbortSignal} signal @param {string} kind "lesson" or "puzzle" @param {View} view */
  constructor(signal, kind, view) {
    this.kind = kind;
    this.view = view;
    this.title = h("h1", { id: `${kind}-title`, tabindex: "-1" });
    this.words = h("p");
    this.seats = makeSeats();
    this.decision = new Decision(signal, this);
  }

  /** Make the page, with cards beside the board. @param {...HTMLElement} cards */
  layout(...cards) {
    const { boardPlace, dock } = this.decision;
    const head = h("header.turn", this.title, this.words);
    const parts = [head, this.seats.element, boardPlace, dock];
    const play = h("section.play", { "aria-labelledby": this.title.id }, ...parts);
    return h("div", { class: `table ${this.kind}` }, play, h("div.side", ...cards));
  }

  /** Show the position, or the one after the answer. */
  show() {
    const { answer, view, decision } = this;
    const places = sortedPlaces();
    const shown = answer ? viewAfter(view, answer) : view;
    this.seats.show(shown, null);
    decision.show(shown, { ...places, kept: answer?.keep ?? places.kept });
    decision.choices.hidden = answer !== null;
    if (answer) decision.board?.slide(answer.moves, view.color);
  }

  /**
   * Make the list of all choices.
   * @param {string} label @param {(choice: Choice) => number} rank ascending @param {(choice: Choice) => Child[]} item
   */
  rankedList(label, rank, item) {
    const sorted = [...this.view.choices].sort((one, other) => rank(one) - rank(other));
    const items = sorted.map((choice) => h("li", null, ...item(choice)));
    const look = { tabindex: "0", role: "region", "aria-label": label };
    return h("div.choice-list", look, h("ol", ...items));
  }

  /** Ask again, or for another position. @param {View} view */
  ask(view) {
    this.view = view;
    this.answer = null;
    this.show();
  }

  /** @param {number} action */
  act(action) {
    const choice = this.view.choices.find((each) => each.action === action);
    if (!choice) return;
    if (this.accepts(choice)) this.answer = choice;
    this.show();
    say(`${this.title.textContent}. ${this.verdictOn(choice)}`);
    if (this.answer) this.decision.focus();
  }

  /** Return the words about a choice. @param {Choice} _choice */
  verdictOn(_choice) {
    return this.words.textContent ?? "";
  }

  /** Return whether a choice is an answer. @param {Choice} _choice */
  accepts(_choice) {
    return true;
  }

  /** The content of the dock after the answer. @returns {Child[]} */
  dockParts() {
    return [];
  }
}
