/** Puzzles: the one of a day, the next one, and statistics. */

import { t } from "./text.js";

/** @import {Puzzle} from "./types.js" */

/**
 * The results of a person by the positions of the puzzles: the loss of the first answer, in thousandths of a game, and
 * the number of the day if it was the puzzle of that day.
 * @typedef {Record<string, {lost: number, day: number|null}>} Results
 * @typedef {{kind: string, level: number}} Wanted an empty kind and level 0 stand for all
 */

export const LEVELS = [t("all"), t("easy"), t("medium"), t("hard")];
/** @type {Record<string, string>} */
export const KINDS = {
  dice: t("keep dice"),
  move: t("move"),
  swap: t("call the dragon"),
  power: t("powers"),
};
const DAY = 86_400_000; // milliseconds

/** Return the number of a day, the same in all time zones. @param {Date} date */
export const dayOf = (date) => Math.floor(date.getTime() / DAY);

/**
 * Return the index of the next fitting puzzle after another one, an unsolved one if possible; -1 if no puzzle fits.
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
  const days = new Set(all.map(({ day }) => day));
  let streak = 0;
  const last = days.has(today) ? today : today - 1; // today's puzzle can still be solved
  while (days.has(last - streak)) streak++;
  return {
    tried: all.length,
    best: all.filter(({ lost }) => lost === 0).length,
    lost: all.length ? all.reduce((sum, { lost }) => sum + lost, 0) / all.length / 1000 : 0,
    streak,
  };
}
