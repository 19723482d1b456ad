/** The graph of a review: every seat's chance to win, step by step. */

import { h } from "./dom.js";
import { percent } from "./words.js";

/** @import {Review} from "./types.js" */

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT, MARGIN] = [600, 150, 6];

/** @param {SVGElement} svg @param {Record<string, string>} attributes */
function drawPath(svg, attributes) {
  const path = document.createElementNS(SVG, "path");
  for (const [name, value] of Object.entries(attributes)) path.setAttribute(name, value);
  svg.append(path);
  return path;
}

/** @param {Record<string, string>} attributes */
function makeSvg(attributes) {
  const svg = document.createElementNS(SVG, "svg");
  for (const [name, value] of Object.entries(attributes)) svg.setAttribute(name, value);
  return svg;
}

/**
 * Draw the graph of a graded game.
 * @param {Review} review
 * @param {string[]} names
 * @param {(step: number) => void} go called with the step that is clicked
 */
export function makeGraph({ steps, last_chances: lastChances, last }, names, go) {
  const chances = [...steps.map((step) => step.chances), lastChances];
  const count = Math.max(steps.length, 1);
  /** @param {number} step */
  const x = (step) => MARGIN + ((WIDTH - 2 * MARGIN) * step) / count;
  /** @param {number} chance */
  const y = (chance) => HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * chance;
  const svg = makeSvg({
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    preserveAspectRatio: "none",
    role: "img",
    "aria-label": "Every player's chance to win, step by step. The slider goes through the steps.",
  });
  drawPath(svg, { d: `M0 ${y(0.5)}H${WIDTH}`, class: "middle" });
  names.forEach((_, seat) => {
    const points = chances.map((now, step) => `${x(step).toFixed(1)} ${y(now[seat]).toFixed(1)}`);
    drawLine(svg, `M${points.join("L")}`, seat, last.color[seat]);
  });
  steps.forEach((step, i) => {
    if (step.class)
      drawPath(svg, { d: `M${x(i)} ${y(step.chances[step.seat])}v.01`, class: `dot ${step.class}` });
  });
  const cursor = drawPath(svg, { class: "cursor" });
  svg.addEventListener("click", (event) => {
    const box = svg.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * WIDTH;
    go(Math.round(((at - MARGIN) / (WIDTH - 2 * MARGIN)) * steps.length));
  });
  const legend = h("p", { class: "legend" });
  return {
    element: h("figure", { class: "graph" }, svg, h("figcaption", {}, legend)),
    /** @param {number} step */
    mark(step) {
      cursor.setAttribute("d", `M${x(step)} 0V${HEIGHT}`);
      legend.replaceChildren(
        ...names.map((name, seat) =>
          h("span", {}, sample(seat, last.color[seat]), `${name} ${percent(chances[step][seat])}`),
        ),
      );
    },
  };
}

/** @param {SVGElement} svg @param {string} d @param {number} seat @param {number} color */
function drawLine(svg, d, seat, color) {
  drawPath(svg, { d, class: `rim dash-${seat}` });
  drawPath(svg, { d, class: `line line-${color} dash-${seat}` });
}

/** @param {number} seat @param {number} color */
function sample(seat, color) {
  const svg = makeSvg({ viewBox: "0 0 30 10", class: "sample", "aria-hidden": "true" });
  drawLine(svg, "M1 5H29", seat, color);
  return svg;
}
