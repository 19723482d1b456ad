/** The set-up of a table: agents, seats and rules. */

import { LETTERS } from "./words.js";

/** @import {Agent} from "./types.js" */

/**
 * @typedef {{players: number, powers: string, spaces: number, dead_pieces: number, immunity: boolean, start: string,
 *   colors?: string}} WantedRules
 * @typedef {{kind: string, name: string, agent: string}} WantedSeat
 */

const USUAL_AGENT = "planner";

/** Return an agent that can play, preferably `wanted`. @param {Agent[]} agents @param {string} wanted */
export function ableAgent(agents, wanted) {
  const able = agents.filter(({ plays }) => plays).map(({ name }) => name);
  return [wanted, USUAL_AGENT].find((name) => able.includes(name)) ?? able[0] ?? wanted;
}

/**
 * Return the default player of a seat: from the players of a game to continue, or `own`, the person at this screen.
 * @param {number} seat @param {string[]} players @param {Agent[]} agents @param {string} own
 */
export function firstSeat(seat, players, agents, own) {
  const name = players[seat];
  if (name === undefined)
    return { kind: seat === 0 ? "here" : "agent", name: seat === 0 ? own : "", agent: USUAL_AGENT };
  if (agents.some((agent) => agent.name === name)) return { kind: "agent", name: "", agent: name };
  const nameless = name === `Player ${LETTERS[seat]}`;
  return { kind: "here", name: nameless ? "" : name, agent: USUAL_AGENT };
}

/**
 * Return the body of a request for a table.
 * @param {WantedSeat[]} seats @param {WantedRules} rules
 * @param {{position: string, help: string, pace: number}} more `help` is "yes", "no" or empty for the default
 */
export function requestOf(seats, rules, { position, help, pace }) {
  return {
    seats: seats.map(({ kind, name, agent }) => (kind === "agent" ? { kind, agent } : { kind, name })),
    pace,
    ...(position ? { position } : { rules }),
    ...(help ? { help: help === "yes" } : {}),
  };
}
