/** The page of puzzles: find the best choice of a position that is solved exactly. */

import { ask } from "./api.js";
import { continueAddress, kept } from "./browser.js";
import { h, loadPage, select } from "./dom.js";
import { StudyPage, studyAt } from "./study.js";
import { capital, lossWords, percent, plural, questionOf, t } from "./words.js";

/** @import {Choice, Page, Puzzle, View} from "./types.js" */

/**
 * The results of a person by the positions of the puzzles: the loss of the first answer, in thousandths of a game, and
 * the number of the day if it was the puzzle of that day.
 * @typedef {Record<string, {lost: number, day: number|null}>} Results
 * @typedef {{kind: string, level: number}} Wanted an empty kind and level 0 stand for all
 */

const RESULTS = "wotd-puzzles";
const WANTED = "wotd-puzzles-wanted";
const LEVELS = [t("all"), t("easy"), t("medium"), t("hard")];
/** @type {Record<string, string>} */
const KINDS = { dice: t("keep dice"), move: t("move"), swap: t("call the dragon"), power: t("powers") };
const DAY = 86_400_000; // milliseconds

/** @returns {Results} */
const storedResults = () => kept.get(RESULTS, {});
/** @returns {Wanted} */
const storedWanted = () => kept.get(WANTED, { kind: "", level: 0 });

/** Show a puzzle by its number from 1, or the puzzle of the day. @type {Page} */
export function puzzlePage(main, signal, number) {
  const card = { title: t("Find the best move") };
  async function load() {
    /** @type {Puzzle[]} */
    const puzzles = await ask("static/puzzles.json");
    const today = dayOf(new Date()) % puzzles.length;
    const index = number === undefined ? today : Number(number) - 1;
    if (!puzzles[index])
      throw new Error(t("Puzzles have the numbers 1 to {last}.", { last: puzzles.length }));
    return { puzzles, index, today, view: await studyAt(puzzles[index].position) };
  }
  loadPage(main, signal, card, load, (shown) => new PuzzlePage(main, signal, shown));
}

class PuzzlePage extends StudyPage {
  /**
   * @param {HTMLElement} main @param {AbortSignal} signal
   * @param {{puzzles: Puzzle[], index: number, today: number, view: View}} shown
   */
  constructor(main, signal, { puzzles, index, today, view }) {
    super(signal, "puzzle", view);
    this.puzzles = puzzles;
    this.index = index;
    this.puzzle = puzzles[index];
    this.daily = index === today;
    this.title.className = "mine";
    this.words.className = "sub";
    this.losses = h("section.card.losses", { hidden: true });
    this.statistics = h("dl.statistics");
    main.append(this.layout(this.puzzleCard(), this.decision.choices, this.losses));
    this.show();
  }

  /** @override */
  show() {
    const { puzzle, view, answer } = this;
    const verdict = answer && (this.lostBy(answer) ? t("There is a better choice") : t("The best choice!"));
    this.title.textContent = verdict ?? t("Puzzle: {question}", { question: questionOf(view) });
    const day = this.daily ? [t("puzzle of the day")] : [];
    this.words.textContent = [...day, KINDS[puzzle.kind], LEVELS[puzzle.level], view.rules_words].join(" · ");
    super.show();
    this.losses.hidden = answer === null;
    if (answer) {
      const title = t("Win chances lost");
      const list = this.rankedList(title, this.lostBy.bind(this), (choice) => {
        const mark = choice === answer && h("strong", ` (${t("your choice")})`);
        const loss = h("span.loss", lossWords(this.lostBy(choice) / 1000));
        return [h("span", capital(choice.words), mark), loss];
      });
      this.losses.replaceChildren(h("h2", title), list);
    }
    this.showStatistics();
  }

  /** The loss of a choice in thousandths of a game. @param {Choice} choice */
  lostBy(choice) {
    return this.puzzle.lost[this.view.choices.indexOf(choice)];
  }

