/** The frame of the page: its language, the rules, and the list of keys. */

import { kept } from "./browser.js";
import { byId, glyph, h, isElsewhere } from "./dom.js";
import { LANGUAGES, language, POWERS, t } from "./words.js";

/** @param {string} id */
const open = (id) => /** @type {HTMLDialogElement} */ (byId(id)).showModal();

/** Open the rules, at the row of a power if it is given. @param {number} [power] */
export async function openRules(power) {
  open("rules");
  const response = await fetch(`rules/${language}`).catch(() => null);
  const text = byId("rules-text");
  if (response?.ok) text.innerHTML = await response.text();
  else text.textContent = t("The rules could not be loaded. Is the server running?");
  text.scrollTop = 0;
  if (power === undefined) return;
  const title = text.querySelector("#powers");
  title?.scrollIntoView();
  title?.nextElementSibling?.querySelectorAll("tr")[power + 1]?.classList.add("marked");
}

/** Translate the frame of the page, and connect its dialogs and the choice of the language. */
export function connectDialogs() {
  document.documentElement.lang = language;
  for (const element of document.querySelectorAll("[data-text]"))
    element.textContent = t(element.textContent ?? "");
  for (const element of document.querySelectorAll("[data-label]"))
    element.setAttribute("aria-label", t(element.getAttribute("aria-label") ?? ""));
  const options = Object.entries(LANGUAGES).map(([lang, name]) => h("option", { value: lang, lang }, name));
  const choose = () => {
    kept.set("wotd-language", choice.value);
    location.reload();
  };
  const choice = h("select", { "aria-label": t("Language"), value: language, onchange: choose }, ...options);
  byId("languages").append(choice);
  byId("open-rules").addEventListener("click", () => openRules());
  byId("open-keys").addEventListener("click", () => open("keys"));
  for (const dialog of document.querySelectorAll("dialog"))
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.addEventListener("keydown", (event) => event.key === "?" && !isElsewhere(event) && open("keys"));
  const prevent = (/** @type {KeyboardEvent} */ event) => {
    const typing = /** @type {Element} */ (event.target).matches("textarea");
    if (event.key === "Enter" && event.repeat && !typing) event.preventDefault(); // a held key presses once
  };
  document.addEventListener("keydown", prevent, { capture: true });
}

/** Make the button of a power, which opens its part of the rules. @param {number} power @param {boolean} used */
export function powerButton(power, used) {
  const words = used ? t("{power}, used", { power: POWERS[power] }) : POWERS[power];
  const look = { class: `power${used ? " used" : ""}`, title: words, "aria-label": words };
  const act = { "aria-haspopup": "dialog", onclick: () => openRules(power) };
  return h("button", { ...look, ...act }, glyph(`power-${power}`));
}
