/** The parts of a game from which the page draws, as wotd_env/web/views.py makes them on the server. */

import * as rules from "./rules.js";

/** @import {Choice, ActionParts, Result, State, Step} from "../static/types.js" */
/** @import {Position} from "./rules.js" */

const LETTERS = "wfmeod"; // of the faces, in the notation

/** The kinds of the actions that always have the same words. @type {Record<number, string>} */
const FIXED = {
  [rules.STOP_ROLLING]: "stop",
  [rules.EQUILIBRIUM]: "equilibrium",
  [rules.PASS]: "pass",
  [rules.END_TURN]: "end",
  [rules.PERFECTION_TURN]: "perfection",
};

/** Return the parts of an action. @param {Position} before @param {number} action @returns {ActionParts} */
function partsOf(before, action) {
  const { phase, dice } = before;
  const after = rules.decide(before, action);
  const places = before.pieces.flatMap((spaces, seat) =>
    spaces.map((from, path) => ({ seat, path, from, to: after.pieces[seat][path] })),
  );
  const moves = places.filter(({ from, to }) => from !== to);
  const keep = phase === "keep" ? dice.map((_, die) => Boolean((action >> die) & 1)) : null;
  const parts = { action, keep, moves, path: null, seats: null, power: null };
  if (action in FIXED) return { ...parts, kind: FIXED[action], notation: FIXED[action] };
  if (action < rules.STOP_ROLLING) {
    const kept = rules.keptBy(dice, action).map((face) => LETTERS[face]);
    return { ...parts, kind: "keep", notation: kept.join("") || "none" };
  }
  const [{ path, to }] = moves;
  if (action >= rules.SWAP_ON)
    return { ...parts, path, seats: [0, 1], kind: "swap", notation: `${LETTERS[path]}A-B` };
  const space = to > rules.SPACES ? `|${to - rules.SPACES}` : to;
  return { ...parts, path, kind: "move", notation: `${LETTERS[path]}${space}` };
}

/** Return the legal actions of a decision, without words. @param {Position} position @returns {Choice[]} */
export const choicesOf = (position) =>
  rules.legalActions(position).map((action) => {
    const scores = rules.decide(position, action).pieces.map(rules.score);
    return { ...partsOf(position, action), scores, words: "" };
  });

/**
 * Return decision number `ply` of a game without words, given the positions before it and after its roll.
 * @param {number} ply @param {Position} before @param {number} action @param {Position} after @returns {Step}
 */
export function stepOf(ply, before, action, after) {
  const { turn, player: seat, dice } = before;
  const forced = rules.legalActions(before).length === 1;
  const roll = rules.decide(before, action).phase === "chance" ? after.dice : null;
  return { ...partsOf(before, action), ply, turn, seat, dice, words: "", did: "", forced, roll, note: null };
}

/** Return the result of a game without words, or null before its end. @param {Position} position @returns {Result|null} */
export function resultOf({ phase, pieces }) {
  if (phase !== "over") return null;
  const rewards = rules.rewards(pieces);
  const winners = [0, 1].filter((seat) => rewards[seat] >= 0);
  return { expired: false, winners, scores: pieces.map(rules.score), rewards, resigned: null, words: "" };
}

/** Return the visible parts of a position. @param {Position} position @returns {State} */
export const stateOf = (position) => ({
  ...position,
  color: [0, 1, 2, 3, 4],
  dead: [[], [], [], [], []],
  used: [false, false],
  scores: position.pieces.map(rules.score),
  position: "", // only other pages use the notation
});
