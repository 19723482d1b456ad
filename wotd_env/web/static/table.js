/** A table: the running game. */

import { follow, keys } from "./api.js";
import { makeBoard } from "./board.js";
import { marksOf, NOTHING, tap } from "./choosing.js";
import { makeDice } from "./dice.js";
import { choiceButton, endButtons, holdButtons, moveButtons, otherActs, waitingParts } from "./dock.js";
import { byId, errorLine, h, isElsewhere, noticeCard, say } from "./dom.js";
import { makeHints } from "./help.js";
import { makeLog } from "./log.js";
import { makeMenu } from "./menu.js";
import { controlsAgents, makePace } from "./pace.js";
import { facesOf, heldFaces, placesAfter, sortedPlaces } from "./places.js";
import { makeSeats } from "./seats.js";
import { capital, colorsOpen, ELEMENTS, FACES, factsOf, newsOf, titleOf } from "./words.js";

/** @import {Keys} from "./api.js" */
/** @import {Chosen} from "./choosing.js" */
/** @import {Places} from "./places.js" */
/** @import {Choice, Help, Step, View} from "./types.js" */

/** Show a table. @param {HTMLElement} main @param {AbortSignal} signal closes it @param {string} id */
export function tablePage(main, signal, id) {
  const own = keys.of(id);
  const how = "You take a seat at a table by an invitation link, or from the list of open tables.";
  if (own) new TablePage(main, signal, id, own);
  else main.append(noticeCard("This table is not yours", how));
}

class TablePage {
  /** The last view; null before the first one. @type {View} */
  view = /** @type {any} */ (null);
  /** @type {Help|null} */
  help = null;
  /** @type {Chosen} */
  chosen = NOTHING;
  /** @type {Places} */
  places = sortedPlaces();
  /** The places that were pressed for a decision, by its ply. @type {Map<number, boolean[]>} */
  pressed = new Map();
  /** The ply of the decision that has been sent. */
  acted = -1;
  /** @type {ReturnType<typeof makeBoard>|null} */
  board = null;

  /** @param {HTMLElement} main @param {AbortSignal} signal @param {string} id @param {Keys} own */
  constructor(main, signal, id, own) {
    this.main = main;
    this.own = own;
    this.title = h("h1", { id: "whose", tabindex: "-1" }, "The table opens …");
    this.facts = h("p.sub");
    this.news = h("p.sub.happened");
    this.seats = makeSeats();
    this.boardPlace = h("div.board-place");
    this.dice = makeDice(() => this.showActions());
    this.actions = h("div.actions");
    this.dock = h("div.dock", this.dice.element, this.actions);
    this.error = errorLine();
    this.hints = makeHints((action) => this.act(action));
    this.choiceList = h("div.choice-list", { tabindex: "0", role: "region", "aria-label": "Choices" });
    this.choices = h("section.card.choices", h("h2", "Choices"), this.choiceList);
    this.log = makeLog();
    this.pace = makePace(id, own.key, this.error.show);
    this.menu = makeMenu(id, own, this.pace, () => this.view);
    const head = h("header.turn", this.title, this.facts, this.news);
    const parts = [head, this.error.element, this.seats.element, this.boardPlace, this.dock];
    this.play = h("section.play", { "aria-labelledby": "whose" }, ...parts);
    const side = h("div.side", this.hints.element, this.choices, this.log.element, this.menu.element);
    main.append(h("div.table", this.play, side));
    document.addEventListener("keydown", (event) => this.onKey(event), { signal });
    signal.addEventListener("abort", () => this.showBanner(""));
    this.send = this.connect(id, signal);
  }

  /** @param {string} id @param {AbortSignal} signal */
  connect(id, signal) {
    return follow(id, this.own.key, signal, {
      view: (view) => this.showView(view),
      help: (help) => {
        this.help = help;
        this.showHelp();
      },
      error: (message, status) => {
        this.acted = -1;
        if (status !== 409) this.error.show(message); // 409: the decision is too late; a fresh view comes
      },
      connection: (lost) => {
        this.acted = -1; // the next view shows whether the decision has arrived
        this.showBanner(lost && `${capital(lost)}. Trying again …`);
      },
      gone: (reason) => {
        keys.drop(id);
        this.showBanner("");
        this.main.replaceChildren(noticeCard(reason, ""));
      },
    });
  }

