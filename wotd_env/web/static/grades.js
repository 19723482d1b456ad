/** The parts of a review: dice, marks, verdicts and tables, with shares of a win instead of equities. */

import { cellOf } from "./choosing.js";
import { glyph, h, makeTable } from "./dom.js";
import { facesOf, keptPlaces, placesAfter } from "./places.js";
import { decimal, heard, t } from "./text.js";
import { sourceOf } from "./words.js";

/** @import {CellMark, GradedStep, Review, SeatGrade} from "./types.js" */

const LEAST_LUCK = 0.02; // equity; less luck is not mentioned
const WORST = 8; // errors in the list
const COLUMNS = [t("Player"), t("Errors"), t("Blunders"), t("Cost, %"), t("Luck, %"), t("Without luck, %")];

// Equity goes from -1/(n-1) to 1, the chance to win from 0 to 1.

/** Return equity in per cent of a win, without a sign. @param {number} equity @param {number} players */
export const costOf = (equity, players) => signedCost(equity, players).replace(/[+−]/, "");

/** Return equity in per cent of a win, with a sign. @param {number} equity @param {number} players */
export function signedCost(equity, players) {
  const points = (100 * equity * (players - 1)) / players;
  const sign = points >= 0.05 ? "+" : points <= -0.05 ? "−" : "";
  return `${sign}${decimal(Math.abs(points), 1)} %`;
}

/** Return a result as a share of the win, 0 to 100 %. @param {number} equity @param {number} players */
export function shareOf(equity, players) {
  const share = (1 + (players - 1) * equity) / players; // luck adjustment can exceed 0 to 1
  return `${Math.round(100 * Math.min(Math.max(share, 0), 1))} %`;
}

/** Return the dice of a step, or of the end, in their places. @param {Review} review @param {number} at */
export function diceAt({ steps, last }, at) {
  const step = at < steps.length ? steps[at] : null;
  const { turn, dice, phase } = step ? step.state : last;
  const { order } = placesAfter(steps.slice(0, at), turn);
  const kept = step && phase === "keep" ? keptPlaces(order, dice, step.action) : [];
  return { faces: facesOf(order, dice), kept };
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

/** @param {string} kind "error" or "blunder" */
export const gradeMark = (kind) =>
  h(
    "span",
    { class: `grade ${kind}`, role: "img", "aria-label": kind === "blunder" ? t("blunder") : t("error") },
    kind === "blunder" ? "??" : "?",
  );

/** @param {Review} review @param {string[]} names */
export function gradeTable(review, names) {
  const rows = review.seats.map((seat) => gradeRow(seat, names[seat.seat], review));
  const explanation = [
    heard(review.definition),
    t("The number behind the slash counts all decisions with a choice."),
    t("Cost: the chance to win lost by all decisions. Luck: the chance gained by dice."),
    t("Without luck: the share of the win that the decisions earned."),
  ].join(" ");
  return h("div.grades", makeTable(COLUMNS, rows), h("p.quiet", explanation), h("p.quiet", sourceOf(review)));
}

/** @param {SeatGrade} grade @param {string} name @param {Review} review */
function gradeRow(grade, name, { rules: { players }, last }) {
  const { errors, decisions, blunders, regret, luck, luck_adjusted: adjusted } = grade;
  const cells = [
    `${errors}/${decisions}`,
    String(blunders),
    costOf(regret, players),
    luck === null ? "" : signedCost(luck, players),
    adjusted === null ? "" : shareOf(adjusted, players),
  ].map((cell) => cell.replace(" %", "")); // the head of the column has the unit
  const piece = glyph(`piece-${last.color[grade.seat]}`, "piece");
  const head = h("th", { scope: "row", title: name }, piece, h("span", name));
  return h("tr", head, ...cells.map((cell) => h("td", cell)));
}

/** @param {Review} review @param {string[]} names */
export function pointsList({ last }, names) {
  const items = names.map((name, seat) => {
    const piece = glyph(`piece-${last.color[seat]}`, "piece");
    return h("li", h("span", piece, ` ${name}`), h("span", String(last.scores[seat])));
  });
  return h("ul.tables", ...items);
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
