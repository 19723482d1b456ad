/** The menu of a table: share the game, and give a seat to an agent. */

import { linkTo } from "./address.js";
import { agentsFor, ask, pathOf } from "./api.js";
import { copyButton, errorLine, h, workButton } from "./dom.js";

/** @import {Keys} from "./api.js" */
/** @import {Agent, Seat, View} from "./types.js" */

/** Make the menu. @param {string} table @param {Keys} own @param {() => View|null} viewNow */
export function makeMenu(table, own, viewNow) {
  const path = pathOf(table);
  const gameText = async () => (await ask(`${path}/text`, { key: own.key })).text;
  const share = h(
    "div.share",
    h("h3", "Share"),
    copyButton("Copy the position", () => viewNow()?.position ?? ""),
    copyButton("Copy the game", gameText),
    workButton("Save the game", save),
    own.watch && copyButton("Copy a link to watch", linkTo(`watch/${table}/${own.watch}`)),
  );
  const people = h("div");
  const element = h("details.card.menu", h("summary", "Share, seats"), share, people);
  let shown = "";

  async function save() {
    const url = URL.createObjectURL(new Blob([await gameText()], { type: "text/plain" }));
    h("a", { href: url, download: `wotd-${table}.txt` }).click();
    URL.revokeObjectURL(url);
  }

  /** @param {View} view */
  function show(view) {
    const seats = view.seats.filter(
      (seat) => seat.kind !== "agent" && (seat.mine || (view.host && !seat.connected)),
    );
    const now = JSON.stringify(seats.map(({ seat, name }) => [seat, name]));
    if (now === shown) return;
    shown = now;
    people.replaceChildren(
      seats.length ? h("h3", "Give a seat to an agent") : "",
      ...seats.map((seat) => handOverRow(seat, view, `${path}/seat`, own.key)),
    );
  }

  return { element, show };
}

/** @param {Seat} seat @param {View} view @param {string} path @param {string} key */
function handOverRow(seat, view, path, key) {
  const select = h("select", { "aria-label": `agent for ${seat.name}` });
  const error = errorLine();
  agentsFor({ rules: view.rules }).then((found) => select.append(...found.map(agentOption)), error.show);
  const handOver = () => ask(path, { key, body: { seat: seat.seat, agent: select.value } });
  const button = workButton("Hand over", handOver);
  return h("div.hand-over", h("span.name", seat.name), select, button, error.element);
}

/** Make the option of an agent; a disabled one shows why it cannot play. @param {Agent} agent */
export const agentOption = ({ name, words, plays, why }) =>
  h("option", { value: name, title: words, disabled: !plays }, why || name);
