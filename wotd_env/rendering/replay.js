"use strict";
const { drawings, places, frames, captions, turns } = JSON.parse(document.getElementById("data").textContent);
const element = (id) => document.getElementById(id);
const marks = places.map(
  ([drawing, x, y, scale]) => `<g transform="translate(${x} ${y}) scale(${scale})">${drawings[drawing]}</g>`,
);
const ground = document.querySelector("#board > g");
const last = frames.length - 1;
let at = 0;
let timer = 0;

function show(to) {
  at = Math.max(0, Math.min(last, to));
  ground.innerHTML = frames[at].map((place) => marks[place]).join("");
  element("caption").textContent = captions[at];
  element("slider").value = at;
  element("slider").setAttribute("aria-valuetext", captions[at]);
  element("turn").value = turns[at];
  if (at === last) play(false);
}

function play(on) {
  clearInterval(timer);
  element("play").setAttribute("aria-pressed", on);
  element("play").setAttribute("aria-label", on ? "pause" : "play");
  timer = on ? setInterval(() => show(at + 1), Number(element("speed").value)) : 0;
}

function go(to) {
  play(false);
  show(to);
}

function toggle() {
  if (timer) return play(false);
  if (at === last) show(0);
  play(true);
}

const buttons = {
  first: () => go(0),
  "back-turn": () => go(turns.indexOf(turns[Math.max(0, at - 1)])),
  back: () => go(at - 1),
  play: toggle,
  on: () => go(at + 1),
  "on-turn": () => go(turns.lastIndexOf(turns[at]) + 1),
  last: () => go(last),
};
for (const [id, act] of Object.entries(buttons)) element(id).addEventListener("click", act);
element("slider").max = last;
element("slider").addEventListener("input", (event) => go(Number(event.target.value)));
for (const turn of new Set(turns)) element("turn").add(new Option(turn + 1, turn));
element("turn").addEventListener("change", (event) => go(turns.indexOf(Number(event.target.value))));
element("speed").addEventListener("change", () => timer && play(true));

document.addEventListener("keydown", (event) => {
  const { key, shiftKey, target } = event;
  if (event.ctrlKey || event.altKey || event.metaKey || target.tagName === "SELECT") return;
  const keys = {
    ArrowLeft: shiftKey ? "back-turn" : "back",
    ArrowRight: shiftKey ? "on-turn" : "on",
    Home: "first",
    End: "last",
    " ": target.tagName === "BUTTON" ? undefined : "play", // a button clicks itself
  };
  if (keys[key]) {
    event.preventDefault();
    buttons[keys[key]]();
  }
});
show(0);
