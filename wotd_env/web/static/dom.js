/** Elements and drawings of the page. */

/**
 * Make an element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Record<string, any>} [properties] attributes; `onclick` and the like are listeners; null and false are left out
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {HTMLElementTagNameMap[Tag]} the element
 */
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const child of children)
    if (child !== null && child !== undefined && child !== false) element.append(child);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value")
      /** @type {any} */ (element).value = value; // after the children, which are the options of a select
    else element.setAttribute(name, value === true ? "" : value);
  }
  return element;
}

/**
 * Draw one of the symbols of /drawings.svg.
 * @param {string} name such as "piece-2"
 * @param {string} [look] further classes
 * @returns {SVGSVGElement}
 */
export function glyph(name, look = "") {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", `glyph ${look}`);
  svg.setAttribute("viewBox", "0 0 48 48");
  svg.setAttribute("aria-hidden", "true");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#${name}`);
  svg.append(use);
  return svg;
}

/**
 * Announce a sentence to screen readers.
 * @param {string} sentence
 */
export function say(sentence) {
  const news = document.getElementById("news");
  if (news && sentence) news.textContent = sentence;
}

/**
 * Set an attribute, or remove it.
 * @param {Element} element
 * @param {string} name
 * @param {string|null} value
 */
export function attribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/** Make a place for the message of an error. */
export function errorLine() {
  const element = h("p", { class: "error", role: "alert", hidden: true });
  return {
    element,
    /** @param {unknown} error */
    show(error) {
      element.textContent = error instanceof Error ? error.message : String(error);
      element.hidden = false;
    },
    hide() {
      element.hidden = true;
    },
  };
}

/**
 * Make a button. If its work fails, the error appears below it.
 * @param {string} label
 * @param {(button: HTMLButtonElement) => Promise<void>} work
 */
export function workButton(label, work) {
  const error = errorLine();
  const button = h("button", { type: "button", onclick: run }, label);
  async function run() {
    error.hide();
    try {
      await work(button);
    } catch (reason) {
      error.show(reason);
    }
  }
  return h("span", { class: "work" }, button, error.element);
}

/**
 * Make a button that copies a text.
 * @param {string} label
 * @param {() => string|Promise<string>} text
 */
export function copyButton(label, text) {
  return workButton(label, async (button) => {
    const copied = await text();
    try {
      await navigator.clipboard.writeText(copied);
      button.textContent = "Copied";
      say("Copied.");
    } catch {
      window.prompt("Copy this:", copied); // browsers forbid pages without https to write to the clipboard
    }
  });
}

/**
 * Make a card with a message and a link.
 * @param {string} title
 * @param {string} words
 * @param {string} [href]
 * @param {string} [link]
 */
export function noticeCard(title, words, href = "#/", link = "To the tables") {
  return h(
    "section",
    { class: "card narrow" },
    h("h1", {}, title),
    words ? h("p", {}, words) : null,
    h("a", { class: "button", href }, link),
  );
}

/** Make a line about something that the page waits for. @param {string} words */
export const waitLine = (words) =>
  h("p", { class: "waits", role: "status" }, h("span", { class: "dots", "aria-hidden": "true" }), words);

/**
 * Return whether a key press is meant for something else: a field, a dialog or the browser.
 * @param {KeyboardEvent} event
 */
export function isElsewhere(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  return (
    event.ctrlKey ||
    event.altKey ||
    event.metaKey ||
    event.defaultPrevented ||
    target.closest("input, select, textarea, dialog") !== null ||
    document.querySelector("dialog[open]") !== null
  );
}
