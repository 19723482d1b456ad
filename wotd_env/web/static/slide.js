/** Pieces that slide over the board to their new spaces. */

/** @import {Move} from "./types.js" */

const QUICKEST = 220; // milliseconds
const SLOWEST = 650;

/** Join the moves of each piece to one; leave out pieces that are back. @param {Move[]} moves in their order */
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
export function slide(piece, from) {
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const [start, end] = [from, piece].map((element) => element.getBoundingClientRect());
  const x = start.left + start.width / 2 - end.left - end.width / 2;
  const y = start.top + start.height / 2 - end.top - end.height / 2;
  const duration = Math.min(QUICKEST + Math.hypot(x, y), SLOWEST);
  const frames = [
    { translate: `${x}px ${y}px`, zIndex: 5 },
    { translate: "0 0", zIndex: 5 },
  ];
  piece.animate(frames, { duration, easing: "cubic-bezier(.4, 0, .2, 1)" });
}
