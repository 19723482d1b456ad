"""The state of a game, as a 64-byte record."""

from __future__ import annotations

import threading
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.rules import DICE, MAX_PLAYERS, PATHS

STATE = np.dtype(
    [
        ("rng", "u8"),  # the game's own random stream
        ("dead", "u2", (PATHS,)),  # bit t of dead[p] is 1 if a dead piece is on space t of path p
        ("turn", "u2"),  # turns finished so far
        ("player", "i1"),  # seat to act
        ("phase", "i1"),
        ("rolls_left", "i1"),  # re-rolls left; the tiger's additional re-roll is not counted
        ("dice", "i1", (DICE,)),  # ascending faces; before a roll, the kept dice, then -1 for the other dice
        ("pieces", "i1", (MAX_PLAYERS, PATHS)),  # [seat, path]: the space of the seat's piece on the path
        ("color", "i1", (MAX_PLAYERS,)),  # first the colors of the seats, then the unused colors
        ("used", "u1"),  # bit k is 1 if seat k has used its power
        ("perfection", "u1"),  # 1 if this turn has earned the extra turn of R8
        ("expired", "u1"),  # 1 if the turn limit ended the game (R16)
        ("players", "u1"),  # number of seats of the game; 0 if unknown, as in records made by hand
        ("_reserved", "u1", (2,)),  # fills the cache line; always 0
    ]
)
"""The dtype of a record; docs/reference/state.md describes the fields."""

OLD_STATE = np.dtype([*STATE.descr[:-3], ("truncated", "u1"), ("_reserved", "u1", (3,))])
"""The dtype of records from before the fields `expired`, then `truncated`, and `players`. The bytes are the same."""

States = NDArray[np.void]  # a batch of games: STATE (N,)


Int = int | np.integer[Any]
"""An integer in compiled code. There the types are one, but Python has a class for each size."""

Flag = Any
"""A truth value that compiled code returns: numba's `boolean`, but in Python also `np.bool` or an integer."""


Floats = NDArray[np.floating[Any]]  # such as rewards


class Record(Protocol):
    """The type of a record in compiled code. It lets mypy check the names of the fields."""

    rng: np.uint64
    dead: NDArray[np.uint16]
    turn: Int
    player: Int
    phase: Int
    rolls_left: Int
    dice: NDArray[np.int8]
    pieces: NDArray[np.int8]
    color: NDArray[np.int8]
    used: Int
    perfection: Int
    expired: Int
    players: Int
    _reserved: NDArray[np.uint8]


Records = Any
"""A batch of games in compiled code, STATE (N,). Its elements have attributes there, but not in Python."""

ROW = np.dtype((np.void, STATE.itemsize))
"""A dtype for records as raw bytes. NumPy copies and indexes `states.view(ROW)` much faster than `states`."""


def take(states: States, games: NDArray[np.integer]) -> States:
    """Return `states[games]`. NumPy's own indexing of records is slower."""
    taken: States = states.view(ROW)[games].view(STATE)
    return taken


def as_state(records: Any) -> Any:
    """Return a view of old records, an array or a scalar, as STATE. Other dtypes are returned unchanged."""
    # The comparison of identities comes first, because comparing fields takes much longer.
    return records if records.dtype is STATE or records.dtype != OLD_STATE else records.view(STATE)


class _Scratch(threading.local):
    def __init__(self) -> None:
        self.records = np.zeros(2, STATE)


_SCRATCH = _Scratch()


def scratch() -> NDArray[np.void]:
    """Return this thread's scratch memory for kernels, STATE (2,). Only one kernel at a time may use this memory.

    Kernels cannot allocate records, because in compiled code a view of a row does not keep its array alive.
    """
    return _SCRATCH.records
