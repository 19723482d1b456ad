/** Join a table, by an invitation or at an open seat. */

import { ask, keys, pathOf, personKey } from "./api.js";
import { errorLine, h } from "./dom.js";
import { kept } from "./kept.js";
import { t } from "./text.js";
import { rulesWords } from "./wording.js";
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
  const buttons = h("div.buttons", h("button.primary", t("Take the seat")));
  const form = h("form", { onsubmit: join }, h("label", t("Your name"), name), buttons);
  main.append(h("section.card.narrow", h("h1", t("Join a game")), what, form, error.element));

  /** @param {Event} event */
  async function join(event) {
    event.preventDefault();
    const called = name.value.trim();
    if (called) kept.set("wotd-name", called);
    try {
      const body = { name: called, ...asked, person: personKey() };
      const { key } = await ask(`${pathOf(table)}/join`, { body });
      keys.add(table, { key });
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
  const place = seat === null ? t("an open seat") : t("seat {letter}", { letter: LETTERS[seat] });
  const names = entry.seats.filter(({ taken }) => taken).map(({ name }) => name);
  const values = { place, names: names.join(", ") };
  const free = names.length
    ? t("There is {place} for you, with {names}.", values)
    : t("There is {place} for you.", values);
  const help = entry.help ? ` ${capital(t("win chances and hints are on"))}.` : "";
  return `${free} ${capital(rulesWords(entry.rules))}.${help}`;
}
