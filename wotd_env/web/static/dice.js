/** Dice: five buttons to choose the kept ones, and small rows to read. */

import { attribute, glyph, h } from "./dom.js";
import { t } from "./text.js";
import { FACES } from "./words.js";

/** Make five dice as toggle buttons. @param {(place: number) => void} press */
export function makeDice(press) {
  const buttons = Array.from({ length: 5 }, (_, place) => h("button.die", { onclick: () => press(place) }));
  const element = h("div.dice", { role: "group" }, ...buttons);

  /**
   * Show the dice by place; face -1 is an unrolled die. With `choosing`, the dice can be pressed.
   * @param {number[]} faces @param {boolean[]} held @param {boolean} choosing @param {boolean[]} rolled just now
   */
  function show(faces, held, choosing, rolled) {
    element.setAttribute("aria-label", choosing ? t("Dice: press the ones to keep") : t("Dice"));
    buttons.forEach((button, place) => {
      const face = faces[place];
      attribute(button, "data-face", String(face));
      const shown = face < 0 ? t("not rolled yet") : FACES[face];
      attribute(button, "aria-label", `${t("die {number}", { number: place + 1 })}, ${shown}`);
      attribute(button, "aria-disabled", choosing ? null : "true");
      attribute(button, "aria-pressed", choosing ? String(held[place]) : null);
      button.replaceChildren(drawDie(face), h("span.keep", { "aria-hidden": "true" }, t("keep")));
      button.classList.toggle("kept", held[place]);
      button.classList.remove("rolled");
      if (rolled[place]) {
        void button.offsetWidth; // restarts the animation
        button.classList.add("rolled");
      }
    });
  }

  return { element, show };
}

/** @param {number} face @param {string} [look] */
const drawDie = (face, look = "") => (face < 0 ? h("span.blank") : glyph(`die-${face}`, look));

/** Draw a row of dice to read. @param {number[]} faces @param {boolean[]} [kept] */
export function diceRow(faces, kept = []) {
  const words = faces.map((face) => (face < 0 ? "?" : FACES[face])).join(", ");
  const dice = faces.map((face, place) => drawDie(face, kept[place] ? "kept" : ""));
  return h("span.dice-row", { role: "img", "aria-label": words }, ...dice);
}
