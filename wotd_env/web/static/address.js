/** The part of an address after its #, which selects the shown part of the page. */

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
