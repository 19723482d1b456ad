/** The storage of this browser, and the addresses of the page. The part of an address after its # selects the shown part. */

const memory = new Map(); // used until the next reload if the browser refuses to store anything

/** JSON values by name. */
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

/** Split an address such as "#/table/abc"; return null if it is malformed. @param {string} hash */
export function readAddress(hash) {
  const [page, ...parts] = hash.replace(/^#\/?/, "").split("/");
  try {
    return { page, parts: parts.map(decodeURIComponent) }; // a position contains slashes
  } catch {
    return null; // such as %E0%A4%A
  }
}

/** Return the whole address of a page, to be shared. @param {string} page such as "join/TABLE/INVITATION" */
export const linkTo = (page) => `${location.origin}${location.pathname}#/${page}`;

/** Return the address of the analysis board with a position. @param {string} position */
export const analysisAddress = (position) => `#/analysis/${encodeURIComponent(position)}`;

/** Return the address that sets up a table from a position. @param {string} position @param {string[]} players */
export const continueAddress = (position, players) =>
  `#/${["new", position, ...players].map(encodeURIComponent).join("/")}`;