  /** @param {string} words */
  showBanner(words) {
    byId("offline").textContent = words;
    byId("offline").hidden = !words;
    this.dock.classList.toggle("cut-off", Boolean(words));
  }

  /** Whether this browser is to decide. */
  get myTurn() {
    return this.view.choices.length > 0;
  }

  /** @param {View} fresh */
  showView(fresh) {
    const before = this.view;
    const sameGame = before?.game === fresh.game;
    const moved = !sameGame || before?.ply !== fresh.ply;
    const log = (before?.log ?? []).slice(0, fresh.log_from).concat(fresh.log);
    const news = sameGame && before ? log.slice(before.log.length) : [];
    const view = { ...fresh, log };
    this.view = view;
    if (!sameGame) this.pressed.clear();
    if (moved) {
      this.chosen = NOTHING;
      this.acted = -1;
      this.error.hide();
      this.places = placesAfter(log, view.turn, ({ ply }) => this.pressed.get(ply) ?? null);
      this.showDice(news.some(({ roll }) => roll !== null));
    }
    this.showTurn(view);
    this.showBoard();
    this.board?.slide(
      news.flatMap(({ moves }) => moves),
      view.color,
    );
    this.showActions();
    this.showChoices();
    this.showHelp();
    this.log.show(view);
    this.menu.show(view);
    if (moved) this.announce(view, news);
    /** @type {(Element|null)[]} */
    const free = [document.body, this.main, this.title];
    if (!before && matchMedia("(max-height: 700px)").matches) this.play.scrollIntoView({ block: "start" });
    else if (moved && this.myTurn && free.includes(document.activeElement)) this.focusOnChoice();
    this.play.dataset.at = `${view.game}/${view.ply}`; // all of this position is shown
  }

  /** @param {View} view @param {Step[]} news */
  announce(view, news) {
    const sentences = news.filter(({ seat }) => !view.mine.includes(seat)).map(({ words }) => `${words}.`);
    if (this.myTurn || view.status === "over") sentences.push(view.result?.words ?? view.words);
    say(sentences.join(" "));
  }

  focusOnChoice() {
    const target = this.actions.querySelector("button.primary") ?? this.choiceList.querySelector("button");
    /** @type {HTMLElement|null} */ (target)?.focus({ preventScroll: true });
  }

  /** @param {View} view */
  showTurn(view) {
    const words = titleOf(view);
    this.title.textContent = words;
    this.title.title = words;
    this.title.className = this.myTurn ? "mine" : "";
    this.facts.textContent = factsOf(view);
    this.news.textContent = newsOf(view);
    this.news.title = this.news.textContent;
    document.title = `${words} · Way of the Dragon`;
    this.play.dataset.status = view.status;
  }

