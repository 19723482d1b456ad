/** Hints: the best choices of a decision, and their costs. */

import { h } from "./dom.js";
import { capital, percent } from "./words.js";

/** @import {Help, View} from "./types.js" */

/** Make the card of hints. @param {(action: number) => void} act */
export function makeHints(act) {
  let open = false;
  const toggle = h("button", { onclick: flip });
  const list = h("div.hint-list");
  const element = h("section.card.hints", { hidden: true, "aria-label": "Hints" }, toggle, list);
  /** @type {() => void} */
  let again = () => {};

  function flip() {
    open = !open;
    again();
  }

  /** @param {View} view @param {Help|null} help */
  function show(view, help) {
    again = () => show(view, help);
    element.hidden = !(view.help && view.status === "playing" && view.mine.length);
    toggle.textContent = open ? "Hide hints" : "Show a hint";
    toggle.setAttribute("aria-expanded", String(open));
    list.hidden = !open;
    if (!open) return;
    const current = help?.ply === view.ply && help.game === view.game ? help : null;
    if (!view.choices.length) list.replaceChildren(quiet("Hints come when it is your turn."));
    else if (!current?.hints.length) list.replaceChildren(quiet("The hint is being computed …"));
    else list.replaceChildren(hintItems(current, act), quiet(sourceOf(current)));
  }

  return { element, show };
}

/** @param {string} words */
const quiet = (words) => h("p.quiet", words);

/** @param {{source: string, exact: boolean}} help */
const sourceOf = ({ source, exact }) => `Source: ${source}${exact ? "" : ", an estimate"}.`;

/** @param {Help} help @param {(action: number) => void} act */
function hintItems({ hints }, act) {
  const items = hints.map(({ words, loss, action }) =>
    h(
      "li",
      h("button.choice", { onclick: () => act(action) }, capital(words)),
      h("span.loss", loss < 0.0005 ? "best" : `${percent(loss)} less`),
    ),
  );
  return h("ol", ...items);
}
