/** Elements and drawings of the page. */

import { t } from "./words.js";

/** @import {Child} from "./types.js" */

/**
 * @template {string} Tag
 * @typedef {Tag extends `${infer Name}.${string}` ? ElementOf<Name>
 *   : Tag extends keyof HTMLElementTagNameMap ? HTMLElementTagNameMap[Tag] : never} ElementOf
 */

/**
 * Make an element: `h("p.quiet", { title }, "text")` or `h("p.quiet", "text")`.
 * @template {string} Tag
 * @param {Tag} tag the tag, with classes after dots
 * @param {Record<string, any>|Child} [first] attributes, or a child; `onclick` and the like are listeners; null and
 *   false are left out
 * @param {...Child} others children
 * @returns {ElementOf<Tag>}
 */
export function h(tag, first, ...others) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  const isChild = !first || typeof first === "string" || first instanceof Node;
  for (const child of isChild ? [/** @type {Child} */ (first), ...others] : others)
    if (child !== null && child !== undefined && child !== false) element.append(child);
  for (const [name, value] of isChild ? [] : Object.entries(first)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value")
      /** @type {any} */ (element).value = value; // after the children, which are the options of a select
    else element.setAttribute(name, value === true ? "" : value);
  }
  return /** @type {any} */ (element);
}

/** Make an SVG node. @param {string} tag @param {Record<string, string>} values @param {...Node} children */
export function svg(tag, values, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(values)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

/** Make a table with a head; the first cell of a row is its head. @param {string[]} heads @param {Child[][]} rows */
export function makeTable(heads, rows) {
  const head = heads.map((words) => h("th", { scope: "col" }, words));
  const body = rows.map(([first, ...cells]) =>
    h("tr", h("th", { scope: "row" }, first), ...cells.map((cell) => h("td", cell))),
  );
  return h("table", h("thead", h("tr", ...head)), h("tbody", ...body));
}

/** @param {Record<string, any>} properties @param {string[][]} options values and words */
export const select = (properties, options) =>
  h("select", properties, ...options.map(([value, words]) => h("option", { value }, words)));

/** Load the symbols that `glyph` draws. */
export async function loadDrawings() {
  const response = await fetch("drawings.svg");
  const holder = h("div", { hidden: true });
  holder.innerHTML = await response.text(); // from our own server
  document.body.prepend(holder);
}

/** Draw a symbol of drawings.svg. @param {string} name @param {string} [look] further classes */
export function glyph(name, look = "") {
  const values = { class: `glyph ${look}`, viewBox: "0 0 48 48", "aria-hidden": "true" };
  return svg("svg", values, svg("use", { href: `#${name}` }));
}

/** Return an element of index.html. @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** Announce a sentence to screen readers. @param {string} sentence */
export function say(sentence) {
  if (sentence) byId("news").textContent = sentence;
}

/** Set or remove an attribute. @param {Element} element @param {string} name @param {string|null} value */
export function attribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Make a place for the message of an error. @param {unknown} [shown] an error to show at once */
export function errorLine(shown) {
  const element = h("p.error", { role: "alert", hidden: true });
  /** @param {unknown} error */
  function show(error) {
    element.textContent = error instanceof Error ? error.message : String(error);
    element.hidden = false;
  }
  if (shown) show(shown);
  return { element, show, hide: () => element.setAttribute("hidden", "") };
}

/**
 * Make a button. If its work fails, the error appears below it.
 * @param {string} label @param {(button: HTMLButtonElement) => Promise<void>} work @param {object} [properties]
 */
export function workButton(label, work, properties) {
  const error = errorLine();
  const button = h("button", { ...properties, onclick: run }, label);
  /** @param {MouseEvent} event */
  function run({ detail }) {
    if (detail > 1) return; // the second click of a double click can meet another button
    error.hide();
    work(button).catch(error.show);
  }
  return h("span.work", button, error.element);
}

/** Make a button that copies a text. @param {string} label @param {string|(() => string|Promise<string>)} text */
export function copyButton(label, text) {
  return workButton(label, async (button) => {
    const copied = typeof text === "string" ? text : await text();
    try {
      await navigator.clipboard.writeText(copied);
      button.textContent = t("Copied");
      say(t("Copied"));
    } catch {
      window.prompt(t("Copy this:"), copied); // browsers forbid pages without https to write to the clipboard
    }
  });
}

/** Make a card with a message and a link to the lobby. @param {string} title @param {string} words */
export function noticeCard(title, words) {
  const link = h("a.button", { href: "#/" }, t("To the tables"));
  return h("section.card.narrow", h("h1", title), words && h("p", words), link);
}

/**
 * Show a card with a title until `load` has its data, then call `show`; or the error and a link `back`.
 * @template Data
 * @param {HTMLElement} main @param {AbortSignal} signal
 * @param {{title: string, waits?: string, back?: string}} card `waits` is the message while loading, `back` the address of the link
 * @param {() => Promise<Data>} load @param {(data: Data) => void} show
 */
export async function loadPage(main, signal, { title, waits, back = "#/" }, load, show) {
  const card = h("section.card.narrow", h("h1", title), waitLine(waits ?? t("The position comes …")));
  main.append(card);
  document.title = `${title} · ${t("Way of the Dragon")}`;
  try {
    const data = await load();
    if (signal.aborted) return;
    card.remove();
    show(data);
  } catch (reason) {
    card.replaceChildren(h("h1", title), errorLine(reason).element, h("a.button", { href: back }, t("Back")));
  }
}

/** Make a line about something that the page waits for. @param {string} words @param {string|null} [role] */
export const waitLine = (words, role = "status") =>
  h("p.waits", { role }, h("span.dots", { "aria-hidden": "true" }), words);

/** @param {KeyboardEvent} event */
export const hasModifier = (event) => event.ctrlKey || event.altKey || event.metaKey;

/** Return whether a key press is for a field, a dialog or the browser. @param {KeyboardEvent} event */
export function isElsewhere(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  return (
    hasModifier(event) ||
    (event.repeat && !event.key.startsWith("Arrow")) || // each act needs a press of its own
    event.defaultPrevented ||
    target.closest("input, select, textarea, dialog") !== null ||
    document.querySelector("dialog[open]") !== null
  );
}
