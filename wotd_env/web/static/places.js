/** Places of the dice on the screen. The engine sorts the dice after each roll; on the screen a die keeps its place. */

/**
 * By place on the screen: the index of the die among the engine's sorted dice, and whether the last roll kept it.
 * @typedef {{order: number[], kept: boolean[], rolled: boolean[]}} Places
 */

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
 * Return which places an action keeps. These are the pressed places if they show the faces that the action keeps,
 * because the action names only one of several equal dice.
 * @param {number[]} order @param {number[]} dice sorted @param {number} action @param {boolean[]|null} [pressed]
 */
export function keptPlaces(order, dice, action, pressed = null) {
  const kept = order.map((die) => action === STOP_ROLLING || Boolean((action >> die) & 1));
  const faces = facesOf(order, dice);
  return pressed && heldFaces(faces, pressed) === heldFaces(faces, kept) ? [...pressed] : kept;
}

/**
 * Return the places after a roll: kept dice stay, the others fill the free places in ascending order.
 * @param {number[]} order @param {number[]} dice sorted @param {boolean[]} kept by place
 * @param {number[]} rolled sorted dice after the roll
 */
export function afterRoll(order, dice, kept, rolled) {
  const free = rolled.map((_, die) => die);
  const stay = order.map((die, place) => {
    if (!kept[place]) return -1;
    const now = free.findIndex((candidate) => rolled[candidate] === dice[die]);
    return free.splice(now, 1)[0];
  });
  return {
    order: stay.map((die) => (die < 0 ? /** @type {number} */ (free.shift()) : die)),
    kept,
    rolled: kept.map((held) => !held),
  };
}

/**
 * Return the places of the dice in a turn, after all decisions of the game so far.
 * @param {{turn: number, action: number, dice: number[], roll: number[]|null}[]} steps @param {number} turn
 * @param {(step: any) => boolean[]|null} [pressed] the places that a person pressed for a step
 */
export function placesAfter(steps, turn, pressed = () => null) {
  let places = sortedPlaces();
  for (const step of steps.filter((one) => one.turn === turn && one.action < STOP_ROLLING && one.roll)) {
    const kept = keptPlaces(places.order, step.dice, step.action, pressed(step));
    places = afterRoll(places.order, step.dice, kept, step.roll ?? []);
  }
  if (steps.length && steps[steps.length - 1].turn !== turn) places.rolled = all(true);
  return places;
}
