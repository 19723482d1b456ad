/** Words, addresses, set-up and grades of the page, tested without a browser. */

import assert from "node:assert/strict";
import test from "node:test";
import { joinedMoves } from "../../../wotd_env/web/static/board.js";
import { continueAddress, readAddress } from "../../../wotd_env/web/static/browser.js";
import { costOf, shareOf, signedCost, verdictOf, worstOf } from "../../../wotd_env/web/static/grades.js";
import { ableAgent, controlsAgents } from "../../../wotd_env/web/static/menu.js";
import { firstSeat, requestOf } from "../../../wotd_env/web/static/setup.js";
import {
  colorsOpen,
  factsOf,
  judgesOf,
  newsOf,
  noHintWords,
  percent,
  powerOf,
  sourceOf,
  stateOf,
  titleOf,
  worded,
} from "../../../wotd_env/web/static/words.js";

const seat = { seat: 0, name: "Ann", taken: true, mine: true, kind: "here", connected: true };
const table = {
  game: 1,
  mine: [],
  turn: 2,
  player: 0,
  phase: "keep",
  rolls_left: 1,
  status: "playing",
  seats: [seat, { ...seat, seat: 1, name: "Player B", mine: false }],
  choices: [{}],
  perfection: false,
  help: false,
  left: null,
  result: null,
  rules: { colors: null },
  rules_words: "2 players",
};
/** @param {object} [changes] */
const view = (changes = {}) => /** @type {any} */ ({ ...table, ...changes });

test("addresses round-trip positions and names", () => {
  const address = continueAddress("..A/B wf 1", ["Ann/Bob", "planner"]);
  assert.deepEqual(readAddress(address), { page: "new", parts: ["..A/B wf 1", "Ann/Bob", "planner"] });
  assert.deepEqual(readAddress(""), { page: "", parts: [] });
});

test("the latest event is a sentence", () => {
  const log = [{ words: "Ann: pass", note: null }];
  assert.equal(newsOf(view({ log })), "Ann: pass.");
  const parts = { kind: "pass", power: null, path: null, seats: null, moves: [], keep: null };
  const failed = worded(view({ choices: [], log: [{ ...parts, seat: 1, dice: [], note: "failed" }] }));
  assert.match(newsOf(failed), /^Player B: pass.* \(the agent failed; greedy chose\)\.$/);
  assert.equal(newsOf(view({ log: [], player: 1 })), "Player B starts.");
  assert.equal(newsOf(view({ log: [], status: "waiting" })), "");
});

test("spectators are counted", () => {
  assert.match(factsOf(view({ spectators: 1 })), /1 spectator$/);
  assert.match(factsOf(view({ spectators: 2 })), /2 spectators$/);
  assert.doesNotMatch(factsOf(view({ spectators: 0 })), /spectator/);
});

test("several moves of a piece are one slide", () => {
  const first = { seat: 0, path: 2, from: 0, to: 3 };
  const second = { ...first, from: 3, to: 4 };
  const other = { seat: 1, path: 2, from: 4, to: 3 };
  assert.deepEqual(joinedMoves([first, second, other]), [{ ...first, to: 4 }, other]);
  assert.deepEqual(joinedMoves([second, { ...second, from: 4, to: 3 }]), []);
});

test("the host of a table of agents controls it", () => {
  const agent = { ...seat, kind: "agent" };
  assert.equal(controlsAgents(view({ host: true, seats: [agent, agent] })), true);
  assert.equal(controlsAgents(view({ host: true, seats: [agent, seat] })), false);
  assert.equal(controlsAgents(view({ host: false, seats: [agent, agent] })), false);
});

test("a malformed address is refused instead of raising an error", () => {
  assert.equal(readAddress("#/new/%E0%A4%A"), null);
});

