/** The dice, and the board as a grid of cells. Paths are rows on a wide screen and columns on a phone. */

import { cellOf } from "./choosing.js";
import { attribute, glyph, h, hasModifier } from "./dom.js";
import { ANIMALS, ELEMENTS, FACES, spaceName, t } from "./words.js";

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
    const look = { role: "rowheader", class: `sign color-${path}`, onclick: () => pick(path, null) };
    const sign = h("div", look, glyph(`element-${path}`), h("span.unseen", element));
    return h("div", { role: "row", class: `path color-${path}` }, sign, ...cells[path]);
  });
  const grid = h("div.board", { role: "grid", "aria-label": t("Board") }, ...rows);
  const element = h("div.board-box", grid);
  element.style.setProperty("--spaces", String(spaces));
  walkWithArrows(grid, cells, pick);
  return {
    element,
    /** @param {Shown} shown */
    show(shown) {
      for (const [path, line] of cells.entries())
        for (const [space, cell] of line.entries()) drawCell(cell, path, space, spaces, shown);
    },
    /** Let the pieces of a shown position slide to their spaces. @param {Move[]} moves @param {number[]} color */
    slide(moves, color) {
      for (const { seat, path, from, to } of joinedMoves(moves)) {
        const piece = cells[path][to].querySelector(`use[href="#piece-${color[seat]}"]`)?.closest(".piece");
        if (piece) slide(piece, cells[path][from]);
      }
    },
  };
}

/**
 * Pick cells by taps and arrow keys. One cell at a time is in the Tab order.
 * @param {HTMLElement} grid @param {HTMLElement[][]} cells @param {Pick} pick
 */
function walkWithArrows(grid, cells, pick) {
  let at = [0, 0];

  /** Go to the nearest cell of the board. @param {number} path @param {number} space @param {boolean} [focus] */
  function go(path, space, focus = true) {
    cells[at[0]][at[1]].tabIndex = -1;
    const [most, last] = [cells.length - 1, cells[0].length - 1];
    at = [Math.max(0, Math.min(path, most)), Math.max(0, Math.min(space, last))];
    const cell = cells[at[0]][at[1]];
    cell.tabIndex = 0;
    if (focus) cell.focus();
  }

  /** @param {KeyboardEvent} event */
  function walk(event) {
    if (hasModifier(event)) return;
    const [path, space] = at;
    const climbs = getComputedStyle(grid).getPropertyValue("--climbs").trim() === "1";
    const [on, back, next, previous] = climbs
      ? ["ArrowUp", "ArrowDown", "ArrowRight", "ArrowLeft"]
      : ["ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp"];
    /** @type {Record<string, [number, number]>} */
    const steps = { [on]: [0, 1], [back]: [0, -1], [next]: [1, 0], [previous]: [-1, 0] };
    Object.assign(steps, { Home: [0, -cells[0].length], End: [0, cells[0].length] });
    const picks = event.key === "Enter" || event.key === " ";
    const step = steps[event.key];
    if (!step && !picks) return;
    event.preventDefault();
    event.stopPropagation();
    if (picks && !event.repeat) pick(path, space);
    else if (step) go(path + step[0], space + step[1]);
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
 * Draw a cell. Unchanged drawings stay, because new ones would start their animations.
 * @param {HTMLElement} cell @param {number} path @param {number} space @param {number} spaces @param {Shown} shown
 */
function drawCell(cell, path, space, spaces, { state, names, moved, marks, immunity, hidden = false }) {
  const own = moved.filter((move) => move.path === path);
  const arrived = own.some(({ to }) => to === space);
  const left = own.some(({ from }) => from === space);
  const here = hidden ? [] : state.pieces.flatMap((places, seat) => (places[path] === space ? [seat] : []));
  const dead = space > 0 && state.dead[path].includes(space);
  const mark = marks.get(cellOf(path, space));
  const fresh = space > 0 && arrived;
  const locked = immunity && space > 0 && here.some((seat) => state.color[seat] === path);
  const drawn = h(
    "div",
    ...here.map((seat) => glyph(`piece-${state.color[seat]}`, "piece")),
    dead && glyph("dead", "piece"),
    !here.length && !dead && space > spaces && h("span.points", String(space - spaces)),
    mark?.color !== undefined && glyph(`piece-${mark.color}`, "piece ghost"),
    locked && h("span.lock"),
  );
  if (drawn.innerHTML !== cell.innerHTML) cell.replaceChildren(...drawn.childNodes);
  const words = [
    `${ELEMENTS[path]} ${spaceName(space, spaces)}`,
    here.map((seat) => `${names[seat]}, ${ANIMALS[state.color[seat]]}`).join("; ") ||
      (dead ? t("dead piece") : t("empty")),
    fresh && t("has just moved here"),
    locked && t("cannot be swapped"),
    mark?.words,
  ];
  attribute(cell, "data-mark", mark ? mark.kind : null);
  attribute(cell, "aria-selected", mark ? String(mark.kind === "picked") : null);
  attribute(cell, "aria-label", words.filter(Boolean).join(", "));
  const swapped = moved.length === 2 && moved[0].from === moved[1].to;
  cell.classList.toggle("fresh", fresh && !swapped);
  cell.classList.toggle("swapped", fresh && swapped);
  cell.classList.toggle("start", left && !arrived);
}

/** Join the moves of each piece to one move; leave out pieces that end where they started. @param {Move[]} moves in their order */
export function joinedMoves(moves) {
  /** @type {Map<string, Move>} */
  const joined = new Map();
  for (const move of moves) {
    const piece = `${move.seat}:${move.path}`;
    joined.set(piece, { ...move, from: joined.get(piece)?.from ?? move.from });
  }
  return [...joined.values()].filter(({ from, to }) => from !== to);
}

/** Let a drawn piece slide from another element to its place. @param {Element} piece @param {Element} from */
function slide(piece, from) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [start, end] = [from, piece].map((element) => element.getBoundingClientRect());
  const x = start.left + start.width / 2 - end.left - end.width / 2;
  const y = start.top + start.height / 2 - end.top - end.height / 2;
  const duration = Math.min(220 + Math.hypot(x, y), 650); // milliseconds
  const frames = [`${x}px ${y}px`, "0 0"].map((translate) => ({ translate, zIndex: 5 }));
  piece.animate(frames, { duration, easing: "cubic-bezier(.4, 0, .2, 1)" });
}

/** Draw a die; face -1 is an unrolled one. @param {number} face @param {string} [look] */
export const drawDie = (face, look = "") => (face < 0 ? h("span.blank") : glyph(`die-${face}`, look));

/** Draw a row of dice to read. @param {number[]} faces @param {boolean[]} [kept] */
export function diceRow(faces, kept = []) {
  const words = faces.map((face) => (face < 0 ? "?" : FACES[face])).join(", ");
  const dice = faces.map((face, place) => drawDie(face, kept[place] ? "kept" : ""));
  return h("span.dice-row", { role: "img", "aria-label": words }, ...dice);
}
