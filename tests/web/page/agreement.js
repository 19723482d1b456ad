/**
 * The views of the demo agree with those of the package, over whole games.
 * tests/web/page/test_demo.py runs this file, and names the folder of the games and the demo in WOTD_DEMO.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { choicesOf, resultOf, stateOf, stepOf } from "../../../wotd_env/web/demo/view.js";
import { load } from "../../../wotd_env/web/wasm/wotd.js";

/** @param {string} file */
const read = (file) => new Uint8Array(readFileSync(`${process.env.WOTD_DEMO}/${file}`));
const games = JSON.parse(new TextDecoder().decode(read("games.json")));
const game = (await load(read("wasm/wotd.wasm"))).game({ skip_forced: false });
game.learned(read("demo/td")); // raises if the file is for other rules

/** @param {object} parts */
const wordless = (parts) => ({ ...parts, words: "" }); // the page adds the words

test("positions, choices and results of whole games are the same", () => {
  for (const { decisions, end } of games) {
    const states = [...decisions, end].map(({ record }) => Uint8Array.from(record));
    for (const [i, { state, choices, step }] of decisions.entries()) {
      const [before, after] = states.slice(i, i + 2);
      assert.deepEqual(stateOf(game, before), state);
      assert.deepEqual(choicesOf(game, before), choices.map(wordless));
      assert.deepEqual(stepOf(game, step.ply, before, step.action, after), { ...wordless(step), did: "" });
    }
    assert.deepEqual(stateOf(game, states.at(-1)), end.state);
    assert.deepEqual(resultOf(game, states.at(-1)), { ...end.result, words: "" });
  }
});
