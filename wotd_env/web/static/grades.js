/** The parts of a review: dice, marks, verdicts, tables and the graph, with shares of a win instead of equities. */

import { cellOf } from "./choosing.js";
import { glyph, h, makeTable, svg } from "./dom.js";
import { shareDifference, winShare } from "./shares.js";
import { decimal, ELEMENTS, judgesOf, percent, sourceOf, t } from "./words.js";

/** @import {CellMark, GradedStep, Review, View} from "./types.js" */

const LEAST_LUCK = 0.02; // equity; less luck is not mentioned
const WORST = 8; // errors in the list
const [WIDTH, HEIGHT, MARGIN] = [600, 150, 6]; // of the graph
const COLUMNS = [t("Player"), t("Errors"), t("Blunders"), t("Cost, %"), t("Luck, %"), t("Without luck, %")];

/** Return equity in per cent of a win, without a sign. @param {number} equity @param {number} players */
export const costOf = (equity, players) => signedCost(equity, players).replace(/[+−]/, "");

/** Return equity in per cent of a win, with a sign. @param {number} equity @param {number} players */
export function signedCost(equity, players) {
  const points = shareDifference(100 * equity, players);
  const sign = points >= 0.05 ? "+" : points <= -0.05 ? "−" : "";
  return `${sign}${decimal(Math.abs(points), 1)} %`;
}

/** Return a result as a share of the win, 0 to 100 %. @param {number} equity @param {number} players */
export function shareOf(equity, players) {
  const share = winShare(equity, players); // luck adjustment can exceed 0 to 1
  return `${Math.round(100 * Math.min(Math.max(share, 0), 1))} %`;
}

/** Return the marks of the pieces that a step moves. @param {GradedStep} step @param {number[]} colors */
export function marksOfStep({ moves }, colors) {
  const swap = moves.length === 2 && moves[0].path === moves[1].path;
  /** @type {Map<string, CellMark>} */
  const marks = new Map();
  for (const { seat, path, from, to } of moves) {
    if (swap) marks.set(cellOf(path, from), { kind: "picked", words: t("is swapped") });
    else marks.set(cellOf(path, to), { kind: "move", color: colors[seat], words: t("moves here next") });
  }
  return marks;
}

/** Return grade, verdict and luck in words, or empty. @param {GradedStep} step @param {number} players */
export function verdictOf(step, players) {
  let decision = "";
  if (step.regret !== null && !step.forced) {
    const values = { cost: costOf(step.regret, players), best: step.best_words };
    if (step.class === "blunder") decision = t("Blunder: this costs {cost}. Best: {best}.", values);
    else if (step.class) decision = t("Error: this costs {cost}. Best: {best}.", values);
    else if (step.regret > 0.0005) decision = t("This costs {cost}. Best: {best}.", values);
    else decision = t("The best choice.");
  }
  const luck = step.luck ?? 0;
  const gain = { gain: signedCost(luck, players) };
  let dice = "";
  if (luck >= LEAST_LUCK) dice = t("These dice were lucky: {gain}.", gain);
  else if (luck <= -LEAST_LUCK) dice = t("These dice were unlucky: {gain}.", gain);
  return { grade: step.class, decision, luck: dice };
}

/** Return the most expensive errors and their numbers, the worst first. @param {GradedStep[]} steps */
export const worstOf = (steps) =>
  steps
    .map((step, number) => ({ step, number }))
    .filter(({ step }) => step.class)
    .sort((one, other) => (other.step.regret ?? 0) - (one.step.regret ?? 0))
    .slice(0, WORST);

