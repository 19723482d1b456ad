/**
 * The texts of the page in its language. The code contains the English texts; a file in texts/ contains the translations
 * into one other language.
 */

import { kept } from "./kept.js";

/** The languages of the page and of the rules, by their codes. @type {Record<string, string>} */
export const LANGUAGES = { en: "English", es: "Español", de: "Deutsch", hi: "हिन्दी" };

const STORED = "wotd-language";
const preferred = [kept.get(STORED, ""), ...(globalThis.navigator?.languages ?? [])];

export const language = preferred.map((code) => code.slice(0, 2)).find((code) => code in LANGUAGES) ?? "en";

/**
 * The translations by their English texts, and by the plural category if the text contains a number.
 * @type {Record<string, string|Record<string, string>>}
 */
const texts = language === "en" ? {} : await load(language);

/** @param {string} code */
async function load(code) {
  const response = await fetch(new URL(`texts/${code}.json`, import.meta.url)).catch(() => null);
  return response?.ok ? response.json() : {}; // without the file, the page is in English
}

/** Choose the language of the page, which is then loaded again. @param {string} code */
export function setLanguage(code) {
  kept.set(STORED, code);
  location.reload();
}

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

const lists = new Intl.ListFormat(language, { type: "conjunction" });
const english = new Intl.ListFormat("en-GB", { type: "conjunction" }); // without a comma before "and"

/** Return words as a list in a sentence. @param {string[]} words */
export const listed = (words) => (language === "en" ? english : lists).format(words);

/** Return a number with fixed decimals. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  const how = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false };
  return value.toLocaleString(language, how);
}

/** The sentences of the server that a person meets in normal use. They contain values as `{name}`. */
const SENTENCES = [
  "the exact solution, {file}",
  "the exact solution of the game without a turn limit, {file}",
  "the guarantee of each seat, {file}",
  "the guarantee of each seat of the game without a turn limit, {file}",
  "the learned value {name}, every turn planned exactly",
  "the hand-made value, every turn planned exactly",
  "the plan of td",
  "An error loses at least {error} of equity, {lost} % of games won. Errors of at least {blunder}, {most} %, are blunders.",
  "{agent} failed; {other} chose",
  "{agent} did not answer in time; {other} chose",
  "{agent} is not made for {rules}",
  "{agent} needs software that this server does not have",
  "this table has no open seat any more",
  "this seat is taken, or not open to everybody",
  "this invitation is not valid, or has been used already",
  "this table does not exist or was deleted",
  "this key opens nothing at this table",
  "name must have printable characters only, got {name}",
  "position must be of a running game; this game is over",
  "it is the turn of {name}",
  "a game is reviewed when it is over",
  "game {number} of this table is damaged on disk",
  "the review takes too long",
  "the position could not be valued in time",
  "too many games wait for their review; try again soon",
  "too many {what}; try again in {wait} s",
  "you have set up {count} tables, which is the most",
  "the server is warming up; try again in a few seconds",
];

/** Each sentence with the names of its values, and its pattern in which they are groups. */
const patterns = SENTENCES.map((text) => {
  const names = [...text.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const pattern = text.replace(/[.?;]/g, "\\$&").replace(/\{\w+\}/g, "(.+)");
  return { text, names, pattern: new RegExp(`^${pattern}$`) };
});

/** Translate a sentence of the server, which is in English; unknown sentences stay in English. @param {string} sentence */
export function heard(sentence) {
  const known = patterns.find(({ pattern }) => pattern.test(sentence));
  if (!known) return sentence;
  const [, ...values] = known.pattern.exec(sentence) ?? [];
  return t(known.text, Object.fromEntries(known.names.map((name, i) => [name, values[i]])));
}
