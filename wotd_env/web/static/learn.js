/** The tutorial: eight steps on the board, in which one plays the wanted choice. */

import { ask, createTable } from "./api.js";
import { Decision } from "./decision.js";
import { openRules } from "./dialogs.js";
import { errorLine, glyph, h, say, waitLine, workButton } from "./dom.js";
import { sortedPlaces } from "./places.js";
import { makeSeats } from "./seats.js";
import { studyAt, viewAfter } from "./study.js";
import { ANIMALS, ANY_POWER, ELEMENTS } from "./words.js";

/** @import {Choice, LessonStep, View} from "./types.js" */

/**
 * Show a step of the tutorial, by its number from 1.
 * @param {HTMLElement} main @param {AbortSignal} signal @param {string} [number]
 */
export async function learnPage(main, signal, number = "1") {
  const card = h("section.card.narrow", h("h1", "Learn the game"), waitLine("The step comes …"));
  main.append(card);
  try {
    /** @type {LessonStep[]} */
    const steps = await ask("/static/lesson.json");
    const index = Number(number) - 1;
    if (!steps[index]) throw new Error(`The tutorial has the steps 1 to ${steps.length}.`);
    const views = await Promise.all(steps[index].tasks.map(({ position }) => studyAt(position)));
    if (signal.aborted) return;
    card.remove();
    new LearnPage(main, signal, { steps, index, views });
  } catch (reason) {
    card.replaceChildren(
      h("h1", "Learn the game"),
      errorLine(reason).element,
      h("a.button", { href: "#/" }, "Back"),
    );
  }
}

class LearnPage {
  task = 0;
  hinted = false;
  /** The choice that solves the task. @type {Choice|null} */
  played = null;

  /**
   * @param {HTMLElement} main @param {AbortSignal} signal
   * @param {{steps: LessonStep[], index: number, views: View[]}} shown the positions of the tasks
   */
  constructor(main, signal, { steps, index, views }) {
    this.steps = steps;
    this.index = index;
    this.views = views;
    this.step = steps[index];
    this.words = h("p.task", { "aria-live": "polite" });
    this.seats = makeSeats();
    this.decision = new Decision(signal, {
      act: (action) => this.act(action),
      otherwise: () => this.dockParts(),
    });
    const title = h(
      "h1",
      { id: "step-title", tabindex: "-1" },
      `${index + 1} of ${steps.length}: ${this.step.title}`,
    );
    const { boardPlace, dock, choices } = this.decision;
    const parts = [h("header.turn", title, this.words), this.seats.element, boardPlace, dock];
    const play = h("section.play", { "aria-labelledby": "step-title" }, ...parts);
    main.append(h("div.table.lesson", play, h("div.side", choices, this.stepsCard(), animalsCard())));
    document.title = `${this.step.title} · Way of the Dragon`;
    this.show();
  }

  show() {
    const { played, view } = this;
    const { words, done, hint } = this.step.tasks[this.task];
    const said = played ? done : words;
    this.words.replaceChildren(said, this.hinted && !played ? h("span.hint", hint) : "");
    const shown = played ? viewAfter(view, played) : view;
    const places = sortedPlaces();
    this.seats.show(shown, null);
    this.decision.show(shown, { ...places, kept: played?.keep ?? places.kept });
    this.decision.choices.hidden = played !== null;
    if (played) this.decision.board?.slide(played.moves, view.color);
  }

  /** The position of the task. */
  get view() {
    return this.views[this.task];
  }

  /** @param {number} action */
  act(action) {
    const choice = this.view.choices.find((each) => each.action === action);
    if (!choice) return;
    if (this.step.tasks[this.task].accept.includes(choice.notation)) this.played = choice;
    else this.hinted = true;
    this.show();
    if (this.played) this.decision.focus();
  }

  dockParts() {
    const next = this.index + 2;
    if (this.task + 1 < this.step.tasks.length)
      return [h("button.primary", { "data-name": "next", onclick: () => this.nextTask() }, "Continue")];
    if (next <= this.steps.length)
      return [h("a.button.primary", { href: `#/learn/${next}`, "data-name": "next" }, "Next step")];
    const play = workButton("Play your first game", firstGame);
    play.querySelector("button")?.classList.add("primary");
    return [play];
  }

  nextTask() {
    this.task++;
    this.hinted = false;
    this.played = null;
    this.show();
    say(this.words.textContent ?? "");
  }

  stepsCard() {
    const items = this.steps.map(({ title }, i) =>
      h("li", h("a", { href: `#/learn/${i + 1}`, "aria-current": i === this.index ? "step" : null }, title)),
    );
    const powers = h("button", { onclick: () => openRules(ANY_POWER) }, "Powers of the animals");
    return h("section.card", h("h2", "Steps"), h("ol.steps", ...items), h("div.buttons", powers));
  }
}

/** Make the list of elements with their animals. */
function animalsCard() {
  const items = ANIMALS.map((animal, color) => {
    const sign = h("span", { class: `sign color-${color}` }, glyph(`element-${color}`));
    return h("li", sign, glyph(`piece-${color}`, "piece"), h("span", `${ELEMENTS[color]}: ${animal}`));
  });
  return h("section.card", h("h2", "Elements and animals"), h("ul.animals", ...items));
}

async function firstGame() {
  const seats = [{ kind: "here" }, { kind: "agent", agent: "newcomer" }];
  location.hash = `#/table/${await createTable({ seats })}`;
}
