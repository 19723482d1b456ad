/** Dice: five buttons to choose the kept ones, and small rows to read. */

import { attribute, glyph, h } from "./dom.js";
import { FACES } from "./words.js";

/** Make five dice as toggle buttons. @param {() => void} changed called after a press */
export function makeDice(changed) {
  /** @type {boolean[]} */
  let held = [];
  let open = false;
  const buttons = Array.from({ length: 5 }, (_, place) => h("button.die", { onclick: () => toggle(place) }));
  const element = h("div.dice", { role: "group", "aria-label": "Dice" }, ...buttons);

  /** @param {number} place */
  function toggle(place) {
    if (!open) return;
    held[place] = !held[place];
    mark(place);
    changed();
  }

  /** @param {number} place */
  function mark(place) {
    attribute(buttons[place], "aria-pressed", open ? String(held[place]) : null);
    buttons[place].classList.toggle("kept", Boolean(held[place]));
  }

  /**
   * Show dice by place: face -1 is still to be rolled. While choosing, they can be pressed.
   * @param {number[]} faces @param {boolean[]} hold @param {boolean} choosing @param {boolean[]} rolled just now
   */
  function show(faces, hold, choosing, rolled) {
    [held, open] = [[...hold], choosing];
    element.setAttribute("aria-label", choosing ? "Dice: press those that you keep" : "Dice");
    buttons.forEach((button, place) => {
      const face = faces[place];
      attribute(button, "data-face", String(face));
      attribute(button, "aria-label", `die ${place + 1}, ${face < 0 ? "not rolled yet" : FACES[face]}`);
      attribute(button, "aria-disabled", choosing ? null : "true");
      button.replaceChildren(drawDie(face), h("span.keep", { "aria-hidden": "true" }, "keep"));
      mark(place);
      button.classList.remove("rolled");
      if (rolled[place]) {
        void button.offsetWidth; // restarts the animation
        button.classList.add("rolled");
      }
    });
  }

  return { element, show, toggle, held: () => held };
}

/** @param {number} face @param {string} [look] */
const drawDie = (face, look = "") => (face < 0 ? h("span.blank") : glyph(`die-${face}`, look));

/** Draw a row of dice to read. @param {number[]} faces @param {boolean[]} [kept] */
export function diceRow(faces, kept = []) {
  const words = faces.map((face) => (face < 0 ? "?" : FACES[face])).join(", ");
  const dice = faces.map((face, place) => drawDie(face, kept[place] ? "kept" : ""));
  return h("span.dice-row", { role: "img", "aria-label": words }, ...dice);
}
