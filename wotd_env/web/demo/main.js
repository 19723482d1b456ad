/** The demo: a game against `td` in the browser. The page is that of a table, but its views come from this module. */

import { connectDialogs } from "../static/dialogs.js";
import { byId, h, loadDrawings } from "../static/dom.js";
import { PlayPage } from "../static/play.js";
import { shareDifference, winShare } from "../static/shares.js";
import { NO_TABLE, PLAYER } from "../static/study.js";
import { t, worded } from "../static/words.js";
import { load } from "../wasm/wotd.js";
import { choicesOf, resultOf, stateOf, stepOf } from "./view.js";

/** @import {Step, View} from "../static/types.js" */
/** @import {Game, Value} from "../wasm/wotd.js" */

const PERSON = 0;
const NAMES = [t("Player"), "td"];
const PACE = 800; // milliseconds before a decision that the person does not take
const SOURCE = { source: "learned", exact: false, guarantee: null }; // of the win chances

/** The fields of a view that stay the same. */
const TABLE = {
  ...NO_TABLE,
  mine: [PERSON],
  seats: [
    { ...PLAYER, seat: 0, name: NAMES[PERSON], mine: true },
    { ...PLAYER, seat: 1, name: "td", mine: false, kind: "agent", agent: "td" },
  ],
  help: true,
  pace: PACE / 1000,
};

class DemoPage extends PlayPage {
  game = 0;
  seed = 0n;
  /** @type {Step[]} */
  steps = [];

  /** @param {HTMLElement} main @param {Game} rules @param {Value} value */
  constructor(main, rules, value) {
    super(main, new AbortController().signal, t("The game begins …"));
    this.rules = rules;
    this.value = value;
    this.state = rules.reset(0);
    this.start();
  }

  start() {
    this.game++;
    this.steps = [];
    [this.seed] = crypto.getRandomValues(new BigUint64Array(1));
    this.state = this.rules.reset(this.seed);
    this.proceed();
  }

  /** Show the position, and take the next decision unless the person has a choice. */
  proceed() {
    const { game, rules, state, steps } = this;
    const shown = stateOf(rules, state);
    const result = resultOf(rules, state);
    const { value: equity, actions, best } = rules.plan(state, this.value);
    const choices = shown.player === PERSON && actions.size > 1 ? choicesOf(rules, state) : [];
    const chances = NAMES.map((_, seat) => winShare(seat === shown.player ? equity : -equity, 2));
    const ranked = [...actions].sort(([, one], [, other]) => other - one).slice(0, 2);
    const hints = ranked.map(([action, value]) => ({ action, loss: shareDifference(equity - value, 2) }));
    this.help = { ...SOURCE, ply: steps.length, game, chances, hints };
    const view = {
      ...TABLE,
      ...shown,
      rules: { ...rules.rules, colors: null },
      game,
      ply: steps.length,
      status: result ? "over" : "playing",
      moved: steps.findLast(({ moves }) => moves.length)?.moves ?? [],
      roll_off: rules.rollOff(this.seed),
      choices,
      log: [...steps],
      result,
    };
    this.showView(worded(view));
    if (!result && !choices.length) setTimeout(() => this.take(steps.length, best), PACE);
  }

  /** @override @param {number} ply @param {number} action */
  take(ply, action) {
    const before = this.state;
    this.state = this.rules.step(before, action);
    this.steps.push(stepOf(this.rules, ply, before, action, this.state));
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
const [engine, network] = await Promise.all([load(fetch("wasm/wotd.wasm")), fetch("demo/td")]);
const rules = engine.game({ skip_forced: false });
const value = rules.learned(await network.arrayBuffer());
byId("main").replaceChildren();
new DemoPage(byId("main"), rules, value);
