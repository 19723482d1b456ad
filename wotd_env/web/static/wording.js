/** Sentences about a game: its decisions, results, rules and next acts. The server and the demo send only the parts. */

import { listed, plural, t } from "./text.js";
import { capital, ELEMENTS, FACES, LETTERS, spaceName } from "./words.js";

/** @import {ActionParts, GradedStep, Review, Rules, Step, View} from "./types.js" */

const TIGER = 2;
const USUAL_SPACES = 7;

/** Return a decision in words. @param {ActionParts} parts @param {string[]} names @param {Rules} rules @param {number[]} dice */
export function actionWords(parts, names, { spaces }, dice) {
  const { kind, power, path, seats, moves, keep } = parts;
  if (kind === "keep") {
    const kept = dice.filter((_, die) => keep?.[die]).map((face) => FACES[face]);
    const some = t("keep {dice} and re-roll the rest", { dice: kept.join(", ") });
    const words = kept.length ? some : t("re-roll all dice");
    return power === TIGER ? t("{words} (eye of the tiger, metal)", { words }) : words;
  }
  if (kind === "swap" && seats) {
    const values = { one: names[seats[0]], other: names[seats[1]], element: ELEMENTS[path ?? 0] };
    return t("swap the pieces of {one} and {other} on {element}", values);
  }
  if (path !== null) {
    const element = ELEMENTS[path];
    const space = spaceName(moves[0].to, spaces);
    if (kind === "wood")
      return t("move on {element}, dragons counted as {element} (wood), to {space}", { element, space });
    if (kind === "jump") return t("jump on {element} (earth), to {space}", { element, space });
    return t("move on {element}, to {space}", { element, space });
  }
  const words = FIXED[kind === "equilibrium" && power !== null ? `equilibrium ${power}` : kind];
  const goals = moves.map((move) =>
    t(", {element} to {space}", { element: ELEMENTS[move.path], space: spaceName(move.to, spaces) }),
  );
  return `${words}${goals.join("")}`;
}

/** The actions with the same words in every position, by kind; the number of a power follows. @type {Record<string, string>} */
const FIXED = {
  stop: t("keep all dice and stop rolling"),
  equilibrium: t("equilibrium: advance every piece that can"),
  "equilibrium 4": t(
    "equilibrium with the dragon as the missing element: advance every piece that can (wood)",
  ),
  "equilibrium 3": t("equilibrium: advance every piece, blocked ones jump (earth)"),
  pass: t("pass: no piece can move by the dice"),
  fear: t("stay put although a move is possible (fear, water)"),
  end: t("end the turn"),
  perfection: t("take the extra turn of perfection"),
  rebirth: t("take an extra turn (rebirth, fire)"),
};

/**
 * Return a result in words.
 * @param {{truncated: boolean, winners: number[], scores: number[], resigned: number|null}} result @param {string[]} names
 */
export function resultWords({ truncated, winners, scores, resigned }, names) {
  const won = winners.map((seat) => capital(names[seat]));
  if (resigned !== null) {
    const values = { loser: capital(names[resigned]), winner: names[winners[0]] };
    return t("{loser} resigns, {winner} wins.", values);
  }
  if (truncated) return t("The turn limit is reached, nobody wins.");
  if (won.length > 1) return t("{winners} share the victory.", { winners: listed(won) });
  const points = plural(scores[winners[0]], "{count} point", "{count} points");
  return t("{winner} wins with {points}.", { winner: won[0], points });
}

/**
 * Return the next act of a running game in a sentence.
 * @param {{turn: number, player: number, phase: string, rolls_left: number}} state @param {string[]} names
 */
export function dueWords({ turn, player, phase, rolls_left: left }, names) {
  const rolls = plural(left, "{count} re-roll", "{count} re-rolls");
  const values = { turn: turn + 1, name: names[player], rolls };
  if (phase === "keep" && left)
    return t("Turn {turn}: {name} chooses which dice to keep, {rolls} left.", values);
  if (phase === "keep")
    return t("Turn {turn}: {name} may re-roll once more by the eye of the tiger.", values);
  if (phase === "extra") return t("Turn {turn}: {name} may take an extra turn.", values);
  return t("Turn {turn}: {name} moves.", values);
}

/** @type {Record<string, string>} */
const POWER_RULES = { none: t("no powers"), own: t("own powers"), any: t("any one power") };

/** Return rules in a line: players and powers, and the other rules that differ from the basic game. @param {Rules} rules */
export const rulesWords = ({ players, powers, spaces, immunity, dead_pieces: dead, colors, start }) =>
  [
    plural(players, "{count} player", "{count} players"),
    POWER_RULES[powers],
    spaces !== USUAL_SPACES && plural(spaces, "{count} plain space", "{count} plain spaces"),
    immunity && t("immunity"),
    dead > 0 && plural(dead, "{count} dead piece", "{count} dead pieces"),
    colors === "random" && t("random colors"),
    start === "loser" && t("the loser starts the next game"),
  ]
    .filter(Boolean)
    .join(", ");

/**
 * Return the names of seats. A seat without a name has its letter, and strengths of agents are translated.
 * @param {{name: string, kind?: string}[]} seats
 */
export const namesOf = (seats) =>
  seats.map(({ name, kind }, seat) => {
    if (kind === "agent") return t(name);
    const letter = LETTERS[seat];
    return name === `Player ${letter}` ? t("Player {letter}", { letter }) : name;
  });

/**
 * Return a step with its words.
 * @template {Step} Each
 * @param {Each} step @param {string[]} names @param {Rules} rules @returns {Each}
 */
function wordedStep(step, names, rules) {
  const words = actionWords(step, names, rules, step.dice);
  return { ...step, words: t("{name}: {words}", { name: names[step.seat], words }) };
}

/** Return the view of a table with all its words. @param {View} view @returns {View} */
export function worded(view) {
  const { rules, dice, result } = view;
  const names = namesOf(view.seats);
  const words = result ? resultWords(result, names) : dueWords(view, names);
  return {
    ...view,
    words,
    seats: view.seats.map((seat, i) => ({ ...seat, name: names[i] })),
    rules_words: rulesWords(rules),
    result: result && { ...result, words },
    choices: view.choices.map((choice) => ({ ...choice, words: actionWords(choice, names, rules, dice) })),
    log: view.log.map((step) => wordedStep(step, names, rules)),
  };
}

/** Return a review with all its words. @param {Review} review @returns {Review} */
export function wordedReview(review) {
  const { rules, result } = review;
  const names = namesOf(review.players.map((name) => ({ name })));
  /** @param {GradedStep} step */
  const best = ({ best, dice }) => (best ? actionWords(best, names, rules, dice) : "");
  const steps = review.steps.map((step) => ({ ...wordedStep(step, names, rules), best_words: best(step) }));
  return { ...review, steps, result: result && { ...result, words: resultWords(result, names) } };
}
