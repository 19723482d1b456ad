/** The parts of a game from which the page draws, as wotd_env/web/views.py makes them on the server. */

/** @import {Choice, ActionParts, Result, State as Shown, Step} from "../static/types.js" */
/** @import {Game, State} from "../wasm/wotd.js" */

const LETTERS = "wfmeod"; // of the faces, in the notation

/** The kinds of the actions that always have the same words, by their names. @type {Record<string, string>} */
const FIXED = {
  STOP_ROLLING: "stop",
  EQUILIBRIUM: "equilibrium",
  PASS: "pass",
  END_TURN: "end",
  PERFECTION_TURN: "perfection",
};

/** Return the parts of an action. @param {Game} game @param {State} state @param {number} action @returns {ActionParts} */
function partsOf(game, state, action) {
  const { dice, pieces } = game.read(state);
  const after = game.read(game.decide(state, action)).pieces;
  const places = pieces.flatMap((spaces, seat) =>
    spaces.map((from, path) => ({ seat, path, from, to: after[seat][path] })),
  );
  const moves = places.filter(({ from, to }) => from !== to);
  const kept = dice.map((_, die) => Boolean((action >> die) & 1));
  const keep = game.phase(state) === "keep" ? kept : null;
  const parts = { action, keep, moves, path: null, seats: null, power: null };
  const { actions } = game.engine;
  const fixed = Object.keys(FIXED).find((name) => actions[name] === action);
  if (fixed) return { ...parts, kind: FIXED[fixed], notation: FIXED[fixed] };
  if (keep) {
    const letters = dice.filter((_, die) => kept[die]).map((face) => LETTERS[face]);
    return { ...parts, kind: "keep", notation: letters.join("") || "none" };
  }
  const [{ path, to }] = moves;
  if (action >= actions.FIRST_SWAP)
    return { ...parts, path, seats: [0, 1], kind: "swap", notation: `${LETTERS[path]}A-B` };
  const { spaces } = game.rules;
  return {
    ...parts,
    path,
    kind: "move",
    notation: `${LETTERS[path]}${to > spaces ? `|${to - spaces}` : to}`,
  };
}

/** Return the legal actions of a decision, without words. @param {Game} game @param {State} state @returns {Choice[]} */
export const choicesOf = (game, state) =>
  game.legalActions(state).map((action) => {
    const scores = game.scores(game.decide(state, action));
    return { ...partsOf(game, state, action), scores, words: "" };
  });

/**
 * Return decision number `ply` of a game without words, given the state before it and after its roll.
 * @param {Game} game @param {number} ply @param {State} before @param {number} action @param {State} after
 * @returns {Step}
 */
export function stepOf(game, ply, before, action, after) {
  const { turn, player: seat, dice } = game.read(before);
  const forced = game.legalActions(before).length === 1;
  const roll = game.phase(game.decide(before, action)) === "chance" ? game.read(after).dice : null;
  const parts = partsOf(game, before, action);
  return { ...parts, ply, turn, seat, dice, words: "", did: "", forced, roll, note: null };
}

/** Return the result of a game without words, or null before its end. @param {Game} game @param {State} state @returns {Result|null} */
export function resultOf(game, state) {
  if (game.phase(state) !== "over") return null;
  const rewards = game.rewards(state);
  const winners = rewards.flatMap((reward, seat) => (reward >= 0 ? [seat] : []));
  const expired = Boolean(game.read(state).expired);
  return { expired, winners, scores: game.scores(state), rewards, resigned: null, words: "" };
}

/** Return the visible parts of a state. @param {Game} game @param {State} state @returns {Shown} */
export function stateOf(game, state) {
  const { turn, player, rolls_left, dice, perfection, pieces, color } = game.read(state);
  return {
    ...{ turn, player, rolls_left, dice, color },
    phase: game.phase(state),
    perfection: Boolean(perfection),
    pieces: pieces.slice(0, game.rules.players),
    dead: [[], [], [], [], []],
    used: [false, false],
    scores: game.scores(state),
    position: "", // only other pages use the notation
  };
}
