/** The storage of this browser: JSON values by name. */

const memory = new Map(); // used until the next reload if the browser refuses to store anything

export const kept = {
  /** @param {string} name @param {any} otherwise */
  get(name, otherwise) {
    let stored = null;
    try {
      stored = JSON.parse(localStorage.getItem(name) ?? "null");
    } catch {} // unreadable or refused
    return stored ?? memory.get(name) ?? otherwise;
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
