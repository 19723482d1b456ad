/** Puzzles: the puzzle of a day, the next one, statistics, and positions outside of tables. */

import assert from "node:assert/strict";
import test from "node:test";
import { dayOf, nextPuzzle, statisticsOf } from "../../../wotd_env/web/static/puzzle.js";
import { viewAfter, viewOf } from "../../../wotd_env/web/static/study.js";

const puzzles = [
  { position: "a", kind: "dice", level: 1, lost: [0, 30] },
  { position: "b", kind: "move", level: 1, lost: [0, 30] },
  { position: "c", kind: "dice", level: 2, lost: [0, 30] },
];
const ALL = { kind: "", level: 0 };

test("a day has the same number in all time zones", () => {
  assert.equal(dayOf(new Date("2026-11-25T00:00:00Z")), dayOf(new Date("2026-11-25T23:59:59Z")));
  assert.equal(dayOf(new Date("2026-11-26T01:00:00+02:00")), dayOf(new Date("2026-11-25T12:00:00Z")));
  assert.equal(dayOf(new Date("2026-11-26T00:00:00Z")) - dayOf(new Date("2026-11-25T00:00:00Z")), 1);
});

test("the next puzzle fits and is unsolved if possible", () => {
  assert.equal(nextPuzzle(puzzles, {}, ALL, 0), 1);
  assert.equal(nextPuzzle(puzzles, {}, ALL, 2), 0);
  assert.equal(nextPuzzle(puzzles, {}, { kind: "dice", level: 0 }, 0), 2);
  assert.equal(nextPuzzle(puzzles, { b: { lost: 0, day: null } }, { kind: "", level: 1 }, 0), 0);
  const tried = { lost: 30, day: null };
  assert.equal(nextPuzzle(puzzles, { a: tried, b: tried, c: tried }, ALL, 0), 1);
  assert.equal(nextPuzzle(puzzles, {}, { kind: "swap", level: 0 }, 0), -1);
});

test("statistics count first answers and solved days in a row", () => {
  assert.deepEqual(statisticsOf({}, 7), { tried: 0, best: 0, lost: 0, streak: 0 });
  const results = {
    a: { lost: 0, day: 5 },
    b: { lost: 30, day: 6 },
    c: { lost: 60, day: null },
    d: { lost: 0, day: 2 },
  };
  assert.deepEqual(statisticsOf(results, 7), { tried: 4, best: 2, lost: 0.0225, streak: 0 });
  const solved = { ...results, b: { lost: 0, day: 6 } };
  assert.equal(statisticsOf(solved, 7).streak, 2);
  assert.equal(statisticsOf({ ...solved, e: { lost: 0, day: 7 } }, 7).streak, 3);
  assert.equal(statisticsOf({ ...solved, e: { lost: 30, day: 7 } }, 7).streak, 0);
  assert.equal(statisticsOf(solved, 8).streak, 0);
});

test("a choice moves its pieces without changing the first position", () => {
  const moves = [{ seat: 1, path: 2, from: 0, to: 3 }];
  const choice = { action: 33, kind: "move", path: 2, power: null, scores: [0, 2], moves };
  const view = viewOf(
    /** @type {any} */ ({
      rules: { players: 2, powers: "none" },
      dice: [],
      player: 1,
      pieces: Array(2).fill([0, 0, 0, 0, 0]),
      choices: [choice],
    }),
  );
  assert.deepEqual(view.mine, [1]);
  const seats = view.seats.map(({ name, mine }) => `${name}: ${mine}`);
  assert.deepEqual(seats, ["the opponent: false", "you: true"]);
  const after = viewAfter(view, /** @type {any} */ (choice));
  assert.deepEqual(after.pieces[1], [0, 0, 3, 0, 0]);
  assert.deepEqual([after.choices, after.moved, after.scores], [[], choice.moves, [0, 2]]);
  assert.deepEqual(view.pieces[1], [0, 0, 0, 0, 0]);
});
