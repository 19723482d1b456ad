/** The log of a game: the rolls for the start, then every decision. */

import { diceRow } from "./dice.js";
import { glyph, h } from "./dom.js";
import { facesOf, placesAfter } from "./places.js";
import { heard, plural, t } from "./text.js";
import { DRAGON, withoutName } from "./words.js";

/** @import {RollOff, Step, View} from "./types.js" */

/** Make the log. */
export function makeLog() {
  const entries = h("ol");
  const scroll = h("div.log", { tabindex: "0", role: "region", "aria-label": t("Log") }, entries);
  const element = h("section.card.log-card", h("h2", t("Log")), scroll);
  let shown = { game: -1, count: 0 };

  /** @param {View} view */
  function show(view) {
    const { game, log } = view;
    if (shown.game !== game || shown.count > log.length) {
      entries.replaceChildren();
      shown = { game, count: 0 };
      if (view.roll_off) entries.append(rollOff(view.roll_off, view));
    }
    const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
    let turn = log[shown.count - 1]?.turn ?? -1;
    for (let ply = shown.count; ply < log.length; ply++) {
      const { seat } = log[ply];
      const name = view.seats[seat].name;
      if (log[ply].turn !== turn) {
        turn = log[ply].turn;
        const piece = glyph(`piece-${view.color[seat]}`, "piece");
        entries.append(
          h("li.turn-head", piece, h("strong", name), h("span", t("turn {turn}", { turn: turn + 1 }))),
        );
      }
      entries.append(logLine(log, ply, name));
    }
    shown.count = log.length;
    if (atEnd) scroll.scrollTop = scroll.scrollHeight;
  }

  return { element, show };
}

/** @param {Step[]} log @param {number} ply @param {string} name of the player */
function logLine(log, ply, name) {
  const step = log[ply];
  const { order } = placesAfter(log.slice(Math.max(0, ply - 4), ply), step.turn);
  const dice = step.dice.every((face) => face >= 0) && diceRow(facesOf(order, step.dice));
  const note = step.note ? ` (${heard(step.note)})` : "";
  const words = h("span", withoutName(step.words, name), note, h("code", step.notation));
  return h("li", { class: step.forced ? "forced" : "" }, dice, words);
}

/** @param {RollOff} rounds @param {View} view */
function rollOff(rounds, view) {
  const parts = rounds.map((round, number) => {
    const rows = round.map((faces, seat) => {
      if (faces === null) return null;
      const dragons = faces.filter((face) => face === DRAGON).length;
      const who = h("span.who", view.seats[seat].name);
      return h("div", who, diceRow(faces), h("span", plural(dragons, "{count} dragon", "{count} dragons")));
    });
    return h("div.round", number > 0 && h("p.quiet", t("A tie: these players roll again.")), ...rows);
  });
  return h("li.roll-off", h("strong", t("Who starts: most dragons")), ...parts);
}
