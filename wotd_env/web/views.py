"""Games as JSON: what a page needs to draw a position, to say it in words, and to offer the choices there are.

A page holds no rules: what a choice is, what it moves and which power it uses is read off here, from the action's
number and from what the engine does with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import PAIRS, Action, pairs, power_of
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS
from wotd_env.core.rules import DICE, ELEMENTS, POWERS, Phase, Power, Rules
from wotd_env.core.state import States
from wotd_env.notation import action_text, legal_words, position
from wotd_env.rendering.text import ANIMALS, describe_due

__all__ = [
    "ANIMALS",
    "ANY_POWER",
    "SEATS",
    "choices",
    "kept",
    "listed",
    "moves",
    "result",
    "rules_in_words",
    "show",
    "step",
]

FACES = (*ELEMENTS, "dragon")
ANY_POWER = 5
"""Stands for the one power of its choice that a seat has by `powers="any"`."""

_FIXED = {
    Action.EQUILIBRIUM: "equilibrium",
    Action.WOOD_EQUILIBRIUM: "equilibrium",
    Action.EARTH_EQUILIBRIUM: "equilibrium",
    Action.PASS: "pass",
    Action.NO_MOVE_BY_FEAR: "fear",
    Action.END_TURN: "end",
    Action.PERFECTION_TURN: "perfection",
    Action.REBIRTH_TURN: "rebirth",
}


def rules_in_words(rules: Rules) -> str:
    """Return rules in a line; what is as usual is left out."""
    words = [f"{rules.players} players"]
    if rules.spaces != Rules.spaces:
        words.append(f"{rules.spaces} plain spaces")
    words.append({"none": "no powers", "own": "own powers", "any": "any one power"}[rules.powers])
    if rules.immunity:
        words.append("immunity")
    if rules.dead_pieces:
        words.append(f"{rules.dead_pieces} dead piece{'s' * (rules.dead_pieces > 1)}")
    if rules.colors == "random":
        words.append("random colours")
    if rules.start == "loser":
        words.append("the loser starts the next game")
    return ", ".join(words)


def show(game: Game, state: States, names: Sequence[str]) -> dict[str, Any]:
    """Return all of a position, STATE (1,), that can be seen; `names` are those of the seats."""
    rules, record = game.rules, state[0]
    return {
        "turn": int(record["turn"]),
        "player": int(record["player"]),
        "phase": Phase(record["phase"]).name.lower(),
        "rolls_left": int(record["rolls_left"]),
        "dice": record["dice"].tolist(),
        "perfection": bool(record["perfection"]),
        "pieces": record["pieces"][: rules.players].tolist(),
        "color": record["color"].tolist(),
        "dead": [[s for s in range(1, rules.spaces + 1) if int(bits) >> s & 1] for bits in record["dead"]],
        "used": [bool(record["used"] >> seat & 1) for seat in range(rules.players)],
        "scores": game.scores(state)[0].tolist(),
        "position": position(rules, state),
        "words": _news(game, state, names),
    }


def _news(game: Game, state: States, names: Sequence[str]) -> str:
    record = state[0]
    over = result(game, state, names)
    if over:
        return str(over["words"])
    return f"Turn {record['turn'] + 1}: {names[record['player']]} {describe_due(state)}."


def result(game: Game, state: States, names: Sequence[str]) -> dict[str, Any] | None:
    """Return how a game has ended, None if it goes on."""
    if not game.is_over(state)[0]:
        return None
    rewards, scores = game.rewards(state)[0], game.scores(state)[0].tolist()
    truncated = bool(state["truncated"][0])
    winners = [] if truncated else np.flatnonzero(rewards == rewards.max()).tolist()
    if truncated:
        words = "The limit of turns is reached; nobody wins."
    elif len(winners) == 1:
        words = f"{names[winners[0]]} wins with {scores[winners[0]]} points."
    else:
        words = f"{listed([names[seat] for seat in winners])} share the victory."
    return {
        "truncated": truncated,
        "winners": winners,
        "scores": scores,
        "rewards": [round(float(reward), 6) for reward in rewards],
        "words": words,
    }


def kept(state: States, before: States, action: int) -> list[bool]:
    """Return which dice of a position were kept when they were last rolled, given the decision that led to it."""
    held = [False] * DICE
    if before["phase"][0] == Phase.KEEP and action < Action.STOP_ROLLING:
        faces = state["dice"][0].tolist()
        for die in range(DICE):
            if action >> die & 1:
                face = int(before["dice"][0, die])
                held[next(i for i in range(DICE) if faces[i] == face and not held[i])] = True
    return held


def moves(before: States, after: States) -> list[dict[str, int]]:
    """Return the pieces that stand elsewhere than before."""
    if before["pieces"].tobytes() == after["pieces"].tobytes():
        return []
    return [
        {
            "seat": seat,
            "path": path,
            "from": int(before["pieces"][0, seat, path]),
            "to": int(after["pieces"][0, seat, path]),
        }
        for seat, path in np.argwhere(before["pieces"][0] != after["pieces"][0]).tolist()
    ]


def choices(game: Game, state: States, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return all legal actions of a position at a decision, STATE (1,)."""
    words = legal_words(game, state)
    after = np.repeat(state, len(words))
    if state["phase"][0] != Phase.KEEP:  # which moves nothing
        game.decide(after, list(words.values()), validate=False)
    return [
        _choice(game.rules, state, after[i : i + 1], action, word, names)
        for i, (word, action) in enumerate(words.items())
    ]


