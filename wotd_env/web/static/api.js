/** What the page asks of the server, and the keys of the tables that this browser takes part in. */

/**
 * @typedef {{seat: number, path: number, from: number, to: number}} Move
 * @typedef {{action: number, kind: string, words: string, notation: string, keep: boolean[]|null, path: number|null,
 *   from: number, to: number, seats: number[]|null, moves: Move[], power: number|null}} Choice
 * @typedef {{ply: number, turn: number, seat: number, dice: number[], words: string, notation: string, action: number,
 *   forced: boolean, roll: number[]|null, moves: Move[], note: string|null}} Step
 * @typedef {{seat: number, letter: string, kind: string, agent: string|null, name: string, taken: boolean,
 *   connected: boolean, mine: boolean, thinking: boolean, color: number, animal: string, power: number|null,
 *   used: boolean, score: number}} Seat
 * @typedef {{turn: number, player: number, phase: string, rolls_left: number, dice: number[], perfection: boolean,
 *   pieces: number[][], color: number[], dead: number[][], used: boolean[], scores: number[]}} State
 * @typedef {{truncated: boolean, winners: number[], scores: number[], rewards: number[], words: string}} Result
 * @typedef {State & {table: string, game: number, ply: number, status: string, host: boolean, mine: number[],
 *   waiting_for: number[], rules: Record<string, any>, rules_words: string, help: boolean, seats: Seat[], moved: Move[],
 *   kept: boolean[], words: string, position: string, roll_off: (number[]|null)[][]|null, choices: Choice[],
 *   log: Step[], log_from: number, result: Result|null}} View
 * @typedef {{ply: number, game: number, chances: number[], source: string, exact: boolean,
 *   hints: {action: number, words: string, loss: number}[]}} Help
 */

/** A refusal in the server's words. */
export class Refusal extends Error {
  /** @param {string} message @param {number} status */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/**
 * Ask the server: GET, or POST where there is a body.
 * @param {string} path
 * @param {{key?: string|null, body?: any}} [with_]
 * @returns {Promise<any>} the answer
 * @throws {Refusal}
 */
export async function ask(path, { key = null, body } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch {
    throw new Refusal("The server does not answer. Is it running?", 0);
  }
  const answer = await response.json().catch(() => ({ error: `The server answered ${response.status}.` }));
  if (!response.ok) throw new Refusal(answer.error, response.status);
  return answer;
}

const memory = new Map(); // where the browser refuses to store anything: until the next reload

/** What the browser keeps: JSON values by their names. */
export const kept = {
  /** @param {string} name @param {any} otherwise */
  get(name, otherwise) {
    try {
      return JSON.parse(localStorage.getItem(name) ?? "null") ?? memory.get(name) ?? otherwise;
    } catch {
      return memory.get(name) ?? otherwise;
    }
  },
  /** @param {string} name @param {any} value */
  set(name, value) {
    try {
      localStorage.setItem(name, JSON.stringify(value));
    } catch {
      memory.set(name, value);
    }
  },
};

/** The keys of this browser's tables: table -> {key, watch, invitations}. */
export const keys = {
  /** @returns {Record<string, {key: string, watch?: string, invitations?: {seat: number, invitation: string}[]}>} */
  all: () => kept.get("wotd-tables", {}),
  /** @param {string} table */
  of: (table) => keys.all()[table] ?? null,
  /** @param {string} table @param {any} entry */
  add(table, entry) {
    kept.set("wotd-tables", { ...keys.all(), [table]: entry });
  },
  /** @param {string} table */
  drop(table) {
    const { [table]: _, ...others } = keys.all();
    kept.set("wotd-tables", others);
  },
};

/**
 * Follow a table, over lost connections too.
 * @param {string} table
 * @param {string} key
 * @param {{view: (view: View) => void, help: (help: Help) => void, error: (message: string, status: number) => void,
 *   lost: (reason: string) => void, back: () => void, gone: (reason: string) => void}} hear
 */
export function follow(table, key, hear) {
  /** @type {WebSocket|null} */
  let socket = null;
  let wait = 500;
  let timer = 0;
  let closed = false;
  let interrupted = ""; // why

  function open() {
    clearTimeout(timer);
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    socket = new WebSocket(`${scheme}//${location.host}/api/tables/${encodeURIComponent(table)}/socket`);
    socket.onopen = () => socket?.send(JSON.stringify({ type: "hello", key }));
    socket.onmessage = ({ data }) => {
      const { type, ...message } = JSON.parse(data);
      if (type === "view") {
        wait = 500;
        if (interrupted) hear.back();
        interrupted = "";
        hear.view(message);
      } else if (type === "help") hear.help(message);
      else if (type === "error") hear.error(message.error, message.status);
    };
    socket.onclose = ({ code, reason }) => {
      if (closed) return;
      if (code === 4403) return hear.gone("Your key does not open this table.");
      if (code === 4404) return hear.gone("This table is no longer there.");
      const why = (code === 1013 && reason) || "connection lost";
      if (why !== interrupted) hear.lost(why);
      interrupted = why;
      timer = setTimeout(open, wait);
      wait = Math.min(2 * wait, 8000);
    };
  }

  function hurry() {
    if (interrupted && socket?.readyState === WebSocket.CLOSED && document.visibilityState === "visible")
      open();
  }

  window.addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  open();
  return {
    /** @param {any} message @returns {boolean} whether it could be sent */
    send(message) {
      if (interrupted || socket?.readyState !== WebSocket.OPEN) return false;
      socket.send(JSON.stringify(message));
      return true;
    },
    close() {
      closed = true;
      clearTimeout(timer);
      socket?.close();
      window.removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
    },
  };
}
