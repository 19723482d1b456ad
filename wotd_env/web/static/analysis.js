/** The analysis board: set up any position, and see the chance to win after every choice. */

import { agentsFor, ask } from "./api.js";
import { analysisAddress, continueAddress, linkTo } from "./browser.js";
import { copyButton, errorLine, h, loadPage, select } from "./dom.js";
import { agentOptions } from "./menu.js";
import { StudyPage, viewOf } from "./study.js";
import { capital, percent, questionOf, SEATS, sourceOf, t } from "./words.js";

/** @import {Child, Choice, Page, Valued} from "./types.js" */

/** The indices of the parts of a position as a line of text. */
const PARTS = { board: 0, seat: 3, phase: 4, rolls: 5, dice: 6 };
const START = `${Array(5).fill(".......|.....").join("/")} wf(meo) 1 A keep 2 wwfmd`;

/** @param {string} position @param {string[]} [agents] @returns {Promise<Valued>} */
const load = (position, agents = []) => ask("api/choices", { body: { position, values: true, agents } });

/** Show a position as a line of text, or a start. @type {Page} */
export function analysisPage(main, signal, position = START) {
  const card = { title: t("Analysis board") };
  const show = (/** @type {Valued} */ valued) => new AnalysisPage(main, signal, valued);
  loadPage(main, signal, card, () => load(position), show);
}

class AnalysisPage extends StudyPage {
  /** @param {HTMLElement} main @param {AbortSignal} signal @param {Valued} valued */
  constructor(main, signal, valued) {
    super(signal, "analysis", viewOf(valued));
    this.signal = signal;
    this.valued = valued;
    this.wanted = valued.position; // with the changes that the server has not answered yet
    this.requests = 0;
    this.error = errorLine();
    this.letters = [...SEATS.slice(0, valued.rules.players)];
    this.tool = select({}, [
      ["", t("makes a choice")],
      ["#", t("places a dead piece")],
      ["-", t("clears the space")],
      ...this.letters.map((letter) => [letter, t("places a piece of {letter}", { letter })]),
    ]);
    const { decision } = this;
    const pick = decision.pick.bind(decision);
    decision.pick = (path, space) => {
      const sign = this.tool.value.replace("-", ".");
      if (!sign || !space) return pick(path, space);
      this.go(placed(this.wanted, { path, space, sign }));
    };
    this.agents = [t("choice of an agent"), t("choice of another agent")].map((label) =>
      select({ "aria-label": label, onchange: () => this.go(this.wanted) }, [["", t("no agent")]]),
    );
    agentsFor({ position: valued.position }).then((found) => {
      for (const select of this.agents) select.append(...agentOptions(found));
    }, this.error.show);
    this.words.className = "sub";
    this.values = h("section.card.losses");
    this.fields = this.makeFields();
    /** The last text that the page wrote into a field. @type {Map<Element, string>} */
    this.filled = new Map();
    this.line = h("textarea", { rows: "3", spellcheck: "false" });
    const open = matchMedia("(max-width: 999px), (min-height: 900px)").matches; // room beside the choices
    const card = h("details.card.puzzle-card", { open }, ...this.editParts());
    main.append(this.layout(this.values, card));
    this.show();
  }

  /** @override */
  show() {
    const { answer, view } = this;
    const { agents } = this.valued;
    const words = answer ? t("After: {choice}", { choice: answer.words }) : capital(questionOf(view));
    this.title.textContent = view.choices.length ? words : t("No decision in this position");
    this.words.textContent = view.rules_words;
    super.show();
    this.fill();
    const title = t("Chance to win");
    /** @param {Choice} choice */
    const valued = (choice) => {
      const by = Object.keys(agents).filter((name) => agents[name] === choice.action);
      const words = [...by.map((name) => t(name)), percent(this.chanceOf(choice))].join(" · ");
      const button = h("button", { onclick: () => this.act(choice.action) }, capital(choice.words));
      return [button, h("span.loss", words)];
    };
    const list = this.rankedList(title, (choice) => -this.chanceOf(choice), valued);
    const source = h("p.quiet", sourceOf(this.valued));
    this.values.replaceChildren(h("h2", title), list, source);
  }

  /** @param {Choice} choice */
  chanceOf(choice) {
    return this.valued.chances[this.view.choices.indexOf(choice)];
  }

  /** @override @param {Choice} choice */
  verdictOn(choice) {
    return t("{chance} to win after this choice.", { chance: percent(this.chanceOf(choice)) });
  }

