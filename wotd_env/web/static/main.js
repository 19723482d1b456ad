/** The page: its address selects the shown part. */

import { readAddress } from "./address.js";
import { keys } from "./api.js";
import { connectDialogs } from "./dialogs.js";
import { h, noticeCard } from "./dom.js";
import { joinPage } from "./join.js";
import { lobbyPage } from "./lobby.js";
import { gamePage, reviewPage } from "./review.js";
import { tablePage } from "./table.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const nothing = () => {};
/** @type {() => void} */
let close = nothing;

/** @type {Record<string, (...parts: string[]) => () => void>} each returns a function that closes it */
const pages = {
  "": () => lobbyPage(main),
  new: (position, ...players) => lobbyPage(main, position, players),
  table: (table) => tablePage(main, table),
  join: (table, invitation) => joinPage(main, table, invitation),
  open: (table) => joinPage(main, table, null),
  watch(table, key) {
    if (!keys.of(table)) keys.add(table, { key, watch: key });
    location.replace(`#/table/${encodeURIComponent(table)}`);
    return nothing;
  },
  review: (table, game) => reviewPage(main, table, game),
  game: () => gamePage(main),
};

/** @param {boolean} first whether the page has just been loaded */
function route(first) {
  close();
  close = nothing;
  main.replaceChildren();
  document.title = "Way of the Dragon";
  const address = readAddress(location.hash);
  if (address && Object.hasOwn(pages, address.page)) close = pages[address.page](...address.parts);
  else main.append(noticeCard("There is no such page", "The address is incomplete or has a typing error."));
  if (!first) {
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

async function drawings() {
  const response = await fetch("/drawings.svg");
  const holder = h("div", { hidden: true });
  holder.innerHTML = await response.text(); // from our own server
  document.body.prepend(holder);
}

connectDialogs();
window.addEventListener("hashchange", () => route(false));
drawings().catch(nothing); // the page works without them
route(true);
