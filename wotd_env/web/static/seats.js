/** The seats of a table with their scores, and the bar of win chances. */

import { powerButton } from "./dialogs.js";
import { glyph, h } from "./dom.js";
import { t } from "./text.js";
import { ANIMALS, colorsOpen, LETTERS, percent, powerOf, stateOf } from "./words.js";

/** @import {Help, Seat, View} from "./types.js" */

/** Make the list of seats. */
export function makeSeats() {
  const list = h("ul.seats", { "aria-label": t("Seats") });
  const bar = h("div.bar", { role: "img", hidden: true });
  const element = h("div.seats-box", list, bar);

  /** @param {View} view @param {Help|null} help */
  function show(view, help) {
    const chances = help?.game === view.game ? help.chances : null;
    list.style.setProperty("--seats", String(view.seats.length));
    list.replaceChildren(...view.seats.map((seat) => seatItem(seat, view, chances?.[seat.seat] ?? null)));
    bar.hidden = !view.help; // its room is kept before the first chances come
    const words = view.seats.map((seat) => `${seat.name} ${percent(chances?.[seat.seat] ?? 0)}`);
    const known = t("Chances to win: {chances}", { chances: words.join(", ") });
    bar.setAttribute("aria-label", chances ? known : t("Chances to win: not known yet"));
    const parts = (chances ?? []).map((chance, seat) => {
      const part = h("span", { class: `color-${view.color[seat]}` });
      part.style.flexGrow = String(Math.max(chance, 0.004));
      return part;
    });
    bar.replaceChildren(...parts);
  }

  return { element, show };
}

/** @param {Seat} seat @param {View} view @param {number|null} chance */
function seatItem(seat, view, chance) {
  const acts = view.status === "playing" && seat.seat === view.player;
  const open = colorsOpen(view);
  const color = view.color[seat.seat];
  const animal = open ? t("color to be drawn") : ANIMALS[color];
  const power = powerOf(seat.seat, view);
  const won = view.result && !view.result.truncated && view.result.winners.includes(seat.seat);
  const look = `seat${acts ? " acts" : ""}${won ? " won" : ""}`;
  return h(
    "li",
    { class: look, "aria-current": acts ? "true" : null },
    open ? h("span.piece.unknown", { "aria-hidden": "true" }, "?") : glyph(`piece-${color}`, "piece"),
    h("span.unseen", `${t("seat {letter}", { letter: LETTERS[seat.seat] })}, ${animal}: `),
    h("span.name", { title: seat.name }, seat.name),
    h("span.score", String(view.scores[seat.seat]), h("span.unseen", ` ${t("points")}`)),
    power === null || open ? null : powerButton(power, view.used[seat.seat]),
    h("span.state", stateOf(seat, view)),
    chance === null ? null : h("span.chance", { title: t("Chance to win") }, percent(chance)),
  );
}
