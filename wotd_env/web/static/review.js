/** A finished or recorded game, to step through: what was given away, what was luck. */

import { ask, keys } from "./api.js";
import { capital, diceRow, makeBoard } from "./board.js";
import { copyButton, glyph, h, isElsewhere, percent, say } from "./dom.js";

const SVG = "http://www.w3.org/2000/svg";
const WORST = 8;

/**
 * Review a game of a table.
 * @param {HTMLElement} main
 * @param {string} table
 * @param {string} [game] its number at the table
 */
export function reviewPage(main, table, game) {
  const key = keys.of(table)?.key;
  const which = game ? `?game=${encodeURIComponent(game)}` : "";
  return show(main, ask(`/api/tables/${table}/review${which}`, { key }), `#/table/${table}`);
}

/**
 * Step through the game whose text was pasted.
 * @param {HTMLElement} main
 */
export function gamePage(main) {
  const pasted = JSON.parse(sessionStorage.getItem("wotd-game") ?? "null");
  const review = pasted
    ? ask("/api/games", { body: pasted })
    : Promise.reject(new Error("No game has been pasted."));
  return show(main, review, "#/");
}

/**
 * Show a review once it is worked out.
 * @param {HTMLElement} main
 * @param {Promise<any>} coming
 * @param {string} back
 */
function show(main, coming, back) {
  let wanted = true;
  /** @type {() => void} */
  let end = () => {};
  const waits = h(
    "section",
    { class: "card narrow" },
    h("h1", {}, "Review"),
    h("p", { class: "waits", role: "status" }, h("span", { class: "dots" }), "The game is gone through …"),
  );
  main.append(waits);
  coming
    .then((review) => {
      if (!wanted) return;
      waits.remove();
      end = viewer(main, review, back);
    })
    .catch((refusal) => {
      if (!wanted) return;
      waits.replaceChildren(
        h("h1", {}, "Review"),
        h("p", { class: "error", role: "alert" }, refusal.message),
        h("a", { class: "button", href: back }, "Back"),
      );
    });
  return () => {
    wanted = false;
    end();
  };
}