  /** @override @returns {Child[]} */
  dockParts() {
    const { answer, view } = this;
    if (!answer) return [h("p.tip", t("There is nothing to decide here. Change the phase or the dice."))];
    return [
      h("p.tip", this.verdictOn(answer)),
      h("button.primary", { onclick: () => this.ask(this.view) }, t("Back to the position")),
      h("a.button", { href: continueAddress(view.position, []) }, t("Play on")),
    ];
  }

  /** Make a field for each part of the position that can be changed. */
  makeFields() {
    const phases = { keep: t("keep dice"), move: t("move") };
    /** @param {keyof typeof PARTS} name */
    const changing = (name) => ({
      onchange: (/** @type {{target: HTMLInputElement}} */ { target }) =>
        this.go(withPart(this.wanted, name, target.value)),
    });
    /** @param {Iterable<string>} values */
    const same = (values) => [...values].map((value) => [value, value]);
    return {
      seat: select(changing("seat"), same(this.letters)),
      phase: select(changing("phase"), Object.entries(phases)),
      rolls: select(changing("rolls"), same("210")),
      dice: h("input", { ...changing("dice"), maxlength: "5" }),
    };
  }

  /** The content of the card that changes the position. @returns {Child[]} */
  editParts() {
    const { seat, phase, rolls, dice } = this.fields;
    const show = h("button", { onclick: () => this.go(this.line.value.trim()) }, t("Show this line"));
    const share = copyButton(t("Copy a link"), () => linkTo(analysisAddress(this.view.position).slice(2)));
    const fields = h(
      "div.fields",
      h("label", t("A tap on a space"), this.tool),
      h("label", t("Seat to act"), seat),
      h("label", t("Phase"), phase),
      h("label", t("Re-rolls left"), rolls),
      h("label", t("Dice: w f m e o, d for a dragon"), dice),
      h("label", t("Mark the choices of agents"), ...this.agents),
      h("label", t("Position as text"), this.line),
    );
    return [h("summary", t("Position")), fields, this.error.element, h("div.buttons", show, share)];
  }

  /** Write the position into the fields. A text that is being typed stays. */
  fill() {
    const parts = partsOf(this.view.position);
    /** @type {[HTMLInputElement|HTMLSelectElement|HTMLTextAreaElement, string][]} */
    const values = [[this.line, this.view.position]];
    for (const [name, field] of Object.entries(this.fields))
      values.push([field, parts[PARTS[/** @type {keyof typeof PARTS} */ (name)]]]);
    for (const [field, value] of values) {
      const typing = field === document.activeElement && field.value !== this.filled.get(field);
      if (!typing) field.value = value;
      this.filled.set(field, value);
    }
  }

  /** Show another position, if it is valid. Only the answer to the latest request counts. @param {string} position */
  async go(position) {
    this.wanted = position;
    const request = ++this.requests;
    const outdated = () => this.signal.aborted || request !== this.requests;
    try {
      const agents = new Set(this.agents.map(({ value }) => value).filter(Boolean));
      const valued = await load(position, [...agents]);
      if (outdated()) return;
      this.error.hide();
      this.valued = valued;
      this.wanted = valued.position;
      history.replaceState(null, "", analysisAddress(valued.position));
      this.ask(viewOf(valued));
    } catch (error) {
      if (outdated()) return;
      this.wanted = this.view.position;
      this.error.show(error);
    }
  }
}

/** @param {string} line */
const partsOf = (line) => line.trim().split(/\s+/);

/** Return the line with another part. @param {string} line @param {keyof typeof PARTS} name @param {string} part */
export const withPart = (line, name, part) => partsOf(line).with(PARTS[name], part).join(" ");

/**
 * Return the line with a sign on a space: a seat's letter, "#" for a dead piece, or "." for an empty space. A seat's
 * piece leaves its old space. If the sign is already on the space, it is removed.
 * @param {string} line @param {{path: number, space: number, sign: string}} change
 */
export function placed(line, { path, space, sign }) {
  const paths = partsOf(line)[PARTS.board].split("/");
  const signs = [...paths[path]];
  const at = space > paths[path].indexOf("|") ? space : space - 1;
  const kept = /[A-E]/.test(sign) ? signs.map((each) => (each === sign ? "." : each)) : signs;
  paths[path] = kept.with(at, signs[at] === sign ? "." : sign).join("");
  return withPart(line, "board", paths.join("/"));
}
