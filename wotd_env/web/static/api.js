/** Requests to the server, its socket, and the keys of this browser. */

import { kept } from "./browser.js";
import { reasonWords, t } from "./words.js";

/** @import {Agent, Help, Keys, Reason, View} from "./types.js" */

const PATIENCE = 5000; // milliseconds for an answer on the socket

/** Make the error for a refused request, in the words of the server. @param {string} words @param {number} status */
const refusal = (words, status) => Object.assign(new Error(words), { status });

/**
 * Send a request, by default GET, or POST if there is a body; return the answer or throw the refusal. The path is relative
 * to the address of the page, because a proxy can serve the page under a prefix.
 * @param {string} path @param {{key?: string, body?: object, method?: string}} [options] @returns {Promise<any>}
 */
export async function ask(path, { key, body, method } = {}) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (key) headers.Authorization = `Bearer ${key}`;
  if (body) headers["Content-Type"] = "application/json";
  const request = body ? { method: "POST", headers, body: JSON.stringify(body) } : { method, headers };
  const response = await fetch(path, request).catch(() => {
    throw refusal(t("The server does not answer. Is it running?"), 0);
  });
  const answer = await response
    .json()
    .catch(() => ({ error: t("The server answered {status}.", { status: response.status }) }));
  if (!response.ok) throw refusal(reasonWords(answer), response.status);
  return answer;
}

/** Return the path of a table in the API. @param {string} table */
export const pathOf = (table) => `api/tables/${encodeURIComponent(table)}`;

/** @param {{rules?: object, position?: string}} body @returns {Promise<Agent[]>} all, and whether each plays the rules */
export const agentsFor = async (body) => (await ask("api/agents", { body })).agents;

/** Return a new random key. */
export const randomKey = () => btoa(String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32))));

/** The keys of the requests for tables since the address of the page has changed. @type {Map<string, string>} */
export const wanted = new Map();

/**
 * Set up a table and store its keys; return its name. The same request again, such as a double click, is for the same table.
 * @param {object} body @returns {Promise<string>}
 */
export async function createTable(body) {
  const text = JSON.stringify(body);
  const key = wanted.get(text) ?? randomKey();
  wanted.set(text, key);
  const { table, watch, invitations, address } = await ask("api/tables", { body: { ...body, key } });
  keys.add(table, { key, watch, invitations, address });
  return table;
}

/** The keys of this browser's tables. */
export const keys = {
  /** @returns {Record<string, Keys>} */
  all: () => kept.get("wotd-tables", {}),
  /** @param {string} table @returns {Keys|null} */
  of: (table) => keys.all()[table] ?? null,
  /** @param {string} table @param {Keys} entry */
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
 * Open the socket of a table, and open it again whenever the connection is lost, until the signal.
 * @param {string} table @param {string} key @param {AbortSignal} signal
 * @param {{view: (view: View) => void, help: (help: Help) => void, error: (refused: Reason) => void,
 *   connection: (lost: string) => void, gone: (reason: string) => void}} hear `lost` is the reason of a lost connection;
 *   the next view shows that it is back
 * @returns a function that sends a message, and returns whether it could be sent
 */
export function follow(table, key, signal, hear) {
  /** @type {WebSocket|null} */
  let socket = null;
  let wait = 500; // milliseconds before the next attempt to connect
  let interrupted = false;
  let refused = ""; // why the server has closed the socket with code 1013
  let unanswered = 0; // the timer of a message without an answer

  /** @param {string} reason */
  function lose(reason) {
    clearTimeout(unanswered);
    if (socket) socket.onclose = socket.onmessage = null; // a frozen socket takes long to close
    socket?.close();
    interrupted = true;
    hear.connection(reason);
    setTimeout(open, wait);
    wait = Math.min(2 * wait, 8000);
  }

  function open() {
    if (signal.aborted) return;
    const address = new URL(`${pathOf(table)}/socket`, document.baseURI);
    address.protocol = address.protocol.replace("http", "ws");
    socket = new WebSocket(address);
    socket.onopen = () => socket?.send(JSON.stringify({ type: "hello", key }));
    socket.onmessage = ({ data }) => {
      const { type, ...message } = JSON.parse(data);
      if (type !== "help") clearTimeout(unanswered);
      if (type === "view") {
        wait = 500;
        interrupted = false;
        hear.view(message);
      } else if (type === "help") hear.help(message);
      else if (type === "error") hear.error(message);
      else if (type === "refused") refused = reasonWords(message);
    };
    socket.onclose = ({ code }) => {
      if (signal.aborted) return;
      if (code === 4403) return hear.gone(t("This key opens nothing at this table."));
      if (code === 4404) return hear.gone(t("This table is no longer there."));
      lose(code === 1013 ? refused : t("connection lost"));
    };
  }

  signal.addEventListener("abort", () => {
    clearTimeout(unanswered);
    socket?.close();
  });
  open();
  return (/** @type {object} */ message) => {
    if (interrupted || socket?.readyState !== WebSocket.OPEN) return false;
    socket.send(JSON.stringify(message));
    clearTimeout(unanswered);
    unanswered = window.setTimeout(() => lose(t("no answer")), PATIENCE);
    return true;
  };
}
