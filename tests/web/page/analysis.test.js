/** Changes of a position as a line of text. */

import assert from "node:assert/strict";
import test from "node:test";
import { lineOf, partsOf, placed } from "../../../wotd_env/web/static/analysis.js";

const LINE =
  "..A....|B..../#B.....|A..../.......|...../.......|...../.......|..... wf(meo) 12 A keep 2 wwfmd used=B powers=own";

test("a line is the same after it is taken apart and put together", () => {
  assert.equal(lineOf(partsOf(LINE)), LINE);
  assert.deepEqual(partsOf(LINE).more, ["used=B", "powers=own"]);
});

test("a piece moves to a space, also to a numbered one", () => {
  const board = (/** @type {object} */ change) =>
    partsOf(placed(LINE, /** @type {any} */ (change))).board.split("/");
  assert.equal(board({ path: 0, space: 1, sign: "A" })[0], "A......|B....");
  assert.equal(board({ path: 0, space: 12, sign: "A" })[0], ".......|B...A");
  assert.equal(board({ path: 2, space: 8, sign: "B" })[2], ".......|B....");
  assert.equal(board({ path: 2, space: 7, sign: "#" })[2], "......#|.....");
});

test("a sign that is there is removed", () => {
  assert.equal(partsOf(placed(LINE, { path: 0, space: 3, sign: "A" })).board.split("/")[0], ".......|B....");
  assert.equal(partsOf(placed(LINE, { path: 1, space: 1, sign: "." })).board.split("/")[1], ".B.....|A....");
});
