/** The page of puzzles: find the best choice of a position that is solved exactly. */

import { continueAddress } from "./address.js";
import { ask, kept } from "./api.js";
import { Decision } from "./decision.js";
import { errorLine, h, say, waitLine } from "./dom.js";
import { sortedPlaces } from "./places.js";
import { dayOf, KINDS, LEVELS, nextPuzzle, statisticsOf } from "./puzzling.js";
import { makeSeats } from "./seats.js";
import { studyAt, viewAfter } from "./study.js";
import { capital, counted, percent, questionOf } from "./words.js";

/** @import {Results, Wanted} from "./puzzling.js" */
/** @import {Choice, Puzzle, View} from "./types.js" */

const RESULTS = "wotd-puzzles";
const WANTED = "wotd-puzzles-wanted";

/**
 * Show a puzzle by its number from 1, or the puzzle of the day.
 * @param {HTMLElement} main @param {AbortSignal} signal @param {string} [number]
 */
export async function puzzlePage(main, signal, number) {
  const card = h("section.card.narrow", h("h1", "Find the best move"), waitLine("The puzzle comes …"));
  main.append(card);
  try {
    /** @type {Puzzle[]} */
    const puzzles = await ask("/static/puzzles.json");
    const today = dayOf(new Date()) % puzzles.length;
    const index = number === undefined ? today : Number(number) - 1;
    if (!puzzles[index]) throw new Error(`Puzzles have the numbers 1 to ${puzzles.length}.`);
    const view = await studyAt(puzzles[index].position);
    if (signal.aborted) return;
    card.remove();
    new PuzzlePage(main, signal, { puzzles, index, today, view });
  } catch (reason) {
    card.replaceChildren(
      h("h1", "Find the best move"),
      errorLine(reason).element,
      h("a.button", { href: "#/" }, "Back"),
    );
  }
}

class PuzzlePage {
  /**
   * @param {HTMLElement} main @param {AbortSignal} signal
   * @param {{puzzles: Puzzle[], index: number, today: number, view: View}} shown
   */
  constructor(main, signal, { puzzles, index, today, view }) {
    this.puzzles = puzzles;
    this.index = index;
    this.puzzle = puzzles[index];
    this.daily = index === today;
    this.view = view;
    /** @type {Choice|null} */
    this.answer = null;
    this.title = h("h1.mine", { id: "puzzle-title", tabindex: "-1" });
    this.facts = h("p.sub");
    this.seats = makeSeats();
    this.decision = new Decision(signal, {
      act: (action) => this.act(action),
      otherwise: () => this.verdict(),
    });
    this.losses = h("section.card.losses", { hidden: true });
    this.statistics = h("dl.statistics");
    const { boardPlace, dock, choices } = this.decision;
    const head = h("header.turn", this.title, this.facts);
    const play = h(
      "section.play",
      { "aria-labelledby": "puzzle-title" },
      head,
      this.seats.element,
      boardPlace,
      dock,
    );
    main.append(h("div.table.puzzle", play, h("div.side", this.puzzleCard(), choices, this.losses)));
    this.show();
  }

  /** @returns {Results} */
  get results() {
    return kept.get(RESULTS, {});
  }

  show() {
    const { puzzle, view, answer } = this;
    const right = answer && this.lostBy(answer) === 0;
    this.title.textContent = answer
      ? right
        ? "The best choice!"
        : "There is a better choice"
      : `Puzzle: ${questionOf(view)}`;
    const facts = [
      this.daily && "puzzle of the day",
      KINDS[puzzle.kind],
      LEVELS[puzzle.level],
      view.rules_words,
    ];
    this.facts.textContent = facts.filter(Boolean).join(" · ");
    document.title = "Find the best move · Way of the Dragon";
    this.seats.show(view, null);
    const places = sortedPlaces();
    this.decision.show(answer ? viewAfter(view, answer) : view, {
      ...places,
      kept: answer?.keep ?? places.kept,
    });
    if (answer) this.decision.board?.slide(answer.moves, view.color);
    this.decision.choices.hidden = answer !== null;
    this.losses.hidden = answer === null;
    if (answer) this.losses.replaceChildren(h("h2", "Win chances lost"), this.lossList(answer));
    this.showStatistics();
  }

