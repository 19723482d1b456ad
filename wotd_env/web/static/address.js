/** The part of an address after its #, which selects the shown part of the page. */

/**
 * Split an address; its parts are percent-encoded because a position contains slashes.
 * @param {string} hash such as "#/table/abc"
 * @returns {{page: string, parts: string[]}|null} null for a malformed address
 */
export function readAddress(hash) {
  const [page, ...parts] = hash.replace(/^#\/?/, "").split("/");
  try {
    return { page, parts: parts.map(decodeURIComponent) };
  } catch {
    return null; // such as %E0%A4%A
  }
}

/**
 * Return the address that continues a game from a position.
 * @param {string} position
 * @param {string[]} players names of the seats
 */
export const continueAddress = (position, players) =>
  `#/${["new", position, ...players].map(encodeURIComponent).join("/")}`;
