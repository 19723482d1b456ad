/** Choosing on the board: marks, taps, swaps and powers. */

import assert from "node:assert/strict";
import test from "node:test";
import { choicesBeside, marksOf, NOTHING, tap, tipOf } from "../../../wotd_env/web/static/choosing.js";

const NO_PARTS = { moves: [], power: null, path: null, seats: null };
/** @param {number} action @param {string} kind @param {object} [more] */
const choice = (action, kind, more = {}) => ({ ...NO_PARTS, action, kind, ...more });
/** @param {number} to @param {number} [path] */
const move = (to, path = 0) => ({ seat: 0, path, from: 0, to });

const step = choice(32, "move", { moves: [move(2)], path: 0 });
const jump = choice(42, "jump", { moves: [move(3)], path: 0, power: 3 });
const wood = choice(37, "wood", { moves: [move(2)], path: 0, power: 4 });
const swap = choice(55, "swap", {
  path: 1,
  seats: [0, 1],
  moves: [
    { seat: 0, path: 1, from: 3, to: 5 },
    { seat: 1, path: 1, from: 5, to: 3 },
  ],
});

/** @param {object[]} choices @param {string} [phase] */
const view = (choices, phase = "move") =>
  /** @type {any} */ ({
    choices,
    phase,
    color: [0, 1],
    pieces: [
      [0, 3],
      [0, 5],
    ],
  });

test("a move without a power is made by one tap", () => {
  assert.equal(tap(view([step]), NOTHING, 0, 2).act, step);
});

test("a move with a power needs a second tap", () => {
  const first = tap(view([step, jump]), NOTHING, 0, 3);
  assert.equal(first.act, null);
  assert.deepEqual(first.chosen.offered, [jump]);
  assert.equal(tap(view([step, jump]), first.chosen, 0, 3).act, jump);
});

test("several choices for one space are all offered, and a second tap does not decide between them", () => {
  const first = tap(view([step, wood]), NOTHING, 0, 2);
  assert.deepEqual(first.chosen.offered, [step, wood]);
  assert.equal(tap(view([step, wood]), first.chosen, 0, 2).act, null);
});

test("the sign of a path offers all its moves", () => {
  assert.deepEqual(tap(view([step, jump]), NOTHING, 0, null).chosen.offered, [step, jump]);
});

test("two taps offer a swap, and tapping a piece again releases it", () => {
  const one = tap(view([swap]), NOTHING, 1, 3).chosen;
  assert.deepEqual([one.picked, one.path], [[0], 1]);
  const two = tap(view([swap]), one, 1, 5).chosen;
  assert.deepEqual(two.offered, [swap]);
  assert.deepEqual(tap(view([swap]), one, 1, 3).chosen, NOTHING);
  assert.deepEqual(tap(view([swap]), one, 1, 4).chosen, NOTHING);
});

test("marks show moves before powers, and the selection", () => {
  const marks = marksOf(view([wood, step, jump, swap]), NOTHING);
  assert.equal(marks.get("0:2")?.kind, "move");
  assert.equal(marks.get("0:3")?.kind, "power");
  assert.equal(marks.get("1:3")?.kind, "swap");
  const chosen = { offered: [], picked: [0], path: 1 };
  assert.equal(marksOf(view([swap]), chosen).get("1:3")?.kind, "picked");
  assert.equal(
    marksOf(view([jump]), { ...NOTHING, offered: /** @type {any} */ ([jump]) }).get("0:3")?.kind,
    "picked",
  );
});

test("choices that the board does not show get buttons, with ending the turn last", () => {
  const end = choice(52, "end");
  const extra = choice(53, "perfection");
  assert.deepEqual(choicesBeside(view([end, extra], "extra")), [extra, end]);
  const equilibrium = choice(47, "equilibrium", { moves: [move(1), move(1, 1)] });
  assert.deepEqual(choicesBeside(view([step, equilibrium, swap])), [equilibrium]);
  assert.equal(tipOf(/** @type {any} */ ([step, swap])), "Tap a marked space, or two pieces to swap.");
});