  /** The loss of a choice in thousandths of a game. @param {Choice} choice */
  lostBy(choice) {
    return this.puzzle.lost[this.view.choices.indexOf(choice)];
  }

  /** @param {number} action */
  act(action) {
    const choice = this.view.choices.find((each) => each.action === action);
    if (!choice) return;
    this.answer = choice;
    const { results } = this;
    const { position } = this.puzzle;
    const day = this.daily ? dayOf(new Date()) : null;
    if (!results[position]) kept.set(RESULTS, { ...results, [position]: { lost: this.lostBy(choice), day } });
    this.show();
    say(`${this.title.textContent}. ${this.verdictWords(choice)}`);
    this.decision.focus();
  }

  /** @param {Choice} choice */
  verdictWords(choice) {
    const best = this.view.choices[this.puzzle.lost.indexOf(0)];
    const lost = this.lostBy(choice);
    if (lost === 0) return `${capital(best.words)}.`;
    return `Best: ${best.words}. Your choice loses ${percent(lost / 1000)} of games.`;
  }

  verdict() {
    const { answer, view } = this;
    if (!answer) return [];
    const again = h("button", { onclick: () => this.restart() }, "Try again");
    return [
      h("p.tip", this.verdictWords(answer)),
      h("button.primary", { onclick: () => this.next(), "data-name": "next" }, "Next puzzle"),
      this.lostBy(answer) > 0 && again,
      h("a.button", { href: continueAddress(view.position, []) }, "Play on"),
    ];
  }

  restart() {
    this.answer = null;
    this.show();
  }

  /** @returns {Wanted} */
  get wanted() {
    return kept.get(WANTED, { kind: "", level: 0 });
  }

  next() {
    const next = nextPuzzle(this.puzzles, this.results, this.wanted, this.index);
    if (next === this.index) this.restart();
    else location.hash = `#/puzzle/${next + 1}`;
  }

  /** @param {Choice} answer */
  lossList(answer) {
    const { choices } = this.view;
    const sorted = [...choices].sort((one, other) => this.lostBy(one) - this.lostBy(other));
    const items = sorted.map((choice) => {
      const lost = this.lostBy(choice);
      const words = h("span", capital(choice.words), choice === answer && h("strong", " (your choice)"));
      return h("li", words, h("span.loss", lost === 0 ? "best" : `${percent(lost / 1000)} less`));
    });
    const look = { tabindex: "0", role: "region", "aria-label": "Win chances lost" };
    return h("div.choice-list", look, h("ol", ...items));
  }

  puzzleCard() {
    const { wanted } = this;
    const kinds = Object.entries(KINDS).map(([value, words]) => h("option", { value }, words));
    const kind = h("select", { value: wanted.kind }, h("option", { value: "" }, "all"), ...kinds);
    const levels = LEVELS.slice(1).map((words, i) => h("option", { value: String(i + 1) }, words));
    const level = h("select", { value: String(wanted.level) }, h("option", { value: "0" }, "all"), ...levels);
    const change = () => kept.set(WANTED, { kind: kind.value, level: Number(level.value) });
    for (const select of [kind, level]) select.addEventListener("change", change);
    const next = h("button", { onclick: () => this.next() }, "Another puzzle");
    const daily = h("a.button", { href: "#/puzzle" }, "Puzzle of the day");
    return h(
      "section.card.puzzle-card",
      h("h2", "Puzzles"),
      h("div.fields", h("label", "Kind", kind), h("label", "Difficulty", level)),
      h("div.buttons", next, !this.daily && daily),
      this.statistics,
    );
  }

  showStatistics() {
    const { tried, best, lost, streak } = statisticsOf(this.results, dayOf(new Date()));
    const rows = [
      ["solved", `${best} of ${tried}`],
      ["mean loss", tried ? percent(lost) : "–"],
      ["daily puzzles in a row", counted(streak, "day")],
    ];
    this.statistics.replaceChildren(...rows.flatMap(([name, value]) => [h("dt", name), h("dd", value)]));
  }
}
