/** Optional sounds: rolling dice, and a tone when it is this browser's turn. They are off until a person turns them on. */

import { kept } from "./browser.js";
import { h } from "./dom.js";
import { t } from "./words.js";

const STORED = "wotd-sound";

/** The frequencies of the tones, in Hz, and their distance in seconds. */
const SOUNDS = {
  roll: { tones: [190, 240, 170, 210], distance: 0.05 },
  turn: { tones: [523, 659], distance: 0.12 },
};
const LOUDNESS = 0.08;
const LENGTH = 0.15; // seconds of a tone

/** @type {AudioContext|null} */
let audio = null;

/** Play a sound if sounds are on. @param {keyof typeof SOUNDS} name */
export function play(name) {
  if (!kept.get(STORED, false)) return;
  audio ??= new AudioContext();
  const { tones, distance } = SOUNDS[name];
  tones.forEach((frequency, i) => {
    const context = /** @type {AudioContext} */ (audio);
    const start = context.currentTime + i * distance;
    const gain = new GainNode(context, { gain: LOUDNESS });
    gain.gain.setTargetAtTime(0, start, LENGTH / 3);
    const tone = new OscillatorNode(context, { frequency, type: "triangle" });
    tone.connect(gain).connect(context.destination);
    tone.start(start);
    tone.stop(start + LENGTH);
  });
}

/** Make the box that turns sounds on and off. */
export function soundTick() {
  const tick = h("input", { type: "checkbox", checked: kept.get(STORED, false), onchange: change });
  function change() {
    kept.set(STORED, tick.checked);
    play("turn");
  }
  return h("label.tick", tick, t("Sound"));
}
