/** Join a table, by an invitation or at an open seat. */

import { ask, kept, keys, pathOf } from "./api.js";
import { errorLine, h, say } from "./dom.js";
import { capital, LETTERS } from "./words.js";

/** @import {Entry} from "./types.js" */

/** Join a table. @param {HTMLElement} main @param {string} table @param {string|null} invitation */
export async function joinPage(main, table, invitation) {
  if (keys.of(table)) {
    location.replace(`#/table/${table}`);
    return;
  }
  const what = h("p");
  const error = errorLine();
  const stored = kept.get("wotd-name", "");
  const name = h("input", { name: "name", maxlength: "24", autocomplete: "nickname", value: stored });
  const form = h(
    "form",
    { onsubmit: join },
    h("label", "Your name", name),
    h("div.buttons", h("button.primary", "Take the seat")),
  );
  main.append(h("section.card.narrow", h("h1", "Join a game"), what, form, error.element));

  /** @param {Event} event */
  async function join(event) {
    event.preventDefault();
    const called = name.value.trim();
    if (called) kept.set("wotd-name", called);
    try {
      const body = { name: called, ...(invitation ? { invitation } : {}) };
      const { key } = await ask(`${pathOf(table)}/join`, { body });
      keys.add(table, { key });
      say("You have taken the seat.");
      location.replace(`#/table/${table}`);
    } catch (reason) {
      error.show(reason);
    }
  }

  try {
    what.textContent = invitationWords(await seatOf(table, invitation));
  } catch (reason) {
    error.show(reason);
    form.hidden = true;
  }
}

/**
 * Ask the server for the free seat.
 * @param {string} table @param {string|null} invitation
 * @returns {Promise<{seat: number|null, entry: Entry}>} seat: null for any open one
 */
async function seatOf(table, invitation) {
  if (invitation) {
    const answer = await ask(`${pathOf(table)}/invitation`, { body: { invitation } });
    return { seat: answer.seat, entry: answer.table };
  }
  const { tables } = await ask(`/api/tables?table=${encodeURIComponent(table)}`);
  if (!tables.length) throw new Error("This table has no open seat any more.");
  return { seat: null, entry: tables[0] };
}

/** @param {{seat: number|null, entry: Entry}} found */
function invitationWords({ seat, entry }) {
  const place = seat === null ? "an open seat" : `seat ${LETTERS[seat]}`;
  const others = entry.seats.filter(({ taken }) => taken).map(({ name }) => name);
  const company = others.length ? `, with ${others.join(", ")}` : "";
  const help = entry.help ? " Win chances and hints are on." : "";
  return `There is ${place} for you${company}. ${capital(entry.rules_words)}.${help}`;
}
