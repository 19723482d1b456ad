/** The page: which part of it is shown follows from what stands behind the # of its address. */

import { keys, kept } from "./api.js";
import { h } from "./dom.js";
import { joinPage, lobbyPage } from "./lobby.js";
import { gamePage, reviewPage } from "./review.js";
import { tablePage } from "./table.js";

const LANGUAGES = { en: "English", es: "Español", de: "Deutsch", hi: "हिन्दी" };
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @type {() => void} */
let end = () => {};

/** @type {Record<string, (...parts: string[]) => () => void>} */
const pages = {
  "": () => lobbyPage(main),
  new: (position) => lobbyPage(main, position),
  table: (table) => tablePage(main, table),
  join: (table, invitation) => joinPage(main, table, invitation),
  open: (table) => joinPage(main, table, null),
  watch(table, key) {
    if (!keys.of(table)) keys.add(table, { key, watch: key });
    location.replace(`#/table/${table}`);
    return () => {};
  },
  review: (table, game) => reviewPage(main, table, game),
  game: () => gamePage(main),
};

/** @param {boolean} first whether the page has just been loaded */
function route(first) {
  end();
  main.replaceChildren();
  document.title = "Way of the Dragon";
  const [name, ...parts] = location.hash.replace(/^#\/?/, "").split("/");
  // A position holds slashes itself, so it is written with %2F.
  end = (pages[name] ?? pages[""])(...parts.map(decodeURIComponent));
  if (!first) {
    main.focus({ preventScroll: true });
    window.scrollTo(0, 0);
  }
}

async function drawings() {
  const response = await fetch("/drawings.svg");
  const holder = h("div", { hidden: true });
  holder.innerHTML = await response.text(); // of our own server
  document.body.prepend(holder);
}

// ------------------------------------------------------------------------------------------------ rules and keys

const rules = /** @type {HTMLDialogElement} */ (document.getElementById("rules"));
const keyList = /** @type {HTMLDialogElement} */ (document.getElementById("keys"));
const text = /** @type {HTMLElement} */ (document.getElementById("rules-text"));
const languages = /** @type {HTMLElement} */ (document.getElementById("languages"));

/** @param {string} language */
async function showRules(language) {
  kept.set("wotd-language", language);
  for (const button of languages.children)
    button.setAttribute("aria-pressed", String(button.getAttribute("lang") === language));
  const response = await fetch(`/rules/${language}`).catch(() => null);
  text.lang = language;
  if (response?.ok) text.innerHTML = await response.text();
  else text.textContent = "The rules could not be loaded. Is the server running?";
  text.scrollTop = 0;
}

languages.append(
  ...Object.entries(LANGUAGES).map(([language, name]) =>
    h(
      "button",
      { type: "button", lang: language, "aria-pressed": "false", onclick: () => showRules(language) },
      name,
    ),
  ),
);
document.getElementById("open-rules")?.addEventListener("click", () => {
  const mine = navigator.language.slice(0, 2);
  showRules(kept.get("wotd-language", mine in LANGUAGES ? mine : "en"));
  rules.showModal();
});
document.getElementById("open-keys")?.addEventListener("click", () => keyList.showModal());
for (const dialog of [rules, keyList]) {
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
}
document.addEventListener("keydown", (event) => {
  const typing = /** @type {HTMLElement} */ (event.target).closest("input, select, textarea");
  if (event.key === "?" && !typing && !document.querySelector("dialog[open]")) keyList.showModal();
});

window.addEventListener("hashchange", () => route(false));
drawings().catch(() => {});
route(true);
