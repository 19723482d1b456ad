/** Places of the dice: kept dice stay in place. */

import assert from "node:assert/strict";
import test from "node:test";
import { facesOf, heldFaces, placesAfter, sortedPlaces } from "../../../wotd_env/web/static/choosing.js";

/** @param {number[]} indices */
const mask = (...indices) => indices.reduce((bits, die) => bits | (1 << die), 0);

/**
 * @param {number[]} dice @param {number} action @param {number[]} roll @param {boolean[]|null} [pressed]
 * @param {any[]} [before] earlier steps of the turn
 */
const after = (dice, action, roll, pressed = null, before = []) =>
  placesAfter([...before, { turn: 0, action, dice, roll }], 0, () => pressed);

test("kept dice stay and the others fill the free places in ascending order", () => {
  const dice = [0, 1, 1, 3, 5];
  const action = mask(1, 4); // a fire at place 2, the dragon at place 5
  const rolled = [0, 1, 2, 4, 5]; // water, metal and wood are new
  const places = after(dice, action, rolled);
  assert.deepEqual(facesOf(places.order, rolled), [0, 1, 2, 4, 5]);
  const lower = [0, 0, 0, 1, 5];
  assert.deepEqual(facesOf(after(dice, action, lower).order, lower), [0, 1, 0, 0, 5]);
  assert.deepEqual(places.kept, [false, true, false, false, true]);
  assert.deepEqual(places.rolled, [true, false, true, true, false]);
});

test("every die has one place after any roll", () => {
  const dice = [1, 2, 3, 4, 5];
  const first = { turn: 0, action: mask(4), dice: [0, 1, 2, 3, 4], roll: dice };
  const { order } = placesAfter([first], 0);
  assert.deepEqual(order, [0, 1, 2, 4, 3]);
  for (let action = 0; action < 31; action++) {
    const faces = facesOf(order, dice);
    const held = order.map((die) => Boolean((action >> die) & 1));
    const rolled = faces.map((face, place) => (held[place] ? face : 2)).sort();
    const places = after(dice, action, rolled, null, [first]);
    assert.deepEqual([...places.order].sort(), [0, 1, 2, 3, 4]);
    const now = facesOf(places.order, rolled);
    held.forEach((stays, place) => {
      assert.equal(now[place], stays ? faces[place] : 2);
    });
  }
});

test("the pressed one of several equal dice stays", () => {
  const dice = [1, 1, 1, 2, 3];
  const pressed = [false, false, true, false, false];
  assert.deepEqual(after(dice, mask(0), dice, pressed).kept, pressed);
  const others = [false, false, false, true, false]; // differs from the dice that the action keeps
  assert.deepEqual(after(dice, mask(0), dice, others).kept, [true, false, false, false, false]);
});

test("places follow from the decisions of the present turn", () => {
  const steps = [
    { ply: 0, turn: 0, action: mask(0), dice: [0, 1, 2, 3, 4], roll: [0, 0, 0, 0, 0] },
    { ply: 1, turn: 0, action: 34, dice: [0, 0, 0, 0, 0], roll: [0, 1, 2, 3, 5] }, // a move, then the next turn
    { ply: 2, turn: 1, action: mask(4), dice: [0, 1, 2, 3, 5], roll: [1, 2, 2, 5, 5] },
  ];
  assert.deepEqual(placesAfter(steps.slice(0, 2), 1).order, [0, 1, 2, 3, 4]);
  assert.deepEqual(placesAfter(steps.slice(0, 2), 1).rolled, [true, true, true, true, true]);
  const { order, kept } = placesAfter(steps, 1);
  assert.deepEqual(facesOf(order, [1, 2, 2, 5, 5]), [1, 2, 2, 5, 5]);
  assert.deepEqual(kept, [false, false, false, false, true]);
  const all = placesAfter([{ ...steps[2], action: 31, roll: null }], 1);
  assert.deepEqual(all.order, [0, 1, 2, 3, 4], "stopping rolls nothing");
});

test("the dice of a turn that has not started yet are all new", () => {
  assert.deepEqual(placesAfter([], 0), sortedPlaces());
});

test("held faces do not depend on the order of the dice", () => {
  assert.equal(heldFaces([3, 1, 1, 5, 0], [true, false, true, false, false]), "13");
  assert.equal(heldFaces([0, 1, 1, 3, 5], [false, true, false, true, false]), "13");
});
