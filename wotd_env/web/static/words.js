/**
 * The words of the page: its language, names, numbers and sentences. The code contains the English texts; a file in texts/
 * contains the translations into one other language. The server and the demo send only the parts of decisions and results.
 */

import { kept } from "./browser.js";

/** @import {ActionParts, GradedStep, Reason, Review, Rules, Seat, Step, View} from "./types.js" */

/** The languages of the page and of the rules, by their codes. @type {Record<string, string>} */
export const LANGUAGES = { en: "English", es: "Español", de: "Deutsch", hi: "हिन्दी" };

const preferred = [kept.get("wotd-language", ""), ...(globalThis.navigator?.languages ?? [])];

export const language = preferred.map((code) => code.slice(0, 2)).find((code) => code in LANGUAGES) ?? "en";

/**
 * The translations by their English texts, and by the plural category if the text contains a number. `server` has those
 * of the reasons that a person meets in normal use, by their codes.
 * @type {Record<string, string|Record<string, string>>}
 */
const texts =
  language === "en"
    ? {}
    : await fetch(new URL(`texts/${language}.json`, import.meta.url))
        .then((response) => response.json())
        .catch(() => ({})); // without the file, the page is in English

/** @param {string} text @param {Record<string, unknown>} values */
const filled = (text, values) => text.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));

/**
 * Translate an English text; `{name}` stands for a value.
 * @param {string} text @param {Record<string, unknown>} [values]
 */
export function t(text, values = {}) {
  const translated = texts[text] ?? text;
  return filled(typeof translated === "string" ? translated : text, values);
}

const plurals = new Intl.PluralRules(language);

/**
 * Translate a text with `{count}`, given in English for one and for other numbers.
 * @param {number} count @param {string} one @param {string} other
 */
export function plural(count, one, other) {
  const translated = texts[other] ?? { one, other };
  const text = typeof translated === "string" ? translated : translated[plurals.select(count)];
  return filled(text ?? other, { count });
}

const lists = new Intl.ListFormat(language === "en" ? "en-GB" : language); // en-GB has no comma before "and"

/** Return a number with fixed decimals. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  const how = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false };
  return value.toLocaleString(language, how);
}

const reasons = /** @type {Record<string, string>} */ (texts.server ?? {});

/** Return the server's reason for a refusal in words; reasons without a translation stay in English. @param {Reason} reason */
export const reasonWords = ({ code, values, error }) =>
  Object.hasOwn(reasons, code) ? filled(reasons[code], values) : error;

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
export const SEATS = "ABCDE";
const USUAL_SPACES = 7;

/** Powers by their numbers; the last one stands for a seat that may choose. */
export const POWERS = [
  t("fear"),
  t("rebirth"),
  t("eye of the tiger"),
  t("anxiety"),
  t("the dragon"),
  t("any one power"),
];
export const TIGER = 2;
export const ANY_POWER = 5;

/** Speeds of agents: seconds before a decision that no person takes. */
export const PACES = [
  ["0.2", t("fast")],
  ["0.8", t("normal")],
  ["2", t("slow")],
  ["5", t("very slow")],
];

/** @param {string} word */
export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/** Return a chance in per cent, with a decimal below 10 %. @param {number} chance 0 to 1 */
export const percent = (chance) =>
  `${decimal(Math.max(100 * chance, 0), chance > 0.0995 && chance < 0.9995 ? 0 : 1)} %`;

/** Return the loss of a choice in win chances. @param {number} loss 0 to 1 */
export const lossWords = (loss) =>
  loss < 0.0005 ? t("best") : t("{chance} less", { chance: percent(loss) });

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

/** The sources of win chances by their kinds. @type {Record<string, string>} */
const SOURCES = {
  solution: t("the exact solution"),
  unlimited: t("the exact solution of the game without a turn limit"),
  guarantee: t("the guarantee of each seat"),
  learned: t("a learned value, every turn planned exactly"),
  "hand-made": t("a hand-made value, every turn planned exactly"),
};

/** The agents that decide by the values of a source. @type {Record<string, string[]>} */
const JUDGES = { learned: ["td", "near perfect"], "hand-made": ["planner", "strong"] };

/** Return whose decisions a review cannot criticize, in words, or empty. @param {Review} review */
export function judgesOf({ source, players }) {
  const same = (JUDGES[source] ?? []).filter((name) => players.includes(name)).map((name) => t(name));
  const values = { names: lists.format(same) };
  return same.length ? t("{names} decides by the same values, so its errors stay hidden.", values) : "";
}

/**
 * Return the source of win chances in words, and the chance that the seat to act can guarantee, if it is known.
 * @param {{source: string, exact: boolean, guarantee?: number|null}} help
 */
export function sourceOf({ source, exact, guarantee = null }) {
  const named = { source: SOURCES[source] };
  const words = exact ? t("Source: {source}.", named) : t("Source: {source}, an estimate.", named);
  if (guarantee === null) return words;
  const forced = { chance: percent(guarantee) };
  return `${words} ${t("The seat to act has a {chance} chance of winning, whatever the others do.", forced)}`;
}

