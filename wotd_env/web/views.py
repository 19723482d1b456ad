"""Games as JSON for the page: the position, its choices, and the decisions so far.

The page knows no rules. This module derives everything that it shows of an action from the engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wotd_env.core.actions import Action, power_of
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE, ELEMENTS, Phase, Power, Rules
from wotd_env.core.state import States
from wotd_env.core.words import describe_decision
from wotd_env.notation import action_text, legal_words, position
from wotd_env.notation.words import FIXED_WORDS
from wotd_env.rendering.scene import moved_pieces
from wotd_env.rendering.text import describe_due, describe_result, winners

Json = dict[str, Any]
"""A JSON object."""

_KINDS_OF_MOVES = {None: "move", Power.DRAGON: "wood", Power.ANXIETY: "jump"}


def rules_in_words(rules: Rules) -> str:
    """Return rules in one line. Default values are left out, except players and powers."""
    names = ["players", "powers"]
    optional = "spaces", "immunity", "dead_pieces"
    names += [name for name in optional if getattr(rules, name) != getattr(Rules, name)]
    names += ["colors"] * (rules.colors == "random") + ["start"] * (rules.start == "loser")
    return ", ".join(rule_in_words(rules, name) for name in names)


def rule_in_words(rules: Rules, name: str) -> str:
    """Return one field of rules in words."""
    return {
        "players": f"{rules.players} players",
        "spaces": f"{rules.spaces} plain spaces",
        "powers": {"none": "no powers", "own": "own powers", "any": "any one power"}[rules.powers],
        "immunity": "immunity" if rules.immunity else "no immunity",
        "dead_pieces": f"{rules.dead_pieces} dead piece{'s' * (rules.dead_pieces != 1)}",
        "colors": "random colors" if rules.colors == "random" else "these colors",
        "start": "the loser starts the next game" if rules.start == "loser" else "this start",
        "max_turns": f"at most {rules.max_turns} turns",
    }[name]


def show(game: Game, state: States, names: Sequence[str]) -> Json:
    """Return all visible parts of a position, STATE (1,), given the names of the seats."""
    rules, record, over = game.rules, state[0], result(game, state, names)
    due = "" if over else f"Turn {record['turn'] + 1}: {names[record['player']]} {describe_due(state)}."
    return {
        **{name: record[name].tolist() for name in ("turn", "player", "rolls_left", "dice", "color")},
        "phase": Phase(record["phase"]).name.lower(),
        "perfection": bool(record["perfection"]),
        "pieces": record["pieces"][: rules.players].tolist(),
        "dead": [[s for s in range(1, rules.spaces + 1) if int(bits) >> s & 1] for bits in record["dead"]],
        "used": [bool(record["used"] >> seat & 1) for seat in range(rules.players)],
        "scores": game.scores(state)[0].tolist(),
        "position": position(rules, state),
        "words": over["words"] if over else due,
    }


def result(game: Game, state: States, names: Sequence[str], resigned: int | None = None) -> Json | None:
    """Return the result of a game, STATE (1,), or None if it is not over.

    `resigned` is the seat of two that has resigned, if any.
    """
    if resigned is not None:
        won, rewards = [1 - resigned], [1.0, 1.0]
        rewards[resigned] = -1.0
        words = f"{names[resigned]} resigns, {names[won[0]]} wins"
    elif game.is_over(state)[0]:
        won, rewards = winners(game, state), game.rewards(state)[0].tolist()
        words = describe_result(game, state, names)
    else:
        return None
    return {
        "truncated": bool(state["truncated"][0]),
        "winners": won,
        "scores": game.scores(state)[0].tolist(),
        "rewards": [round(reward, 6) for reward in rewards],
        "words": f"{words[0].upper()}{words[1:]}.",
    }


def _moves(before: States, after: States) -> list[dict[str, int]]:
    names = ("seat", "path", "from", "to")
    return [dict(zip(names, move, strict=True)) for move in moved_pieces(before[0], after[0])]


def choices(game: Game, state: States, names: Sequence[str]) -> list[Json]:
    """Return all legal actions of a decision, STATE (1,)."""
    words = legal_words(game, state)
    holds = state["phase"][0] == Phase.KEEP
    decided = np.repeat(state, len(words))
    game.decide(decided, list(words.values()), validate=False)
    return [
        {
            "action": action,
            "words": action_in_words(game, state, action, names, after),
            "notation": word,
            "keep": [bool(action >> die & 1) for die in range(DICE)] if holds else None,
            "moves": (moves := _moves(state, after)),
            "scores": scores,
            **_parts(state[0], action, moves),
        }
        for (word, action), after, scores in zip(
            words.items(), decided[:, None], game.scores(decided).tolist(), strict=True
        )
    ]


def step(
    game: Game, before: States, action: int, after: States, names: Sequence[str], note: str | None = None
) -> Json:
    """Return a decision, given the positions, STATE (1,), before it and after its roll."""
    record, decided = before[0], _decided(game, before, action)
    rolled = decided["phase"][0] == Phase.CHANCE and after["phase"][0] != Phase.CHANCE
    return {
        "turn": int(record["turn"]),
        "seat": int(record["player"]),
        "dice": record["dice"].tolist(),
        "words": f"{names[record['player']]}: {action_in_words(game, before, action, names, decided)}",
        "notation": action_text(game, before, action),
        "action": action,
        "forced": bool(game.legal_actions(before)[0].sum() == 1),
        "roll": after["dice"][0].tolist() if rolled else None,
        "moves": _moves(before, decided),
        "note": note,
    }


def _parts(record: np.void, action: int, moves: Sequence[dict[str, int]]) -> Json:
    """Return the kind of an action, its path, the seats of its swap, and its power; None for missing ones."""
    power = power_of(action)
    kind, path, seats = "keep", None, None
    if action in FIXED_WORDS:
        kind = FIXED_WORDS[action].partition("+")[0]
    elif action < Action.STOP_ROLLING:
        power = None if record["rolls_left"] else Power.TIGER
    elif action < Action.FIRST_SWAP:
        kind, path = _KINDS_OF_MOVES[power], (action - Action.MOVE_ON) % len(ELEMENTS)
    else:
        kind, path, seats = "swap", moves[0]["path"], [move["seat"] for move in moves]
    return {"kind": kind, "path": path, "seats": seats, "power": None if power is None else int(power)}


def _decided(game: Game, state: States, action: int) -> States:
    """Return the position after a legal action, before any roll."""
    after = state.copy()
    game.decide(after, [action], validate=False)
    return after


def action_in_words(
    game: Game, state: States, action: int, names: Sequence[str], after: States | None = None
) -> str:
    """Return a legal action of a position, STATE (1,), in words, with the names of the players.

    `after` is the position after the action and before any roll, if it is known.
    """
    after = _decided(game, state, action) if after is None else after
    if action >= Action.FIRST_SWAP:
        one, other = _moves(state, after)
        players = f"{names[one['seat']]} and {names[other['seat']]}"
        return f"swap the pieces of {players} on {ELEMENTS[one['path']]}"
    if action == Action.PASS:
        return "pass: no piece can move by the dice"
    return describe_decision(game.rules, state[0], after[0], action)