  /** @param {boolean} rolled whether the dice have just been rolled */
  showDice(rolled) {
    const { dice, phase } = this.view;
    const choosing = this.myTurn && phase === "keep";
    const none = Array.from({ length: 5 }, () => false);
    const held = phase === "move" ? none : this.places.kept;
    this.dice.show(facesOf(this.places.order, dice), held, choosing, rolled ? this.places.rolled : none);
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
      marks: view.phase === "keep" ? new Map() : marksOf(view, this.chosen),
      immunity: view.rules.immunity,
      hidden: colorsOpen(view),
    });
  }

  /** The choice that keeps the held dice. */
  holdChoice() {
    const { dice, choices } = this.view;
    const wanted = heldFaces(facesOf(this.places.order, dice), this.dice.held());
    return choices.find(({ keep }) => keep !== null && heldFaces(dice, keep) === wanted);
  }

  dockParts() {
    const { view } = this;
    const acts = {
      act: (/** @type {Choice} */ choice) => this.act(choice.action),
      undo: () => this.undo(),
      next: () => this.send({ type: "next", game: view.game }),
    };
    if (view.status === "waiting") return waitingParts(view, this.own);
    if (view.status === "over") return endButtons(view, acts);
    if (!this.myTurn) return controlsAgents(view) ? this.pace.buttons(view) : otherActs(view);
    if (view.phase !== "keep") return moveButtons(view, this.chosen, acts);
    const held = this.dice.held();
    const changed = held.some((kept, place) => kept !== this.places.kept[place]);
    return holdButtons(view, held, changed, this.holdChoice(), acts);
  }

  showActions() {
    this.dock.classList.toggle("mine", this.myTurn);
    this.dice.element.hidden = this.view.status !== "playing";
    const focused = this.actions.querySelector(":focus")?.getAttribute("data-name");
    this.actions.replaceChildren(...this.dockParts().filter((part) => part instanceof Node));
    if (focused)
      /** @type {HTMLElement|null} */ (this.actions.querySelector(`[data-name="${focused}"]`))?.focus();
  }

  showChoices() {
    this.choices.hidden = this.view.status !== "playing" || !this.view.mine.length;
    const focused = this.choiceList.querySelector(":focus") !== null;
    const buttons = this.view.choices.map((choice) => choiceButton(choice, () => this.act(choice.action)));
    this.choiceList.replaceChildren(...(buttons.length ? buttons : [h("p.quiet", "It is not your turn.")]));
    if (focused) this.focusOnChoice();
  }

  showHelp() {
    this.seats.show(this.view, this.help);
    this.hints.show(this.view, this.help);
  }

  /** @param {number} action */
  act(action) {
    if (this.acted === this.view.ply) return;
    const { ply, phase } = this.view;
    if (phase === "keep") this.pressed.set(ply, [...this.dice.held()]);
    if (this.send({ type: "act", ply, action })) this.acted = ply;
  }

  /** @param {number} path @param {number|null} space */
  pick(path, space) {
    if (!this.myTurn || this.view.phase === "keep") return;
    const { act, chosen } = tap(this.view, this.chosen, path, space);
    if (act) return this.act(act.action);
    this.chosen = chosen;
    this.showBoard();
    this.showActions();
    const { offered, picked } = chosen;
    if (offered.length) say(`Chosen: ${offered.map(({ words }) => words).join(", or ")}. Enter confirms.`);
    else if (picked.length) {
      const name = this.view.seats[picked[0]].name;
      say(`${name} on ${ELEMENTS[path]} chosen. Choose the piece to swap it with.`);
    }
  }

  undo() {
    this.chosen = NOTHING;
    if (this.view.phase === "keep") this.showDice(false);
    this.showBoard();
    this.showActions();
    say("Undone.");
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (!this.view || isElsewhere(event)) return;
    const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
    if (this.doKey(key, /** @type {HTMLElement} */ (event.target))) event.preventDefault();
  }

  /** Act on a key; return whether it has a meaning. @param {string} key @param {HTMLElement} target */
  doKey(key, target) {
    const keeping = this.myTurn && this.view.phase === "keep";
    if (key === "U") this.undo();
    else if (keeping && key >= "1" && key <= "5") this.pressDie(Number(key) - 1);
    else if (keeping && key === "R") {
      const hold = this.holdChoice();
      if (hold && hold.kind !== "stop") this.act(hold.action);
    } else if (this.myTurn && key === "Enter" && !target.closest("button, a, summary, [role=gridcell]"))
      /** @type {HTMLElement|null} */ (this.actions.querySelector("button.primary"))?.click();
    else return false;
    return true;
  }

  /** @param {number} place */
  pressDie(place) {
    this.dice.toggle(place);
    const face = FACES[this.view.dice[this.places.order[place]]];
    say(`${face} ${this.dice.held()[place] ? "kept" : "not kept"}`);
  }
}