test("titles name the decision", () => {
  assert.equal(titleOf(view()), "Your turn: which dice to keep?");
  assert.equal(titleOf(view({ rolls_left: 0 })), "Your turn: use the eye of the tiger?");
  assert.equal(titleOf(view({ choices: [], player: 1 })), "Player B to play");
  assert.equal(titleOf(view({ status: "waiting" })), "Waiting for players");
  const agent = { ...seat, name: "td", kind: "agent" };
  assert.equal(titleOf(view({ choices: [], seats: [agent], pace: 1 })), "td to play");
  assert.equal(titleOf(view({ seats: [seat, seat] })), "Ann: which dice to keep?");
  assert.equal(factsOf(view()), "turn 3 · 1 re-roll left");
  assert.equal(
    factsOf(view({ status: "over", game: 2, help: true, perfection: true })),
    "game 2 · 2 players · win chances and hints are on",
  );
});

test("the question is about swaps if only they are possible", () => {
  /** @param {string[]} kinds */
  const question = (...kinds) => titleOf(view({ phase: "move", choices: kinds.map((kind) => ({ kind })) }));
  assert.equal(question("swap", "move"), "Your turn: where to move?");
  assert.equal(question("swap", "equilibrium"), "Your turn: where to move?");
  assert.equal(question("swap", "fear"), "Your turn: which pieces to swap?");
  assert.equal(question("pass", "fear"), "Your turn: where to move?");
});

test("a forced decision of one's own is not called the turn of another", () => {
  assert.equal(noHintWords(view()), "The hint is being computed …");
  assert.equal(noHintWords(view({ choices: [], mine: [0] })), "There is only one choice.");
  assert.equal(noHintWords(view({ choices: [], mine: [1] })), "It is not your turn.");
});

test("no chance to win is negative", () => {
  for (const chance of [0, -0, -0.00004]) assert.equal(percent(chance), "0.0 %");
});

test("seats show their state and name", () => {
  /** @param {object} changes @param {object} [table] */
  const state = (changes, table = {}) => stateOf(/** @type {any} */ ({ ...seat, ...changes }), view(table));
  assert.equal(state({}), "plays");
  assert.equal(state({}, { mine: [0] }), "you");
  assert.equal(state({ taken: false }), "free");
  assert.equal(state({ kind: "agent", mine: false }), "thinking …");
  assert.equal(state({ seat: 1 }), "");
  assert.equal(state({ seat: 1 }, { mine: [1] }), "you");
  assert.equal(state({ seat: 1 }, { mine: [0, 1] }), ""); // several people at this screen
  for (const number of [0, 1]) assert.equal(state({ mine: false, connected: false, seat: number }), "away");
  assert.equal(state({}, { status: "over", result: { winners: [0], expired: false } }), "won");
  assert.equal(state({}, { status: "over", result: { winners: [], expired: true } }), "");
});

test("random colors are unknown while a table waits", () => {
  assert.equal(colorsOpen(view({ status: "waiting", rules: { colors: "random" } })), true);
  assert.equal(colorsOpen(view({ status: "playing", rules: { colors: "random" } })), false);
  assert.equal(colorsOpen(view({ status: "waiting" })), false);
});

test("a seat has the power of its color, any power, or none", () => {
  const power = (/** @type {string} */ powers) => powerOf(1, view({ color: [0, 3], rules: { powers } }));
  assert.deepEqual([power("own"), power("any"), power("none")], [3, 5, null]);
});

test("an agent that cannot play the rules is not selected", () => {
  const agent = (/** @type {string} */ name) => ({ name, words: "", level: null, why: null });
  const why = { code: "agent", values: {}, error: "ppo is not made for powers=own", status: 400 };
  const unable = { ...agent("ppo"), why };
  assert.equal(ableAgent([agent("easy"), agent("ppo")], "ppo"), "ppo");
  assert.equal(ableAgent([agent("easy"), unable], "ppo"), "easy");
  assert.equal(ableAgent([unable, agent("greedy")], "ppo"), "greedy");
});