  /** @override @param {Choice} choice */
  accepts(choice) {
    const result = { lost: this.lostBy(choice), day: this.daily ? dayOf(new Date()) : null };
    kept.set(RESULTS, { [this.puzzle.position]: result, ...storedResults() }); // the first answer counts
    return true;
  }

  /** @override @param {Choice} choice */
  verdictOn(choice) {
    const best = this.view.choices[this.puzzle.lost.indexOf(0)];
    const lost = this.lostBy(choice);
    if (lost === 0) return `${capital(best.words)}.`;
    const values = { best: best.words, lost: percent(lost / 1000) };
    return t("Best: {best}. Your choice loses {lost} of games.", values);
  }

  /** @override */
  dockParts() {
    const { answer, view } = this;
    if (!answer) return [];
    const again = h("button", { onclick: () => this.ask(this.view) }, t("Try again"));
    return [
      h("p.tip", this.verdictOn(answer)),
      h("button.primary", { onclick: () => this.next(), "data-name": "next" }, t("Next puzzle")),
      this.lostBy(answer) > 0 && again,
      h("a.button", { href: continueAddress(view.position, []) }, t("Play on")),
    ];
  }

  next() {
    const next = nextPuzzle(this.puzzles, storedResults(), storedWanted(), this.index);
    if (next === this.index) this.ask(this.view);
    else location.hash = `#/puzzle/${next + 1}`;
  }

  puzzleCard() {
    const wanted = storedWanted();
    const change = () => kept.set(WANTED, { kind: kind.value, level: Number(level.value) });
    const kinds = [["", LEVELS[0]], ...Object.entries(KINDS)];
    const kind = select({ value: wanted.kind, onchange: change }, kinds);
    const level = select({ value: String(wanted.level), onchange: change }, Object.entries(LEVELS));
    const next = h("button", { onclick: () => this.next() }, t("Another puzzle"));
    const daily = h("a.button", { href: "#/puzzle" }, capital(t("puzzle of the day")));
    const fields = h("div.fields", h("label", t("Kind"), kind), h("label", t("Difficulty"), level));
    const buttons = h("div.buttons", next, !this.daily && daily);
    return h("section.card.puzzle-card", h("h2", t("Puzzles")), fields, buttons, this.statistics);
  }

  showStatistics() {
    const { tried, best, lost, streak } = statisticsOf(storedResults(), dayOf(new Date()));
    const rows = [
      [t("solved"), t("{best} of {tried}", { best, tried })],
      [t("mean loss"), tried ? percent(lost) : "–"],
      [t("daily puzzles solved in a row"), plural(streak, "{count} day", "{count} days")],
    ];
    this.statistics.replaceChildren(...rows.flatMap(([name, value]) => [h("dt", name), h("dd", value)]));
  }
}

/** Return the number of a day, the same in all time zones. @param {Date} date */
export const dayOf = (date) => Math.floor(date.getTime() / DAY);

/**
 * Return the index of the next fitting puzzle after number `after`, preferably an unsolved one; -1 if no puzzle fits.
 * @param {Puzzle[]} puzzles @param {Results} results @param {Wanted} wanted @param {number} after
 */
export function nextPuzzle(puzzles, results, { kind, level }, after) {
  const order = puzzles.map((_, i) => (after + 1 + i) % puzzles.length);
  const fitting = order.filter(
    (i) => (!kind || puzzles[i].kind === kind) && (!level || puzzles[i].level === level),
  );
  return fitting.find((i) => !results[puzzles[i].position]) ?? fitting[0] ?? -1;
}

/** @param {Results} results @param {number} today */
export function statisticsOf(results, today) {
  const all = Object.values(results);
  const days = new Set(all.filter(({ lost }) => lost === 0).map(({ day }) => day));
  let streak = 0;
  const open = !all.some(({ day }) => day === today); // today's puzzle can still be solved
  const last = open ? today - 1 : today;
  while (days.has(last - streak)) streak++;
  return {
    tried: all.length,
    best: all.filter(({ lost }) => lost === 0).length,
    lost: all.length ? all.reduce((sum, { lost }) => sum + lost, 0) / all.length / 1000 : 0,
    streak,
  };
}
