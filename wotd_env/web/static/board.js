/** The board as a grid of cells: paths are rows on a wide screen and columns on a phone, where pieces climb. */

import { cellOf } from "./choosing.js";
import { attribute, glyph, h, hasModifier } from "./dom.js";
import { ANIMALS, ELEMENTS, spaceName } from "./words.js";

/** @import {CellMark, Move, State} from "./types.js" */

const NUMBERED = 5;

/**
 * The content of a board.
 * @typedef {{state: State, names: string[], moved: Move[], marks: Map<string, CellMark>, immunity: boolean,
 *   hidden?: boolean}} Shown `moved` are the last moves; `immunity`: pieces at home cannot be swapped (R14); `hidden`:
 *   no pieces are drawn
 */

/**
 * Make a board.
 * @param {number} spaces plain spaces of a path
 * @param {(path: number, space: number|null) => void} pick called with the cell that is tapped; null for the sign of a
 *   path
 */
export function makeBoard(spaces, pick) {
  const cells = ELEMENTS.map((_, path) =>
    Array.from({ length: spaces + NUMBERED + 1 }, (_, space) => makeCell(path, space, spaces)),
  );
  const rows = ELEMENTS.map((element, path) => {
    const sign = h(
      "div",
      { role: "rowheader", class: `sign sign-${path}`, onclick: () => pick(path, null) },
      glyph(`element-${path}`),
      h("span.unseen", element),
    );
    return h("div", { role: "row", class: `path path-${path}` }, sign, ...cells[path]);
  });
  const grid = h("div.board", { role: "grid", "aria-label": "Board" }, ...rows);
  const element = h("div.board-box", grid);
  element.style.setProperty("--spaces", String(spaces));
  walkWithArrows(grid, cells, pick);

  /** @param {Shown} shown */
  function show(shown) {
    const arrived = new Set(shown.moved.map(({ path, to }) => cellOf(path, to)));
    const left = new Set(shown.moved.map(({ path, from }) => cellOf(path, from)));
    cells.forEach((line, path) => {
      line.forEach((cell, space) => {
        drawCell(cell, contentOf(path, space, spaces, shown, arrived, left));
      });
    });
  }

  return { element, show };
}

/** @param {number} path @param {number} space @param {number} spaces */
function makeCell(path, space, spaces) {
  const kind = space === 0 ? "away" : space > spaces ? "numbered" : "plain";
  return h("div", {
    role: "gridcell",
    class: `cell ${kind}${space === spaces + 1 ? " first" : ""}`,
    tabindex: path === 0 && space === 0 ? "0" : "-1",
  });
}

/**
 * Choose cells by taps and arrow keys. One cell at a time is in the Tab order.
 * @param {HTMLElement} grid
 * @param {HTMLElement[][]} cells
 * @param {(path: number, space: number|null) => void} pick
 */
function walkWithArrows(grid, cells, pick) {
  const last = cells[0].length - 1;
  let at = [0, 0];

  /** @param {number} path @param {number} space @param {boolean} [focus] */
  function go(path, space, focus = true) {
    cells[at[0]][at[1]].tabIndex = -1;
    at = [path, space];
    cells[path][space].tabIndex = 0;
    if (focus) cells[path][space].focus();
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    if (hasModifier(event)) return;
    const [path, space] = at;
    const climbs = getComputedStyle(grid).getPropertyValue("--climbs").trim() === "1";
    const [on, back, next, previous] = climbs
      ? ["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft"]
      : ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
    /** @type {Record<string, () => void>} */
    const steps = {
      [on]: () => go(path, Math.min(space + 1, last)),
      [back]: () => go(path, Math.max(space - 1, 0)),
      [next]: () => go(Math.min(path + 1, cells.length - 1), space),
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

  grid.addEventListener("keydown", walk);
  cells.forEach((line, path) => {
    line.forEach((cell, space) => {
      cell.addEventListener("click", () => {
        go(path, space, false);
        pick(path, space);
      });
    });
  });
}

/**
 * Return the drawings and the words of a cell.
 * @param {number} path
 * @param {number} space
 * @param {number} spaces
 * @param {Shown} shown
 * @param {Set<string>} arrived
 * @param {Set<string>} left
 */
function contentOf(path, space, spaces, shown, arrived, left) {
  const { state, names, moved, marks, immunity, hidden = false } = shown;
  const name = cellOf(path, space);
  const here = hidden ? [] : state.pieces.flatMap((places, seat) => (places[path] === space ? [seat] : []));
  const dead = space > 0 && state.dead[path].includes(space);
  const mark = marks.get(name);
  const fresh = space > 0 && arrived.has(name);
  const locked = immunity && space > 0 && here.some((seat) => state.color[seat] === path);
  const words = [
    `${ELEMENTS[path]} ${spaceName(space, spaces)}`,
    here.map((seat) => `${names[seat]}, ${ANIMALS[state.color[seat]]}`).join("; ") ||
      (dead ? "dead piece" : "empty"),
    fresh && "has just moved here",
    locked && "cannot be swapped",
    mark?.words,
  ];
  return {
    colors: here.map((seat) => state.color[seat]),
    dead,
    points: !here.length && !dead && space > spaces ? space - spaces : 0,
    mark,
    fresh,
    swapped: moved.length === 2 && moved[0].from === moved[1].to,
    start: left.has(name) && !arrived.has(name),
    way: moved.some((move) => move.path === path && isBetween(move, space)),
    locked,
    words: words.filter(Boolean).join(", "),
  };
}

/** @param {HTMLElement} cell @param {ReturnType<typeof contentOf>} content */
function drawCell(cell, content) {
  const drawn = JSON.stringify(content);
  if (cell.dataset.drawn === drawn) return;
  cell.dataset.drawn = drawn;
  const { colors, dead, points, mark, fresh, swapped, start, way, locked, words } = content;
  /** @type {Node[]} */
  const drawings = colors.map((color) => glyph(`piece-${color}`, "piece"));
  if (dead) drawings.push(glyph("dead", "piece"));
  if (points) drawings.push(h("span.points", String(points)));
  if (mark?.color !== undefined) drawings.push(glyph(`piece-${mark.color}`, "piece ghost"));
  if (locked) drawings.push(h("span.lock"));
  cell.replaceChildren(...drawings);
  attribute(cell, "data-mark", mark ? mark.kind : null);
  attribute(cell, "aria-selected", mark ? String(mark.kind === "picked") : null);
  attribute(cell, "aria-label", words);
  cell.classList.toggle("fresh", fresh && !swapped);
  cell.classList.toggle("swapped", fresh && swapped);
  cell.classList.toggle("start", start);
  cell.classList.toggle("way", way);
}

/** @param {Move} move @param {number} space */
function isBetween(move, space) {
  return Math.min(move.from, move.to) < space && space < Math.max(move.from, move.to);
}
