/** A table: the game as it is played. */

import { ask, follow, keys, kept } from "./api.js";
import { ELEMENTS, FACES, capital, cellOf, diceRow, makeBoard, makeDice } from "./board.js";
import { copyButton, glyph, h, isElsewhere, percent, say } from "./dom.js";

const POWERS = ["fear", "rebirth", "eye of the tiger", "anxiety", "the dragon", "any one power"];

/**
 * Show a table.
 * @param {HTMLElement} main
 * @param {string} id
 * @returns {() => void} what ends it
 */
export function tablePage(main, id) {
  const own = keys.of(id);
  if (!own) {
    main.append(
      h(
        "section",
        { class: "card narrow" },
        h("h1", {}, "This table is not yours"),
        h("p", {}, "You take a seat at a table by an invitation link, or from the list of open tables."),
        h("a", { class: "button", href: "#/" }, "To the tables"),
      ),
    );
    return () => {};
  }

  /** @type {import("./api.js").View|null} */
  let view = null;
  /** @type {import("./api.js").Help|null} */
  let help = null;
  let acted = -1; // the ply of the decision that is on its way
  let hinted = false;
  /** @type {number[]} */
  let picked = []; // seats of the pieces chosen for a swap
  let pickedPath = -1;
  /** @type {import("./api.js").Choice[]} */
  let offered = []; // choices to confirm

  /** @type {ReturnType<typeof makeBoard>|null} */
  let board = null;
  let boardSpaces = -1;
  const dice = makeDice(() => showActions());
  const title = h("h1", { id: "whose", tabindex: "-1" }, "The table opens …");
  const sub = h("p", { class: "sub" });
  const seats = h("ul", { class: "seats", "aria-label": "Seats" });
  const chances = h("div", { class: "chances", hidden: true });
  const boardPlace = h("div", { class: "board-place" });
  const actions = h("div", { class: "actions" });
  const dock = h("div", { class: "dock" }, dice.element, actions);
  const error = h("p", { class: "error", role: "alert", hidden: true });
  const hints = h("section", { class: "card hints", hidden: true, "aria-label": "Hints" });
  const choiceList = h("div", { class: "choice-list" });
  const choices = h("section", { class: "card choices", hidden: true }, h("h2", {}, "Choices"), choiceList);
  const entries = h("ol");
  const scroll = h("div", { class: "log", tabindex: "0", role: "region", "aria-label": "Log" }, entries);
  const log = h("section", { class: "card log-card" }, h("h2", {}, "Log"), scroll);
  const people = h("div");
  const share = h("div", { class: "share" });
  const menu = h("details", { class: "card menu" }, h("summary", {}, "Share, seats"), share, people);
  const play = h(
    "section",
    { class: "play", "aria-labelledby": "whose" },
    h("header", { class: "turn" }, title, sub),
    error,
    seats,
    chances,
    boardPlace,
    dock,
  );
  const side = h("div", { class: "side" }, hints, choices, log, menu);
  main.append(h("div", { class: "table" }, play, side));
  const offline = /** @type {HTMLElement} */ (document.getElementById("offline"));

  const connection = follow(id, own.key, {
    view: showView,
    help(message) {
      help = message;
      showHelp();
    },
    error(message, status) {
      acted = -1;
      if (status === 409) return; // stale: a fresh view is on its way
      error.textContent = message;
      error.hidden = false;
    },
    lost(reason) {
      acted = -1; // whether it has arrived is seen when the connection is back
      showBanner(`${capital(reason)}. Trying again …`);
    },
    back: () => showBanner(""),
    gone(reason) {
      keys.drop(id);
      showBanner("");
      main.replaceChildren(
        h(
          "section",
          { class: "card narrow" },
          h("h1", {}, reason),
          h("a", { class: "button", href: "#/" }, "To the tables"),
        ),
      );
    },
  });

  /** @param {string} words */
  function showBanner(words) {
    offline.textContent = words;
    offline.hidden = !words;
    dock.classList.toggle("cut-off", Boolean(words));
  }

  /** @param {number} seat */
  const nameOf = (seat) => view?.seats[seat].name || `Seat ${view?.seats[seat].letter}`;
  const myTurn = () => view !== null && view.choices.length > 0;

  // ---------------------------------------------------------------------------------------------- what is shown

  /** @param {import("./api.js").View} fresh */
  function showView(fresh) {
    const first = view === null;
    const another = view?.game !== fresh.game;
    const moved = another || view?.ply !== fresh.ply;
    const before = view?.log ?? [];
    const log = before.slice(0, fresh.log_from).concat(fresh.log);
    const news = first || another ? [] : log.slice(before.length);
    view = { ...fresh, log };
    if (moved) {
      [picked, pickedPath, offered] = [[], -1, []];
      acted = -1;
      error.hidden = true;
      if (help && (help.ply !== view.ply || help.game !== view.game)) hints.hidden = true;
    }
    if (board === null || boardSpaces !== view.rules.spaces) {
      boardSpaces = view.rules.spaces;
      board = makeBoard(boardSpaces, pick);
      boardPlace.replaceChildren(board.element);
    }
    showTurn();
    showSeats();
    if (moved) showDice(first || another ? null : news);
    showBoard();
    showActions();
    showChoices();
    showHelp();
    showLog();
    showMenu();
    const sentences = news.filter(({ seat }) => !view?.mine.includes(seat)).map(({ words }) => `${words}.`);
    if (first || moved) {
      if (myTurn() || view.status === "over") sentences.push(`${view.result?.words ?? view.words}`);
      say(sentences.join(" "));
    }
    if (moved && !first && myTurn() && [document.body, main, title].includes(document.activeElement)) {
      focusOnChoice();
    }
    if (moved && myTurn() && !side.contains(document.activeElement))
      board.element.scrollIntoView({ block: "nearest" });
    play.dataset.at = `${view.game}/${view.ply}`; // all of this position is shown
  }

  function focusOnChoice() {
    const target = actions.querySelector("button.primary") ?? choiceList.querySelector("button");
    /** @type {HTMLElement|null} */ (target)?.focus({ preventScroll: true });
  }

  function showTurn() {
    if (!view) return;
    const name = nameOf(view.player);
    const asked = {
      keep: "which dice to keep?",
      move: "where to move?",
      extra: "an extra turn?",
      chance: "roll",
    };
    const here = view.seats.filter(({ mine }) => mine).length > 1;
    const tiger = view.phase === "keep" && view.rolls_left === 0;
    let words = `${name} is to play`;
    if (view.status === "waiting") words = "Waiting for players";
    else if (view.status === "over") words = view.result?.words ?? "The game is over";
    else if (myTurn()) {
      words = `${here ? name : "Your turn"}: ${tiger ? "the eye of the tiger?" : asked[view.phase]}`;
    }
    title.textContent = words;
    title.className = myTurn() ? "mine" : "";
    const parts = [
      view.game > 1 && `game ${view.game}`,
      view.status === "playing" && `turn ${view.turn + 1}`,
    ];
    if (view.status === "playing" && view.phase === "keep" && !tiger) {
      parts.push(`${view.rolls_left} re-roll${view.rolls_left === 1 ? "" : "s"} left`);
    }
    if (view.perfection) parts.push("perfection: one further turn is earned");
    if (view.status !== "playing") parts.push(view.rules_words, view.help && "win chances and hints are on");
    sub.textContent = parts.filter(Boolean).join(" · ");
    document.title = `${words} · Way of the Dragon`;
  }

  function showSeats() {
    if (!view) return;
    const { status, player, result } = view;
    seats.style.setProperty("--seats", String(view.seats.length));
    seats.replaceChildren(
      ...view.seats.map((seat) => {
        const acts = status === "playing" && seat.seat === player;
        const won = result !== null && !result.truncated && result.winners.includes(seat.seat);
        let state = "";
        if (!seat.taken) state = "free";
        else if (won) state = "won";
        else if (seat.thinking) state = "thinking …";
        else if (acts) state = seat.mine ? "you play" : "plays";
        else if (!seat.connected && seat.kind !== "agent") state = "away";
        return h(
          "li",
          { class: `seat${acts ? " acts" : ""}${won ? " won" : ""}`, "aria-current": acts ? "true" : null },
          glyph(`piece-${seat.color}`, "piece"),
          h("span", { class: "unseen" }, `seat ${seat.letter}, ${seat.animal}: `),
          h("span", { class: "name", title: seat.name }, seat.name || `Seat ${seat.letter}`),
          h("span", { class: "score" }, String(seat.score), h("span", { class: "unseen" }, " points")),
          seat.power === null ? null : powerBadge(seat.power, seat.used),
          h("span", { class: "state" }, state),
        );
      }),
    );
  }

  /** @param {import("./api.js").Step[]|null} news what has happened since the dice were last shown */
  function showDice(news) {
    if (!view) return;
    const choosing = myTurn() && view.phase === "keep";
    const rolled = news?.some(({ roll }) => roll !== null) ?? false;
    const tumbling = view.dice.map((face, die) => rolled && face >= 0 && !view?.kept[die]);
    dice.show(view.dice, view.phase === "move" ? [] : view.kept, choosing, tumbling);
  }

  function showBoard() {
    if (!view || !board) return;
    board.show(
      view,
      view.seats.map(({ seat }) => nameOf(seat)),
      view.moved,
      marksOnBoard(),
      view.rules.immunity,
    );
  }

  /** What can be tapped. @returns {Map<string, import("./board.js").CellMark>} */
  function marksOnBoard() {
    /** @type {Map<string, import("./board.js").CellMark>} */
    const marks = new Map();
    if (!view || !myTurn()) return marks;
    for (const choice of view.choices) {
      if (choice.kind === "swap") {
        const partner = picked.length === 0 || choice.path === pickedPath;
        for (const { seat, path, from } of choice.moves) {
          const chosen = path === pickedPath && picked.includes(seat);
          const fits = picked.length < 2 && (picked.length === 0 || choice.seats?.includes(picked[0]));
          if (chosen) marks.set(cellOf(path, from), { kind: "picked", words: "chosen for the swap" });
          else if (partner && fits) marks.set(cellOf(path, from), { kind: "swap", words: "can be swapped" });
        }
        continue;
      }
      for (const { seat, path, to } of choice.moves) {
        const name = cellOf(path, to);
        const offeredHere = offered.includes(choice);
        const kind = offeredHere ? "picked" : choice.power === null ? "move" : "power";
        if (marks.has(name) && !offeredHere && marks.get(name)?.kind !== "power") continue;
        const words = offeredHere
          ? "chosen"
          : kind === "power"
            ? `${POWERS[choice.power ?? 5]} leads here`
            : "move here";
        marks.set(name, { kind, color: view.color[seat], words });
      }
    }
    return marks;
  }

  /** @param {import("./api.js").Choice} choice */
  function choiceButton(choice, look = "") {
    return h(
      "button",
      { type: "button", class: `choice ${look}`, onclick: () => act(choice), "data-action": choice.action },
      choice.power === null ? null : glyph(`power-${choice.power}`),
      choice.path === null ? null : glyph(`die-${choice.path}`),
      h("span", {}, capital(choice.words)),
    );
  }

  /** The choice that keeps the dice that are held, by their faces. */
  function holdChoice() {
    if (!view) return null;
    /** @param {boolean[]} hold */
    const faces = (hold) =>
      view?.dice
        .filter((_, die) => hold[die])
        .sort()
        .join("") ?? "";
    const wanted = faces(dice.held());
    return view.choices.find(({ keep }) => keep !== null && faces(keep) === wanted) ?? null;
  }

  function showActions() {
    if (!view) return;
    const { status, phase } = view;
    /** @type {Node[]} */
    const parts = [];
    dock.classList.toggle("mine", myTurn());
    dice.element.hidden = status !== "playing";
    if (status === "waiting") {
      parts.push(...invitations());
    } else if (status === "over") {
      parts.push(...endButtons());
    } else if (!myTurn()) {
      const seat = view.seats[view.player];
      const what =
        seat.thinking || seat.kind === "agent" ? "is thinking" : seat.connected ? "is to play" : "is away";
      parts.push(
        h(
          "p",
          { class: "waits" },
          h("span", { class: "dots", "aria-hidden": "true" }),
          `${nameOf(view.player)} ${what} …`,
        ),
      );
    } else if (phase === "keep") {
      parts.push(...holdButtons());
    } else if (offered.length || picked.length) {
      parts.push(...offered.map((choice) => choiceButton(choice, "primary")));
      if (!offered.length) parts.push(h("p", { class: "waits" }, "Tap the piece to swap it with."));
      parts.push(h("button", { type: "button", class: "undo", onclick: undo }, "Undo"));
    } else {
      const elsewhere = view.choices.filter(
        ({ moves, kind }) => !moves.length || kind.includes("equilibrium"),
      );
      const swaps = view.choices.some(({ kind }) => kind === "swap");
      const moves = view.choices.some(({ kind }) => ["move", "wood", "jump"].includes(kind));
      const tip = [moves && "Tap a marked space to move.", swaps && "Tap two pieces to swap them."].filter(
        Boolean,
      );
      if (tip.length) parts.push(h("p", { class: "tip" }, tip.join(" ")));
      if (phase === "extra")
        elsewhere.sort((one, other) => Number(one.kind === "end") - Number(other.kind === "end"));
      elsewhere.forEach((choice, i) => {
        const first = i === 0 && !moves && !swaps && choice.power === null;
        parts.push(choiceButton(choice, first ? "primary" : ""));
      });
    }
    const at = document.activeElement;
    const name = actions.contains(at) ? at?.getAttribute("data-name") : null;
    actions.replaceChildren(...parts);
    if (name) /** @type {HTMLElement|null} */ (actions.querySelector(`[data-name="${name}"]`))?.focus();
  }

  function holdButtons() {
    if (!view) return [];
    const hold = holdChoice();
    const stop = view.choices.find(({ kind }) => kind === "stop");
    const rest = dice.held().filter((held) => held !== true).length + (5 - dice.held().length);
    const tiger = view.rolls_left === 0;
    const words = rest === 5 ? "Re-roll all" : `Re-roll ${rest}`;
    const changed = dice.held().some((held, die) => held !== view?.kept[die]);
    return [
      rest > 0 &&
        h(
          "button",
          { type: "button", class: "primary", "data-name": "roll", onclick: () => hold && act(hold) },
          tiger ? glyph("power-2") : glyph("again"),
          h("span", {}, tiger ? `${words} (eye of the tiger)` : words),
        ),
      stop &&
        h(
          "button",
          {
            type: "button",
            class: rest === 0 ? "primary" : "",
            "data-name": "stop",
            onclick: () => act(stop),
          },
          h("span", {}, tiger ? "Do without" : "Stop rolling"),
        ),
      changed &&
        h(
          "button",
          {
            type: "button",
            class: "undo",
            "data-name": "undo",
            onclick: undo,
            "aria-label": "Undo the choice of dice",
          },
          "Undo",
        ),
    ].filter(Boolean);
  }

  function endButtons() {
    if (!view) return [];
    const { game, result, mine, host } = view;
    const parts = [h("p", { class: "result" }, result?.words ?? "The game is over.")];
    parts.push(h("a", { class: "button primary", href: `#/review/${id}/${game}` }, "Review the game"));
    if (mine.length || host) {
      const next = h(
        "button",
        { type: "button", onclick: () => connection.send({ type: "next", game }) },
        "Next game",
      );
      parts.push(next);
    }
    return parts;
  }

  function invitations() {
    if (!view) return [];
    const waiting = view.waiting_for;
    const links = (own?.invitations ?? []).filter(({ seat }) => waiting.includes(seat));
    const names = waiting.map((seat) => `seat ${view?.seats[seat].letter}`).join(", ");
    return [
      h(
        "p",
        { class: "waits" },
        h("span", { class: "dots", "aria-hidden": "true" }),
        `Waiting for ${names} …`,
      ),
      ...links.map(({ seat, invitation }) => {
        const link = `${location.origin}${location.pathname}#/join/${id}/${invitation}`;
        return h(
          "div",
          { class: "invitation" },
          h(
            "label",
            {},
            `Link for seat ${view?.seats[seat].letter}`,
            h("input", { readonly: true, value: link }),
          ),
          copyButton("Copy", () => link),
        );
      }),
      waiting.some((seat) => view?.seats[seat].kind === "open") &&
        h("p", { class: "tip" }, "Open seats are in the list of open tables, for anyone on this server."),
    ].filter((part) => part !== false);
  }

  function showChoices() {
    if (!view) return;
    const list = myTurn() ? view.choices : [];
    choices.hidden = list.length === 0;
    const at = document.activeElement?.closest("[data-action]");
    const focused = choiceList.contains(at ?? null);
    const buttons = list.map((choice) => choiceButton(choice));
    if (buttons.length > 8) {
      const open = kept.get("wotd-choices", false);
      const more = h(
        "details",
        { open },
        h("summary", {}, `All ${buttons.length} choices in words`),
        ...buttons,
      );
      more.addEventListener("toggle", () => kept.set("wotd-choices", more.open));
      choiceList.replaceChildren(more);
    } else choiceList.replaceChildren(...buttons);
    if (focused) focusOnChoice();
  }

  function showHelp() {
    const current = view?.status === "playing" && help?.game === view.game ? help : null;
    chances.hidden = !current;
    if (!view || !current) {
      hints.hidden = true;
      return;
    }
    const words = current.chances.map((chance, seat) => `${nameOf(seat)} ${percent(chance)}`).join(", ");
    chances.replaceChildren(
      h(
        "div",
        { class: "bar", role: "img", "aria-label": `Chances to win: ${words}` },
        ...current.chances.map((chance, seat) => {
          const part = h(
            "span",
            { class: `share-${view?.color[seat]}` },
            chance > 0.1 ? percent(chance) : "",
          );
          part.style.flexGrow = String(Math.max(chance, 0.004));
          return part;
        }),
      ),
      h("p", {}, words),
    );
    const fits = current.ply === view.ply && current.hints.length > 0 && myTurn();
    hints.hidden = !myTurn();
    if (!myTurn()) return;
    const toggle = h(
      "button",
      {
        type: "button",
        "aria-expanded": String(hinted),
        onclick: () => {
          hinted = !hinted;
          showHelp();
          hints.querySelector("button")?.focus();
        },
      },
      hinted ? "Hide the hint" : "Show a hint",
    );
    const lines = fits
      ? current.hints.map(({ words: said, loss, action }) =>
          h(
            "li",
            {},
            h("button", { type: "button", class: "choice", onclick: () => actBy(action) }, capital(said)),
            h("span", { class: "loss" }, loss < 0.0005 ? "best" : `${percent(loss)} less`),
          ),
        )
      : [h("li", {}, "The hint is being worked out …")];
    const judge = h("p", { class: "quiet" }, `By ${current.source}${current.exact ? "" : ", an estimate"}.`);
    hints.replaceChildren(toggle, ...(hinted ? [h("ol", {}, ...lines), judge] : []));
  }

  let logged = { game: 0, count: 0 };
  function showLog() {
    if (!view) return;
    if (logged.game !== view.game || logged.count > view.log.length) {
      entries.replaceChildren();
      logged = { game: view.game, count: 0 };
      if (view.roll_off) entries.append(rollOff(view.roll_off));
    }
    if (logged.count === 0 && view.log.length) entries.querySelector(".quiet")?.remove();
    const atEnd = scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight < 40;
    const previous = view.log[logged.count - 1];
    let turn = previous ? previous.turn : -1;
    for (const step of view.log.slice(logged.count)) {
      if (step.turn !== turn) entries.append(turnHead(step));
      turn = step.turn;
      entries.append(logLine(step));
    }
    logged.count = view.log.length;
    if (!entries.childElementCount)
      entries.append(h("li", { class: "quiet" }, "Nothing has been decided yet."));
    if (atEnd) scroll.scrollTop = scroll.scrollHeight;
  }

  /** @param {import("./api.js").Step} step */
  function turnHead({ turn, seat }) {
    return h(
      "li",
      { class: "turn-head" },
      glyph(`piece-${view?.color[seat]}`, "piece"),
      h("strong", {}, nameOf(seat)),
      h("span", {}, `turn ${turn + 1}`),
    );
  }

  /** @param {import("./api.js").Step} step */
  function logLine(step) {
    return h(
      "li",
      { class: step.forced ? "forced" : "" },
      step.dice.every((face) => face >= 0) ? diceRow(step.dice) : null,
      h("span", {}, step.words, step.note ? ` (${step.note})` : "", h("code", {}, step.notation)),
    );
  }

  /** @param {(number[]|null)[][]} rounds */
  function rollOff(rounds) {
    return h(
      "li",
      { class: "roll-off" },
      h("strong", {}, "Roll for the start: most dragons begin"),
      ...rounds.flatMap((round) =>
        round.map((faces, seat) =>
          faces === null
            ? ""
            : h(
                "div",
                {},
                h("span", { class: "who" }, nameOf(seat)),
                diceRow(faces),
                h("span", {}, dragons(faces.filter((face) => face === 5).length)),
              ),
        ),
      ),
    );
  }

  function showMenu() {
    if (!view) return;
    if (!share.childElementCount) {
      share.append(
        h("h3", {}, "Share"),
        copyButton("Copy the position", () => view?.position ?? ""),
        copyButton("Copy the game", gameText),
        h("button", { type: "button", onclick: saveGame }, "Save the game"),
      );
      if (own?.watch) {
        share.append(
          copyButton("Copy a link to watch", () => `${location.origin}/#/watch/${id}/${own.watch}`),
        );
      }
    }
    const mine = view.seats.filter(
      (seat) => seat.kind !== "agent" && (seat.mine || (view?.host && !seat.connected)),
    );
    const shown = JSON.stringify(mine.map(({ seat, name, connected }) => [seat, name, connected]));
    if (people.dataset.shown === shown) return;
    people.dataset.shown = shown;
    people.replaceChildren(
      mine.length ? h("h3", {}, "Let an agent play a seat from now on") : "",
      ...mine.map(({ seat }) => {
        const agents = h("select", { "aria-label": `agent for ${nameOf(seat)}` });
        agentNames().then((names) =>
          agents.append(...names.map((name) => h("option", { value: name }, name))),
        );
        const hand = async () => {
          try {
            await ask(`/api/tables/${id}/seat`, { key: own?.key, body: { seat, agent: agents.value } });
          } catch (refusal) {
            error.textContent = /** @type {Error} */ (refusal).message;
            error.hidden = false;
          }
        };
        return h(
          "div",
          { class: "hand-over" },
          h("span", { class: "name" }, nameOf(seat)),
          agents,
          h("button", { type: "button", onclick: hand }, "Hand over"),
        );
      }),
    );
  }

  const gameText = async () => (await ask(`/api/tables/${id}/text`, { key: own?.key })).text;

  async function saveGame() {
    const url = URL.createObjectURL(new Blob([await gameText()], { type: "text/plain" }));
    h("a", { href: url, download: `wotd-${id}.txt` }).click();
    URL.revokeObjectURL(url);
  }

  // ---------------------------------------------------------------------------------------------- what is done

  /** @param {import("./api.js").Choice} choice */
  function act(choice) {
    actBy(choice.action);
  }

  /** @param {number} action */
  function actBy(action) {
    if (!view || acted === view.ply) return;
    if (connection.send({ type: "act", ply: view.ply, action })) acted = view.ply;
  }

  /** @param {number} path @param {number|null} space */
  function pick(path, space) {
    if (!view || !myTurn() || view.phase === "keep") return;
    const there = view.choices.filter(
      ({ kind, moves }) =>
        kind !== "swap" && moves.some((move) => move.path === path && (space === null || move.to === space)),
    );
    if (there.length === 1 && there[0].power === null && space !== null) return act(there[0]);
    if (
      there.length &&
      there.every((choice) => offered.includes(choice)) &&
      there.length === 1 &&
      space !== null
    ) {
      return act(there[0]); // tapped once more
    }
    offered = there;
    if (there.length) [picked, pickedPath] = [[], -1];
    else if (space) pickForSwap(path, space);
    showBoard();
    showActions();
    if (offered.length) say(`Chosen: ${offered.map(({ words }) => words).join(", or ")}. Enter confirms.`);
  }

  /** @param {number} path @param {number} space */
  function pickForSwap(path, space) {
    if (!view) return;
    const seat = view.pieces.findIndex((places) => places[path] === space);
    const swaps = view.choices.filter(
      ({ kind, path: on, seats: two }) => kind === "swap" && on === path && two?.includes(seat),
    );
    if (seat < 0 || !swaps.length) {
      [picked, pickedPath] = [[], -1];
      return;
    }
    if (path !== pickedPath) [picked, pickedPath] = [[], path];
    picked = picked.includes(seat) ? picked.filter((other) => other !== seat) : [...picked.slice(0, 1), seat];
    offered = swaps.filter(
      ({ seats: two }) => picked.length === 2 && picked.every((one) => two?.includes(one)),
    );
    if (picked.length === 2 && !offered.length) picked = [seat];
    if (!picked.length) pickedPath = -1;
    if (picked.length === 1)
      say(`${nameOf(picked[0])} on ${ELEMENTS[path]} chosen. Choose the piece to swap it with.`);
  }

  function undo() {
    if (!view) return;
    [picked, pickedPath, offered] = [[], -1, []];
    if (view.phase === "keep") showDice(null);
    showBoard();
    showActions();
    say("Undone.");
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (!view || isElsewhere(event)) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const key = event.key.length === 1 ? event.key.toUpperCase() : event.key;
    if (key === "U") return undo();
    if (!myTurn()) return;
    if (view.phase === "keep" && key >= "1" && key <= "5") {
      const die = Number(key) - 1;
      dice.toggle(die);
      say(`${FACES[view.dice[die]]} ${dice.held()[die] ? "kept" : "not kept"}`);
    } else if (view.phase === "keep" && key === "R") {
      const hold = holdChoice();
      if (hold && hold.kind !== "stop") act(hold);
    } else if (key === "Enter" && !target.closest("button, a, summary, [role=gridcell]")) {
      /** @type {HTMLElement|null} */ (actions.querySelector("button.primary"))?.click();
    } else return;
    event.preventDefault();
  }

  document.addEventListener("keydown", onKey);
  return () => {
    document.removeEventListener("keydown", onKey);
    connection.close();
    showBanner("");
  };
}

/** @param {number} power @param {boolean} used */
export function powerBadge(power, used) {
  const words = `${POWERS[power]}${used ? ", used" : ""}`;
  return h(
    "span",
    { class: `power${used ? " used" : ""}`, title: words, role: "img", "aria-label": words },
    glyph(`power-${power}`),
  );
}

/** @param {number} count */
const dragons = (count) => `${count} dragon${count === 1 ? "" : "s"}`;

/** @type {Promise<string[]>|null} */
let asked = null;
function agentNames() {
  asked ??= ask("/api/setup").then(({ agents }) => agents.map(({ name }) => name));
  return asked;
}
