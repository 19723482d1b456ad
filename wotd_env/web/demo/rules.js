/**
 * The rules of the basic game of two on seven plain spaces, as functions without side effects. They repeat
 * wotd_env/core/engine.py for the demo, which has no server; tests/web/page/test_demo.py compares them with it.
 * The number of its ruling stands at each function. There is no turn limit (R16).
 */

import { DRAGON, ELEMENTS, FACES } from "../static/words.js";

export const SPACES = 7; // plain spaces of a path, before its five numbered ones
const DICE = 5;
const UNROLLED = -1;
const NO_DICE = Array(DICE).fill(UNROLLED);

// The numbers of the actions, as in wotd_env/core/actions.py. Smaller ones keep die i if bit i is set.
export const STOP_ROLLING = 31;
export const MOVE_ON = 32; // + path
export const EQUILIBRIUM = 47;
export const PASS = 50;
export const END_TURN = 52;
export const PERFECTION_TURN = 53;
export const SWAP_ON = 55; // + path

/**
 * A position has the fields of docs/reference/state.md. `phase` is "chance", "keep", "move", "extra" or "over".
 * `pieces` has the space of every piece by seat and path, `dice` ascending faces and -1 for each unrolled die.
 * @typedef {{turn: number, player: number, phase: string, rolls_left: number, dice: number[], perfection: boolean,
 *   pieces: number[][]}} Position
 */

const PATHS = ELEMENTS.map((_, path) => path);

/** Return the number of dice that show each face. @param {number[]} dice */
const countsOf = (dice) => FACES.map((_, face) => dice.filter((shown) => shown === face).length);

/** Return the number of a seat's pieces on numbered spaces. @param {number[]} spaces of its pieces */
export const numbered = (spaces) => spaces.filter((space) => space > SPACES).length;

/** Return the points of a seat (R10). @param {number[]} spaces of its pieces */
export const score = (spaces) => spaces.reduce((sum, space) => sum + Math.max(space - SPACES, 0), 0);

/** Return the rewards of an ended game: 1 for a victory, 0 for a shared one (R10). @param {number[][]} pieces */
export function rewards(pieces) {
  const [first, second] = pieces.map((spaces) => 6 * score(spaces) + numbered(spaces));
  return [Math.sign(first - second), Math.sign(second - first)];
}

// ------------------------------------------------------------------------------------------- chance

/** Return dice, ascending, after a throw of the unrolled ones. @param {number[]} dice */
const thrown = (dice) =>
  dice.map((face) => (face === UNROLLED ? Math.floor(FACES.length * Math.random()) : face)).sort();

/** Roll for both seats until one has more dragons; return the dice of all rounds, and this seat (R1). */
export function rollOff() {
  const rounds = [];
  for (;;) {
    const round = [thrown(NO_DICE), thrown(NO_DICE)];
    rounds.push(round);
    const [first, second] = round.map((dice) => countsOf(dice)[DRAGON]);
    if (first !== second) return { rounds, starter: first > second ? 0 : 1 };
  }
}

/** Return the position at the start of a game. @param {number} starter */
export const newGame = (starter) => beginTurn(0, starter, [PATHS.map(() => 0), PATHS.map(() => 0)]);

/** Begin a turn; nothing is rolled yet (R2). @param {number} turn @param {number} player @param {number[][]} pieces */
function beginTurn(turn, player, pieces) {
  return { turn, player, phase: "chance", rolls_left: 2, dice: NO_DICE, perfection: false, pieces };
}

/** Roll the unrolled dice (R2). @param {Position} position @param {number[]} [dice] all dice after the roll */
export function rolled(position, dice = thrown(position.dice)) {
  return { ...position, dice, phase: position.rolls_left ? "keep" : "move" };
}

// ------------------------------------------------------------------------------------------- legal actions

/** Return the legal actions, ascending. @param {Position} position @returns {number[]} */
export function legalActions(position) {
  if (position.phase === "keep") return legalHolds(position.dice);
  if (position.phase === "move") return legalMoves(position);
  return position.phase === "extra" ? [END_TURN, PERFECTION_TURN] : [];
}

