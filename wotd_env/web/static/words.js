/** Words of the page: names, titles and numbers as people read them. */

/** @import {Seat, View} from "./types.js" */

export const ELEMENTS = ["water", "fire", "metal", "earth", "wood"];
export const DRAGON = 5;
export const FACES = [...ELEMENTS, "dragon"];
export const ANIMALS = ["black tortoise", "red bird", "white tiger", "yellow dragon", "blue dragon"];
export const LETTERS = "ABCDE";

/** Powers by their numbers; the last one stands for a seat that may choose. */
export const POWERS = ["fear", "rebirth", "eye of the tiger", "anxiety", "the dragon", "any one power"];
export const ANY_POWER = 5;

/** Speeds of agents: seconds before a decision that no person takes. */
export const PACES = { 0.2: "fast", 0.8: "normal", 2: "slow", 5: "very slow" };

/** @param {string} word */
export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** @param {number} count @param {string} noun */
export const counted = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

/** Return a chance in per cent, with a decimal below 10 %. @param {number} chance 0 to 1 */
export const percent = (chance) => `${(100 * chance).toFixed(chance > 0.0995 && chance < 0.9995 ? 0 : 1)} %`;

/** Return the words of a decision without the name. @param {string} words @param {string} name */
export const withoutName = (words, name) =>
  words.startsWith(`${name}: `) ? capital(words.slice(name.length + 2)) : words;

/** Return the names; equal names get the letter of their seat. @param {string[]} players */
export const playerNames = (players) =>
  players.map((name, seat) =>
    players.indexOf(name) === players.lastIndexOf(name) ? name : `${name} (${LETTERS[seat]})`,
  );

/** @param {number} space @param {number} spaces plain spaces of a path */
export function spaceName(space, spaces) {
  if (space === 0) return "off the board";
  return space > spaces ? `number ${space - spaces}` : `space ${space}`;
}

/** The question of each phase. @type {Record<string, string>} */
const QUESTIONS = {
  keep: "which dice to keep?",
  move: "where to move?",
  extra: "take an extra turn?",
};

/** Return whether a decision is about the eye of the tiger. @param {View} view */
export const asksForTiger = ({ phase, rolls_left: left }) => phase === "keep" && left === 0;

/**
 * Return the source of win chances in words, and the chance that the seat to act can guarantee, if it is known.
 * @param {{source: string, exact: boolean, guarantee?: number|null}} help
 */
export function sourceOf({ source, exact, guarantee = null }) {
  const words = `Source: ${source}${exact ? "" : ", an estimate"}.`;
  return guarantee === null
    ? words
    : `${words} The seat to act can guarantee ${percent(guarantee)}, whatever the others do.`;
}

/** Return the question of a decision. @param {View} view */
export const questionOf = (view) =>
  asksForTiger(view) ? "use the eye of the tiger?" : QUESTIONS[view.phase];

/** @param {View} view */
export function titleOf(view) {
  if (view.status === "waiting") return "Waiting for players";
  if (view.status === "over") return view.result?.words ?? "The game is over";
  const name = view.seats[view.player].name;
  if (!view.choices.length)
    return `${stateOf(view.seats[view.player], view) === "paused" ? "Paused: " : ""}${name} is to play`;
  const several = view.seats.filter(({ mine }) => mine).length > 1;
  return `${several ? name : "Your turn"}: ${questionOf(view)}`;
}

/** Return the facts below the title. @param {View} view */
export function factsOf(view) {
  const playing = view.status === "playing";
  return [
    view.game > 1 && `game ${view.game}`,
    playing && `turn ${view.turn + 1}`,
    playing && view.phase === "keep" && view.rolls_left > 0 && `${counted(view.rolls_left, "re-roll")} left`,
    view.perfection && "perfection: an extra turn is earned",
    !playing && view.rules_words,
    !playing && view.help && "win chances and hints are on",
    view.spectators > 0 && counted(view.spectators, "spectator"),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Return the latest event of a game in a sentence. @param {View} view */
export function newsOf({ log, status, player, seats, roll_off: rollOff }) {
  const last = log[log.length - 1];
  if (last) return `${last.words}${last.note ? ` (${last.note})` : ""}.`;
  if (status !== "playing") return "";
  return `${seats[player].name} starts${rollOff ? " with the most dragons" : ""}.`;
}

/** Return the state of a seat in words. @param {Seat} seat @param {View} view */
export function stateOf(seat, { status, player, result, pace }) {
  if (!seat.taken) return "free";
  if (result && !result.truncated && result.winners.includes(seat.seat)) return "won";
  if (status === "playing" && seat.seat === player) {
    if (seat.kind === "agent") return pace === null ? "paused" : "thinking …";
    return seat.mine ? "you play" : "plays";
  }
  return !seat.connected && seat.kind !== "agent" ? "away" : "";
}

/** Return whether the colors of a table are still to be drawn. @param {View} view */
export const colorsOpen = ({ status, rules }) => status === "waiting" && rules.colors === "random";

/** Return the power of a seat, or null. @param {number} seat @param {View} view */
export function powerOf(seat, { rules, color }) {
  if (rules.powers === "none") return null;
  return rules.powers === "own" ? color[seat] : ANY_POWER;
}
