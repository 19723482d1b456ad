/** The dock: the dice, and the buttons of the next decision. */

import { linkTo } from "./address.js";
import { choicesBeside, tipOf } from "./choosing.js";
import { copyButton, glyph, h, waitLine } from "./dom.js";
import { asksForTiger, capital, LETTERS } from "./words.js";

/** @import {Keys} from "./api.js" */
/** @import {Chosen} from "./choosing.js" */
/** @import {Choice, View} from "./types.js" */

/** @typedef {{act: (choice: Choice) => void, undo: () => void}} Acts */

/** @param {() => void} undo @param {string} [label] */
const undoButton = (undo, label) =>
  h("button.undo", { "data-name": "undo", onclick: undo, "aria-label": label }, "Undo");

/** Make the button of a choice. @param {Choice} choice @param {Acts["act"]} act @param {string} [look] */
export function choiceButton(choice, act, look = "") {
  return h(
    "button",
    { class: `choice ${look}`, onclick: () => act(choice), "data-action": choice.action },
    choice.power === null ? null : glyph(`power-${choice.power}`),
    choice.path === null ? null : glyph(`die-${choice.path}`),
    h("span", capital(choice.words)),
  );
}

/** Return the content of the dock while another player is to act. @param {View} view */
export function otherActs(view) {
  const seat = view.seats[view.player];
  const does = seat.kind === "agent" ? "is thinking" : seat.connected ? "is to play" : "is away";
  return [waitLine(`${seat.name} ${does} …`, null)];
}

/**
 * Return the buttons of a decision about dice: `hold` keeps the held ones; a change can be undone.
 * @param {View} view @param {boolean[]} held by place @param {boolean} changed @param {Choice|undefined} hold
 * @param {Acts} acts
 */
export function holdButtons(view, held, changed, hold, { act, undo }) {
  const stop = view.choices.find(({ kind }) => kind === "stop");
  const rest = held.filter((kept) => !kept).length;
  const tiger = asksForTiger(view);
  const words = `Re-roll ${rest === 5 ? "all" : rest}${tiger ? " (eye of the tiger)" : ""}`;
  const rolling = { "data-name": "roll", onclick: () => hold && act(hold) };
  const stopping = { class: rest ? "" : "primary", "data-name": "stop", onclick: () => stop && act(stop) };
  return [
    rest > 0 && h("button.primary", rolling, glyph(tiger ? "power-2" : "again"), h("span", words)),
    stop && h("button", stopping, h("span", tiger ? "Do without it" : "Stop rolling")),
    changed && undoButton(undo, "Undo the choice of dice"),
  ];
}

/** Return the buttons of a move decision. @param {View} view @param {Chosen} chosen @param {Acts} acts */
export function moveButtons(view, { offered, picked }, { act, undo }) {
  if (offered.length)
    return [...offered.map((choice) => choiceButton(choice, act, "primary")), undoButton(undo)];
  if (picked.length) return [h("p.tip", "Tap the piece to swap it with."), undoButton(undo)];
  const tip = tipOf(view.choices);
  const beside = choicesBeside(view).map((choice) => ({ ...choice, words: choice.words.split(",")[0] }));
  const buttons = beside.map((choice, i) =>
    choiceButton(choice, act, i === 0 && !tip && choice.power === null ? "primary" : ""),
  );
  return [tip && h("p.tip", tip), ...buttons];
}

/** Return the content of the dock after the game. @param {View} view @param {() => void} next starts the next game */
export function endButtons({ table, game, result, mine, host }, next) {
  return [
    h("p.result", result?.words ?? "The game is over."),
    h("a.button.primary", { href: `#/review/${table}/${game}` }, "Review the game"),
    (mine.length > 0 || host) && h("button", { onclick: next }, "Rematch"),
  ];
}

/** Return the content of the dock before the game. @param {View} view @param {Keys} own */
export function waitingParts({ table, waiting_for: waiting, seats }, { invitations = [] }) {
  const names = waiting.map((seat) => `seat ${LETTERS[seat]}`).join(", ");
  const links = invitations.filter(({ seat }) => waiting.includes(seat));
  return [
    waitLine(`Waiting for ${names} …`, null),
    ...links.map(({ seat, invitation }) => {
      const link = linkTo(`join/${table}/${invitation}`);
      const label = h("label", `Link for seat ${LETTERS[seat]}`, h("input", { readonly: true, value: link }));
      return h("div.invitation", label, copyButton("Copy", link));
    }),
    waiting.some((seat) => seats[seat].kind === "open") &&
      h("p.tip", "Open seats are in the list of open tables, for anyone on this server."),
  ];
}
