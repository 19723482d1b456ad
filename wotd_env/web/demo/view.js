/** The parts of a game from which the page draws, as wotd_env/web/views.py makes them on the server. */

import { capital, counted, ELEMENTS, FACES, spaceName } from "../static/words.js";
import * as rules from "./rules.js";

/** @import {Choice, Move, State, Step} from "../static/types.js" */
/** @import {Position} from "./rules.js" */

const LETTERS = "wfmeod"; // of the faces, in the notation

/** The kinds and the words of the actions that always have the same ones. @type {Record<number, [string, string]>} */
const FIXED = {
  [rules.STOP_ROLLING]: ["stop", "keep all dice and stop rolling"],
  [rules.PASS]: ["pass", "pass: no piece can move by the dice"],
  [rules.END_TURN]: ["end", "end the turn"],
  [rules.PERFECTION_TURN]: ["perfection", "take the extra turn of perfection"],
};

/** Return the moves between two positions. @param {Position} before @param {Position} after @returns {Move[]} */
function movesOf(before, after) {
  const places = before.pieces.flatMap((spaces, seat) =>
    spaces.map((from, path) => ({ seat, path, from, to: after.pieces[seat][path] })),
  );
  return places.filter(({ from, to }) => from !== to);
}

/**
 * Return the kind of an action, its word in the notation, and its words.
 * @param {number[]} dice @param {number} action @param {Move[]} moves @param {string[]} names of the seats
 */
function describe(dice, action, moves, names) {
  if (action in FIXED) {
    const [kind, words] = FIXED[action];
    return [kind, kind, words];
  }
  if (action < rules.STOP_ROLLING) {
    const kept = rules.keptBy(dice, action);
    if (!kept.length) return ["keep", "none", "re-roll all dice"];
    const words = `keep ${kept.map((face) => FACES[face]).join(", ")} and re-roll the rest`;
    return ["keep", kept.map((face) => LETTERS[face]).join(""), words];
  }
  if (action === rules.EQUILIBRIUM) {
    const goals = moves.map(({ path, to }) => `, ${ELEMENTS[path]} to ${spaceName(to, rules.SPACES)}`);
    return ["equilibrium", "equilibrium", `equilibrium: advance every piece that can${goals.join("")}`];
  }
  const [{ path, to }] = moves;
  const [letter, element] = [LETTERS[path], ELEMENTS[path]];
  if (action >= rules.SWAP_ON)
    return ["swap", `${letter}A-B`, `swap the pieces of ${names.join(" and ")} on ${element}`];
  const space = to > rules.SPACES ? `|${to - rules.SPACES}` : to;
  return ["move", `${letter}${space}`, `move on ${element}, to ${spaceName(to, rules.SPACES)}`];
}

/** Return the legal actions of a decision. @param {Position} position @param {string[]} names @returns {Choice[]} */
export function choicesOf(position, names) {
  const { phase, dice } = position;
  return rules.legalActions(position).map((action) => {
    const after = rules.decide(position, action);
    const moves = movesOf(position, after);
    const [kind, notation, words] = describe(dice, action, moves, names);
    const keep = phase === "keep" ? dice.map((_, die) => Boolean((action >> die) & 1)) : null;
    const path = ["move", "swap"].includes(kind) ? moves[0].path : null;
    const seats = kind === "swap" ? [0, 1] : null;
    const scores = after.pieces.map(rules.score);
    return { action, kind, words, notation, keep, path, seats, moves, scores, power: null };
  });
}

/**
 * Return decision number `ply` of a game, given the positions before it and after its roll.
 * @param {number} ply @param {Position} before @param {number} action @param {Position} after @param {string[]} names
 * @returns {Step}
 */
export function stepOf(ply, before, action, after, names) {
  const { turn, player: seat, dice } = before;
  const moves = movesOf(before, after);
  const [, notation, chosen] = describe(dice, action, moves, names);
  const forced = rules.legalActions(before).length === 1;
  const roll = rules.decide(before, action).phase === "chance" ? after.dice : null;
  const words = `${names[seat]}: ${chosen}`;
  return { ply, turn, seat, dice, words, notation, action, forced, roll, moves, note: null };
}

/** Return the result of a game, or null before its end. @param {Position} position @param {string[]} names */
export function resultOf({ phase, pieces }, names) {
  if (phase !== "over") return null;
  const rewards = rules.rewards(pieces);
  const scores = pieces.map(rules.score);
  const winners = [0, 1].filter((seat) => rewards[seat] >= 0);
  const [first] = winners;
  const alone = `${capital(names[first])} wins with ${counted(scores[first], "point")}.`;
  const words = winners.length > 1 ? `${names.join(" and ")} share the victory.` : alone;
  return { truncated: false, winners, scores, rewards, words };
}

/** Return the visible parts of a position. @param {Position} position @param {string[]} names @returns {State} */
export function stateOf(position, names) {
  /** @type {Record<string, string>} */
  const due = {
    keep: `chooses which dice to keep, ${counted(position.rolls_left, "re-roll")} left`,
    move: "moves",
    extra: "may take an extra turn",
  };
  const { turn, player, phase, pieces } = position;
  const words = resultOf(position, names)?.words ?? `Turn ${turn + 1}: ${names[player]} ${due[phase]}.`;
  return {
    ...position,
    color: [0, 1, 2, 3, 4],
    dead: [[], [], [], [], []],
    used: [false, false],
    scores: pieces.map(rules.score),
    position: "", // only other pages use the notation
    words,
  };
}