def _choice(
    rules: Rules, state: States, after: States, action: int, word: str, names: Sequence[str]
) -> dict[str, Any]:
    moved = moves(state, after)
    deed = _Deed(rules, state[0], action, moved)
    alone = moved[0] if deed.kind in ("move", "wood", "jump") else {}
    holds = deed.kind in ("keep", "stop")
    return {
        "action": action,
        "kind": deed.kind,
        "words": deed.words(names, asked=True),
        "notation": word,
        "keep": [bool(action >> die & 1) for die in range(DICE)] if holds else None,
        "path": deed.path,
        "from": alone.get("from"),
        "to": alone.get("to"),
        "seats": deed.seats,
        "moves": moved,
        "power": deed.power,
    }


def step(
    game: Game,
    before: States,
    action: int,
    after: States,
    names: Sequence[str],
    forced: bool,
    note: str | None,
) -> dict[str, Any]:
    """Return a decision that was taken, STATE (1,) before it and after it and the roll that followed."""
    record = before[0]
    decided = before.copy()
    game.decide(decided, [action], validate=False)
    moved = moves(before, decided)
    name = names[record["player"]]
    rolled = decided["phase"][0] == Phase.CHANCE and after["phase"][0] != Phase.CHANCE
    return {
        "turn": int(record["turn"]),
        "seat": int(record["player"]),
        "dice": record["dice"].tolist(),
        "words": f"{name} {_Deed(game.rules, record, action, moved).words(names, asked=False)}",
        "notation": action_text(game, before, action),
        "action": action,
        "forced": forced,
        "roll": after["dice"][0].tolist() if rolled else None,
        "moves": moved,
        "note": note,
    }


class _Deed:
    """What an action does, as it can be said: asked of a person ("keep ..."), or told of one ("keeps ...")."""

    def __init__(self, rules: Rules, record: np.void, action: int, moved: list[dict[str, int]]) -> None:
        self._rules, self._record, self._action, self._moved = rules, record, action, moved
        self.path: int | None = None
        self.seats: list[int] | None = None
        self.power: int | None = power_of(action)
        if record["phase"] == Phase.KEEP:
            self.kind = "stop" if action == Action.STOP_ROLLING else "keep"
            if self.kind == "keep" and not record["rolls_left"]:
                self.power = Power.TIGER
        elif action in _FIXED:
            self.kind = _FIXED[Action(action)]
        elif action >= Action.FIRST_SWAP:
            self.kind = "swap"
            self.path, pair = divmod(action - Action.FIRST_SWAP, pairs(rules.players))
            relative: NDArray[np.int8] = PAIRS[rules.players, pair]
            self.seats = sorted(((int(record["player"]) + relative) % rules.players).tolist())
        else:
            self.path = (action - Action.MOVE_ON) % len(ELEMENTS)
            self.kind = {None: "move", Power.DRAGON: "wood", Power.ANXIETY: "jump"}[power_of(action)]
        self.power = None if self.power is None else int(self.power)

    def words(self, names: Sequence[str], asked: bool) -> str:
        """Return the deed in words, from the verb on."""
        s = "" if asked else "s"
        by = "" if self.power is None else f" ({POWERS[self.power]})"
        if self.kind == "stop":
            return f"keep{s} all dice" + ("" if self._record["rolls_left"] == 0 else f" and stop{s} rolling")
        if self.kind == "keep":
            held = [
                FACES[face]
                for die, face in enumerate(self._record["dice"].tolist())
                if self._action >> die & 1
            ]
            if not held:
                return f"re-roll{s} all dice{by}"
            return f"keep{s} {_counted(held)} and re-roll{s} the rest{by}"
        if self.kind == "swap":
            one, other = (names[seat] for seat in self.seats or ())
            return (
                f"call{s} the dragon: swap{s} the pieces of {one} and {other} on {ELEMENTS[self.path or 0]}"
            )
        if self.path is not None:
            to = self._moved[0]["to"]
            verb = "jump" if self.kind == "jump" else "move" if self._moved[0]["from"] else "enter"
            by = f", dragons counting as {ELEMENTS[self.path]}{by}" if self.kind == "wood" else by
            where = f"{'' if verb == 'enter' else 'on '}{ELEMENTS[self.path]}"
            return f"{verb}{s} {where} {'on' if verb == 'enter' else 'to'} {self._space(to)}{by}"
        if self.kind == "equilibrium":
            count = len(self._moved)
            return f"advance{s} {count} piece{'s' * (count != 1)} by equilibrium{by}"
        return {
            "pass": "pass: no move is possible" if asked else "passes: no move is possible",
            "fear": f"stay{s} put{by}",
            "end": f"end{s} the turn",
            "perfection": f"take{s} the extra turn of perfection",
            "rebirth": f"take{s} an extra turn{by}",
        }[self.kind]

    def _space(self, space: int) -> str:
        beyond = space - self._rules.spaces
        return f"number {beyond}" if beyond > 0 else f"space {space}"


_NUMBERS = ("", "", "two", "three", "four", "five")


def _counted(faces: list[str]) -> str:
    """Return dice in words, such as "two waters and a dragon"."""
    words = []
    for face in dict.fromkeys(faces):
        count = faces.count(face)
        article = "an" if face[0] in "aeiou" else "a"
        words.append(f"{article} {face}" if count == 1 else f"{_NUMBERS[count]} {face}s")
    return listed(words)


def listed(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
