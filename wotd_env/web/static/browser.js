/** The storage of this browser, and the addresses of the page. The part of an address after its # selects the shown part. */

/** Make a storage of JSON values by name. @param {() => Storage} open fails if the browser refuses to store anything */
function storage(open) {
  const memory = new Map(); // values that the browser refuses to store; used until the next reload
  return {
    /** @param {string} name @param {any} otherwise */
    get(name, otherwise) {
      let stored = null;
      try {
        stored = JSON.parse(open().getItem(name) ?? "null");
      } catch {} // unreadable or refused
      return memory.get(name) ?? stored ?? otherwise;
    },
    /** @param {string} name @param {any} value */
    set(name, value) {
      memory.delete(name);
      try {
        open().setItem(name, JSON.stringify(value));
      } catch {
        memory.set(name, value);
      }
    },
  };
}

/** Values that stay in this browser. */
export const kept = storage(() => localStorage);
/** Values of this tab. */
export const ofTab = storage(() => sessionStorage);

/** Split an address such as "#/table/abc"; return null if it is malformed. @param {string} hash */
export function readAddress(hash) {
  const [page, ...parts] = hash.replace(/^#\/?/, "").split("/");
  try {
    return { page, parts: parts.map(decodeURIComponent) }; // a position contains slashes
  } catch {
    return null; // such as %E0%A4%A
  }
}

/**
 * Return the whole address of a page, to be shared. At the server's own machine, it starts with the address for others.
 * @param {string} page such as "join/TABLE/INVITATION" @param {string|null} [others]
 */
export function linkTo(page, others) {
  const local = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
  return `${(local && others) || location.origin + location.pathname}#/${page}`;
}

/** Return the address of the analysis board with a position. @param {string} position */
export const analysisAddress = (position) => `#/analysis/${encodeURIComponent(position)}`;

/** Return the address that sets up a table from a position. @param {string} position @param {string[]} players */
export const continueAddress = (position, players) =>
  `#/${["new", position, ...players].map(encodeURIComponent).join("/")}`;
