/** A decision on the screen: the board, the dock with the dice and buttons, and the choices in words. */

import { drawDie, makeBoard } from "./board.js";
import { kept } from "./browser.js";
import {
  choicesBeside,
  facesOf,
  heldFaces,
  leadsOf,
  marksOf,
  NOTHING,
  sortedPlaces,
  tap,
  tipOf,
} from "./choosing.js";
import { attribute, glyph, h, isElsewhere, say, select, waitLine } from "./dom.js";
import { asksForTiger, capital, colorsOpen, ELEMENTS, FACES, POWERS, TIGER, t } from "./words.js";

/** @import {Child, Choice, Chosen, Places, View} from "./types.js" */

/**
 * The page of a decision: `act` takes an action, `dockParts` returns the content of the dock if there is no decision.
 * @typedef {{act: (action: number) => void, dockParts: (view: View) => Child[]}} Asker
 */

const NONE = [false, false, false, false, false];
const ALL = [true, true, true, true, true];
const TAP = "wotd-tap"; // the name of the stored meaning of a tap on a die
const MEANINGS = { keep: t("keeps it"), roll: t("re-rolls it") };
const REST = 500; // milliseconds in which a press is meant for the position before, such as that of a double click

export class Decision {
  /** The shown position; null before the first one. @type {View} */
  view = /** @type {any} */ (null);
  /** @type {Chosen} */
  chosen = NOTHING;
  /** @type {Places} */
  places = sortedPlaces();
  /** Whether the die of each place is held. */
  held = NONE;
  /** The place of the first tapped die while the page asks what a tap means. @type {number|null} */
  asking = null;
  /** @type {ReturnType<typeof makeBoard>|null} */
  board = null;
  /** The timer that ends the rest, during which presses are ignored; 0 without a rest. */
  rest = 0;

  /** @param {AbortSignal} signal ends the use of keys @param {Asker} page */
  constructor(signal, page) {
    this.page = page;
    this.boardPlace = h("div.board-place", { role: "group" });
    this.dice = NONE.map((_, place) => h("button.die", { onclick: () => this.pressDie(place) }));
    this.diceBox = h("div.dice", { role: "group" }, ...this.dice);
    this.actions = h("div.actions", { role: "group" });
    const pending = waitLine(t("Waiting for the server …"), null);
    this.dock = h("div.dock", this.diceBox, this.actions, pending);
    const check = (/** @type {Event} */ event) => {
      if (this.ready()) return;
      event.stopImmediatePropagation();
      event.preventDefault(); // of a link
    };
    this.actions.addEventListener("click", check, { capture: true });
    this.choiceList = h("div.choice-list", { tabindex: "0", role: "group", "aria-label": t("Choices") });
    /** The elements with choices; disabled during a rest. @type {HTMLElement[]} */
    this.parts = [this.boardPlace, this.actions, this.choiceList];
    this.choices = h("section.card.choices", h("h2", t("Choices")), this.choiceList);
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
  }

  /** Whether this browser is to decide. */
  get open() {
    return this.view.choices.length > 0;
  }

  /**
   * Show a position. With `places`, it is a new one: unfinished choices are dropped, and `rolled` dice tumble.
   * @param {View} view @param {Places|null} places @param {boolean} [rolled]
   */
  show(view, places, rolled = false) {
    const passed = this.view?.choices.length !== view.choices.length; // such as to an agent that takes the seat
    this.view = view;
    if (places || passed) {
      if (view.mine.length) this.startRest();
      if (this.open && this.actions.contains(document.activeElement))
        /** @type {HTMLElement} */ (document.activeElement).blur();
      this.places = places ?? this.places;
      this.dropChoice();
      this.showDice(rolled ? this.places.rolled : NONE);
    }
    this.showBoard();
    this.showActions();
    this.showChoices();
  }

  startRest() {
    clearTimeout(this.rest);
    for (const part of this.parts) attribute(part, "aria-disabled", "true");
    this.rest = window.setTimeout(() => {
      this.rest = 0;
      for (const part of this.parts) attribute(part, "aria-disabled", null);
    }, REST);
  }

  /** Return whether a press can be meant for the shown position. A press that is too early extends the rest. */
  ready() {
    if (!this.rest) return true;
    this.startRest();
    return false;
  }

  /** @param {number} action */
  act(action) {
    if (this.ready()) this.page.act(action);
  }

  dropChoice() {
    this.asking = null;
    this.chosen = NOTHING;
    this.held = this.untapped;
  }

  /** Whether a tap on a die means to re-roll it. */
  get tapRolls() {
    return kept.get(TAP, "") === "roll";
  }

