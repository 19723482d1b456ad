/** The dialogs: the rules in four languages, and the list of keys. */

import { kept } from "./api.js";
import { byId, glyph, h, isElsewhere } from "./dom.js";
import { POWERS } from "./words.js";

const LANGUAGES = { en: "English", es: "Español", de: "Deutsch", hi: "हिन्दी" };

/** @param {string} id */
const open = (id) => /** @type {HTMLDialogElement} */ (byId(id)).showModal();

/** @param {string} language @param {number} [power] whose row in the rules is marked */
async function showRules(language, power) {
  kept.set("wotd-language", language);
  for (const button of byId("languages").children)
    button.setAttribute("aria-pressed", String(button.getAttribute("lang") === language));
  const response = await fetch(`rules/${language}`).catch(() => null);
  const text = byId("rules-text");
  text.lang = language;
  if (response?.ok) text.innerHTML = await response.text();
  else text.textContent = "The rules could not be loaded. Is the server running?";
  text.scrollTop = 0;
  if (power === undefined) return;
  const title = text.querySelector("#powers");
  title?.scrollIntoView();
  title?.nextElementSibling?.querySelectorAll("tr")[power + 1]?.classList.add("marked");
}

/** Open the rules, at the row of a power if it is given. @param {number} [power] */
export function openRules(power) {
  const preferred = navigator.language.slice(0, 2);
  showRules(kept.get("wotd-language", preferred in LANGUAGES ? preferred : "en"), power);
  open("rules");
}

/** Connect the dialogs with their buttons and keys. */
export function connectDialogs() {
  for (const [lang, name] of Object.entries(LANGUAGES)) {
    const properties = { lang, "aria-pressed": "false", onclick: () => showRules(lang) };
    byId("languages").append(h("button", properties, name));
  }
  byId("open-rules").addEventListener("click", () => openRules());
  byId("open-keys").addEventListener("click", () => open("keys"));
  for (const dialog of document.querySelectorAll("dialog"))
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.addEventListener("keydown", (event) => event.key === "?" && !isElsewhere(event) && open("keys"));
}

/** Make the button of a power, which opens its part of the rules. @param {number} power @param {boolean} used */
export function powerButton(power, used) {
  const words = `${POWERS[power]}${used ? ", used" : ""}`;
  const look = { class: `power${used ? " used" : ""}`, title: words, "aria-label": words };
  const act = { "aria-haspopup": "dialog", onclick: () => openRules(power) };
  return h("button", { ...look, ...act }, glyph(`power-${power}`));
}
