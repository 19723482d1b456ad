/**
 * The turn planner, and the value network of the bundled agent `td`.
 *
 * The planner computes the exact values of the actions of a turn, given a value of the positions after it. The method is
 * that of wotd_env/planning, described in docs/explanation/turn-planner.md.
 *
 * A *keep* is a multiset of zero to five dice, written as ascending faces. Its value is the mean of the values after
 * all throws of the missing dice. A keep of five dice is a roll. Its value is that of the best decision.
 *
 * The network, as wotd_env/planning/learned.py describes it:
 *
 *     x = relu(sum of the rows of the position's features)
 *     y = relu(x @ hidden + hidden_bias)
 *     probabilities to win = softmax(concatenate(x, y) @ output + output_bias), from the seat to act on
 */

import { FACES } from "../static/words.js";
import { decide, keptBy, legalActions, numbered, rewards, SPACES, STOP_ROLLING, score } from "./rules.js";

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

/**
 * The weights in row-major order, see `Network` in wotd_env/planning/learned.py.
 * @typedef {{rows: Float32Array, hidden: Float32Array, hidden_bias: Float32Array, output: Float32Array,
 *   output_bias: Float32Array}} Network
 */

const ALL_SPACES = SPACES + 6; // with the numbered ones and off the board
const STANDING = ALL_SPACES ** 2; // index of the first feature of a standing
const LEAD = 8; // points; larger leads look the same

/** Return the indices of a position's features. @param {Position} position */
function featuresOf({ player, pieces }) {
  const [own, others] = [pieces[player], pieces[1 - player]];
  const lead = Math.max(-LEAD, Math.min(score(own) - score(others), LEAD)) + LEAD;
  const standing = (numbered(own) * 6 + numbered(others)) * (2 * LEAD + 1) + lead;
  const pairs = own.map((space, path) => space * ALL_SPACES + others[path]);
  return [...pairs, STANDING + standing];
}

/**
 * Return the value function of a file that tools/demo.py writes.
 * @param {Record<string, string>} file the arrays of float32 in base64 @returns {Value}
 */
export function readValue(file) {
  const arrays = Object.entries(file).map(([name, text]) => {
    const bytes = Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    return [name, new Float32Array(bytes.buffer)];
  });
  const network = /** @type {Network} */ (Object.fromEntries(arrays));
  const { rows, hidden, hidden_bias: bias, output, output_bias: offset } = network;
  const units = bias.length;
  const width = hidden.length / units;
  return (position) => {
    const layers = new Float32Array(width + units); // x, then y
    for (const feature of featuresOf(position))
      for (let i = 0; i < width; i++) layers[i] += rows[feature * width + i];
    for (let i = 0; i < width; i++) layers[i] = Math.max(layers[i], 0);
    for (let unit = 0; unit < units; unit++) {
      let sum = bias[unit];
      for (let i = 0; i < width; i++) sum += layers[i] * hidden[i * units + unit];
      layers[width + unit] = Math.max(sum, 0);
    }
    let difference = offset[0] - offset[1]; // of the logits of the seat to act and the other one
    for (let i = 0; i < layers.length; i++) difference += layers[i] * (output[i] - output[layers.length + i]);
    return Math.tanh(difference / 2); // the softmax of two as an expected reward
  };
}
