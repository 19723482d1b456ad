/** The board as a grid of cells: paths are rows on a wide screen and columns on a phone, where pieces climb. */

import { attribute, glyph, h } from "./dom.js";

export const ELEMENTS = ["water", "fire", "metal", "earth", "wood"];
export const FACES = [...ELEMENTS, "dragon"];
export const ANIMALS = ["black tortoise", "red bird", "white tiger", "yellow dragon", "blue dragon"];
const NUMBERED = 5;

/** @param {string} word */
export const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);

/**
 * A mark on a cell.
 * @typedef {{kind: "move"|"power"|"swap"|"picked", color?: number, words: string}} CellMark
 */

/** The name of a cell. @param {number} path @param {number} space */
export const cellOf = (path, space) => `${path}:${space}`;

/**
 * Make a board.
 * @param {number} spaces plain spaces of a path
 * @param {(path: number, space: number|null) => void} pick called with the cell that is tapped, or with a path alone
 */
export function makeBoard(spaces, pick) {
  const last = spaces + NUMBERED;
  /** @type {HTMLElement[][]} */
  const cells = [];
  const rows = ELEMENTS.map((element, path) => {
    const line = [];
    for (let space = 0; space <= last; space++) {
      const looks = ["cell", space === 0 ? "away" : space > spaces ? "numbered" : "plain"];
      if (space === spaces + 1) looks.push("first");
      line.push(
        h("div", {
          role: "gridcell",
          class: looks.join(" "),
          tabindex: path === 0 && space === 0 ? "0" : "-1",
          onclick: () => tap(path, space),
        }),
      );
    }
    cells.push(line);
    const sign = h(
      "div",
      { role: "rowheader", class: `sign sign-${path}`, onclick: () => pick(path, null) },
      glyph(`element-${path}`),
      h("span", { class: "unseen" }, element),
    );
    return h("div", { role: "row", class: `path path-${path}` }, sign, ...line);
  });
  const grid = h("div", { role: "grid", class: "board", "aria-label": "Board", onkeydown: walk }, ...rows);
  grid.style.setProperty("--spaces", String(spaces));
  const element = h("div", { class: "board-box" }, grid);
  let at = [0, 0];

  /** @param {number} path @param {number} space @param {boolean} [focus] */
  function go(path, space, focus = true) {
    cells[at[0]][at[1]].tabIndex = -1;
    at = [path, space];
    cells[path][space].tabIndex = 0;
    if (focus) cells[path][space].focus();
  }

  /** @param {number} path @param {number} space */
  function tap(path, space) {
    go(path, space, false);
    pick(path, space);
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const [path, space] = at;
    const climbs = getComputedStyle(grid).getPropertyValue("--climbs").trim() === "1";
    const [on, back, next, previous] = climbs
      ? ["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft"]
      : ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
    /** @type {Record<string, () => void>} */
    const steps = {
      [on]: () => go(path, Math.min(space + 1, last)),
      [back]: () => go(path, Math.max(space - 1, 0)),
      [next]: () => go(Math.min(path + 1, ELEMENTS.length - 1), space),
      [previous]: () => go(Math.max(path - 1, 0), space),
      Home: () => go(path, 0),
      End: () => go(path, last),
      Enter: () => pick(path, space),
      " ": () => pick(path, space),
    };
    if (!steps[event.key]) return;
    event.preventDefault();
    event.stopPropagation();
    steps[event.key]();
  }

  /**
   * Show a position.
   * @param {import("./api.js").State} state
   * @param {string[]} names of the seats
   * @param {import("./api.js").Move[]} moved what moved last
   * @param {Map<string, CellMark>} marks by `cellOf`
   * @param {boolean} [immunity] pieces at home are locked (R14)
   */
  function show(state, names, moved, marks, immunity = false) {
    const arrived = new Set(moved.map(({ path, to }) => cellOf(path, to)));
    const left = new Set(moved.map(({ path, from }) => cellOf(path, from)));
    const swapped = moved.length === 2 && moved[0].from === moved[1].to;
    cells.forEach((line, path) =>
      line.forEach((cell, space) => {
        const name = cellOf(path, space);
        const mark = marks.get(name);
        const here = state.pieces.flatMap((places, seat) => (places[path] === space ? [seat] : []));
        const dead = space > 0 && state.dead[path].includes(space);
        const fresh = space > 0 && arrived.has(name);
        const way = moved.some((move) => move.path === path && between(move, space));
        const locked = immunity && space > 0 && here.length > 0 && state.color[here[0]] === path;
        const drawn = JSON.stringify([here, state.color, dead, mark, fresh, way, locked, left.has(name)]);
        if (cell.dataset.drawn === drawn) return;
        cell.dataset.drawn = drawn;
        const drawings = here.map((seat) => glyph(`piece-${state.color[seat]}`, "piece"));
        if (dead) drawings.push(glyph("dead", "piece"));
        if (!here.length && !dead && space > spaces)
          drawings.push(h("span", { class: "points" }, String(space - spaces)));
        if (mark?.color !== undefined) drawings.push(glyph(`piece-${mark.color}`, "piece ghost"));
        if (locked) drawings.push(h("span", { class: "lock" }));
        cell.replaceChildren(...drawings);
        attribute(cell, "data-mark", mark ? mark.kind : null);
        attribute(cell, "aria-selected", mark ? String(mark.kind === "picked") : null);
        cell.classList.toggle("fresh", fresh && !swapped);
        cell.classList.toggle("swapped", fresh && swapped);
        cell.classList.toggle("start", left.has(name) && !arrived.has(name));
        cell.classList.toggle("way", way);
        const where =
          space === 0 ? "off the board" : space > spaces ? `number ${space - spaces}` : `space ${space}`;
        const who = here.map((seat) => `${names[seat]}, ${ANIMALS[state.color[seat]]}`).join("; ");
        const what = who || (dead ? "dead piece" : "empty");
        const more = [fresh && "has just moved here", locked && "cannot be swapped", mark?.words].filter(
          Boolean,
        );
        attribute(cell, "aria-label", [`${ELEMENTS[path]} ${where}`, what, ...more].join(", "));
      }),
    );
  }

  return { element, show, cells };
}

