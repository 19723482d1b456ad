/** The board as a grid of cells: paths are rows on a wide screen and columns on a phone, where pieces climb. */

import { cellOf } from "./choosing.js";
import { attribute, glyph, h, hasModifier } from "./dom.js";
import { ANIMALS, ELEMENTS, spaceName } from "./words.js";

/** @import {CellMark, Move, State} from "./types.js" */

const NUMBERED = 5;

/**
 * The content of a board: the position, the last moves, and the marks by `cellOf`.
 * @typedef {{state: State, names: string[], moved: Move[], marks: Map<string, CellMark>, immunity: boolean,
 *   hidden?: boolean}} Shown with `immunity`, pieces at home cannot be swapped (R14); `hidden` hides all pieces
 * @typedef {(path: number, space: number|null) => void} Pick takes the tapped cell; null for the sign of a path
 */

/** Make a board. @param {number} spaces plain spaces of a path @param {Pick} pick */
export function makeBoard(spaces, pick) {
  const cells = ELEMENTS.map((_, path) =>
    Array.from({ length: spaces + NUMBERED + 1 }, (_, space) => {
      const kind = space === 0 ? "away" : space > spaces ? "numbered" : "plain";
      const look = `cell ${kind}${space === spaces + 1 ? " first" : ""}`;
      return h("div", { role: "gridcell", class: look, tabindex: path || space ? "-1" : "0" });
    }),
  );
  const rows = ELEMENTS.map((element, path) => {
    const sign = h(
      "div",
      { role: "rowheader", class: `sign color-${path}`, onclick: () => pick(path, null) },
      glyph(`element-${path}`),
      h("span.unseen", element),
    );
    return h("div", { role: "row", class: `path color-${path}` }, sign, ...cells[path]);
  });
  const grid = h("div.board", { role: "grid", "aria-label": "Board" }, ...rows);
  const element = h("div.board-box", grid);
  element.style.setProperty("--spaces", String(spaces));
  walkWithArrows(grid, cells, pick);
  return {
    element,
    /** @param {Shown} shown */
    show(shown) {
      for (const [path, line] of cells.entries())
        for (const [space, cell] of line.entries()) drawCell(cell, contentOf(path, space, spaces, shown));
    },
  };
}

/**
 * Pick cells by taps and arrow keys. One cell at a time is in the Tab order.
 * @param {HTMLElement} grid @param {HTMLElement[][]} cells @param {Pick} pick
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
  for (const [path, line] of cells.entries())
    for (const [space, cell] of line.entries())
      cell.addEventListener("click", () => {
        go(path, space, false);
        pick(path, space);
      });
}

/**
 * Return the drawings and the words of a cell.
 * @param {number} path @param {number} space @param {number} spaces @param {Shown} shown
 */
function contentOf(path, space, spaces, { state, names, moved, marks, immunity, hidden = false }) {
  const name = cellOf(path, space);
  const own = moved.filter((move) => move.path === path);
  const here = hidden ? [] : state.pieces.flatMap((places, seat) => (places[path] === space ? [seat] : []));
  const dead = space > 0 && state.dead[path].includes(space);
  const mark = marks.get(name);
  const fresh = space > 0 && own.some(({ to }) => to === space);
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
    start: own.some(({ from }) => from === space) && !own.some(({ to }) => to === space),
    way: own.some(({ from, to }) => Math.min(from, to) < space && space < Math.max(from, to)),
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
  const classes = { fresh: fresh && !swapped, swapped: fresh && swapped, start, way };
  for (const [name, on] of Object.entries(classes)) cell.classList.toggle(name, on);
}
