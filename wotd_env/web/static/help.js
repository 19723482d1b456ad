/** Hints: the best choices of a decision, and their costs. */

import { h } from "./dom.js";
import { t } from "./text.js";
import { capital, lossWords, sourceOf } from "./words.js";

/** @import {Help, View} from "./types.js" */

/** Make the card of hints. @param {(action: number) => void} act */
export function makeHints(act) {
  const list = h("div.hint-list");
  const element = h("details.card.hints", { hidden: true }, h("summary", t("Hints")), list);

  /** @param {View} view @param {Help|null} help */
  function show(view, help) {
    element.hidden = !(view.help && view.status === "playing" && view.mine.length);
    const current = help?.ply === view.ply && help.game === view.game ? help : null;
    if (!view.choices.length) list.replaceChildren(h("p.quiet", t("It is not your turn.")));
    else if (!current?.hints.length) list.replaceChildren(h("p.quiet", t("The hint is being computed …")));
    else {
      const items = current.hints.map(({ loss, action }) => {
        const words = view.choices.find((choice) => choice.action === action)?.words ?? "";
        const button = h("button.choice", { onclick: () => act(action) }, capital(words));
        return h("li", button, h("span.loss", lossWords(loss)));
      });
      list.replaceChildren(h("ol", ...items), h("p.quiet", sourceOf(current)));
    }
  }

  return { element, show };
}
