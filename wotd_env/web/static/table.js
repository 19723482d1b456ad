/** A table: the running game. */

import { follow, keys } from "./api.js";
import { Decision } from "./decision.js";
import { endButtons, otherActs, waitingParts } from "./dock.js";
import { byId, errorLine, h, noticeCard, say } from "./dom.js";
import { makeHints } from "./help.js";
import { makeLog } from "./log.js";
import { makeMenu } from "./menu.js";
import { controlsAgents, makePace } from "./pace.js";
import { placesAfter } from "./places.js";
import { makeSeats } from "./seats.js";
import { capital, factsOf, newsOf, titleOf } from "./words.js";

/** @import {Keys} from "./api.js" */
/** @import {Help, Page, Step, View} from "./types.js" */

/** Show a table. @type {Page} */
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
  /** The places that were pressed for a decision, by its ply. @type {Map<number, boolean[]>} */
  pressed = new Map();
  /** The ply of the decision that has been sent. */
  acted = -1;

  /** @param {HTMLElement} main @param {AbortSignal} signal @param {string} id @param {Keys} own */
  constructor(main, signal, id, own) {
    this.main = main;
    this.own = own;
    this.title = h("h1", { id: "whose", tabindex: "-1" }, "The table opens …");
    this.facts = h("p.sub");
    this.news = h("p.sub.happened");
    this.seats = makeSeats();
    this.decision = new Decision(signal, {
      act: (action) => this.act(action),
      otherwise: (view) => this.dockParts(view),
    });
    this.error = errorLine();
    this.hints = makeHints((action) => this.act(action));
    this.log = makeLog();
    this.pace = makePace(id, own.key, this.error.show);
    this.menu = makeMenu(id, own, this.pace, () => this.view);
    const { boardPlace, dock, choices } = this.decision;
    const head = h("header.turn", this.title, this.facts, this.news);
    const parts = [head, this.error.element, this.seats.element, boardPlace, dock];
    this.play = h("section.play", { "aria-labelledby": "whose" }, ...parts);
    const side = h("div.side", this.hints.element, choices, this.log.element, this.menu.element);
    main.append(h("div.table", this.play, side));
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
    this.decision.dock.classList.toggle("cut-off", Boolean(words));
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
      this.acted = -1;
      this.error.hide();
    }
    this.showTurn(view);
    const places = moved ? placesAfter(log, view.turn, ({ ply }) => this.pressed.get(ply) ?? null) : null;
    const rolled = news.some(({ roll }) => roll !== null);
    this.decision.show(view, places, rolled);
    const moves = news.flatMap(({ moves }) => moves);
    this.decision.board?.slide(moves, view.color);
    this.showHelp();
    this.log.show(view);
    this.menu.show(view);
    if (moved) this.announce(view, news);
    /** @type {(Element|null)[]} */
    const free = [document.body, this.main, this.title];
    if (!before && matchMedia("(max-height: 700px)").matches) this.play.scrollIntoView({ block: "start" });
    else if (moved && this.decision.open && free.includes(document.activeElement)) this.decision.focus();
    this.play.dataset.at = `${view.game}/${view.ply}`; // all of this position is shown
  }

  /** @param {View} view @param {Step[]} news */
  announce(view, news) {
    const sentences = news.filter(({ seat }) => !view.mine.includes(seat)).map(({ words }) => `${words}.`);
    if (this.decision.open || view.status === "over") sentences.push(view.result?.words ?? view.words);
    say(sentences.join(" "));
  }

  /** @param {View} view */
  showTurn(view) {
    const words = titleOf(view);
    this.title.textContent = words;
    this.title.title = words;
    this.title.className = view.choices.length ? "mine" : "";
    this.facts.textContent = factsOf(view);
    this.news.textContent = newsOf(view);
    this.news.title = this.news.textContent;
    document.title = `${words} · Way of the Dragon`;
    this.play.dataset.status = view.status;
  }

  /** The content of the dock while this browser has no decision to take. @param {View} view */
  dockParts(view) {
    if (view.status === "waiting") return waitingParts(view, this.own);
    if (view.status === "over") return endButtons(view, () => this.send({ type: "next", game: view.game }));
    return controlsAgents(view) ? this.pace.buttons(view) : otherActs(view);
  }

  showHelp() {
    this.seats.show(this.view, this.help);
    this.hints.show(this.view, this.help);
  }

  /** @param {number} action */
  act(action) {
    if (this.acted === this.view.ply) return;
    const { ply, phase } = this.view;
    if (phase === "keep") this.pressed.set(ply, this.decision.held);
    if (this.send({ type: "act", ply, action })) this.acted = ply;
  }
}
