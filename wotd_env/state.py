"""The state of a game: one 64-byte record; a batch of games is a one-dimensional array of them."""

from __future__ import annotations

import threading

import numpy as np
from numpy.typing import NDArray

from wotd_env.rules import DICE, DRAGON, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules

__all__ = ["STATE", "check_states"]

STATE = np.dtype(
    [
        ("rng", "u8"),  # the game's own random stream
        ("dead", "u2", (PATHS,)),  # bit t set: a dead piece on space t of that path
        ("turn", "u2"),  # turns finished so far
        ("player", "i1"),  # seat to act
        ("phase", "i1"),  # a Phase
        ("rolls_left", "i1"),  # re-rolls left that cost no power
        ("dice", "i1", (DICE,)),  # faces, ascending; kept dice first, then -1, while a roll is due
        ("pieces", "i1", (MAX_PLAYERS, PATHS)),  # [seat, path] -> space
        ("color", "i1", (MAX_PLAYERS,)),  # a permutation: the colours of the seats, then the unused ones
        ("used", "u1"),  # bit k set: seat k has used its power
        ("perfection", "u1"),  # 1: this turn has earned the extra turn of R8
        ("truncated", "u1"),  # 1: over by R16
        ("_reserved", "u1", (3,)),  # fills the cache line; always 0
    ]
)
"""One game, in one cache line, for 2 to 5 players (DESIGN section 2)."""

ROW = np.dtype((np.void, STATE.itemsize))
"""A game as plain bytes: numpy copies and indexes `states.view(ROW)` some twenty times faster than records."""


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.records = np.zeros(2, STATE)


_SCRATCH = _Scratch()


def scratch() -> NDArray[np.void]:
    """Return memory for kernels to work in, STATE (2,), the same one whenever the same thread asks.

    Kernels allocate no records: in compiled code a view of a row does not keep its array alive (`make check` sees to
    it). They call nothing that could ask for this memory while they use it.
    """
    return _SCRATCH.records


def check_states(rules: Rules, states: NDArray[np.void]) -> None:
    """Make sure that records from outside are games of these rules, so that compiled code may trust them.

    Args:
        rules: the rules of all games.
        states: STATE (N,).

    Raises:
        ValueError: naming the first game with a field that no such game can have.
    """
    n, last = rules.players, rules.spaces + NUMBERED
    phase, dice, pieces = states["phase"], states["dice"], states["pieces"]
    rolled = phase != Phase.CHANCE
    standing = 1 << pieces[:, :n].astype(np.int64).clip(0, 15)
    standing[pieces[:, :n] == 0] = 0
    taken = states["dead"].astype(np.int64)
    alone = (taken & ~(2 * (1 << rules.spaces) - 2) == 0).all(1)
    for seat in range(n):
        alone &= (taken & standing[:, seat] == 0).all(1)
        taken |= standing[:, seat]
    turns = states["turn"].astype(np.int64) + (phase != Phase.OVER)
    ascending = np.diff(np.where(dice < 0, DRAGON + 1, dice)) >= 0
    for field, fine, rule in (
        ("turn", turns <= rules.max_turns, f"below max_turns = {rules.max_turns}"),
        ("phase", (phase >= 0) & (phase < len(Phase)), f"from 0 to {len(Phase) - 1}"),
        ("player", (states["player"] >= 0) & (states["player"] < n), f"from 0 to {n - 1}"),
        (
            "rolls_left",
            (states["rolls_left"] >= 0) & (states["rolls_left"] <= REROLLS),
            f"from 0 to {REROLLS}",
        ),
        (
            "dice",
            ((dice >= -1) & (dice <= DRAGON) & ((dice >= 0).all(1) == rolled)[:, None]).all(1)
            & ascending.all(1),
            "five faces from 0 to 5 in ascending order or, at phase CHANCE alone, kept ones and then -1",
        ),
        (
            "pieces",
            ((pieces >= 0) & (pieces <= last)).all((1, 2)) & (pieces[:, n:] == 0).all((1, 2)),
            f"spaces from 0 to {last}, and 0 for seats that do not play",
        ),
        ("pieces", alone, f"pieces on spaces of their own, dead ones on spaces 1 to {rules.spaces}"),
        (
            "color",
            (np.sort(states["color"]) == np.arange(MAX_PLAYERS)).all(1),
            "the five colours in some order",
        ),
        ("used", states["used"] < 1 << n, f"bits of the seats 0 to {n - 1}"),
        ("perfection", states["perfection"] <= 1, "0 or 1"),
        ("truncated", states["truncated"] <= (phase == Phase.OVER), "0 or, in a game that is over, 1"),
    ):
        if not fine.all():
            game = int(fine.argmin())
            raise ValueError(f"game {game}: {field} must be {rule}, got {states[field][game].tolist()}")