/** Return the dice that a hold keeps. @param {number[]} dice @param {number} hold */
export const keptBy = (dice, hold) => dice.filter((_, die) => (hold >> die) & 1);

/** Return the legal holds. The lowest hold stands for all that keep the same faces (R2). @param {number[]} dice */
function legalHolds(dice) {
  /** @type {Map<string, number>} */
  const lowest = new Map();
  for (let hold = STOP_ROLLING; hold >= 0; hold--) lowest.set(keptBy(dice, hold).join(""), hold);
  return [...lowest.values()].sort((one, other) => one - other);
}

/**
 * Return the space that `count` dice move the acting seat's piece to, 0 if they cannot (R3, R4).
 * @param {Position} position @param {number} path @param {number} count
 */
function destination({ player, pieces }, path, count) {
  const goal = pieces[player][path] + count;
  const moves = count > 0 && pieces[player][path] <= SPACES && pieces[1 - player][path] !== goal;
  return moves ? goal : 0;
}

/** Return the legal actions of phase "move" (R3, R5 to R7). @param {Position} position */
function legalMoves(position) {
  const counts = countsOf(position.dice);
  const open = PATHS.filter((path) => destination(position, path, counts[path]));
  const equilibrium = PATHS.every((path) => counts[path] === 1);
  const moves = equilibrium ? [EQUILIBRIUM] : open.map((path) => MOVE_ON + path);
  const dragons = counts[DRAGON];
  const called = PATHS.filter((path) => dragons === DICE || (dragons === DICE - 1 && counts[path]));
  const swappable = called.filter((path) => position.pieces.every((spaces) => spaces[path] > 0));
  return [...(open.length ? moves : [PASS]), ...swappable.map((path) => SWAP_ON + path)];
}

// ------------------------------------------------------------------------------------------- decisions

/**
 * Return the position after a legal action, before any roll.
 * @param {Position} position @param {number} action @returns {Position}
 */
export function decide(position, action) {
  const { turn, player, phase, rolls_left: left, dice, pieces } = position;
  if (phase === "move") return move(position, action);
  if (phase === "extra") return beginTurn(turn + 1, action === PERFECTION_TURN ? player : 1 - player, pieces);
  if (action === STOP_ROLLING) return { ...position, phase: "move", rolls_left: 0 };
  const kept = keptBy(dice, action);
  const unrolled = NO_DICE.slice(kept.length);
  return { ...position, phase: "chance", rolls_left: left - 1, dice: [...kept, ...unrolled] };
}

/** Take an action of phase "move". @param {Position} position @param {number} action */
function move(position, action) {
  const pieces = piecesAfter(position, action);
  const count = action < EQUILIBRIUM ? countsOf(position.dice)[action - MOVE_ON] : 0;
  const perfection = count === DICE; // R8: by a move, not by what the dice show
  const over = pieces.some((spaces) => numbered(spaces) === PATHS.length); // R9
  if (!over && !perfection) return beginTurn(position.turn + 1, 1 - position.player, pieces);
  return { ...position, pieces, perfection, phase: over ? "over" : "extra" };
}

/** Return the pieces after an action of phase "move". @param {Position} position @param {number} action */
function piecesAfter(position, action) {
  const { player, pieces, dice } = position;
  const [own, others] = [[...pieces[player]], [...pieces[1 - player]]];
  if (action >= SWAP_ON) {
    const path = action - SWAP_ON;
    [own[path], others[path]] = [others[path], own[path]]; // R6
  } else if (action === EQUILIBRIUM) {
    for (const path of PATHS) own[path] = destination(position, path, 1) || own[path]; // R7
  } else if (action < EQUILIBRIUM) own[action - MOVE_ON] += countsOf(dice)[action - MOVE_ON]; // R3
  return player ? [others, own] : [own, others];
}
