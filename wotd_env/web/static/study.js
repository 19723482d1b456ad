/** A position outside of any table, shown as the view of a table in which this browser has all seats to play. */

import { ask } from "./api.js";

/** @import {Choice, Study, View} from "./types.js" */

/** @param {string} position @returns {Promise<View>} */
export const studyAt = async (position) => viewOf(await ask("/api/choices", { body: { position } }));

/** @param {Study} study @returns {View} */
export function viewOf({ names, ...study }) {
  const seats = names.map((name, seat) => ({
    seat,
    name,
    kind: "here",
    agent: null,
    taken: true,
    connected: true,
    mine: seat === study.player,
  }));
  return {
    ...study,
    seats,
    table: "",
    game: 0,
    ply: 0,
    status: "playing",
    host: false,
    mine: [study.player],
    waiting_for: [],
    help: false,
    pace: null,
    spectators: 0,
    moved: [],
    roll_off: null,
    log: [],
    log_from: 0,
    result: null,
  };
}

/** Return the view after a choice, before any roll. @param {View} view @param {Choice} choice */
export function viewAfter(view, choice) {
  const pieces = view.pieces.map((spaces) => [...spaces]);
  for (const { seat, path, to } of choice.moves) pieces[seat][path] = to;
  return { ...view, pieces, scores: choice.scores, moved: choice.moves, choices: [] };
}
