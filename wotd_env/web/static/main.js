/** The page: its address selects the shown part. */

import { analysisPage } from "./analysis.js";
import { keys, wanted } from "./api.js";
import { readAddress } from "./browser.js";
import { connectDialogs } from "./dialogs.js";
import { byId, loadDrawings, noticeCard } from "./dom.js";
import { learnPage } from "./learn.js";
import { joinPage, lobbyPage } from "./lobby.js";
import { puzzlePage } from "./puzzle.js";
import { gamePage, reviewPage } from "./review.js";
import { tablePage } from "./table.js";
import { t } from "./words.js";

/** @import {Page} from "./types.js" */

const main = byId("main");
let closing = new AbortController();

/** @type {Record<string, Page>} */
const pages = {
  "": lobbyPage,
  new: lobbyPage,
  table: tablePage,
  join: joinPage,
  open: joinPage,
  watch(_main, _signal, table, key) {
    if (!keys.of(table)) keys.add(table, { key, watch: key });
    location.replace(`#/table/${encodeURIComponent(table)}`);
  },
  learn: learnPage,
  puzzle: puzzlePage,
  analysis: analysisPage,
  review: reviewPage,
  game: gamePage,
};

function route() {
  closing.abort();
  closing = new AbortController();
  main.replaceChildren();
  document.title = t("Way of the Dragon");
  const address = readAddress(location.hash);
  if (address && Object.hasOwn(pages, address.page))
    pages[address.page](main, closing.signal, ...address.parts);
  else {
    const words = t("The address is incomplete or has a typing error.");
    main.append(noticeCard(t("There is no such page"), words));
  }
}

connectDialogs();
window.addEventListener("hashchange", () => {
  wanted.clear();
  route();
  main.focus({ preventScroll: true });
  window.scrollTo(0, 0);
});
loadDrawings().catch(() => {}); // the page works without them
route();
