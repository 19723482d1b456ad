/** The speed of a table: pause, single steps, slow and fast. */

import { ask, pathOf } from "./api.js";
import { h, select } from "./dom.js";
import { t } from "./text.js";
import { PACES } from "./words.js";

/** @import {View} from "./types.js" */

const USUAL = 0.8;

/** Whether only agents play, and this browser controls them. @param {View} view */
export const controlsAgents = ({ host, seats }) => host && seats.every(({ kind }) => kind === "agent");

/**
 * Make the controls for the speed of a table. Errors go to `failed`.
 * @param {string} table @param {string} key @param {(reason: unknown) => void} failed
 */
export function makePace(table, key, failed) {
  let before = USUAL; // the speed to continue with after a pause

  /** @param {number|null} pace */
  const set = (pace) => ask(`${pathOf(table)}/pace`, { key, body: { pace } }).catch(failed);

  /** @param {View} view */
  async function step({ pace, ply }) {
    if (pace !== null) await set(null);
    await ask(`${pathOf(table)}/step`, { key, body: { ply } }).catch((refusal) => {
      if (refusal.status !== 409) failed(refusal); // 409: this decision has been taken meanwhile
    });
  }

  /** @param {View} view */
  function speedSelect({ pace }) {
    const options = Object.entries(PACES);
    const named = pace !== null && String(pace) in PACES;
    if (!named) options.unshift(["", pace === null ? t("paused") : `${pace} s`]);
    const value = named ? String(pace) : "";
    const look = { "aria-label": t("Speed of agents"), "data-name": "speed", value };
    const element = select({ ...look, onchange: () => set(Number(element.value)) }, options);
    return element;
  }

  /** The buttons for a table of agents. @param {View} view */
  function buttons(view) {
    const paused = view.pace === null;
    before = view.pace ?? before;
    const pausing = { "data-name": "pause", onclick: () => set(paused ? before : null) };
    const stepping = { "data-name": "step", class: paused ? "primary" : "", onclick: () => step(view) };
    const pause = h("button", pausing, paused ? t("Continue") : t("Pause"));
    return [pause, h("button", stepping, t("Step")), speedSelect(view)];
  }

  return { buttons, speedSelect };
}