/** Return the question of a decision. @param {View} view */
export function questionOf(view) {
  const kinds = new Set(view.choices.map(({ kind }) => kind));
  const moves = ["move", "wood", "jump", "equilibrium"].some((kind) => kinds.has(kind));
  if (view.phase === "move" && kinds.has("swap") && !moves) return t("which pieces to swap?");
  return asksForTiger(view) ? t("use the eye of the tiger?") : QUESTIONS[view.phase];
}

/** Return the line of the hints while there is no hint. @param {View} view */
export function noHintWords({ choices, mine, player }) {
  if (choices.length) return t("The hint is being computed …");
  return mine.includes(player) ? t("There is only one choice.") : t("It is not your turn.");
}

/** @param {View} view */
export function titleOf(view) {
  if (view.status === "waiting") return t("Waiting for players");
  if (view.status === "over") return view.result?.words ?? "";
  const name = view.seats[view.player].name;
  if (!view.choices.length) return t("{name} to play", { name });
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
    view.left !== null &&
      (view.left ? t("{count} s left", { count: Math.ceil(view.left) }) : t("no time left")),
    playing && view.perfection && t("perfection: an extra turn is earned"),
    !playing && view.rules_words,
    !playing && view.help && t("win chances and hints are on"),
    view.spectators > 0 && plural(view.spectators, "{count} spectator", "{count} spectators"),
  ]
    .filter(Boolean)
    .join(" · ");
}

/** Return the latest event of a game in a sentence. @param {View} view */
export function newsOf({ log, status, player, seats }) {
  const last = log[log.length - 1];
  if (last) return `${last.words}${last.note ?? ""}.`;
  return status === "playing" ? t("{name} starts.", { name: seats[player].name }) : "";
}

/** Return the state of a seat in words. @param {Seat} seat @param {View} view */
export function stateOf(seat, { status, player, result, pace, mine }) {
  if (!seat.taken) return t("free");
  if (result && !result.expired && result.winners.includes(seat.seat)) return t("won");
  if (!seat.connected && seat.kind !== "agent") return t("away");
  if (mine.length === 1 && mine[0] === seat.seat) return t("you");
  if (status !== "playing" || seat.seat !== player) return "";
  if (seat.kind === "agent") return pace === null ? t("paused") : t("thinking …");
  return t("plays");
}

/** Return whether the colors of a table are still to be drawn. @param {View} view */
export const colorsOpen = ({ status, rules }) => status === "waiting" && rules.colors === "random";

/** Return the power of a seat, or null. @param {number} seat @param {View} view */
export function powerOf(seat, { rules, color }) {
  if (rules.powers === "none") return null;
  return rules.powers === "own" ? color[seat] : ANY_POWER;
}

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
 * @param {{expired: boolean, winners: number[], scores: number[], resigned: number|null}} result @param {string[]} names
 */
export function resultWords({ expired, winners, scores, resigned }, names) {
  const won = winners.map((seat) => capital(names[seat]));
  if (resigned !== null) {
    const values = { loser: capital(names[resigned]), winner: names[winners[0]] };
    return t("{loser} resigns, {winner} wins.", values);
  }
  if (expired) return t("The turn limit is reached, nobody wins.");
  if (won.length > 1) return t("{winners} share the victory.", { winners: lists.format(won) });
  const points = plural(scores[winners[0]], "{count} point", "{count} points");
  return t("{winner} wins with {points}.", { winner: won[0], points });
}

/** @type {Record<string, string>} */
const POWER_RULES = { none: t("no powers"), own: t("own powers"), any: t("any one power") };

/** Return the number of dead pieces, which may be given as a layout. @param {number | string} dead */
const deadIn = (dead) => (typeof dead === "string" ? dead.split("#").length - 1 : dead);

/** Return rules in a line: players and powers, and the other rules that differ from the basic game. @param {Rules} rules */
export const rulesWords = ({ players, powers, spaces, immunity, dead_pieces: dead, colors, start }) =>
  [
    plural(players, "{count} player", "{count} players"),
    POWER_RULES[powers],
    spaces !== USUAL_SPACES && plural(spaces, "{count} plain space", "{count} plain spaces"),
    immunity && t("immunity"),
    deadIn(dead) > 0 && plural(deadIn(dead), "{count} dead piece", "{count} dead pieces"),
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
    const letter = SEATS[seat];
    return name === `Player ${letter}` ? t("Player {letter}", { letter }) : name;
  });

/** The notes of a decision that `greedy` took in place of an agent. @type {Record<string, string>} */
const NOTES = {
  failed: t("the agent failed; greedy chose"),
  late: t("the agent did not answer in time; greedy chose"),
};

/**
 * Return a step with its words.
 * @template {Step} Each
 * @param {Each} step @param {string[]} names @param {Rules} rules @returns {Each}
 */
function wordedStep(step, names, rules) {
  const words = actionWords(step, names, rules, step.dice);
  const said = t("{name}: {words}", { name: names[step.seat], words });
  return { ...step, did: capital(words), words: said, note: step.note && ` (${NOTES[step.note]})` };
}

/** Return the view of a table with all its words. @param {View} view @returns {View} */
export function worded(view) {
  const { rules, dice, result } = view;
  const names = namesOf(view.seats);
  return {
    ...view,
    seats: view.seats.map((seat, i) => ({ ...seat, name: names[i] })),
    rules_words: rulesWords(rules),
    result: result && { ...result, words: resultWords(result, names) },
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
