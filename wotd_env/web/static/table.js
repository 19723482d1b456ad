/** A table: the running game. */

import { agentsFor, ask, follow, keys, pathOf } from "./api.js";
import { linkTo } from "./browser.js";
import { byId, copyButton, h, noticeCard, waitLine, workButton } from "./dom.js";
import { momentsOf, scoreTable } from "./grades.js";
import { ableAgent, Controls, controlsAgents } from "./menu.js";
import { PlayPage, play } from "./play.js";
import { capital, factsOf, reasonWords, SEATS, t, worded, wordedReview } from "./words.js";

/** @import {Keys, Page, Rules, View} from "./types.js" */

/** Show a table. @type {Page} */
export function tablePage(main, signal, id) {
  const own = keys.of(id);
  const how = t("You take a seat at a table by an invitation link, or from the list of open tables.");
  if (own) new TablePage(main, signal, id, own);
  else main.append(noticeCard(t("This table is not yours"), how));
}

class TablePage extends PlayPage {
  /** The timer of the clock. */
  clock = 0;
  /** The finished game that is shown. */
  ended = 0;

  /** @param {HTMLElement} main @param {AbortSignal} signal @param {string} id @param {Keys} own */
  constructor(main, signal, id, own) {
    super(main, signal, t("The table opens …"));
    this.own = own;
    this.controls = new Controls(id, own, this.error.show);
    this.controls.menu.append(this.decision.tapField());
    this.end = h("section.card.end", { hidden: true });
    this.side.prepend(this.end);
    this.side.append(this.controls.menu);
    this.play.addEventListener("click", ({ target }) => {
      if (!(/** @type {Element} */ (target).closest("button, a"))) this.rush();
    });
    signal.addEventListener("abort", () => {
      this.showBanner("");
      clearInterval(this.clock);
    });
    this.send = follow(id, own.key, signal, {
      view: (view) => this.showView(worded(view)),
      help: (help) => {
        this.help = help;
        this.showHelp();
      },
      error: (refused) => {
        this.pend(-1);
        if (refused.status !== 409) this.error.show(reasonWords(refused)); // 409: the decision is too late; a fresh view comes
      },
      connection: (lost) => {
        this.pend(-1); // the next view shows whether the decision has arrived
        this.showBanner(t("{reason}. Trying again …", { reason: capital(lost) }), true);
      },
      gone: (reason) => {
        keys.drop(id);
        this.showBanner("");
        this.main.replaceChildren(noticeCard(reason, ""));
      },
    });
  }

  /** @override @param {number} ply @param {number} action */
  take(ply, action) {
    return this.send({ type: "act", game: this.view.game, ply, action });
  }

  /** @param {string} words @param {boolean} [lost] whether there is no connection */
  showBanner(words, lost = false) {
    byId("offline").textContent = words;
    byId("offline").hidden = !words;
    this.decision.dock.classList.toggle("cut-off", lost);
  }

  /** @override @param {View} fresh */
  showView(fresh) {
    super.showView(fresh);
    const { view } = this;
    this.controls.show(view);
    const late = view.left === 0 && view.mine.includes(view.player);
    this.showBanner(late ? t("The others are waiting for you.") : "");
    if (late) play("turn");
    this.end.hidden = view.status !== "over";
    if (view.status === "over" && this.ended !== view.game) this.showEnd();
    clearInterval(this.clock);
    if (view.left)
      this.clock = window.setInterval(() => {
        view.left = Math.max(1, (view.left ?? 0) - 1); // the server sends 0
        this.facts.textContent = factsOf(view);
      }, 1000);
  }

  /** Show the points by path, and the decisive moments as soon as the game is reviewed. */
  async showEnd() {
    const { table, game, mine } = this.view;
    const score = [h("h2", t("The end")), scoreTable(this.view)];
    this.ended = game;
    this.end.replaceChildren(...score, waitLine(t("The game is being reviewed …")));
    const path = `${pathOf(table)}/review?game=${game}`;
    const review = await ask(path, { key: this.own.key }).then(wordedReview, () => null); // "Review" tells why
    if (this.ended === game) this.end.replaceChildren(...score, ...(review ? momentsOf(review, mine) : []));
  }

  /** Whether this browser can skip the waits for agents. */
  get rushes() {
    const { status, host, seats, player } = this.view;
    return status === "playing" && host && seats[player].kind === "agent";
  }

  rush() {
    if (this.view && this.rushes && this.decision.ready()) this.controls.step(true);
  }

  /** @override @param {View} view */
  dockParts(view) {
    if (view.status === "waiting") return this.waitingParts(view);
    const back = this.controls.backButton(view);
    if (view.status === "playing" && controlsAgents(view)) return [back, ...this.controls.paceButtons(view)];
    if (view.status === "playing") {
      const { left, gives, player } = view;
      const give = () => this.controls.give(this.view.player);
      const skip = h("button", { onclick: () => this.rush() }, t("Skip"));
      const late = left === 0 && gives.includes(player);
      return [
        ...super.dockParts(view),
        this.rushes && skip,
        late && workButton(t("Let an agent play"), give),
        back,
      ];
    }
    const { table, game, result, mine, host } = view;
    const next = { onclick: () => this.send({ type: "next", game: this.view.game }) };
    return [
      h("p.result", result?.words),
      h("a.button.primary", { href: `#/review/${table}/${game}` }, t("Review the game")),
      (mine.length > 0 || host) && h("button", next, t("Rematch")),
      back,
    ];
  }

  /** Give empty seats to an agent. @param {Rules} rules @param {number[]} seats */
  async fill(rules, seats) {
    const agent = ableAgent(await agentsFor({ rules }), "");
    for (const seat of seats) await this.controls.ask("seat", { seat, agent });
  }

  /** The content of the dock before the game. @param {View} view */
  waitingParts({ table, waiting_for: waiting, seats, host, rules }) {
    const names = waiting.map((seat) => t("seat {letter}", { letter: SEATS[seat] })).join(", ");
    const links = (this.own.invitations ?? []).filter(({ seat }) => waiting.includes(seat));
    return [
      waitLine(t("Waiting for {names} …", { names }), null),
      ...links.map(({ seat, invitation }) => {
        const link = linkTo(`join/${table}/${invitation}`, this.own.address);
        const words = t("Link for seat {letter}", { letter: SEATS[seat] });
        const label = h("label", words, h("input", { readonly: true, value: link }));
        return h("div.invitation", label, copyButton(t("Copy"), link));
      }),
      host && workButton(t("Fill with agents"), () => this.fill(rules, waiting)),
      waiting.some((seat) => seats[seat].kind === "open") &&
        h("p.tip", t("Open seats are in the list of open tables, for anyone on this server.")),
    ];
  }
}
