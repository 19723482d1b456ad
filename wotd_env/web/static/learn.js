/** The tutorial: eight steps on the board, in which one plays the wanted choice. */

import { ask, createTable } from "./api.js";
import { openRules } from "./dialogs.js";
import { glyph, h, loadPage, say, workButton } from "./dom.js";
import { StudyPage, studyAt } from "./study.js";
import { ANIMALS, ANY_POWER, ELEMENTS, t } from "./words.js";

/** @import {Choice, LessonStep, Page, View} from "./types.js" */

/** Show a step of the tutorial, by its number from 1. @type {Page} */
export function learnPage(main, signal, number = "1") {
  const card = { title: t("Learn the game") };
  async function load() {
    /** @type {LessonStep[]} */
    const steps = await ask("static/lesson.json");
    const index = Number(number) - 1;
    if (!steps[index]) throw new Error(t("The tutorial has the steps 1 to {last}.", { last: steps.length }));
    const views = await Promise.all(steps[index].tasks.map(({ position }) => studyAt(position)));
    return { steps, index, views };
  }
  loadPage(main, signal, card, load, (lesson) => new LearnPage(main, signal, lesson));
}

class LearnPage extends StudyPage {
  task = 0;
  hinted = false;

  /**
   * @param {HTMLElement} main @param {AbortSignal} signal
   * @param {{steps: LessonStep[], index: number, views: View[]}} lesson with the positions of the tasks of step `index`
   */
  constructor(main, signal, { steps, index, views }) {
    super(signal, "lesson", views[0]);
    this.steps = steps;
    this.index = index;
    this.views = views;
    this.step = steps[index];
    const title = t(this.step.title);
    this.title.textContent = t("{step} of {last}: {title}", { step: index + 1, last: steps.length, title });
    this.words.className = "task";
    const links = steps.map((step, i) => {
      const current = i === index ? "step" : null;
      return h("li", h("a", { href: `#/learn/${i + 1}`, "aria-current": current }, t(step.title)));
    });
    const powers = h("button", { onclick: () => openRules(ANY_POWER) }, t("Powers of the animals"));
    const list = h("ol.steps", ...links);
    const stepsCard = h("section.card", h("h2", t("Steps")), list, h("div.buttons", powers));
    const animals = ANIMALS.map((animal, color) => {
      const sign = h("span", { class: `sign color-${color}` }, glyph(`element-${color}`));
      return h("li", sign, glyph(`piece-${color}`, "piece"), h("span", `${ELEMENTS[color]}: ${animal}`));
    });
    const animalsCard = h("section.card", h("h2", t("Elements and animals")), h("ul.animals", ...animals));
    main.append(this.layout(this.decision.choices, stepsCard, animalsCard));
    this.show();
  }

  /** @override */
  show() {
    const { words, done, hint } = this.step.tasks[this.task];
    this.words.replaceChildren(t(this.answer ? done : words), this.hinted ? h("span.hint", t(hint)) : "");
    super.show();
  }

  /** @override @param {Choice} choice */
  accepts(choice) {
    this.hinted = !this.step.tasks[this.task].accept.includes(choice.notation);
    return !this.hinted;
  }

  /** @override */
  dockParts() {
    const next = this.index + 2;
    const proceed = () => {
      this.task++;
      this.ask(this.views[this.task]);
      say(this.words.textContent ?? "");
    };
    const play = async () => {
      const seats = [{ kind: "here" }, { kind: "agent", agent: "newcomer" }];
      location.hash = `#/table/${await createTable({ seats })}`;
    };
    if (this.task + 1 < this.step.tasks.length)
      return [h("button.primary", { "data-name": "next", onclick: proceed }, t("Continue"))];
    if (next <= this.steps.length)
      return [h("a.button.primary", { href: `#/learn/${next}`, "data-name": "next" }, t("Next step"))];
    return [workButton(t("Play your first game"), play, { class: "primary" })];
  }
}
