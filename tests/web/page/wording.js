/**
 * The words of decisions, results and rules on the page, in English, are those of the package.
 * tests/web/page/test_wording.py runs this file, and names the file with the decisions in WOTD_DECISIONS.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { actionWords, resultWords, rulesWords } from "../../../wotd_env/web/static/words.js";

const { decisions, results, rules } = JSON.parse(readFileSync(process.env.WOTD_DECISIONS ?? "", "utf8"));

test("decisions have the same words", () => {
  for (const { rules, names, dice, parts, words } of decisions)
    assert.equal(actionWords(parts, names, rules, dice), words);
});

test("only rules that differ from the defaults are named", () => {
  for (const { values, words } of rules) assert.equal(rulesWords(values), words);
});

test("results have the same words", () => {
  for (const { result, names, words } of results)
    assert.equal(resultWords(result, names).toLowerCase(), `${words}.`.toLowerCase());
});
