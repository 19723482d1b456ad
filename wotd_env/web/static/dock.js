/** The dock: the dice, and the buttons of the next decision. */

import { linkTo } from "./address.js";
import { choicesBeside, tipOf } from "./choosing.js";
import { copyButton, glyph, h, waitLine } from "./dom.js";
import { t } from "./text.js";
import { asksForTiger, capital, LETTERS, POWERS } from "./words.js";

/** @import {Keys} from "./api.js" */
/** @import {Chosen} from "./choosing.js" */
/** @import {Choice, View} from "./types.js" */

/** @typedef {{act: (choice: Choice) => void, undo: () => void}} Acts */

/** @param {() => void} undo */
const undoButton = (undo) => h("button.undo", { "data-name": "undo", onclick: undo }, t("Undo"));

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
  const { name, kind, connected } = view.seats[view.player];
  const away = connected ? `${t("{name} is to play", { name })} …` : t("{name} is away …", { name });
  return [waitLine(kind === "agent" ? t("{name} is thinking …", { name }) : away, null)];
}

/**
 * Return the buttons of a decision about dice. The choice `hold` keeps the held dice; a change can be undone.
 * @param {View} view @param {boolean[]} held by place @param {boolean} changed @param {Choice|undefined} hold
 * @param {Acts} acts
 */
export function holdButtons(view, held, changed, hold, { act, undo }) {
  const stop = view.choices.find(({ kind }) => kind === "stop");
  const rest = held.filter((kept) => !kept).length;
  const tiger = asksForTiger(view);
  const roll = rest === 5 ? t("Re-roll all") : t("Re-roll {count}", { count: rest });
  const words = tiger ? `${roll} (${POWERS[2]})` : roll;
  const rolling = { "data-name": "roll", onclick: () => hold && act(hold) };
  const stopping = { class: rest ? "" : "primary", "data-name": "stop", onclick: () => stop && act(stop) };
  return [
    rest > 0 && h("button.primary", rolling, glyph(tiger ? "power-2" : "again"), h("span", words)),
    stop && h("button", stopping, h("span", tiger ? t("Do without it") : t("Stop rolling"))),
    changed && undoButton(undo),
  ];
}

/** Return the words of a choice without the destinations. @param {string} words */
const shortWords = (words) => words.split(",")[0];

/** Return the buttons of a move decision. @param {View} view @param {Chosen} chosen @param {Acts} acts */
export function moveButtons(view, { offered, picked }, { act, undo }) {
  if (offered.length)
    return [...offered.map((choice) => choiceButton(choice, act, "primary")), undoButton(undo)];
  if (picked.length) return [h("p.tip", t("Tap the piece to swap it with.")), undoButton(undo)];
  const tip = tipOf(view.choices);
  const beside = choicesBeside(view).map((choice) => ({ ...choice, words: shortWords(choice.words) }));
  const buttons = beside.map((choice, i) =>
    choiceButton(choice, act, i === 0 && !tip && choice.power === null ? "primary" : ""),
  );
  return [tip && h("p.tip", tip), ...buttons];
}

/** Return the content of the dock after the game. @param {View} view @param {() => void} next starts the next game */
export function endButtons({ table, game, result, mine, host }, next) {
  return [
    h("p.result", result?.words),
    h("a.button.primary", { href: `#/review/${table}/${game}` }, t("Review the game")),
    (mine.length > 0 || host) && h("button", { onclick: next }, t("Rematch")),
  ];
}

/** Return the content of the dock before the game. @param {View} view @param {Keys} own */
export function waitingParts({ table, waiting_for: waiting, seats }, { invitations = [] }) {
  const names = waiting.map((seat) => t("seat {letter}", { letter: LETTERS[seat] })).join(", ");
  const links = invitations.filter(({ seat }) => waiting.includes(seat));
  return [
    waitLine(t("Waiting for {names} …", { names }), null),
    ...links.map(({ seat, invitation }) => {
      const link = linkTo(`join/${table}/${invitation}`);
      const words = t("Link for seat {letter}", { letter: LETTERS[seat] });
      const label = h("label", words, h("input", { readonly: true, value: link }));
      return h("div.invitation", label, copyButton(t("Copy"), link));
    }),
    waiting.some((seat) => seats[seat].kind === "open") &&
      h("p.tip", t("Open seats are in the list of open tables, for anyone on this server.")),
  ];
}
