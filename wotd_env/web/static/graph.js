/** The graph of a review: every seat's chance to win, step by step. */

import { h, svg } from "./dom.js";
import { t } from "./text.js";
import { percent } from "./words.js";

/** @import {Review} from "./types.js" */

const [WIDTH, HEIGHT, MARGIN] = [600, 150, 6];

/**
 * Draw the graph of a graded game. A click calls `go` with the clicked step.
 * @param {Review} review @param {string[]} names @param {(step: number) => void} go
 */
export function makeGraph({ steps, last_chances: lastChances, last }, names, go) {
  const chances = [...steps.map((step) => step.chances), lastChances];
  const count = Math.max(steps.length, 1);
  /** @param {number} step */
  const x = (step) => MARGIN + ((WIDTH - 2 * MARGIN) * step) / count;
  /** @param {number} chance */
  const y = (chance) => HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * chance;
  const lines = names.flatMap((_, seat) => {
    const points = chances.map((now, step) => `${x(step).toFixed(1)} ${y(now[seat]).toFixed(1)}`);
    return linesOf(`M${points.join("L")}`, seat, last.color[seat]);
  });
  const dots = steps.flatMap(({ class: grade, chances, seat }, i) =>
    grade ? [svg("path", { d: `M${x(i)} ${y(chances[seat])}v.01`, class: `dot ${grade}` })] : [],
  );
  const cursor = svg("path", { class: "cursor" });
  const middle = svg("path", { d: `M0 ${y(0.5)}H${WIDTH}`, class: "middle" });
  const words = t("Every player's chance to win, step by step. The slider goes through the steps.");
  const view = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none" };
  const graph = svg("svg", { ...view, role: "img", "aria-label": words }, middle, ...lines, ...dots, cursor);
  graph.addEventListener("click", (event) => {
    const box = graph.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    go(Math.round(((at - MARGIN) / (WIDTH - 2 * MARGIN)) * steps.length));
  });
  const legend = h("p.legend");
  return {
    element: h("figure.graph", graph, h("figcaption", legend)),
    /** @param {number} step */
    mark(step) {
      cursor.setAttribute("d", `M${x(step)} 0V${HEIGHT}`);
      const samples = names.map((name, seat) => {
        const lines = linesOf("M1 5H29", seat, last.color[seat]);
        const sample = svg("svg", { viewBox: "0 0 30 10", class: "sample", "aria-hidden": "true" }, ...lines);
        return h("span", sample, `${name} ${percent(chances[step][seat])}`);
      });
      legend.replaceChildren(...samples);
    },
  };
}

/** Draw the line of a seat and its dark rim. @param {string} d @param {number} seat @param {number} color */
const linesOf = (d, seat, color) => [
  svg("path", { d, class: `rim dash-${seat}` }),
  svg("path", { d, class: `line color-${color} dash-${seat}` }),
];
