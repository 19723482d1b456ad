/** The dialogs: the rules in four languages, the list of keys, and the explanation of a power. */

import { kept } from "./api.js";
import { byId, glyph, h, isElsewhere } from "./dom.js";
import { capital, explainPower, POWERS } from "./words.js";

const LANGUAGES = { en: "English", es: "Español", de: "Deutsch", hi: "हिन्दी" };

/** @param {string} id */
const open = (id) => /** @type {HTMLDialogElement} */ (byId(id)).showModal();

/** @param {string} language */
async function showRules(language) {
  kept.set("wotd-language", language);
  for (const button of byId("languages").children)
    button.setAttribute("aria-pressed", String(button.getAttribute("lang") === language));
  const response = await fetch(`/rules/${language}`).catch(() => null);
  const text = byId("rules-text");
  text.lang = language;
  if (response?.ok) text.innerHTML = await response.text();
  else text.textContent = "The rules could not be loaded. Is the server running?";
  text.scrollTop = 0;
}

function openRules() {
  const preferred = navigator.language.slice(0, 2);
  showRules(kept.get("wotd-language", preferred in LANGUAGES ? preferred : "en"));
  open("rules");
}

/** Connect the dialogs with their buttons and keys. */
export function connectDialogs() {
  for (const [lang, name] of Object.entries(LANGUAGES)) {
    const properties = { lang, "aria-pressed": "false", onclick: () => showRules(lang) };
    byId("languages").append(h("button", properties, name));
  }
  byId("open-rules").addEventListener("click", openRules);
  byId("open-keys").addEventListener("click", () => open("keys"));
  for (const dialog of document.querySelectorAll("dialog"))
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.addEventListener("keydown", (event) => event.key === "?" && !isElsewhere(event) && open("keys"));
}

/** Make the button that explains a power. @param {number} power @param {boolean} used @param {string} name */
export function powerButton(power, used, name) {
  const words = `${POWERS[power].name}${used ? ", used" : ""}`;
  const look = { class: `power${used ? " used" : ""}`, title: words, "aria-label": words };
  function explain() {
    byId("power-title").textContent = capital(POWERS[power].name);
    byId("power-text").replaceChildren(...explainPower(power, used, name).map((line) => h("p", line)));
    open("power");
  }
  return h("button", { ...look, "aria-haspopup": "dialog", onclick: explain }, glyph(`power-${power}`));
}
