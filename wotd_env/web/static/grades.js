/** The numbers of a review as people read them: shares of a win instead of equities. */

import { cellOf } from "./choosing.js";
import { keptPlaces, placesAfter } from "./places.js";
import { capital } from "./words.js";

/** @import {CellMark, GradedStep, Review} from "./types.js" */

const LEAST_LUCK = 0.02; // equity; less luck is not mentioned
const WORST = 8;

/** Equity goes from -1/(n-1) to 1; win chance from 0 to 1. @param {number} players */
const scale = (players) => (players - 1) / players;

/**
 * Return a difference of equity in per cent of a win, without a sign.
 * @param {number} equity
 * @param {number} players
 */
export const costOf = (equity, players) => `${(100 * scale(players) * Math.abs(equity)).toFixed(1)} %`;

/**
 * Return a difference of equity in per cent of a win, with a sign.
 * @param {number} equity
 * @param {number} players
 */
export function signedCost(equity, players) {
  const points = 100 * scale(players) * equity;
  const sign = points >= 0.05 ? "+" : points <= -0.05 ? "−" : "";
  return `${sign}${Math.abs(points).toFixed(1)} %`;
}

/**
 * Return a result as a share of the win. A luck-adjusted result can leave the range from 0 to 100 %, which is cut off.
 * @param {number} equity
 * @param {number} players
 */
export function shareOf(equity, players) {
  const share = (1 + (players - 1) * equity) / players;
  return `${Math.round(100 * Math.min(Math.max(share, 0), 1))} %`;
}

/**
 * Return the dice of a step in their places.
 * @param {Review} review
 * @param {number} at number of a step, or the number of steps for the end
 * @returns {{faces: number[], kept: boolean[]}}
 */
export function diceAt({ steps, last }, at) {
  const step = at < steps.length ? steps[at] : null;
  const state = step ? step.state : last;
  const { order } = placesAfter(steps.slice(0, at), state.turn);
  const keeps = step !== null && state.phase === "keep";
  return {
    faces: order.map((die) => state.dice[die]),
    kept: keeps ? keptPlaces(order, state.dice, step.action) : [],
  };
}

/** Return the last moves before a step. @param {GradedStep[]} steps @param {number} at */
export const movedBefore = (steps, at) =>
  steps
    .slice(0, at)
    .reverse()
    .find(({ moves }) => moves.length)?.moves ?? [];

/**
 * Return the marks of what a step moves.
 * @param {GradedStep} step
 * @param {number[]} colors
 * @returns {Map<string, CellMark>}
 */
export function marksOfStep({ moves }, colors) {
  const swap = moves.length === 2 && moves[0].path === moves[1].path;
  /** @type {Map<string, CellMark>} */
  const marks = new Map();
  for (const { seat, path, from, to } of moves) {
    if (swap) marks.set(cellOf(path, from), { kind: "picked", words: "is swapped" });
    else marks.set(cellOf(path, to), { kind: "move", color: colors[seat], words: "moves here next" });
  }
  return marks;
}

/**
 * Return the verdict about a decision and its roll in words.
 * @param {GradedStep} step
 * @param {number} players
 * @returns {{grade: string, decision: string, luck: string}} empty texts if there is nothing to say
 */
export function verdictOf(step, players) {
  let decision = "";
  if (step.regret !== null && !step.forced) {
    decision =
      step.class || step.regret > 0.0005
        ? `${step.class ? `${capital(step.class)}: ` : ""}this costs ${costOf(step.regret, players)}. Best: ${step.best_words}.`
        : "The best choice.";
  }
  const luck =
    step.luck && Math.abs(step.luck) >= LEAST_LUCK
      ? `These dice were ${step.luck > 0 ? "lucky" : "unlucky"}: ${signedCost(step.luck, players)}.`
      : "";
  return { grade: step.class, decision, luck };
}

/**
 * Return the most expensive errors, the worst first.
 * @param {GradedStep[]} steps
 * @returns {{step: GradedStep, number: number}[]}
 */
export const worstOf = (steps) =>
  steps
    .map((step, number) => ({ step, number }))
    .filter(({ step }) => step.class)
    .sort((one, other) => (other.step.regret ?? 0) - (one.step.regret ?? 0))
    .slice(0, WORST);

/** Return the first step of a review: the first error, or the start. @param {Review} review */
export const firstStep = ({ graded, steps }) =>
  graded
    ? Math.max(
        0,
        steps.findIndex((step) => step.class),
      )
    : 0;