/** Return the decisive moment of a finished game, and the best and the worst decision of some seats, in words. @param {Review} review @param {number[]} seats */
export function momentsOf({ steps, last_chances: end, result, rules: { players } }, seats) {
  const chances = [...steps.map((step) => step.chances), end].map((now) => now[result?.winners[0] ?? 0]);
  const turned = steps.map((step, i) => ({ step, value: chances[i + 1] - chances[i], i }));
  const own = turned.filter(({ step }) => seats.includes(step.seat) && step.regret !== null);
  /** @param {(step: GradedStep) => number|null} value */
  const most = (value) =>
    own
      .map(({ step }) => ({ step, value: value(step) ?? 0 }))
      .sort((one, other) => other.value - one.value)[0];
  const decisive = turned.sort((one, other) => other.value - one.value)[0];
  const best = most(({ regret, margin }) => ((regret ?? 1) > 0.0005 ? 0 : margin));
  const worst = most(({ regret }) => regret);
  const words = (/** @type {GradedStep} */ { turn, words }) =>
    t("Turn {turn}: {words}", { turn: turn + 1, words });
  const from = percent(chances[decisive?.i] ?? 0);
  const to = percent(chances[decisive?.i + 1] ?? 0);
  const lines = [];
  if (from !== to)
    lines.push([t("Decisive moment"), words(decisive.step), t("from {from} to {to}", { from, to })]);
  if (best?.value) {
    const cost = costOf(best.value, players);
    lines.push([t("Best decision"), words(best.step), t("the next best choice costs {cost}", { cost })]);
  }
  if (worst?.value) {
    const values = { cost: costOf(worst.value, players), best: worst.step.best_words };
    lines.push([t("Worst decision"), words(worst.step), t("This costs {cost}. Best: {best}.", values)]);
  }
  return lines.map(([head, ...rest]) => h("p", h("strong", head), " ", rest.join(" · ")));
}

/** Make the table of points by path. @param {View} view */
export function scoreTable({ seats, pieces, scores, rules: { spaces } }) {
  const rows = seats.map(({ name, seat }) => {
    const points = pieces[seat].map((space) => String(Math.max(0, space - spaces)));
    return [name, ...points, String(scores[seat])];
  });
  return makeTable([t("Player"), ...ELEMENTS, t("points")], rows);
}

/** @param {string} kind "error" or "blunder" */
export function gradeMark(kind) {
  const [sign, words] = kind === "blunder" ? ["??", t("blunder")] : ["?", t("error")];
  return h("span", { class: `grade ${kind}`, role: "img", "aria-label": words }, sign);
}

/** @param {Review} review */
export function gradeTable(review) {
  const [{ players }, names] = [review.rules, review.players];
  const rows = review.seats.map((grade) => {
    const { seat, errors, decisions, blunders, regret, luck, luck_adjusted: adjusted } = grade;
    const cells = [
      `${errors}/${decisions}`,
      String(blunders),
      costOf(regret, players),
      luck === null ? "" : signedCost(luck, players),
      adjusted === null ? "" : shareOf(adjusted, players),
    ].map((cell) => cell.replace(" %", "")); // the head of the column has the unit
    const piece = glyph(`piece-${review.last.color[seat]}`, "piece");
    return [h("span", { title: names[seat] }, piece, h("span", names[seat])), ...cells];
  });
  const [error, blunder] = review.thresholds.map((equity) => costOf(equity, players));
  const explanation = [
    t("An error costs at least {error}, a blunder at least {blunder}.", { error, blunder }),
    t("The number behind the slash counts all decisions with a choice."),
    t("Cost: the chance to win lost by all decisions. Luck: the chance gained by dice."),
    t("Without luck: the share of the win that the decisions earned."),
  ].join(" ");
  return h(
    "div.grades",
    makeTable(COLUMNS, rows),
    h("p.quiet", explanation),
    h("p.quiet", `${sourceOf(review)} ${judgesOf(review)}`),
  );
}

/** @param {Review} review @param {(step: number) => void} go */
export function worstList({ steps, rules }, go) {
  const items = worstOf(steps).map(({ step, number }) => {
    const words = h("span", t("Turn {turn}: {words}", { turn: step.turn + 1, words: step.words }));
    const loss = h("span.loss", costOf(step.regret ?? 0, rules.players));
    return h("li", h("button", { onclick: () => go(number) }, gradeMark(step.class), words, loss));
  });
  return items.length ? h("ol.worst-list", ...items) : h("p.quiet", t("None: no decision cost much."));
}

/**
 * Draw the graph of a graded game: every seat's chance to win, step by step. A click calls `go` with the clicked step.
 * @param {Review} review @param {(step: number) => void} go
 */
export function makeGraph({ steps, last_chances: lastChances, last, players: names }, go) {
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
