/** The analysis board: set up any position, and see the chance to win after every choice. */

import { analysisAddress, continueAddress, linkTo } from "./address.js";
import { agentsFor, ask } from "./api.js";
import { copyButton, errorLine, h, loadPage, say, select } from "./dom.js";
import { lineOf, partsOf, placed } from "./editing.js";
import { agentOptions } from "./menu.js";
import { StudyPage, viewOf } from "./study.js";
import { t } from "./text.js";
import { capital, LETTERS, percent, questionOf, sourceOf } from "./words.js";

/** @import {Child} from "./dom.js" */
/** @import {Choice, Page, Valued} from "./types.js" */

const START = `${Array(5).fill(".......|.....").join("/")} wf(meo) 1 A keep 2 wwfmd`;

/** @param {string} position @param {string[]} [agents] @returns {Promise<Valued>} */
const load = (position, agents = []) => ask("/api/choices", { body: { position, values: true, agents } });

/** Show a position as a line of text, or a start. @type {Page} */
export function analysisPage(main, signal, position = START) {
  const card = { title: t("Analysis board"), waits: t("The position comes …"), back: "#/" };
  loadPage(
    main,
    signal,
    card,
    () => load(position),
    (valued) => new AnalysisPage(main, signal, valued),
  );
}

class AnalysisPage extends StudyPage {
  /** @param {HTMLElement} main @param {AbortSignal} signal @param {Valued} valued */
  constructor(main, signal, valued) {
    super(signal, "analysis", viewOf(valued));
    this.valued = valued;
    this.error = errorLine();
    /** @type {[string, string][]} */
    const tools = [
      ["", t("makes a choice")],
      ["#", t("places a dead piece")],
      ["-", t("clears the space")],
    ];
    for (const letter of LETTERS.slice(0, valued.rules.players))
      tools.push([letter, t("places a piece of {letter}", { letter })]);
    this.tool = select({}, tools);
    const { decision } = this;
    const pick = decision.pick.bind(decision);
    decision.pick = (path, space) => (this.tool.value && space ? this.place(path, space) : pick(path, space));
    this.agents = [t("choice of an agent"), t("choice of another agent")].map((label) =>
      h(
        "select",
        { "aria-label": label, onchange: () => this.go(this.view.position) },
        h("option", { value: "" }, t("no agent")),
      ),
    );
    agentsFor({ position: valued.position }).then((found) => {
      for (const select of this.agents) select.append(...agentOptions(found));
    }, this.error.show);
    this.words.className = "sub";
    this.values = h("section.card.losses");
    this.card = h("section.card.puzzle-card");
    main.append(this.layout(this.values, this.card));
    document.title = `${t("Analysis board")} · ${t("Way of the Dragon")}`;
    this.show();
  }

  /** @override */
  show() {
    const { answer, valued, view } = this;
    const words = answer ? t("After: {choice}", { choice: answer.words }) : capital(questionOf(view));
    this.title.textContent = view.choices.length ? words : t("No decision in this position");
    this.words.textContent = view.rules_words;
    super.show();
    this.card.replaceChildren(.../** @type {Node[]} */ (this.editParts()));
    const compared = h("div.fields", h("label", t("Mark the choices of agents"), ...this.agents));
    const source = h("p.quiet", sourceOf(valued));
    this.values.replaceChildren(h("h2", t("Chance to win")), compared, this.valueList(), source);
  }

  /** @override @param {number} action */
  act(action) {
    super.act(action);
    if (this.answer) {
      const chance = percent(this.chanceOf(this.answer));
      say(`${this.title.textContent}. ${t("{chance} to win.", { chance })}`);
    }
  }

  /** @param {Choice} choice */
  chanceOf(choice) {
    return this.valued.chances[this.view.choices.indexOf(choice)];
  }

  /** @override @returns {Child[]} */
  dockParts() {
    const { answer, view } = this;
    if (!answer) return [h("p.tip", t("There is nothing to decide here. Change the phase or the dice."))];
    return [
      h("p.tip", t("{chance} to win after this choice.", { chance: percent(this.chanceOf(answer)) })),
      h("button.primary", { onclick: () => this.ask(this.view) }, t("Back to the position")),
      h("a.button", { href: continueAddress(view.position, []) }, t("Play on")),
    ];
  }

  valueList() {
    const sorted = [...this.view.choices].sort((one, other) => this.chanceOf(other) - this.chanceOf(one));
    const items = sorted.map((choice) => {
      const button = h("button", { onclick: () => this.act(choice.action) }, capital(choice.words));
      const by = Object.keys(this.valued.agents).filter((name) => this.valued.agents[name] === choice.action);
      return h(
        "li",
        button,
        h("span.loss", [...by.map((name) => t(name)), percent(this.chanceOf(choice))].join(" · ")),
      );
    });
    const look = { tabindex: "0", role: "region", "aria-label": t("Chance to win after each choice") };
    return h("div.choice-list", look, h("ol", ...items));
  }

  /** The content of the card that changes the position. @returns {Child[]} */
  editParts() {
    const { position } = this.view;
    const parts = partsOf(position);
    const letters = [...LETTERS.slice(0, this.valued.rules.players)];
    /** @type {[string, string][]} */
    const seats = letters.map((letter) => [letter, letter]);
    const seat = select({ value: parts.seat, onchange: () => change({ seat: seat.value }) }, seats);
    /** @type {[string, string][]} */
    const phases = [
      ["keep", t("hold dice")],
      ["move", t("move")],
    ];
    const phase = select({ value: parts.phase, onchange: () => change({ phase: phase.value }) }, phases);
    const rolls = select({ value: parts.rolls, onchange: () => change({ rolls: rolls.value }) }, [
      ["2", "2"],
      ["1", "1"],
      ["0", "0"],
    ]);
    const dice = h("input", {
      value: parts.dice,
      maxlength: "5",
      onchange: () => change({ dice: dice.value }),
    });
    const line = h("textarea", { rows: "3", spellcheck: "false" }, position);
    /** @param {Partial<import("./editing.js").Parts>} changed */
    const change = (changed) => this.go(lineOf({ ...partsOf(position), ...changed }));
    const show = h(
      "button",
      { onclick: () => this.go(/** @type {HTMLTextAreaElement} */ (line).value.trim()) },
      t("Show this line"),
    );
    const share = copyButton(t("Copy a link"), () => linkTo(analysisAddress(position).slice(2)));
    const fields = h(
      "div.fields",
      h("label", t("A tap on a space"), this.tool),
      h("label", t("Seat to act"), seat),
      h("label", t("Phase"), phase),
      h("label", t("Re-rolls left"), rolls),
      h("label", t("Dice: w f m e o, d for a dragon"), dice),
      h("label", t("Position as text"), line),
    );
    return [h("h2", t("Position")), fields, this.error.element, h("div.buttons", show, share)];
  }

  /** @param {number} path @param {number} space */
  place(path, space) {
    this.go(placed(this.view.position, { path, space, sign: this.tool.value.replace("-", ".") }));
  }

  /** Show another position, if it is valid. @param {string} position */
  async go(position) {
    try {
      const agents = new Set(this.agents.map(({ value }) => value).filter(Boolean));
      const valued = await load(position, [...agents]);
      this.error.hide();
      this.valued = valued;
      history.replaceState(null, "", analysisAddress(valued.position));
      this.ask(viewOf(valued));
    } catch (error) {
      this.error.show(error);
    }
  }
}
