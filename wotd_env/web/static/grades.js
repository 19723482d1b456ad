/** The numbers of a review as people read them: shares of a win instead of equities. */

import { cellOf } from "./choosing.js";
import { facesOf, keptPlaces, placesAfter } from "./places.js";
import { decimal, t } from "./text.js";

/** @import {CellMark, GradedStep, Review} from "./types.js" */

const LEAST_LUCK = 0.02; // equity; less luck is not mentioned
const WORST = 8;

// Equity goes from -1/(n-1) to 1, the chance to win from 0 to 1.

/** Return equity in per cent of a win, without a sign. @param {number} equity @param {number} players */
export const costOf = (equity, players) => signedCost(equity, players).replace(/[+−]/, "");

/** Return equity in per cent of a win, with a sign. @param {number} equity @param {number} players */
export function signedCost(equity, players) {
  const points = (100 * equity * (players - 1)) / players;
  const sign = points >= 0.05 ? "+" : points <= -0.05 ? "−" : "";
  return `${sign}${decimal(Math.abs(points), 1)} %`;
}

/** Return a result as a share of the win, 0 to 100 %. @param {number} equity @param {number} players */
export function shareOf(equity, players) {
  const share = (1 + (players - 1) * equity) / players; // luck adjustment can exceed 0 to 1
  return `${Math.round(100 * Math.min(Math.max(share, 0), 1))} %`;
}

/** Return the dice of a step, or of the end, in their places. @param {Review} review @param {number} at */
export function diceAt({ steps, last }, at) {
  const step = at < steps.length ? steps[at] : null;
  const { turn, dice, phase } = step ? step.state : last;
  const { order } = placesAfter(steps.slice(0, at), turn);
  const kept = step && phase === "keep" ? keptPlaces(order, dice, step.action) : [];
  return { faces: facesOf(order, dice), kept };
}

/** Return the marks of the pieces that a step moves. @param {GradedStep} step @param {number[]} colors */
export function marksOfStep({ moves }, colors) {
  const swap = moves.length === 2 && moves[0].path === moves[1].path;
  /** @type {Map<string, CellMark>} */
  const marks = new Map();
  for (const { seat, path, from, to } of moves) {
    if (swap) marks.set(cellOf(path, from), { kind: "picked", words: t("is swapped") });
    else marks.set(cellOf(path, to), { kind: "move", color: colors[seat], words: t("moves here next") });
  }
  return marks;
}

/** Return grade, verdict and luck in words, or empty. @param {GradedStep} step @param {number} players */
export function verdictOf(step, players) {
  let decision = "";
  if (step.regret !== null && !step.forced) {
    const values = { cost: costOf(step.regret, players), best: step.best_words };
    if (step.class === "blunder") decision = t("Blunder: this costs {cost}. Best: {best}.", values);
    else if (step.class) decision = t("Error: this costs {cost}. Best: {best}.", values);
    else if (step.regret > 0.0005) decision = t("This costs {cost}. Best: {best}.", values);
    else decision = t("The best choice.");
  }
  const luck =
    step.luck && Math.abs(step.luck) >= LEAST_LUCK
      ? luckWords(step.luck, signedCost(step.luck, players))
      : "";
  return { grade: step.class, decision, luck };
}

/** @param {number} luck @param {string} gain */
const luckWords = (luck, gain) =>
  luck > 0 ? t("These dice were lucky: {gain}.", { gain }) : t("These dice were unlucky: {gain}.", { gain });

/** Return the most expensive errors and their numbers, the worst first. @param {GradedStep[]} steps */
export const worstOf = (steps) =>
  steps
    .map((step, number) => ({ step, number }))
    .filter(({ step }) => step.class)
    .sort((one, other) => (other.step.regret ?? 0) - (one.step.regret ?? 0))
    .slice(0, WORST);
