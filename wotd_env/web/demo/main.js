/** The demo: a game against `td` in the browser. The page is that of a table, but its views come from this module. */

import { connectDialogs } from "../static/dialogs.js";
import { byId, h, loadDrawings } from "../static/dom.js";
import { PlayPage } from "../static/play.js";
import { NO_TABLE, PLAYER } from "../static/study.js";
import { t, worded } from "../static/words.js";
import { plan, readValue } from "./planner.js";
import { decide, newGame, rolled, rollOff, SPACES } from "./rules.js";
import { choicesOf, resultOf, stateOf, stepOf } from "./view.js";

/** @import {Step, View} from "../static/types.js" */
/** @import {Value} from "./planner.js" */

const PERSON = 0;
const NAMES = [t("Player"), "td"];
const PACE = 800; // milliseconds before a decision that the person does not take
const SOURCE = { source: "the plan of td", exact: false, guarantee: null }; // of the win chances

const BASIC = { powers: "none", immunity: false, dead_pieces: 0, colors: null, start: "dragons" };

/** The fields of a view that stay the same. */
const TABLE = {
  ...NO_TABLE,
  mine: [PERSON],
  seats: [
    { ...PLAYER, seat: 0, name: NAMES[PERSON], mine: true },
    { ...PLAYER, seat: 1, name: "td", mine: false, kind: "agent", agent: "td" },
  ],
  rules: { ...BASIC, players: 2, spaces: SPACES },
  help: true,
  pace: PACE / 1000,
};

class DemoPage extends PlayPage {
  game = 0;
  position = newGame(PERSON);
  /** @type {number[][][]} */
  rollOff = [];
  /** @type {Step[]} */
  steps = [];

  /** @param {HTMLElement} main @param {Value} value */
  constructor(main, value) {
    super(main, new AbortController().signal, t("The game begins …"));
    this.value = value;
    this.start();
  }

  start() {
    const { rounds, starter } = rollOff();
    this.game++;
    this.rollOff = rounds;
    this.steps = [];
    this.position = rolled(newGame(starter));
    this.proceed();
  }

  /** Show the position, and take the next decision unless the person has a choice. */
  proceed() {
    const { game, position, steps } = this;
    const result = resultOf(position);
    const ranked = [...plan(position, this.value)].sort(([, one], [, other]) => other - one);
    const choices = position.player === PERSON && ranked.length > 1 ? choicesOf(position) : [];
    const equity = result ? result.rewards[position.player] : ranked[0][1];
    const chances = NAMES.map((_, seat) => (1 + (seat === position.player ? equity : -equity)) / 2);
    const hints = ranked.slice(0, 2).map(([action, value]) => ({ action, loss: (equity - value) / 2 }));
    this.help = { ...SOURCE, ply: steps.length, game, chances, hints };
    const view = {
      ...TABLE,
      ...stateOf(position),
      game,
      ply: steps.length,
      status: result ? "over" : "playing",
      moved: steps.findLast(({ moves }) => moves.length)?.moves ?? [],
      roll_off: this.rollOff,
      choices,
      log: [...steps],
      result,
    };
    this.showView(worded(view));
    if (!result && !choices.length) setTimeout(() => this.take(steps.length, ranked[0][0]), PACE);
  }

  /** @override @param {number} ply @param {number} action */
  take(ply, action) {
    const before = this.position;
    const decided = decide(before, action);
    this.position = decided.phase === "chance" ? rolled(decided) : decided;
    this.steps.push(stepOf(ply, before, action, this.position));
    this.proceed();
    return true;
  }

  /** @override @param {View} view */
  dockParts(view) {
    if (view.status !== "over") return super.dockParts(view);
    const again = h("button.primary", { onclick: () => this.start() }, t("Rematch"));
    return [h("p.result", view.result?.words), again];
  }
}

connectDialogs();
loadDrawings().catch(() => {}); // the page works without them
const response = await fetch("demo/td.json");
const value = readValue(await response.json());
byId("main").replaceChildren();
new DemoPage(byId("main"), value);