/** @param {HTMLElement} main @param {any} review @param {string} back */
function viewer(main, review, back) {
  const { steps, players, rules, graded } = review;
  const last = steps.length;
  const named = players.map((name, seat) => (name && name !== "?" ? name : `Seat ${"ABCDE"[seat]}`));
  const names = named.map((name, seat) =>
    named.indexOf(name) === named.lastIndexOf(name) ? name : `${name} (${"ABCDE"[seat]})`,
  );
  const part = (rules.players - 1) / rules.players; // of equity, which goes from -1/(n-1) to 1, in win chance
  const colors = review.last.color;
  let at = last;

  const board = makeBoard(rules.spaces, () => {});
  const caption = h("p", { class: "caption", "aria-live": "polite" });
  const verdict = h("div", { class: "verdict" });
  const dicePlace = h("div", { class: "review-dice" });
  const turn = h("p", { class: "sub" });
  const slider = h("input", {
    type: "range",
    min: "0",
    max: String(last),
    value: String(at),
    "aria-label": "step",
    oninput: () => go(Number(slider.value)),
  });
  const graph = graded ? drawGraph() : null;
  const again = h("a", { class: "button" }, "Play on from here");

  const controls = h(
    "div",
    { class: "controls" },
    stepButton("«", "to the start (Home)", () => go(0)),
    stepButton("‹", "a step back (left arrow)", () => go(at - 1)),
    slider,
    stepButton("›", "a step on (right arrow)", () => go(at + 1)),
    stepButton("»", "to the end (End)", () => go(last)),
  );

  const seatsTable = graded ? summary() : points();
  const article = h(
    "div",
    { class: "table review" },
    h(
      "section",
      { class: "play", "aria-labelledby": "review-title" },
      h(
        "header",
        { class: "turn" },
        h("h1", { id: "review-title", tabindex: "-1" }, review.result?.words ?? "A game without an end"),
        turn,
      ),
      board.element,
      h("div", { class: "review-step" }, dicePlace, h("div", { class: "told" }, caption, verdict)),
      controls,
      graph?.element ?? "",
    ),
    h(
      "div",
      { class: "side" },
      h(
        "section",
        { class: "card" },
        h("h2", {}, graded ? "Skill and luck" : "Points"),
        seatsTable,
        graded
          ? h(
              "p",
              { class: "quiet" },
              `Judged by ${review.source}${review.exact ? "." : ", an estimate."} What was given away, luck, and the result without luck are in percent of win chance.`,
            )
          : "",
      ),
      graded ? h("section", { class: "card worst" }, h("h2", {}, "Greatest errors"), worst()) : "",
      h(
        "section",
        { class: "card" },
        h(
          "div",
          { class: "buttons" },
          again,
          copyButton("Copy the position", () => stateAt().position),
          copyButton("Copy the game", () => review.text),
          h("a", { class: "button", href: back }, "Back"),
        ),
      ),
    ),
  );
  main.append(article);

  /** @param {string} sign @param {string} words @param {() => void} act */
  function stepButton(sign, words, act) {
    return h(
      "button",
      { type: "button", "aria-label": words.replace(/ \(.*/, ""), title: words, onclick: act },
      h("span", { "aria-hidden": "true" }, sign),
    );
  }

  const stateAt = () => (at === last ? review.last : steps[at].state);

  /** @param {number} to */
  function go(to) {
    at = Math.max(0, Math.min(last, to));
    const state = stateAt();
    const step = at < last ? steps[at] : null;
    const moved =
      steps
        .slice(0, at)
        .reverse()
        .find(({ moves }) => moves.length)?.moves ?? [];
    board.show(state, names, moved, step ? marksOf(step) : new Map(), rules.immunity);
    turn.textContent = step
      ? `Turn ${step.turn + 1}, step ${at + 1} of ${last}`
      : `The end, after ${last} decisions`;
    dicePlace.replaceChildren(
      step ? glyph(`piece-${colors[step.seat]}`, "piece") : "",
      state.phase === "over" ? "" : diceRow(state.dice, step ? keptBy(step) : []),
    );
    caption.textContent = step ? `${step.words}.` : (review.result?.words ?? "");
    verdict.replaceChildren(...(step ? judged(step) : []));
    slider.value = String(at);
    slider.setAttribute("aria-valuetext", caption.textContent);
    again.setAttribute("href", `#/new/${encodeURIComponent(state.position)}`);
    again.hidden = state.phase === "over";
    graph?.mark(at);
  }

  /** The dice that a step keeps, where it is one of keeping. */
  function keptBy({ state, notation, action }) {
    if (state.phase !== "keep") return [];
    return state.dice.map((_, die) => notation === "stop" || Boolean((action >> die) & 1));
  }

  /** @param {any} step */
  function marksOf(step) {
    const marks = new Map();
    for (const { seat, path, from, to } of step.moves) {
      const swap = step.moves.length === 2 && step.moves[0].path === step.moves[1].path;
      marks.set(
        `${path}:${swap ? from : to}`,
        swap
          ? { kind: "picked", words: "is swapped" }
          : { kind: "move", color: colors[seat], words: "moves here next" },
      );
    }
    return marks;
  }

  /** @param {any} step */
  function judged(step) {
    if (!graded) return [];
    const parts = [];
    if (step.class) {
      parts.push(
        h(
          "p",
          {},
          mark(step.class),
          h("strong", {}, capital(step.class)),
          `, ${share(step.regret)} given away. Best: ${step.best_words}.`,
        ),
      );
    } else if (!step.forced && step.regret > 0.0005) {
      parts.push(h("p", {}, `${share(step.regret)} given away. Best: ${step.best_words}.`));
    } else if (!step.forced && step.regret !== null) parts.push(h("p", {}, "The best choice."));
    if (step.luck !== null && step.luck !== undefined && Math.abs(step.luck) >= 0.02) {
      parts.push(
        h(
          "p",
          { class: "quiet" },
          `The roll of these dice was ${step.luck > 0 ? "lucky" : "unlucky"}: ${step.luck > 0 ? "+" : "−"}${share(Math.abs(step.luck))}.`,
        ),
      );
    }
    return parts;
  }

  /** @param {number} equity */
  function share(equity) {
    return `${(100 * part * equity).toFixed(1)} %`;
  }

  /** @param {number} value */
  function signed(value) {
    const points = 100 * part * value;
    return `${points > 0.05 ? "+" : points < -0.05 ? "−" : ""}${Math.abs(points).toFixed(1)}`;
  }

  function summary() {
    return h(
      "div",
      { class: "scroll", tabindex: "0", role: "region", "aria-label": "Skill and luck" },
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            ...["Player", "Errors", "Blunders", "Given away", "Luck", "Without luck"].map((head) =>
              h("th", { scope: "col" }, head),
            ),
          ),
        ),
        h(
          "tbody",
          {},
          ...review.seats.map((row) =>
            h(
              "tr",
              {},
              h(
                "th",
                { scope: "row" },
                glyph(`piece-${colors[row.seat]}`, "piece"),
                h("span", {}, names[row.seat]),
              ),
              h("td", {}, `${row.errors}/${row.decisions}`),
              h("td", {}, String(row.blunders)),
              h("td", {}, (100 * part * row.regret).toFixed(1)),
              h("td", {}, row.luck === null ? "" : signed(row.luck)),
              h("td", {}, row.luck_adjusted === null ? "" : signed(row.luck_adjusted)),
            ),
          ),
        ),
      ),
    );
  }

  function points() {
    return h(
      "ul",
      { class: "tables" },
      ...names.map((name, seat) =>
        h(
          "li",
          {},
          h("span", {}, glyph(`piece-${colors[seat]}`, "piece"), ` ${name}`),
          h("span", {}, String(review.last.scores[seat])),
        ),
      ),
    );
  }

  function worst() {
    const errors = steps
      .map((step, i) => ({ ...step, i }))
      .filter((step) => step.class)
      .sort((one, other) => other.regret - one.regret)
      .slice(0, WORST);
    if (!errors.length) return h("p", { class: "quiet" }, "None: nobody gave much away.");
    return h(
      "ol",
      { class: "worst-list" },
      ...errors.map((step) =>
        h(
          "li",
          {},
          h(
            "button",
            {
              type: "button",
              onclick: () => {
                go(step.i);
                say(caption.textContent ?? "");
              },
            },
            mark(step.class),
            h("span", {}, `Turn ${step.turn + 1}: ${step.words}`),
            h("span", { class: "loss" }, `${share(step.regret)}`),
          ),
        ),
      ),
    );
  }

  /** @param {string} kind */
  function mark(kind) {
    return h(
      "span",
      { class: `grade ${kind}`, role: "img", "aria-label": kind },
      kind === "blunder" ? "??" : "?",
    );
  }

  /** Draw every seat's chances from step to step. */
  function drawGraph() {
    const [width, height, pad] = [600, 150, 6];
    const chances = [...steps.map((step) => step.chances), review.last_chances];
    const x = (i) => pad + ((width - 2 * pad) * i) / Math.max(last, 1);
    const y = (chance) => height - pad - (height - 2 * pad) * chance;
    const svg = document.createElementNS(SVG, "svg");
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    svg.setAttribute("preserveAspectRatio", "none");
    svg.setAttribute("role", "img");
    svg.setAttribute(
      "aria-label",
      "Chances to win of every player, step by step. The slider goes through the steps.",
    );
    /** @param {string} tag @param {Record<string, string>} attributes */
    function draw(tag, attributes) {
      const element = document.createElementNS(SVG, tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      svg.append(element);
      return element;
    }
    draw("path", { d: `M0 ${y(0.5)}H${width}`, class: "middle" });
    names.forEach((_, seat) => {
      const points = chances.map((now, i) => `${x(i).toFixed(1)} ${y(now?.[seat] ?? 0).toFixed(1)}`);
      draw("path", { d: `M${points.join("L")}`, class: `rim dash-${seat}` });
      draw("path", { d: `M${points.join("L")}`, class: `line line-${colors[seat]} dash-${seat}` });
    });
    steps.forEach((step, i) => {
      if (step.class)
        draw("path", { d: `M${x(i)} ${y(step.chances[step.seat])}v.01`, class: `dot ${step.class}` });
    });
    const cursor = draw("path", { class: "cursor" });
    svg.addEventListener("click", (event) => {
      const box = svg.getBoundingClientRect();
      go(Math.round(((((event.clientX - box.left) / box.width) * width - pad) / (width - 2 * pad)) * last));
    });
    const legend = h("p", { class: "legend" });
    const element = h("figure", { class: "graph" }, svg, h("figcaption", {}, legend));
    return {
      element,
      /** @param {number} step */
      mark(step) {
        cursor.setAttribute("d", `M${x(step)} 0V${height}`);
        const now = chances[step];
        legend.replaceChildren(
          ...names.map((name, seat) =>
            h("span", {}, sample(seat), `${name} ${now ? percent(now[seat]) : ""}`),
          ),
        );
      },
    };
    /** @param {number} seat */
    function sample(seat) {
      const line = document.createElementNS(SVG, "svg");
      line.setAttribute("viewBox", "0 0 30 10");
      line.setAttribute("class", "sample");
      line.setAttribute("aria-hidden", "true");
      for (const look of [`rim dash-${seat}`, `line line-${colors[seat]} dash-${seat}`]) {
        const path = document.createElementNS(SVG, "path");
        path.setAttribute("d", "M1 5H29");
        path.setAttribute("class", look);
        line.append(path);
      }
      return line;
    }
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    const { key, target } = event;
    if (target !== slider && isElsewhere(event)) return;
    if (/** @type {HTMLElement} */ (target).closest("[role=gridcell], [role=region]")) return;
    const steps_ = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: last };
    if (steps_[key] === undefined || event.ctrlKey || event.altKey || event.metaKey) return;
    event.preventDefault();
    go(steps_[key]);
  }
  document.addEventListener("keydown", onKey);
  go(
    graded
      ? Math.max(
          0,
          steps.findIndex((step) => step.class),
        )
      : 0,
  );
  return () => document.removeEventListener("keydown", onKey);
}
