/**
 * The turn planner: the exact values of the actions of a turn, given a value of the positions after it. The method is
 * that of wotd_env/planning, described in docs/explanation/turn-planner.md.
 *
 * A *keep* is a multiset of zero to five dice, written as ascending faces. Its value is the mean of the values after
 * all throws of the missing dice. A keep of five dice is a roll. Its value is that of the best decision.
 */

import { FACES } from "../static/words.js";
import { decide, keptBy, legalActions, rewards, STOP_ROLLING } from "./rules.js";

/** @import {Position} from "./rules.js" */

/** @typedef {(position: Position) => number} Value of a position before a turn to the seat to act, from -1 to 1 */

/** All keeps, those of fewer dice first. @type {number[][]} */
const KEEPS = [[]];
for (const keep of KEEPS) // the loop also visits the keeps that it adds
  for (let face = keep.at(-1) ?? 0; keep.length < 5 && face < FACES.length; face++)
    KEEPS.push([...keep, face]);

const INDEX = new Map(KEEPS.map((keep, i) => [keep.join(""), i]));

/** Return the index of a keep. @param {number[]} dice ascending */
const indexOf = (dice) => /** @type {number} */ (INDEX.get(dice.join("")));

const FIRST_ROLL = KEEPS.findIndex((keep) => keep.length === 5);

/** The indices of the partial keeps with one more die, by face. */
const MORE = KEEPS.slice(0, FIRST_ROLL).map((keep) =>
  FACES.map((_, face) => indexOf([...keep, face].sort())),
);

/** The indices of the keeps with one die less. */
const FEWER = KEEPS.map((keep) => keep.map((_, die) => indexOf(keep.filter((_, other) => other !== die))));

/** Set the value of every partial keep to its mean over the next die, by face. @param {number[]} values by keep */
function expect(values) {
  for (let i = FIRST_ROLL - 1; i >= 0; i--)
    values[i] = MORE[i].reduce((sum, more) => sum + values[more], 0) / FACES.length;
}

/** Set the value of every keep to the best one among the keeps that it contains. @param {number[]} values by keep */
function choose(values) {
  for (let i = 0; i < KEEPS.length; i++) values[i] = Math.max(values[i], ...FEWER[i].map((j) => values[j]));
}

/**
 * Return a function from the position after an action of the seat `player` to its value for this seat.
 * @param {number} player @param {Value} value @returns {Value}
 */
function afterwards(player, value) {
  /** @type {Map<string, number>} */
  const known = new Map();

  /** @param {Position} position @returns {number} */
  function compute(position) {
    if (position.phase === "over") return rewards(position.pieces)[player];
    if (position.phase !== "extra") return position.player === player ? value(position) : -value(position);
    return Math.max(...legalActions(position).map((action) => compute(decide(position, action)))); // R8
  }

  return (position) => {
    const name = `${position.phase} ${position.player} ${position.pieces}`; // the 252 rolls lead to about 33 of them
    if (!known.has(name)) known.set(name, compute(position));
    return /** @type {number} */ (known.get(name));
  };
}

/**
 * Return the value of every legal action of a decision to the seat to act, by ascending actions.
 * @param {Position} position @param {Value} value @returns {Map<number, number>}
 */
export function plan(position, value) {
  const valueAfter = afterwards(position.player, value);
  /** @param {Position} at @returns {Map<number, number>} */
  const ofActions = (at) =>
    new Map(legalActions(at).map((action) => [action, valueAfter(decide(at, action))]));
  if (position.phase !== "keep") return ofActions(position);
  const stopped = decide(position, STOP_ROLLING);
  const values = KEEPS.map((dice) =>
    dice.length < 5 ? 0 : Math.max(...ofActions({ ...stopped, dice }).values()),
  );
  const stop = values[indexOf(position.dice)];
  expect(values);
  for (let rolls = 1; rolls < position.rolls_left; rolls++) {
    choose(values);
    expect(values);
  }
  values[indexOf(position.dice)] = stop;
  return new Map(legalActions(position).map((hold) => [hold, values[indexOf(keptBy(position.dice, hold))]]));
}