  /** Whether the die of each place is held before a tap. */
  get untapped() {
    if (this.view.phase === "move") return NONE;
    return this.keeping && this.tapRolls ? ALL : this.places.kept;
  }

  /** Store the meaning of a tap on a die. @param {string} meaning */
  choose(meaning) {
    const { asking } = this;
    kept.set(TAP, meaning);
    this.undo();
    if (asking !== null) this.pressDie(asking);
  }

  /** Make the field that changes the meaning of a tap on a die. */
  tapField() {
    const value = kept.get(TAP, "keep");
    const field = select({ value, onchange: () => this.choose(field.value) }, Object.entries(MEANINGS));
    return h("label.tick", t("A tap on a die"), field);
  }

  /** Whether this browser is to choose dice. */
  get keeping() {
    return this.open && this.view.phase === "keep";
  }

  /** The faces by place. */
  get faces() {
    return facesOf(this.places.order, this.view.dice);
  }

  /** @param {boolean[]} [rolled] the dice that have just been rolled */
  showDice(rolled = NONE) {
    const { faces, held, keeping, tapRolls } = this;
    const wanted = tapRolls ? t("Dice: press the ones to re-roll") : t("Dice: press the ones to keep");
    this.diceBox.setAttribute("aria-label", keeping ? wanted : t("Dice"));
    this.dice.forEach((button, place) => {
      const face = faces[place];
      attribute(button, "data-face", String(face));
      const shown = face < 0 ? t("not rolled yet") : FACES[face];
      attribute(button, "aria-label", `${t("die {number}", { number: place + 1 })}, ${shown}`);
      attribute(button, "aria-disabled", keeping ? null : "true");
      attribute(button, "aria-pressed", keeping ? String(held[place] !== tapRolls) : null);
      const words = held[place] ? t("keep") : t("re-roll");
      button.replaceChildren(drawDie(face), h("span.keep", { "aria-hidden": "true" }, words));
      button.classList.toggle("kept", held[place]);
      button.classList.remove("rolled");
      if (rolled[place]) {
        void button.offsetWidth; // restarts the animation
        button.classList.add("rolled");
      }
    });
  }

  showBoard() {
    const { view } = this;
    if (!this.board) {
      this.board = makeBoard(view.rules.spaces, (path, space) => this.pick(path, space));
      this.boardPlace.replaceChildren(this.board.element);
    }
    this.board.show({
      state: view,
      names: view.seats.map(({ name }) => name),
      moved: view.moved,
      marks: view.phase === "keep" ? leadsOf(view, this.faces, this.held) : marksOf(view, this.chosen),
      immunity: view.rules.immunity,
      hidden: colorsOpen(view),
    });
  }

  /** The choice that keeps the held dice. */
  holdChoice() {
    const { dice, choices } = this.view;
    const wanted = heldFaces(this.faces, this.held);
    return choices.find(({ keep }) => keep !== null && heldFaces(dice, keep) === wanted);
  }

  /** The content of the dock beside the dice. */
  dockParts() {
    if (!this.open) return this.page.dockParts(this.view);
    return this.keeping ? this.holdButtons() : this.moveButtons();
  }

  /** Re-roll the dice that are not held, if there are any. */
  roll() {
    const hold = this.holdChoice();
    if (hold && hold.kind !== "stop") this.act(hold.action);
  }

  undoButton() {
    return h("button.undo", { "data-name": "undo", onclick: () => this.undo() }, t("Undo"));
  }

  /** Make the button of a choice. @param {Choice} choice @param {string} [look] @param {string} [words] */
  choiceButton({ action, power, path, words: all }, look = "", words = all) {
    return h(
      "button",
      { class: `choice ${look}`, onclick: () => this.act(action), "data-action": action },
      power === null ? null : glyph(`power-${power}`),
      path === null ? null : glyph(`die-${path}`),
      h("span", capital(words)),
    );
  }

  holdButtons() {
    const { view, held, untapped } = this;
    if (this.asking !== null) {
      const answers = Object.entries(MEANINGS).map(([meaning, words]) =>
        h("button", { onclick: () => this.choose(meaning) }, capital(words)),
      );
      return [h("p.tip", t("What does a tap on a die mean?")), ...answers];
    }
    const stop = view.choices.find(({ kind }) => kind === "stop");
    const rest = held.filter((held) => !held).length;
    const tiger = asksForTiger(view);
    const roll = rest === 5 ? t("Re-roll all") : t("Re-roll {count}", { count: rest });
    const words = tiger ? `${roll} (${POWERS[TIGER]})` : roll;
    const rolling = { "data-name": "roll", onclick: () => this.roll() };
    const look = { class: rest ? "" : "primary", "data-name": "stop" };
    const stopping = { ...look, onclick: () => stop && this.act(stop.action) };
    return [
      rest > 0 && h("button.primary", rolling, glyph(tiger ? `power-${TIGER}` : "again"), h("span", words)),
      stop && h("button", stopping, h("span", tiger ? t("Do without it") : t("Stop rolling"))),
      held.some((held, place) => held !== untapped[place]) && this.undoButton(),
    ];
  }