/** Whether a space lies on the way of a move. */
function between(move, space) {
  const [low, high] = [Math.min(move.from, move.to), Math.max(move.from, move.to)];
  return low < space && space < high;
}

/**
 * Five dice as toggle buttons: pressed ones are kept.
 * @param {() => void} changed called when a die is tapped
 */
export function makeDice(changed) {
  /** @type {boolean[]} */
  let held = [];
  let open = false;
  const words = h("span", { class: "unseen" });
  const buttons = Array.from({ length: 5 }, (_, die) =>
    h("button", { type: "button", class: "die", onclick: () => toggle(die) }),
  );
  const element = h("div", { class: "dice", role: "group", "aria-label": "Dice" }, words, ...buttons);

  /** @param {number} die */
  function toggle(die) {
    if (!open) return;
    held[die] = !held[die];
    mark();
    changed();
  }

  function mark() {
    buttons.forEach((button, die) => {
      attribute(button, "aria-pressed", open ? String(held[die]) : null);
      button.classList.toggle("kept", Boolean(held[die]));
    });
  }

  /**
   * Show dice.
   * @param {number[]} faces -1 is still to be rolled
   * @param {boolean[]} hold those that are kept
   * @param {boolean} choosing whether they can be tapped
   * @param {boolean[]} rolled those that have just been rolled
   */
  function show(faces, hold, choosing, rolled) {
    [held, open] = [[...hold], choosing];
    element.setAttribute("aria-label", choosing ? "Dice: press those that you keep" : "Dice");
    buttons.forEach((button, die) => {
      const face = faces[die];
      attribute(button, "data-face", String(face));
      button.replaceChildren(
        face < 0 ? h("span", { class: "blank" }) : glyph(`die-${face}`),
        h("span", { class: "keep", "aria-hidden": "true" }, "keep"),
      );
      attribute(
        button,
        "aria-label",
        face < 0 ? `die ${die + 1}, not rolled yet` : `die ${die + 1}, ${FACES[face]}`,
      );
      attribute(button, "aria-disabled", choosing ? null : "true");
      button.classList.remove("rolled");
      if (rolled[die]) {
        void button.offsetWidth; // begins the movement anew
        button.classList.add("rolled");
      }
    });
    mark();
  }

  return { element, show, toggle, held: () => held, buttons };
}

/**
 * Draw dice in a row, to be read.
 * @param {number[]} faces
 * @param {(boolean|undefined)[]} [hold]
 */
export function diceRow(faces, hold = []) {
  const words = faces.map((face) => (face < 0 ? "?" : FACES[face])).join(", ");
  return h(
    "span",
    { class: "dice-row", role: "img", "aria-label": words },
    ...faces.map((face, die) =>
      face < 0 ? h("span", { class: "blank" }) : glyph(`die-${face}`, hold[die] ? "kept" : ""),
    ),
  );
}
