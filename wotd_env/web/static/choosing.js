/**
 * Choices on the screen: the marked cells of the board, the effect of a tap, and the places of the dice. The engine sorts
 * the dice after each roll; on the screen a die keeps its place.
 */

import { POWERS, t } from "./words.js";

/** @import {CellMark, Choice, Chosen, Places, View} from "./types.js" */

/** @type {Chosen} */
export const NOTHING = { offered: [], picked: [], path: -1 };

/** The name of a cell. @param {number} path @param {number} space */
export const cellOf = (path, space) => `${path}:${space}`;

/** Return the cells to tap in a move decision, by `cellOf`. @param {View} view @param {Chosen} chosen */
export function marksOf({ choices, color: colors }, { offered, picked, path: pickedPath }) {
  /** @type {Map<string, CellMark>} */
  const marks = new Map();
  for (const choice of choices)
    for (const { seat, path, from, to } of choice.moves) {
      const swap = choice.kind === "swap";
      const cell = cellOf(path, swap ? from : to);
      const color = colors[seat];
      if (swap) {
        const on = path === pickedPath;
        const fits = !picked.length || (picked.length < 2 && on && choice.seats?.includes(picked[0]));
        if (on && picked.includes(seat)) marks.set(cell, { kind: "picked", words: t("chosen for the swap") });
        else if (fits) marks.set(cell, { kind: "swap", words: t("can be swapped") });
      } else if (offered.includes(choice)) marks.set(cell, { kind: "picked", color, words: t("chosen") });
      else if (marks.has(cell) && marks.get(cell)?.kind !== "power")
        continue; // a move without a power comes first
      else if (choice.power === null) marks.set(cell, { kind: "move", color, words: t("move here") });
      else {
        const words = t("{power} leads here", { power: POWERS[choice.power] });
        marks.set(cell, { kind: "power", color, words });
      }
    }
  return marks;
}

/** Return the marks of the spaces to which held dice would lead. @param {View} view @param {number[]} faces @param {boolean[]} held */
export function leadsOf({ reach, color, player }, faces, held) {
  /** @type {Map<string, CellMark>} */
  const marks = new Map();
  for (const [path, spaces] of (reach ?? []).entries()) {
    const space = spaces[faces.filter((face, i) => face === path && held[i]).length - 1];
    const words = t("the kept dice lead here");
    if (space) marks.set(cellOf(path, space), { kind: "lead", color: color[player], words });
  }
  return marks;
}

/**
 * Return the effect of a tap: the choice to make at once, or what is chosen after the tap.
 * @param {View} view @param {Chosen} chosen before the tap
 * @param {number} path @param {number|null} space null for the sign of the path
 * @returns {{act: Choice|null, chosen: Chosen}}
 */
export function tap(view, chosen, path, space) {
  const there = view.choices.filter(
    ({ kind, moves }) =>
      kind !== "swap" && moves.some((move) => move.path === path && (space === null || move.to === space)),
  );
  const [only] = there;
  const again = chosen.offered.includes(only);
  if (there.length === 1 && space !== null && (only.power === null || again))
    return { act: only, chosen: NOTHING };
  if (there.length) return { act: null, chosen: { ...NOTHING, offered: there } };
  return { act: null, chosen: space ? tapForSwap(view, chosen, path, space) : NOTHING };
}

/** @param {View} view @param {Chosen} before @param {number} path @param {number} space @returns {Chosen} */
function tapForSwap(view, before, path, space) {
  const seat = view.pieces.findIndex((spaces) => spaces[path] === space);
  const swaps = view.choices.filter(
    ({ kind, path: on, seats }) => kind === "swap" && on === path && seats?.includes(seat),
  );
  if (seat < 0 || !swaps.length) return NOTHING;
  const earlier = path === before.path ? before.picked : [];
  if (earlier.includes(seat)) {
    const picked = earlier.filter((other) => other !== seat);
    return picked.length ? { offered: [], picked, path } : NOTHING;
  }
  const picked = [...earlier.slice(0, 1), seat];
  const offered =
    picked.length === 2 ? swaps.filter(({ seats }) => picked.every((one) => seats?.includes(one))) : [];
  return { offered, picked: offered.length ? picked : [seat], path };
}

/** Return the choices without a cell on the board, in the order of their buttons. @param {View} view */
export function choicesBeside(view) {
  const beside = view.choices.filter(({ moves, kind }) => !moves.length || kind.includes("equilibrium"));
  return beside.sort((one, other) => Number(one.kind === "end") - Number(other.kind === "end"));
}

/** Return a tip for the board in words. @param {Choice[]} choices */
export function tipOf(choices) {
  const moves = choices.some(({ kind }) => ["move", "wood", "jump"].includes(kind));
  const swaps = choices.some(({ kind }) => kind === "swap");
  if (moves && swaps) return t("Tap a marked space, or two pieces to swap.");
  if (moves) return t("Tap a marked space to move.");
  return swaps ? t("Tap two pieces to swap them.") : "";
}

const STOP_ROLLING = 31; // smaller actions keep die i if bit i is set

/** @param {boolean} value */
const all = (value) => Array.from({ length: 5 }, () => value);

/** The places at the start of a turn. @returns {Places} */
export const sortedPlaces = () => ({ order: [0, 1, 2, 3, 4], kept: all(false), rolled: all(false) });

/** Return the faces of dice in the order of places. @param {number[]} order @param {number[]} dice sorted */
export const facesOf = (order, dice) => order.map((die) => dice[die]);

/** Return the sorted faces of the held dice as text. @param {number[]} faces @param {boolean[]} held */
export function heldFaces(faces, held) {
  const chosen = faces.filter((_, i) => held[i]);
  return chosen.sort().join("");
}

/**
 * Return the places of the dice in a turn, after all decisions of the game so far. Kept dice stay, the others fill the free
 * places in ascending order.
 * @param {{turn: number, action: number, dice: number[], roll: number[]|null}[]} steps @param {number} turn
 * @param {(step: any) => boolean[]|null} [pressed] the places that a person pressed for a step
 */
export function placesAfter(steps, turn, pressed = () => null) {
  let places = sortedPlaces();
  for (const step of steps) {
    const { action, dice, roll } = step;
    if (step.turn !== turn || action >= STOP_ROLLING || !roll) continue;
    const { order } = places;
    const faces = facesOf(order, dice);
    const named = order.map((die) => Boolean((action >> die) & 1)); // one of several equal dice
    const held = pressed(step);
    const kept = held && heldFaces(faces, held) === heldFaces(faces, named) ? [...held] : named;
    const free = roll.map((_, die) => die);
    const stay = faces.map((face, place) => {
      if (!kept[place]) return -1;
      const now = free.findIndex((die) => roll[die] === face);
      return free.splice(now, 1)[0];
    });
    places = {
      order: stay.map((die) => (die < 0 ? /** @type {number} */ (free.shift()) : die)),
      kept,
      rolled: kept.map((held) => !held),
    };
  }
  if (steps.length && steps[steps.length - 1].turn !== turn) places.rolled = all(true);
  return places;
}
