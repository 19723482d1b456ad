"""Convert positions, legal actions and decisions to JSON for the page.

The scripts of the page contain no rules of the game. So this module uses the engine to compute the effects of every
action.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wotd_env.core.actions import Action, power_of
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE, DRAGON, ELEMENTS, Phase, Power
from wotd_env.core.state import States
from wotd_env.notation import action_text, legal_words, position
from wotd_env.notation.words import FIXED_WORDS
from wotd_env.rendering.scene import moved_pieces
from wotd_env.rendering.text import winners

Json = dict[str, Any]

_KINDS_OF_MOVES = {None: "move", Power.DRAGON: "wood", Power.ANXIETY: "jump"}


def show(game: Game, state: States) -> Json:
    """Return everything that players see of a position, STATE (1,)."""
    rules, record = game.rules, state[0]
    return {
        **{name: record[name].tolist() for name in ("turn", "player", "rolls_left", "dice", "color")},
        "phase": Phase(record["phase"]).name.lower(),
        "perfection": bool(record["perfection"]),
        "pieces": record["pieces"][: rules.players].tolist(),
        "dead": [[s for s in range(1, rules.spaces + 1) if int(bits) >> s & 1] for bits in record["dead"]],
        "used": [bool(record["used"] >> seat & 1) for seat in range(rules.players)],
        "scores": game.scores(state)[0].tolist(),
        "position": position(rules, state),
    }


def result(game: Game, state: States, resigned: int | None = None) -> Json | None:
    """Return the result of a game, STATE (1,), or None if the game is not over.

    In a game of two players, `resigned` is the seat that has resigned, or None.
    """
    if resigned is not None:
        won, rewards = [1 - resigned], [1.0, 1.0]
        rewards[resigned] = -1.0
    elif game.is_over(state)[0]:
        won, rewards = winners(game, state), game.rewards(state)[0].tolist()
    else:
        return None
    return {
        "expired": bool(state["expired"][0]),
        "winners": won,
        "scores": game.scores(state)[0].tolist(),
        "rewards": [round(reward, 6) for reward in rewards],
        "resigned": resigned,
    }


def choices(game: Game, state: States) -> list[Json]:
    """Return the legal actions in a position, STATE (1,), as JSON, with the scores after each action."""
    words = legal_words(game, state)
    decided = np.repeat(state, len(words))
    game.decide(decided, list(words.values()), validate=False)
    scores = game.scores(decided).tolist()
    return [
        {**_parts(state, action, after), "notation": word, "scores": after_it}
        for (word, action), after, after_it in zip(words.items(), decided[:, None], scores, strict=True)
    ]


def reach(game: Game, state: States) -> list[list[int | None]] | None:
    """Return the spaces that the player to act would reach with dice of one element, as [path][number of dice - 1].

    A space is None if no move leads there. Without a decision about dice, return None.
    """
    if state["phase"][0] != Phase.KEEP:
        return None
    path, most = np.divmod(np.arange(len(ELEMENTS) * DICE), DICE)
    moved = np.repeat(state, len(path))
    moved["phase"], moved["rolls_left"] = Phase.MOVE, 0
    moved["dice"] = np.where(np.arange(DICE) <= most[:, None], path[:, None], DRAGON)  # dragons move nothing
    actions, each = Action.MOVE_ON + path, np.arange(len(path))
    legal = game.legal_actions(moved)[each, actions] == 1
    decided = moved[legal]
    game.decide(decided, actions[legal], validate=False)
    moved[legal] = decided
    spaces = np.where(legal, moved["pieces"][each, int(state["player"][0]), path], -1)
    return [[None if space < 0 else space for space in row] for row in spaces.reshape(-1, DICE).tolist()]


def action_parts(game: Game, state: States, action: int) -> Json:
    """Return the parts (see `_parts`) and the notation of a legal action in a position, STATE (1,)."""
    parts = _parts(state, action, _decided(game, state, action))
    return {**parts, "notation": action_text(game, state, action)}


def step(game: Game, before: States, action: int, after: States, note: str | None = None) -> Json:
    """Return a decision as JSON.

    `after`, STATE (1,), is the position after the decision or, if a roll follows, after the roll.
    """
    record, decided = before[0], _decided(game, before, action)
    rolled = decided["phase"][0] == Phase.CHANCE and after["phase"][0] != Phase.CHANCE
    return {
        **action_parts(game, before, action),
        "turn": int(record["turn"]),
        "seat": int(record["player"]),
        "dice": record["dice"].tolist(),
        "forced": bool(game.legal_actions(before)[0].sum() == 1),
        "roll": after["dice"][0].tolist() if rolled else None,
        "note": note,
    }


def _parts(state: States, action: int, after: States) -> Json:
    """Return the kind, kept dice, path, swapped seats, moves and power of an action.

    `after` is the position after the action and before the dice are rolled.
    """
    record, power, names = state[0], power_of(action), ("seat", "path", "from", "to")
    moves = [dict(zip(names, move, strict=True)) for move in moved_pieces(record, after[0])]
    kind, path, seats = "keep", None, None
    if action in FIXED_WORDS:
        kind = FIXED_WORDS[action].partition("+")[0]
    elif action < Action.STOP_ROLLING:
        power = None if record["rolls_left"] else Power.TIGER
    elif action < Action.FIRST_SWAP:
        kind, path = _KINDS_OF_MOVES[power], (action - Action.MOVE_ON) % len(ELEMENTS)
    else:
        kind, path, seats = "swap", moves[0]["path"], [move["seat"] for move in moves]
    holds = record["phase"] == Phase.KEEP
    return {
        "action": action,
        "kind": kind,
        "keep": [bool(action >> die & 1) for die in range(DICE)] if holds else None,
        "path": path,
        "seats": seats,
        "moves": moves,
        "power": None if power is None else int(power),
    }


def _decided(game: Game, state: States, action: int) -> States:
    """Return the position after a legal action and before the dice are rolled."""
    after = state.copy()
    game.decide(after, [action], validate=False)
    return after
