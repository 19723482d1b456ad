/**
 * The rules, the planner and the network of the demo agree with those of the package, over whole games.
 * tests/web/page/test_demo.py runs this file, and names the folder of the games and the weights in WOTD_DEMO.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { readNetwork, valueOfPosition } from "../../../wotd_env/web/demo/network.js";
import { plan } from "../../../wotd_env/web/demo/planner.js";
import { decide, newGame, rolled } from "../../../wotd_env/web/demo/rules.js";
import { choicesOf, resultOf, stateOf, stepOf } from "../../../wotd_env/web/demo/view.js";

/** @param {string} file */
const read = (file) => JSON.parse(readFileSync(`${process.env.WOTD_DEMO}/${file}`, "utf8"));
const { names, games } = read("games.json");
const network = readNetwork(read("demo/td.json"));

/** Yield every decision of the games with its position in the demo. */
function* decisions() {
  for (const { decisions, end } of games) {
    let position = newGame(decisions[0].state.player);
    for (const [ply, decision] of decisions.entries()) {
      if (position.phase === "chance") position = rolled(position, decision.state.dice);
      yield { ply, position, ...decision };
      position = decide(position, decision.action);
    }
    assert.deepEqual(stateOf(position, names), end.state);
    assert.deepEqual(resultOf(position, names), end.result);
  }
}

test("positions, choices and results of whole games are the same", () => {
  let before = null;
  for (const { ply, position, state, choices, step } of decisions()) {
    assert.deepEqual(stateOf(position, names), state);
    assert.deepEqual(choicesOf(position, names), choices);
    if (ply > 0) assert.deepEqual(stepOf(ply - 1, before.position, before.step.action, position, names), before.step);
    before = { position, step };
  }
});

test("the planner gives the same values", (t) => {
  const [worst, times] = [[0], [0]];
  for (const { position, values } of decisions()) {
    const start = performance.now();
    const planned = plan(position, (end) => valueOfPosition(network, end));
    times.push(performance.now() - start);
    assert.deepEqual([...planned.keys()], Object.keys(values).map(Number));
    for (const [action, value] of planned) worst.push(Math.abs(value - values[action]));
  }
  const greatest = (/** @type {number[]} */ all) => all.reduce((most, one) => Math.max(most, one));
  t.diagnostic(`${times.length - 1} decisions, largest difference ${greatest(worst)}`);
  t.diagnostic(`milliseconds: mean ${times.reduce((a, b) => a + b) / times.length}, most ${greatest(times)}`);
  assert(greatest(worst) < 1e-4);
});
