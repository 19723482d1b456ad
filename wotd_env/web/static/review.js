/** Step through a finished or recorded game: errors, their costs, and luck. */

import { ask, keys, pathOf } from "./api.js";
import { diceRow, makeBoard } from "./board.js";
import { analysisAddress, continueAddress, ofTab } from "./browser.js";
import { copyButton, glyph, h, hasModifier, isElsewhere, loadPage } from "./dom.js";
import { gradeMark, gradeTable, makeGraph, marksOfStep, verdictOf, worstList } from "./grades.js";
import { t, wordedReview } from "./words.js";

/** @import {Page, Review} from "./types.js" */

/** Review a game of a table, given their numbers; by default the present game. @type {Page} */
export function reviewPage(main, signal, table, game) {
  const which = game ? `?game=${encodeURIComponent(game)}` : "";
  const load = () => ask(`${pathOf(table)}/review${which}`, { key: keys.of(table)?.key });
  show(main, signal, load, `#/table/${table}`);
}

/** Step through the game whose text was pasted. @type {Page} */
export function gamePage(main, signal) {
  const body = ofTab.get("wotd-game", null);
  if (body) show(main, signal, () => ask("api/games", { body }), "#/");
  else location.replace("#/");
}

/** @param {HTMLElement} main @param {AbortSignal} signal @param {() => Promise<Review>} load @param {string} back */
function show(main, signal, load, back) {
  const card = { title: t("Review"), waits: t("The game is being reviewed …"), back };
  loadPage(main, signal, card, load, (review) => new ReviewCard(main, signal, wordedReview(review), back));
}

class ReviewCard {
  /** @param {HTMLElement} main @param {AbortSignal} signal @param {Review} review @param {string} back */
  constructor(main, signal, review, back) {
    this.review = review;
    this.last = review.steps.length;
    this.at = this.last;
    this.board = makeBoard(review.rules.spaces, () => {});
    this.graph = makeGraph(review, (step) => this.go(step));
    this.turn = h("p.sub");
    this.dicePlace = h("div.review-dice");
    this.caption = h("p.caption", { "aria-live": "polite" });
    this.verdict = h("div.verdict");
    const range = { type: "range", min: "0", max: String(this.last), "aria-label": t("Step") };
    this.slider = h("input", { ...range, oninput: () => this.go(Number(this.slider.value)) });
    this.again = h("a.button", t("Play on from here"));
    this.analyze = h("a.button", t("Analyze"));
    const title = review.result?.words ?? t("This game is not finished");
    const head = h("header.turn", h("h1", { id: "review-title", tabindex: "-1", title }, title), this.turn);
    const told = h("div.told", this.caption, this.verdict);
    const controls = h(
      "div.controls",
      stepButton("«", t("to the start"), () => this.go(0)),
      stepButton("‹", t("a step back"), () => this.go(this.at - 1)),
      this.slider,
      stepButton("›", t("a step forward"), () => this.go(this.at + 1)),
      stepButton("»", t("to the end"), () => this.go(this.last)),
    );
    const play = h(
      "section.play",
      { "aria-labelledby": "review-title" },
      head,
      h("div.board-place", this.board.element),
      h("div.review-step", { tabindex: "0" }, this.dicePlace, told),
      controls,
      this.graph.element,
    );
    const position = copyButton(t("Copy the position"), () => this.state.position);
    const game = copyButton(t("Copy the game"), () => review.text);
    const leave = h("a.button", { href: back }, t("Back"));
    const buttons = h("div.buttons", this.again, this.analyze, position, game, leave);
    const errors = worstList(review, (step) => this.go(step));
    const side = h(
      "div.side",
      h("section.card", h("h2", t("Skill and luck")), gradeTable(review)),
      h("section.card", h("h2", t("Greatest errors")), errors),
      h("section.card", buttons),
    );
    main.append(h("div.table.review", play, side));
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    const firstError = review.steps.findIndex((step) => step.class);
    this.go(Math.max(firstError, 0));
  }

  get state() {
    return this.at === this.last ? this.review.last : this.review.steps[this.at].state;
  }

  /** @param {number} to number of a step */
  go(to) {
    const before = this.at;
    this.at = Math.max(0, Math.min(this.last, to));
    const { at, last, review, state } = this;
    const came = at === before + 1 ? review.steps[before].moves : [];
    const step = at < last ? review.steps[at] : null;
    const colors = review.last.color;
    this.board.show({
      state,
      names: review.players,
      moved: review.steps.slice(0, at).findLast(({ moves }) => moves.length)?.moves ?? [],
      marks: step ? marksOfStep(step, colors) : new Map(),
      immunity: review.rules.immunity,
    });
    this.board.slide(came, colors);
    this.turn.textContent = step
      ? t("turn {turn}, step {step} of {last}", { turn: step.turn + 1, step: at + 1, last })
      : t("the end, after {count} decisions", { count: last });
    this.dicePlace.replaceChildren(
      step ? glyph(`piece-${colors[step.seat]}`, "piece") : "",
      state.phase === "over" ? "" : diceRow(state.dice, step?.keep ?? []),
    );
    this.caption.textContent = step ? `${step.words}.` : (review.result?.words ?? "");
    const verdict = step ? verdictOf(step, review.rules.players) : null;
    this.verdict.replaceChildren(
      verdict?.decision ? h("p", verdict.grade && gradeMark(verdict.grade), verdict.decision) : "",
      verdict?.luck ? h("p.quiet", verdict.luck) : "",
    );
    this.slider.value = String(at);
    this.slider.setAttribute("aria-valuetext", this.caption.textContent ?? "");
    this.again.setAttribute("href", continueAddress(state.position, review.players));
    this.analyze.setAttribute("href", analysisAddress(state.position));
    this.again.hidden = this.analyze.hidden = state.phase === "over";
    this.graph.mark(at);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    if (target !== this.slider && isElsewhere(event)) return;
    if (target.closest("[role=gridcell], [role=region]")) return;
    /** @type {Record<string, number>} */
    const steps = { ArrowLeft: this.at - 1, ArrowRight: this.at + 1, Home: 0, End: this.last };
    if (steps[event.key] === undefined || hasModifier(event)) return;
    event.preventDefault();
    this.go(steps[event.key]);
  }
}

/** @param {string} sign @param {string} words @param {() => void} act */
const stepButton = (sign, words, act) =>
  h("button", { "aria-label": words, title: words, onclick: act }, sign);
