/** The parts around the board: the seats with the bar of win chances, the hints, and the log. */

import { diceRow } from "./board.js";
import { powerButton } from "./dialogs.js";
import { glyph, h } from "./dom.js";
import {
  ANIMALS,
  capital,
  colorsOpen,
  DRAGON,
  lossWords,
  noHintWords,
  percent,
  powerOf,
  SEATS,
  sourceOf,
  stateOf,
  t,
} from "./words.js";

/** @import {Help, RollOff, Seat, View} from "./types.js" */

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
  const won = view.result && !view.result.expired && view.result.winners.includes(seat.seat);
  const look = `seat${acts ? " acts" : ""}${won ? " won" : ""}`;
  return h(
    "li",
    { class: look, "aria-current": acts ? "true" : null },
    open ? h("span.piece.unknown", { "aria-hidden": "true" }, "?") : glyph(`piece-${color}`, "piece"),
    h("span.unseen", `${t("seat {letter}", { letter: SEATS[seat.seat] })}, ${animal}: `),
    h("span.name", { title: seat.name }, seat.name),
    h("span.score", String(view.scores[seat.seat]), h("span.unseen", ` ${t("points")}`)),
    power === null || open ? null : powerButton(power, view.used[seat.seat]),
    h("span.state", stateOf(seat, view)),
    chance === null ? null : h("span.chance", { title: t("Chance to win") }, percent(chance)),
  );
}

/** Make the card of hints. @param {(action: number) => void} act */
export function makeHints(act) {
  const list = h("div.hint-list");
  const element = h("details.card.hints", { hidden: true }, h("summary", t("Hints")), list);

  /** @param {View} view @param {Help|null} help */
  function show(view, help) {
    element.hidden = !(view.help && view.status === "playing" && view.mine.length);
    const current = help?.ply === view.ply && help.game === view.game ? help : null;
    const hints = view.choices.length ? (current?.hints ?? []) : [];
    const items = hints.map(({ loss, action }) => {
      const words = view.choices.find((choice) => choice.action === action)?.words ?? "";
      const button = h("button.choice", { onclick: () => act(action) }, capital(words));
      return h("li", button, h("span.loss", lossWords(loss)));
    });
    const words = current && hints.length ? sourceOf(current) : noHintWords(view);
    list.replaceChildren(h("ol", ...items), h("p.quiet", words));
  }

  return { element, show };
}

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
      if (view.roll_off) entries.append(rollOffLine(view.roll_off, view));
    }
    const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
    let turn = log[shown.count - 1]?.turn ?? -1;
    for (const step of log.slice(shown.count)) {
      if (step.turn !== turn) {
        turn = step.turn;
        const piece = glyph(`piece-${view.color[step.seat]}`, "piece");
        const name = h("strong", view.seats[step.seat].name);
        entries.append(h("li.turn-head", piece, name, h("span", t("turn {turn}", { turn: turn + 1 }))));
      }
      const dice = step.dice.every((face) => face >= 0) && diceRow(step.dice);
      const words = h("span", step.did, step.note, h("code", step.notation));
      entries.append(h("li", { class: step.forced ? "forced" : "" }, dice, words));
    }
    shown.count = log.length;
    if (atEnd) scroll.scrollTop = scroll.scrollHeight;
  }

  return { element, show };
}

/** Make the line of the roll-off: the dragons of each seat that rolls, by round. @param {RollOff} rounds @param {View} view */
function rollOffLine(rounds, { seats }) {
  /** @param {number[]} faces */
  const dragons = (faces) => faces.filter((face) => face === DRAGON).length;
  const words = rounds.map((round) =>
    round.flatMap((faces, seat) => (faces ? [`${seats[seat].name} ${dragons(faces)}`] : [])).join(", "),
  );
  return h("li", h("strong", t("Who starts: most dragons")), h("span", words.join("; ")));
}
