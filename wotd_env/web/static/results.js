/** The page "People against agents": results and luck-adjusted scores. */

import { ask } from "./api.js";
import { errorLine, h, makeTable, waitLine } from "./dom.js";
import { capital, decimal, rulesWords, sourceOf, t } from "./words.js";

/** @import {AgentResult, Page} from "./types.js" */

const TITLE = t("People against agents");
const COLUMNS = [t("Agent"), t("Games"), t("People"), t("Wins"), t("Score, %"), t("Unfinished")];
const HELP = [t("without help"), t("with win chances and hints")];
const NOTES = [
  t(
    "Score: the person's share of the wins, adjusted for the luck of the dice, with its 95 % interval. It can lie outside 0 to 100 %.",
  ),
  t("The interval treats the games of one browser as dependent, and needs two people."),
  t(
    "Counted are finished games of one person against one agent in all other seats, from the start. A resigned game is lost; all players share a game that reaches the turn limit. Deleted games are missing.",
  ),
  t(
    "Your browser keeps a random key for this page. The server stores its digest, never the key, and shows no names here.",
  ),
];
const AGAIN = 3000; // milliseconds

/** Return the score in per cent with half the width of its interval. @param {AgentResult} result */
export function scoreWords({ score, margin }) {
  const percent = (/** @type {number} */ share) => decimal(100 * share, 1).replace("-", "−");
  return margin === null ? percent(score) : `${percent(score)} ± ${percent(margin)}`;
}

/** Group results by their rules and help, in order. @param {AgentResult[]} results */
export function groupsOf(results) {
  /** @type {Map<string, AgentResult[]>} */
  const groups = new Map();
  for (const result of results) {
    const key = JSON.stringify([result.rules, result.help]);
    groups.set(key, [...(groups.get(key) ?? []), result]);
  }
  return [...groups.values()];
}

/** Show the results; refresh them while games are being graded. @type {Page} */
export function resultsPage(main, signal) {
  const place = h("div.column", waitLine("…"));
  const notes = NOTES.map((note) => h("p.quiet", note));
  const back = h("a.button", { href: "#/" }, t("To the tables"));
  main.append(h("div.results", h("h1", TITLE), place, h("section.card", ...notes), back));
  document.title = TITLE;

  async function show() {
    if (signal.aborted) return;
    try {
      /** @type {{results: AgentResult[], waiting: number}} */
      const { results, waiting } = await ask("api/results");
      const none = h("p", t("No game counts yet. Play against one agent from the start."));
      const cards = groupsOf(results).map(groupCard);
      const words = t("Games that still have to be graded: {count} …", { count: waiting });
      if (waiting) cards.push(waitLine(words));
      place.replaceChildren(...(cards.length ? cards : [none]));
      if (waiting) setTimeout(show, AGAIN);
    } catch (reason) {
      place.replaceChildren(errorLine(reason).element);
      setTimeout(show, AGAIN);
    }
  }

  show();
}

/** @param {AgentResult[]} group */
function groupCard(group) {
  const rows = group.map((result) => {
    const { agent, games, people, wins, unfinished } = result;
    return [t(agent), games, people, Number(wins.toFixed(1)), scoreWords(result), unfinished].map(String);
  });
  const table = h("div.grades", makeTable(COLUMNS, rows));
  const title = `${capital(rulesWords(group[0].rules))}, ${HELP[Number(group[0].help)]}`;
  const exact = group.every((result) => result.exact);
  const source = [...new Set(group.map((result) => result.source))].join("; ");
  return h("section.card", h("h2", title), table, h("p.quiet", sourceOf({ source, exact })));
}
