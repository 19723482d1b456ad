/** Elements of the page, and the drawings in them. */

/**
 * Make an element.
 * @param {string} tag
 * @param {Record<string, any>} [properties] attributes; `onclick` and the like are listeners; null and false are left out
 * @param {...(Node|string|null|false|undefined)} children
 * @returns {any} the element
 */
export function h(tag, properties = {}, ...children) {
  const element = /** @type {any} */ (document.createElement(tag));
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value")
      element.value = value; // after the children: options of a select
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
 * Say a sentence to those who hear the page.
 * @param {string} sentence
 */
export function say(sentence) {
  const news = document.getElementById("news");
  if (news && sentence) news.textContent = sentence;
}

/**
 * Set an attribute, or take it away.
 * @param {Element} element
 * @param {string} name
 * @param {string|null} value
 */
export function attribute(element, name, value) {
  if (value === null) element.removeAttribute(name);
  else if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * Make a button that copies a text, and says so.
 * @param {string} label
 * @param {() => string|Promise<string>} text
 */
export function copyButton(label, text) {
  const button = h("button", { type: "button", onclick: copy }, label);
  async function copy() {
    const copied = await text();
    try {
      await navigator.clipboard.writeText(copied);
      button.textContent = "Copied";
      say("Copied.");
    } catch {
      window.prompt("Copy this:", copied); // a page that is not served by https may not write the clipboard
    }
  }
  return button;
}

/**
 * Say chances as people do.
 * @param {number} chance 0 to 1
 */
export const percent = (chance) => `${(100 * chance).toFixed(chance > 0.0995 && chance < 0.9995 ? 0 : 1)} %`;

/** Whether a key press is meant for something else: a field, a dialog, the browser. */
export function isElsewhere(event) {
  return (
    event.ctrlKey ||
    event.altKey ||
    event.metaKey ||
    event.defaultPrevented ||
    event.target.closest("input, select, textarea, dialog") !== null ||
    document.querySelector("dialog[open]") !== null
  );
}
