/**
 * The views of the demo and its learned value agree with those of the package, over whole games.
 * tests/web/page/test_demo.py runs this file, and names the folder of the games and the demo in WOTD_DEMO.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { choicesOf, resultOf, stateOf, stepOf } from "../../../wotd_env/web/demo/view.js";
import { load } from "../../../wotd_env/web/wasm/wotd.js";

/** @param {string} file */
const read = (file) => new Uint8Array(readFileSync(`${process.env.WOTD_DEMO}/${file}`));
const { games } = JSON.parse(new TextDecoder().decode(read("games.json")));
const game = (await load(read("wasm/wotd.wasm"))).game({ skip_forced: false });
const value = game.learned(read("demo/td").buffer);

/** @param {object} parts */
const wordless = (parts) => ({ ...parts, words: "" }); // the page adds the words

/** Yield every decision of the games with the states before it and after its roll. */
function* decisions() {
  for (const { decisions, end } of games) {
    const states = [...decisions, end].map(({ record }) => Uint8Array.from(record));
    for (const [i, decision] of decisions.entries())
      yield { before: states[i], after: states[i + 1], ...decision };
    assert.deepEqual(stateOf(game, states.at(-1)), end.state);
    assert.deepEqual(resultOf(game, states.at(-1)), { ...end.result, words: "" });
  }
}

test("positions, choices and results of whole games are the same", () => {
  for (const { before, after, state, choices, step } of decisions()) {
    assert.deepEqual(stateOf(game, before), state);
    assert.deepEqual(choicesOf(game, before), choices.map(wordless));
    assert.deepEqual(stepOf(game, step.ply, before, step.action, after), { ...wordless(step), did: "" });
  }
});

test("the planner gives the same values", (t) => {
  let largest = 0;
  for (const { before, values } of decisions()) {
    const { actions } = game.plan(before, value);
    assert.deepEqual([...actions.keys()], Object.keys(values).map(Number));
    for (const [action, value] of actions) largest = Math.max(largest, Math.abs(value - values[action]));
  }
  t.diagnostic(`largest difference ${largest}`);
  assert(largest < 2e-6);
});
