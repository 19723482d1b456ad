/** The tables of a review: skill and luck of every player, and the greatest errors. */

import { glyph, h } from "./dom.js";
import { costOf, shareOf, signedCost, worstOf } from "./grades.js";
import { heard, t } from "./text.js";
import { sourceOf } from "./words.js";

/** @import {Review, SeatGrade} from "./types.js" */

const COLUMNS = [t("Player"), t("Errors"), t("Blunders"), t("Cost, %"), t("Luck, %"), t("Without luck, %")];

/** @param {string} kind "error" or "blunder" */
export const gradeMark = (kind) =>
  h(
    "span",
    { class: `grade ${kind}`, role: "img", "aria-label": kind === "blunder" ? t("blunder") : t("error") },
    kind === "blunder" ? "??" : "?",
  );

/** @param {Review} review @param {string[]} names */
export function gradeTable(review, names) {
  const heads = COLUMNS.map((head) => h("th", { scope: "col" }, head));
  const rows = review.seats.map((seat) => gradeRow(seat, names[seat.seat], review));
  const explanation = [
    heard(review.definition),
    t("The number behind the slash counts all decisions with a choice."),
    t("Cost: the chance to win lost by all decisions. Luck: the chance gained by dice."),
    t("Without luck: the share of the win that the decisions earned."),
  ].join(" ");
  const table = h("table", h("thead", h("tr", ...heads)), h("tbody", ...rows));
  return h("div.grades", table, h("p.quiet", explanation), h("p.quiet", sourceOf(review)));
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
