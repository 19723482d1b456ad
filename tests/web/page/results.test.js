/** Numbers and groups of the page "People against agents", tested without a browser. */

import assert from "node:assert/strict";
import test from "node:test";
import { groupsOf, scoreWords } from "../../../wotd_env/web/static/results.js";

const result = /** @type {any} */ ({ rules: { players: 2 }, help: true, score: 0.4312, margin: 0.08 });

test("a score has its interval if there is one", () => {
  assert.equal(scoreWords(result), "43.1 ± 8.0");
  assert.equal(scoreWords({ ...result, score: -0.02, margin: null }), "−2.0");
});

test("results with other rules or other help are apart", () => {
  const without = { ...result, help: false };
  const other = { ...result, rules: { players: 3 } };
  assert.deepEqual(groupsOf([result, result, without, other]), [[result, result], [without], [other]]);
});
