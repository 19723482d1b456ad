/** Join a table, by an invitation or at an open seat. */

import { ask, kept, keys, pathOf, personKey } from "./api.js";
import { errorLine, h, say } from "./dom.js";
import { capital, LETTERS } from "./words.js";

/** @import {Entry, Page} from "./types.js" */

/** Join a table, given its id and an invitation, if any. @type {Page} */
export async function joinPage(main, _signal, table, invitation) {
  if (keys.of(table)) return location.replace(`#/table/${table}`);
  const asked = invitation ? { invitation } : {};
  const what = h("p");
  const error = errorLine();
  const stored = kept.get("wotd-name", "");
  const name = h("input", { name: "name", maxlength: "24", autocomplete: "nickname", value: stored });
  const buttons = h("div.buttons", h("button.primary", "Take the seat"));
  const form = h("form", { onsubmit: join }, h("label", "Your name", name), buttons);
  main.append(h("section.card.narrow", h("h1", "Join a game"), what, form, error.element));

  /** @param {Event} event */
  async function join(event) {
    event.preventDefault();
    const called = name.value.trim();
    if (called) kept.set("wotd-name", called);
    try {
      const { key } = await ask(`${pathOf(table)}/join`, {
        body: { name: called, ...asked, person: personKey() },
      });
      keys.add(table, { key });
      say("You have taken the seat.");
      location.replace(`#/table/${table}`);
    } catch (reason) {
      error.show(reason);
    }
  }

  try {
    what.textContent = invitationWords(await ask(`${pathOf(table)}/invitation`, { body: asked }));
  } catch (reason) {
    error.show(reason);
    form.hidden = true;
  }
}

/** @param {{seat: number|null, table: Entry}} found the seat is null for any open one */
function invitationWords({ seat, table: entry }) {
  const place = seat === null ? "an open seat" : `seat ${LETTERS[seat]}`;
  const others = entry.seats.filter(({ taken }) => taken).map(({ name }) => name);
  const company = others.length ? `, with ${others.join(", ")}` : "";
  const help = entry.help ? " Win chances and hints are on." : "";
  return `There is ${place} for you${company}. ${capital(entry.rules_words)}.${help}`;
}
