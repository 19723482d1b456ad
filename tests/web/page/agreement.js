/**
 * The rules, the planner and the network of the demo agree with those of the package, over whole games.
 * tests/web/page/test_demo.py runs this file, and names the folder of the games and the weights in WOTD_DEMO.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { plan, readValue } from "../../../wotd_env/web/demo/planner.js";
import { decide, newGame, rolled } from "../../../wotd_env/web/demo/rules.js";
import { choicesOf, resultOf, stateOf, stepOf } from "../../../wotd_env/web/demo/view.js";

/** @param {string} file */
const read = (file) => JSON.parse(readFileSync(`${process.env.WOTD_DEMO}/${file}`, "utf8"));
const { games } = read("games.json");

/** @param {object} parts */
const wordless = (parts) => ({ ...parts, words: "" }); // the page adds the words
const value = readValue(read("demo/td.json"));

/** Yield every decision of the games with the positions of the demo before it and after its roll. */
function* decisions() {
  for (const { decisions, end } of games) {
    let before = rolled(newGame(decisions[0].state.player), decisions[0].state.dice);
    for (const decision of decisions) {
      const decided = decide(before, decision.step.action);
      const after = decided.phase === "chance" ? rolled(decided, decision.step.roll) : decided;
      yield { before, after, ...decision };
      before = after;
    }
    assert.deepEqual(stateOf(before), end.state);
    assert.deepEqual(resultOf(before), { ...end.result, words: "" });
  }
}

test("positions, choices and results of whole games are the same", () => {
  for (const { before, after, state, choices, step } of decisions()) {
    assert.deepEqual(stateOf(before), state);
    assert.deepEqual(choicesOf(before), choices.map(wordless));
    assert.deepEqual(stepOf(step.ply, before, step.action, after), { ...wordless(step), did: "" });
  }
});

test("the planner gives the same values", (t) => {
  let [count, largest, slowest] = [0, 0, 0];
  const begin = performance.now();
  for (const { before, values } of decisions()) {
    const start = performance.now();
    const planned = plan(before, value);
    slowest = Math.max(slowest, performance.now() - start);
    assert.deepEqual([...planned.keys()], Object.keys(values).map(Number));
    for (const [action, value] of planned) largest = Math.max(largest, Math.abs(value - values[action]));
    count++;
  }
  const mean = (performance.now() - begin) / count;
  t.diagnostic(`${count} decisions, largest difference ${largest}, ${mean} ms each, at most ${slowest} ms`);
  assert(largest < 1e-4);
});
