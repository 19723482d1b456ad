"""Positions for the tests: drawn as text, or converted between the engine's records and the reference's states.

A path is drawn from its first plain space to number 5, with the numbered spaces after the bar: `a` is the piece of
seat 0, `b` that of seat 1 and so on, `#` a dead piece, `.` an empty space. All other pieces are off the board.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any

import numpy as np

from tests import reference as ref
from wotd_env import STATE, Game, Phase, Rules

NAMES = ("water", "fire", "metal", "earth", "wood")
FACES = (*NAMES, "dragon")


def faces(words: str) -> list[int]:
    """Return the faces of dice given in words."""
    return [FACES.index(word) for word in words.split()]


def board(rules: Rules, *, dice: str | None = None, phase: Phase | None = None, **fields: Any) -> np.ndarray:
    """Return a batch of one game, STATE (1,), with paths drawn as keyword arguments.

    The default phase is MOVE with `dice`, and CHANCE before the first roll without:

        board(rules, water="..a.b..|.c...", dice="water water fire metal dragon")
    """
    state = np.zeros(1, STATE)
    game = state[0]
    game["rng"], game["players"] = 1, rules.players
    game["color"] = np.arange(5)
    for path, name in enumerate(NAMES):
        drawn = fields.pop(name, "").replace("|", "").replace(" ", "")
        assert drawn == "" or len(drawn) == rules.spaces + 5, f"{name} has {len(drawn)} spaces"
        for space, mark in enumerate(drawn, start=1):
            if mark == "#":
                game["dead"][path] |= 1 << space
            elif mark != ".":
                game["pieces"]["abcde".index(mark), path] = space
    game["dice"] = -1 if dice is None else sorted(faces(dice))
    game["phase"] = phase if phase is not None else Phase.CHANCE if dice is None else Phase.MOVE
    game["rolls_left"] = 0 if game["phase"] in (Phase.MOVE, Phase.EXTRA, Phase.OVER) else 2
    for name, value in fields.items():
        game[name] = value
    return state


def numbers(rules: Rules, *seats: str, **fields: Any) -> np.ndarray:
    """Return a batch of one game as `board` does, with each seat's numbers by path; 0 is off the board."""
    state = board(rules, **fields)
    for seat, drawn in enumerate(seats):
        state["pieces"][0, seat] = [rules.spaces + int(n) if n != "0" else 0 for n in drawn.split()]
    return state


def legal(game: Game, state: np.ndarray) -> list[int]:
    """Return the legal actions of a batch of one."""
    return [int(action) for action in np.flatnonzero(game.legal_actions(state)[0])]


def decided(game: Game, state: np.ndarray, *actions: int) -> np.ndarray:
    """Return a copy of a batch of one after these legal decisions."""
    state = state.copy()
    for action in actions:
        assert action in legal(game, state), f"action {action} is not among {legal(game, state)}"
        game.decide(state, np.array([action]))
    return state


def rolled(game: Game, state: np.ndarray, dice: str) -> np.ndarray:
    """Return a copy of a batch of one after a roll to these five faces."""
    state = state.copy()
    game.roll(state, np.array([faces(dice)], np.int8))
    return state


def foreign_records() -> dict[str, np.ndarray]:
    """Return records, STATE (1,) each, that are invalid in the basic game with two players and seven plain spaces."""
    five = Game(Rules(players=5)).reset(1, seed=0, starting_player=4)
    later = five.copy()
    later["player"], later["pieces"][0, 4, 0] = 0, 3  # only seat 4's pieces are invalid
    long = Game(Rules(spaces=10)).reset(1, seed=0)
    long["pieces"][0, 1, 2] = 14
    beyond = Game().reset(1, seed=0)
    beyond["pieces"][0, 0, 0] = 99
    negative = Game().reset(1, seed=0)
    negative["pieces"][0, 0, 0] = -1
    return {
        "five players, seat 4 to act": five,
        "five players, a piece of seat 4": later,
        "a longer board": long,
        "a piece beyond the board": beyond,
        "a piece before the board": negative,
    }


# ------------------------------------------------------------------------------ engine <-> reference

FIELDS = [field.name for field in fields(ref.State) if field.name != "dead"]
"""The fields with the same form in both; `dead` differs, and only the engine has `rng`."""

COMPARED = [name for name in STATE.names or () if name not in ("rng", "players")]
"""The reference has neither random streams nor a number of players in its states."""


def reference_rules(rules: Rules) -> ref.Rules:
    dead = rules.dead_pieces if isinstance(rules.dead_pieces, int) else rules.dead_pieces.count("#")
    return ref.Rules(rules.players, rules.spaces, rules.powers, rules.immunity, dead, rules.max_turns)


def from_record(record: np.void) -> ref.State:
    """Return the reference's state for an engine record."""
    values = {name: record[name].tolist() for name in FIELDS}
    values |= {name: tuple(values[name]) for name in ("dice", "color")}
    values["pieces"] = tuple(map(tuple, values["pieces"]))
    dead = tuple(frozenset(t for t in range(16) if bits >> t & 1) for bits in record["dead"].tolist())
    return ref.State(dead=dead, **values)


def to_records(states: Iterable[ref.State]) -> np.ndarray:
    """Return engine records, STATE (N,), for the reference's states, with random streams of 0."""
    states = list(states)
    records = np.zeros(len(states), STATE)
    for name in FIELDS:
        records[name] = [getattr(state, name) for state in states]
    records["dead"] = [[sum(1 << t for t in spaces) for spaces in state.dead] for state in states]
    return records


def differences(ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Return the indices of the games in which any field but the stream differs."""
    differ = np.zeros(len(ours), bool)
    for name in COMPARED:
        unequal = ours[name] != theirs[name]
        differ |= unequal.reshape(len(ours), -1).any(1)
    return np.flatnonzero(differ)


def immune_pieces() -> tuple[Game, np.ndarray, set[tuple[int, int]]]:
    """Return a game, a position, and the (seat, path) of each piece that the engine never swaps in it.

    On every path, each seat has a piece on a space of its own. The dice show five dragons, so that any two pieces of a
    path may be swapped unless they are immune.
    """
    game = Game(Rules(players=4, immunity=True))
    state = game.new(1, roll=False)
    state["pieces"][0, :4] = np.arange(1, 5)[:, None]
    state["phase"], state["dice"] = Phase.MOVE, FACES.index("dragon")
    swapped = set()
    for action in np.flatnonzero(game.legal_actions(state)[0]):
        after = state.copy()
        game.step(after, [action])
        swapped |= set(zip(*np.nonzero((after["pieces"] != state["pieces"])[0]), strict=True))
    return game, state, {(seat, path) for seat in range(4) for path in range(5)} - swapped
