/** Changes of a position as a line of text: board, colors, turn, seat, phase, re-rolls, dice, and optional words. */

/** @typedef {{board: string, colors: string, turn: string, seat: string, phase: string, rolls: string, dice: string, more: string[]}} Parts */

/** @param {string} line @returns {Parts} */
export function partsOf(line) {
  const [board, colors, turn, seat, phase, rolls, dice, ...more] = line.trim().split(/\s+/);
  return { board, colors, turn, seat, phase, rolls, dice, more };
}

/** @param {Parts} parts */
export const lineOf = ({ more, ...fields }) => [...Object.values(fields), ...more].join(" ");

/**
 * Return the line with a sign on a space: a seat's letter, "#" for a dead piece, or "." for none. The piece leaves its old
 * space; a sign that is already there is removed.
 * @param {string} line @param {{path: number, space: number, sign: string}} change
 */
export function placed(line, { path, space, sign }) {
  const parts = partsOf(line);
  const paths = parts.board.split("/");
  const signs = [...paths[path]];
  const at = space > paths[path].indexOf("|") ? space : space - 1;
  const old = signs[at];
  const kept = /[A-E]/.test(sign) ? signs.map((each) => (each === sign ? "." : each)) : signs;
  kept[at] = old === sign ? "." : sign;
  paths[path] = kept.join("");
  return lineOf({ ...parts, board: paths.join("/") });
}
