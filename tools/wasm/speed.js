/** Measure the speed of a module: `node speed.js MODULE NETWORK GAMES PLANS` prints numbers and seconds as JSON. */

import { readFileSync } from "node:fs";
import { load } from "../../wotd_env/web/wasm/wotd.js";

const [module, network, games, plans] = process.argv.slice(2);
const game = (await load(readFileSync(module))).game();
const value = game.learned(new Uint8Array(readFileSync(network)).buffer);
const { exports } = game.engine;

/** Return the result of a function and its seconds. @param {() => number} run */
function timed(run) {
  run(); // compiles it
  const start = performance.now();
  return [run(), (performance.now() - start) / 1000];
}

/** Return the number of decisions of random games through exported functions. */
function playouts() {
  let decisions = 0;
  game.reset(0); // copies the rules to the memory
  for (let seed = 0; seed < games; seed++) {
    exports.new_game(BigInt(seed), -1);
    decisions += exports.playout();
  }
  return decisions;
}

/** Return the number of decisions of games through wotd.js; the first legal action is taken. */
function steps() {
  let decisions = 0;
  for (let seed = 0; seed < games / 20; seed++)
    for (let state = game.reset(seed); game.phase(state) !== "over"; decisions++)
      state = game.step(state, game.legalActions(state)[0]);
  return decisions;
}

/** Return a function that plans the first turn of games, with a value. @param {any} value */
const planned = (value) => () => {
  for (let seed = 0; seed < plans; seed++) game.plan(game.reset(seed), value);
  return Number(plans);
};

const results = [playouts, steps, planned(null), planned(value)].map(timed);
console.log(JSON.stringify(results));
