/** Changes of a position as a line of text. */

import assert from "node:assert/strict";
import test from "node:test";
import { placed, withPart } from "../../../wotd_env/web/static/analysis.js";

const LINE =
  "..A....|B..../#B.....|A..../.......|...../.......|...../.......|..... wf(meo) 12 A keep 2 wwfmd used=B powers=own";

/** @param {string} line */
const boardOf = (line) => line.split(" ")[0].split("/");

test("a part of a line changes", () => {
  assert.equal(withPart(LINE, "rolls", "0"), LINE.replace("keep 2", "keep 0"));
});

test("a piece moves to a space, also to a numbered one", () => {
  const board = (/** @type {object} */ change) => boardOf(placed(LINE, /** @type {any} */ (change)));
  assert.equal(board({ path: 0, space: 1, sign: "A" })[0], "A......|B....");
  assert.equal(board({ path: 0, space: 12, sign: "A" })[0], ".......|B...A");
  assert.equal(board({ path: 2, space: 8, sign: "B" })[2], ".......|B....");
  assert.equal(board({ path: 2, space: 7, sign: "#" })[2], "......#|.....");
});

test("a sign that is there is removed", () => {
  assert.equal(boardOf(placed(LINE, { path: 0, space: 3, sign: "A" }))[0], ".......|B....");
  assert.equal(boardOf(placed(LINE, { path: 1, space: 1, sign: "." }))[1], ".B.....|A....");
});