  moveButtons() {
    const { offered, picked } = this.chosen;
    if (offered.length)
      return [...offered.map((choice) => this.choiceButton(choice, "primary")), this.undoButton()];
    if (picked.length) return [h("p.tip", t("Tap the piece to swap it with.")), this.undoButton()];
    const tip = tipOf(this.view.choices);
    const buttons = choicesBeside(this.view).map((choice, i) => {
      const look = i === 0 && !tip && choice.power === null ? "primary" : "";
      return this.choiceButton(choice, look, choice.words.split(",")[0]); // without the destinations
    });
    return [tip && h("p.tip", tip), ...buttons];
  }

  showActions() {
    this.dock.classList.toggle("mine", this.open);
    this.diceBox.hidden = this.view.status !== "playing";
    const focused = this.actions.querySelector(":focus")?.getAttribute("data-name");
    const shown = [...this.actions.childNodes];
    const parts = [...h("div", ...this.dockParts()).childNodes];
    parts.forEach((part, at) => {
      if (at >= shown.length) this.actions.append(part);
      else if (!part.isEqualNode(shown[at])) shown[at].replaceWith(part); // a press of a replaced button would be lost
    });
    for (const part of shown.slice(parts.length)) part.remove();
    if (focused)
      /** @type {HTMLElement|null} */ (this.actions.querySelector(`[data-name="${focused}"]`))?.focus();
  }

  showChoices() {
    this.choices.hidden = this.view.status !== "playing" || !this.view.mine.length;
    const focused = this.choiceList.querySelector(":focus") !== null;
    const buttons = this.view.choices.map((choice) => this.choiceButton(choice));
    this.choiceList.replaceChildren(
      ...(buttons.length ? buttons : [h("p.quiet", t("It is not your turn."))]),
    );
    if (focused) this.focus();
  }

  /** Put the focus beside the choices, because none of them is chosen, or on the next step. */
  focus() {
    const target = this.open ? this.choiceList : this.actions.querySelector(".primary");
    /** @type {HTMLElement|null} */ (target)?.focus({ preventScroll: true });
  }

  /** @param {number} path @param {number|null} space */
  pick(path, space) {
    if (!this.open || this.view.phase === "keep") return;
    const { act, chosen } = tap(this.view, this.chosen, path, space);
    if (act) return this.act(act.action);
    this.chosen = chosen;
    this.showBoard();
    this.showActions();
    const { offered, picked } = chosen;
    if (offered.length) {
      const choices = offered.map(({ words }) => words).join("; ");
      say(t("Chosen: {choices}. Enter confirms.", { choices }));
    } else if (picked.length) {
      const values = { name: this.view.seats[picked[0]].name, element: ELEMENTS[path] };
      say(t("{name} on {element} chosen. Choose the piece to swap it with.", values));
    }
  }

  undo() {
    this.dropChoice();
    this.showDice();
    this.showBoard();
    this.showActions();
    say(t("Undone."));
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!this.view || isElsewhere(event)) return;
    const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
    const target = /** @type {HTMLElement} */ (event.target);
    if (key === "U") this.undo();
    else if (this.keeping && key >= "1" && key <= "5") this.pressDie(Number(key) - 1);
    else if (this.keeping && key === "R") this.roll();
    else if (this.open && key === "Enter" && !target.closest("button, a, summary, [role=gridcell]")) {
      const [only, ...others] = this.chosen.offered;
      if (this.keeping) /** @type {HTMLElement|null} */ (this.actions.querySelector(".primary"))?.click();
      else if (only && !others.length) this.act(only.action);
    } else return;
    event.preventDefault();
  }

  /** @param {number} place */
  pressDie(place) {
    if (!this.keeping) return;
    if (!kept.get(TAP, "")) {
      this.asking = place;
      this.showActions();
      return say(t("What does a tap on a die mean?"));
    }
    this.held = this.held.map((held, other) => (other === place ? !held : held));
    this.showDice();
    this.showBoard();
    this.showActions();
    const face = { face: FACES[this.faces[place]] };
    say(this.held[place] ? t("{face} kept", face) : t("{face} not kept", face));
  }
}
