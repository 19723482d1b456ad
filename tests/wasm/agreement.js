/**
 * The module wotd.wasm agrees with the engine in Python. tests/wasm/test_wasm.py runs this file, and names the folder of
 * the decisions that Python has taken in WOTD_DECISIONS.
 */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";
import { load } from "../../wotd_env/web/wasm/wotd.js";

const FOLDER = process.env.WOTD_DECISIONS;
const { module, variants } = JSON.parse(readFileSync(`${FOLDER}/variants.json`, "utf8"));
const engine = await load(readFileSync(module));

/** Return a function that reads row i of an array of a variant as bytes. */
function reader({ arrays }) {
  const files = arrays.map(({ name, size }) => [name, { size, bytes: readFileSync(`${FOLDER}/${name}`) }]);
  const named = Object.fromEntries(files.map(([name, file]) => [name.replace(/^\d+-/, ""), file]));
  return (name, i) => {
    const { size, bytes } = named[name];
    return new Uint8Array(bytes.subarray(i * size, (i + 1) * size));
  };
}

/** Fail if two arrays of bytes differ. */
const same = (bytes, wanted, message) => assert.equal(Buffer.from(bytes).compare(wanted), 0, message);

const floats = (bytes) => [...new Float32Array(bytes.buffer)];
const doubles = (bytes) => [...new Float64Array(bytes.buffer)];

for (const variant of variants) {
  test(JSON.stringify(variant.options), () => {
    const game = engine.game(variant.options);
    const row = reader(variant);
    variant.roll_offs.forEach((rounds, seed) => {
      assert.deepEqual(game.rollOff(seed), rounds);
    });
    for (let seed = 0; seed < variant.games; seed++) same(game.reset(seed), row("before", seed), "reset");
    for (let i = 0; i < variant.decisions; i++) {
      const about = `decision ${i}`;
      const [before, after, [action]] = [row("before", i), row("after", i), row("action", i)];
      const legal = game.legalActions(before);
      same(
        Uint8Array.from(row("mask", i).keys(), (a) => Number(legal.includes(a))),
        row("mask", i),
        about,
      );
      same(game.observe(before), row("observation", i), about);
      same(game.decide(before, action), row("decided", i), about);
      same(game.step(before, action), after, about);
      assert.deepEqual(game.scores(after), [...row("scores", i)], about);
      assert.deepEqual(game.rewards(after), floats(row("rewards", i)), about);
      same(game.phase(after) === "over" ? game.restart(after) : after, row("next", i), about);
      const refused = [...Array(game.numActions).keys()].find((a) => !legal.includes(a));
      if (refused !== undefined) assert.throws(() => game.step(before, refused), RangeError);
    }
  });

  test(`plans of ${JSON.stringify(variant.options)}`, () => {
    const game = engine.game(variant.options);
    const row = reader(variant);
    const values = { handmade: null };
    if (variant.network)
      values.learned = game.learned(new Uint8Array(readFileSync(`${FOLDER}/${variant.network}`)).buffer);
    for (const [name, value] of Object.entries(values)) {
      for (let i = 0; i < variant.plans; i++) {
        const planned = game.plan(row("planned", i), value);
        const wanted = floats(row(`${name}-actions`, i));
        const [total, best] = doubles(row(`${name}-value`, i));
        assert.equal(planned.best, best);
        assert(Math.abs(planned.value - total) < 2e-6, `${planned.value} ${total}`);
        wanted.forEach((value, action) => {
          const given = planned.actions.get(action) ?? -Infinity;
          assert(given === value || Math.abs(given - value) < 2e-6, `${given} ${value}`);
        });
      }
    }
  });
}
