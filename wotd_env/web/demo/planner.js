/**
 * The turn planner: the exact values of the actions of a turn, given a value of the positions after it. The method is
 * that of wotd_env/planning, in docs/explanation/turn-planner.md.
 *
 * A *keep* is a multiset of zero to five dice, written as its ascending faces. Its value with k rolls to come is the mean
 * over all throws of the missing dice, of the best hold after each throw.
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

/** Return the function from a position at the end of a turn to its value for the seat `player`. @param {number} player @param {Value} value @returns {Value} */
function endsFor(player, value) {
  /** @type {Map<string, number>} */
  const known = new Map();

  /** @param {Position} end @returns {number} */
  function compute(end) {
    if (end.phase === "extra")
      return Math.max(...legalActions(end).map((action) => compute(decide(end, action))));
    if (end.phase === "over") return rewards(end.pieces)[player];
    return end.player === player ? value(end) : -value(end);
  }

  return (end) => {
    const name = `${end.phase} ${end.player} ${end.pieces}`; // the rolls of a turn lead to few positions
    if (!known.has(name)) known.set(name, compute(end));
    return /** @type {number} */ (known.get(name));
  };
}

/** Return the value of every legal action of a decision to the seat to act. @param {Position} position @param {Value} value @returns {Map<number, number>} */
export function plan(position, value) {
  const endValue = endsFor(position.player, value);
  /** @param {Position} at a position in phase "move" or "extra" */
  const best = (at) => Math.max(...legalActions(at).map((action) => endValue(decide(at, action))));
  const actions = legalActions(position);
  if (position.phase !== "keep")
    return new Map(actions.map((action) => [action, endValue(decide(position, action))]));
  const stopped = decide(position, STOP_ROLLING);
  const values = KEEPS.map((dice, i) =>
    i < FIRST_ROLL ? Number.NEGATIVE_INFINITY : best({ ...stopped, dice }),
  );
  const stop = values[indexOf(position.dice)];
  expect(values);
  for (let rolls = 1; rolls < position.rolls_left; rolls++) {
    choose(values);
    expect(values);
  }
  return new Map(
    actions.map((hold) => [
      hold,
      hold === STOP_ROLLING ? stop : values[indexOf(keptBy(position.dice, hold))],
    ]),
  );
}
