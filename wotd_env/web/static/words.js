/** Words of the page: names, titles and numbers as people read them. */

import { decimal, heard, plural, t } from "./text.js";

/** @import {Seat, View} from "./types.js" */

export const ELEMENTS = [t("water"), t("fire"), t("metal"), t("earth"), t("wood")];
export const DRAGON = 5;
export const FACES = [...ELEMENTS, t("dragon")];
export const ANIMALS = [
  t("black tortoise"),
  t("red bird"),
  t("white tiger"),
  t("yellow dragon"),
  t("blue dragon"),
];
export const LETTERS = "ABCDE";

/** Powers by their numbers; the last one stands for a seat that may choose. */
export const POWERS = [
  t("fear"),
  t("rebirth"),
  t("eye of the tiger"),
  t("anxiety"),
  t("the dragon"),
  t("any one power"),
];
export const ANY_POWER = 5;

/** Speeds of agents: seconds before a decision that no person takes. */
export const PACES = { 0.2: t("fast"), 0.8: t("normal"), 2: t("slow"), 5: t("very slow") };

/** @param {string} word */
export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** Return a chance in per cent, with a decimal below 10 %. @param {number} chance 0 to 1 */
export const percent = (chance) => `${decimal(100 * chance, chance > 0.0995 && chance < 0.9995 ? 0 : 1)} %`;

/** Return the loss of a choice in win chances. @param {number} loss 0 to 1 */
export const lossWords = (loss) =>
  loss < 0.0005 ? t("best") : t("{chance} less", { chance: percent(loss) });

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
  if (space === 0) return t("off the board");
  return space > spaces ? t("number {number}", { number: space - spaces }) : t("space {space}", { space });
}

/** The question of each phase. @type {Record<string, string>} */
const QUESTIONS = {
  keep: t("which dice to keep?"),
  move: t("where to move?"),
  extra: t("take an extra turn?"),
};

/** Return whether a decision is about the eye of the tiger. @param {View} view */
export const asksForTiger = ({ phase, rolls_left: left }) => phase === "keep" && left === 0;

/**
 * Return the source of win chances in words, and the chance that the seat to act can guarantee, if it is known.
 * @param {{source: string, exact: boolean, guarantee?: number|null}} help
 */
export function sourceOf({ source, exact, guarantee = null }) {
  const named = { source: heard(source) };
  const words = exact ? t("Source: {source}.", named) : t("Source: {source}, an estimate.", named);
  if (guarantee === null) return words;
  const forced = { chance: percent(guarantee) };
  return `${words} ${t("The seat to act can guarantee {chance}, whatever the others do.", forced)}`;
}

/** Return the question of a decision. @param {View} view */
export const questionOf = (view) =>
  asksForTiger(view) ? t("use the eye of the tiger?") : QUESTIONS[view.phase];

/** @param {View} view */
export function titleOf(view) {
  if (view.status === "waiting") return t("Waiting for players");
  if (view.status === "over") return view.result?.words ?? "";
  const name = view.seats[view.player].name;
  if (!view.choices.length)
    return view.seats[view.player].kind === "agent" && view.pace === null
      ? t("Paused: {name} is to play", { name })
      : t("{name} is to play", { name });
  const several = view.seats.filter(({ mine }) => mine).length > 1;
  return t("{who}: {question}", { who: several ? name : t("Your turn"), question: questionOf(view) });
}

/** Return the facts below the title. @param {View} view */
export function factsOf(view) {
  const playing = view.status === "playing";
  return [
    view.game > 1 && t("game {game}", { game: view.game }),
    playing && t("turn {turn}", { turn: view.turn + 1 }),
    playing &&
      view.phase === "keep" &&
      view.rolls_left > 0 &&
      plural(view.rolls_left, "{count} re-roll left", "{count} re-rolls left"),
    view.perfection && t("perfection: an extra turn is earned"),
    !playing && view.rules_words,
    !playing && view.help && t("win chances and hints are on"),
    view.spectators > 0 && plural(view.spectators, "{count} spectator", "{count} spectators"),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Return the latest event of a game in a sentence. @param {View} view */
export function newsOf({ log, status, player, seats, roll_off: rollOff }) {
  const last = log[log.length - 1];
  if (last) return `${last.words}${last.note ? ` (${heard(last.note)})` : ""}.`;
  if (status !== "playing") return "";
  const { name } = seats[player];
  return rollOff ? t("{name} starts with the most dragons.", { name }) : t("{name} starts.", { name });
}

/** Return the state of a seat in words. @param {Seat} seat @param {View} view */
export function stateOf(seat, { status, player, result, pace }) {
  if (!seat.taken) return t("free");
  if (result && !result.truncated && result.winners.includes(seat.seat)) return t("won");
  if (status === "playing" && seat.seat === player) {
    if (seat.kind === "agent") return pace === null ? t("paused") : t("thinking …");
    return seat.mine ? t("you play") : t("plays");
  }
  return !seat.connected && seat.kind !== "agent" ? t("away") : "";
}

/** Return whether the colors of a table are still to be drawn. @param {View} view */
export const colorsOpen = ({ status, rules }) => status === "waiting" && rules.colors === "random";

/** Return the power of a seat, or null. @param {number} seat @param {View} view */
export function powerOf(seat, { rules, color }) {
  if (rules.powers === "none") return null;
  return rules.powers === "own" ? color[seat] : ANY_POWER;
}