test("a continued game keeps its opponents", () => {
  const agents = [{ name: "greedy", words: "", level: null, why: null }];
  /** @param {number} number @param {string[]} players */
  const first = (number, ...players) => firstSeat(number, players, agents, "Me");
  assert.deepEqual(first(1, "Ann", "greedy"), { kind: "agent", name: "", agent: "greedy" });
  assert.deepEqual(first(0, "Ann", "greedy"), { kind: "here", name: "Ann", agent: "easy" });
  assert.equal(first(0, "Player A").name, "");
  assert.equal(first(0).name, "Me");
  assert.equal(first(1).kind, "agent");
});

test("a request carries a position or rules, never both", () => {
  const fields = new FormData();
  const values = { players: 2, powers: "none", spaces: 7, dead_pieces: 0, start: "dragons", colors: "null" };
  for (const [name, value] of Object.entries({ ...values, pace: 1 })) fields.set(name, String(value));
  const { colors, ...rules } = values;
  const seats = ["here", "agent"].map((kind) => ({ kind, name: "Ann", agent: "td" }));
  const { seats: asked, ...others } = requestOf(seats, fields);
  assert.deepEqual(asked[0], { kind: "here", name: "Ann" });
  assert.deepEqual(asked[1], { kind: "agent", agent: "td" });
  assert.deepEqual(others, { pace: 1, clock: null, rules: { ...rules, immunity: false } });
  fields.set("position", "x");
  fields.set("help", "no");
  const started = requestOf(seats, fields);
  assert.deepEqual([started.position, started.rules, started.help], ["x", undefined, false]);
});

test("results are shares of a win from 0 to 100 %", () => {
  assert.equal(shareOf(-0.5, 3), "0 %");
  assert.equal(shareOf(0, 3), "33 %");
  assert.equal(shareOf(1, 3), "100 %");
  assert.equal(shareOf(-1.6, 2), "0 %");
  assert.equal(costOf(0.02, 2), "1.0 %");
  assert.equal(signedCost(-0.3, 3), "−20.0 %");
  assert.equal(percent(0.034), "3.4 %");
});

test("verdicts name the cost, the best choice and the luck", () => {
  const step = { class: "error", regret: 0.1, best_words: "Ann keeps a fire", luck: 0.04, forced: false };
  assert.deepEqual(verdictOf(/** @type {any} */ (step), 2), {
    grade: "error",
    decision: "Error: this costs 5.0 %. Best: Ann keeps a fire.",
    luck: "These dice were lucky: +2.0 %.",
  });
  const best = verdictOf(/** @type {any} */ ({ ...step, class: "", regret: 0, luck: null }), 2);
  assert.deepEqual(best, { grade: "", decision: "The best choice.", luck: "" });
  assert.equal(verdictOf(/** @type {any} */ ({ ...step, forced: true }), 2).decision, "");
  const worst = worstOf(/** @type {any} */ ([step, { ...step, regret: 0.3 }, { ...step, class: "" }]));
  assert.deepEqual(
    worst.map(({ number }) => number),
    [1, 0],
  );
});

test("the source of win chances names a guarantee if it is known", () => {
  const source = { source: "guarantee", exact: false };
  assert.equal(sourceOf(source), "Source: the guarantee of each seat, an estimate.");
  assert.match(sourceOf({ ...source, guarantee: 0.24 }), /seat to act has a 24 % chance/);
});

test("a review says whose errors it cannot find", () => {
  const judges = (/** @type {string} */ source, /** @type {string[]} */ ...players) =>
    judgesOf(/** @type {any} */ ({ source, players }));
  assert.match(judges("learned", "Ann", "td"), /^td decides by the same values/);
  assert.match(judges("hand-made", "strong", "planner"), /^planner and strong/);
  assert.equal(judges("solution", "td"), "");
  assert.equal(judges("learned", "Ann", "greedy"), "");
});
