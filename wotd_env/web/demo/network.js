/**
 * The value network of the bundled agent `td`, as wotd_env/planning/learned.py describes it:
 *
 *     x = relu(sum of the rows of the position's features)
 *     y = relu(x @ hidden + hidden_bias)
 *     probabilities to win = softmax(concatenate(x, y) @ output + output_bias), from the seat to act on
 */

import { numbered, SPACES, score } from "./rules.js";

/** @import {Value} from "./planner.js" */
/** @import {Position} from "./rules.js" */

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
  return (position) => evaluate(position, network);
}

/** Return the value of a position. @param {Position} position @param {Network} network */
function evaluate(position, network) {
  const { rows, hidden, hidden_bias: bias, output, output_bias: offset } = network;
  const units = bias.length;
  const width = hidden.length / units;
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
}
