/**
 * The texts of the page in its language. The code contains the English texts; a file in texts/ contains the translations
 * into one other language.
 */

import { kept } from "./browser.js";

/** The languages of the page and of the rules, by their codes. @type {Record<string, string>} */
export const LANGUAGES = { en: "English", es: "Español", de: "Deutsch", hi: "हिन्दी" };

const preferred = [kept.get("wotd-language", ""), ...(globalThis.navigator?.languages ?? [])];

export const language = preferred.map((code) => code.slice(0, 2)).find((code) => code in LANGUAGES) ?? "en";

/**
 * The translations by their English texts, and by the plural category if the text contains a number. `server` has those
 * of the sentences that a person meets in normal use.
 * @type {Record<string, string|Record<string, string>>}
 */
const texts = language === "en" ? {} : await load(language);

/** @param {string} code */
async function load(code) {
  const response = await fetch(new URL(`texts/${code}.json`, import.meta.url)).catch(() => null);
  return response?.ok ? response.json() : {}; // without the file, the page is in English
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

const lists = new Intl.ListFormat(language === "en" ? "en-GB" : language); // en-GB has no comma before "and"

/** Return words as a list in a sentence. @param {string[]} words */
export const listed = (words) => lists.format(words);

/** Return a number with fixed decimals. @param {number} value @param {number} digits */
export function decimal(value, digits) {
  const how = { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false };
  return value.toLocaleString(language, how);
}

/** The translated sentences of the server, each with its pattern, in which the values are named groups. */
const sentences = Object.entries(texts.server ?? {}).map(([english, translated]) => {
  const pattern = english.replace(/[.?;]/g, "\\$&").replace(/\{(\w+)\}/g, "(?<$1>.+)");
  return { translated, pattern: new RegExp(`^${pattern}$`) };
});

/** Translate a sentence of the server, which is in English; unknown sentences stay in English. @param {string} sentence */
export function heard(sentence) {
  const known = sentences.find(({ pattern }) => pattern.test(sentence));
  return known ? filled(known.translated, known.pattern.exec(sentence)?.groups ?? {}) : sentence;
}
