"""The encoding of a game as a vector of small integers, seen from one seat, and of its legal actions as a mask."""

from __future__ import annotations

from typing import Any

import numpy as np

from wotd_env.core.actions import Action, Bits
from wotd_env.core.compilation import inlined
from wotd_env.core.dice import COUNTS, FACES, NUM_KEEPS, Roll
from wotd_env.core.engine import Config, powers_of
from wotd_env.core.rules import DICE, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules
from wotd_env.core.state import Record

DEADLINE = 127
"""Turns before truncation from which the observation counts down."""

PHASES = len(Phase)
DICE_BLOCK = FACES * (DICE + 1)

ONE_HOT_DICE = (COUNTS[:, :, None] == np.arange(DICE + 1)).reshape(NUM_KEEPS, DICE_BLOCK).astype(np.int8)
"""int8 (462, 36): [face, how many dice show it] of every roll and keep."""

BYTES = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.int8)
"""int8 (256, 8): the bits of a byte, lowest first."""


def layout(rules: Rules) -> dict[str, slice]:
    """Return the place of every part of the observation, in order.

    Seats are relative to the observer: 0 = the observer, 1 = the next seat, and so on.
    """
    n = rules.players
    sizes = {
        "pieces": n * PATHS * (rules.spaces + NUMBERED + 1),  # [seat, path, space] one-hot
        "dead": PATHS * rules.spaces,  # [path, plain space - 1]
        "dice": DICE_BLOCK,  # [face, how many dice show it] one-hot; dice still to be rolled show none
        "rolls_left": REROLLS + 1,  # one-hot
        "phase": PHASES,  # one-hot
        "player": n,  # [seat] the one to act, one-hot
        "powers": n * PATHS,  # [seat, colour of the power] still held
        "perfection": 1,  # an extra turn is earned
        "colors": n * MAX_PLAYERS,  # [seat, colour] one-hot
        "deadline": 1,  # 127 minus the turns left before truncation, 0 while there are more
    }
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


@inlined
def encode(s: Record, rules: Config, observer: Any, keep: Roll, row: Any) -> None:
    """Write the observation of a seat, int8 (D,), in the order of `layout`; `keep` is what `engine.shown` returns."""
    n = rules.players
    spaces = np.uint64(rules.spaces)
    block = spaces + np.uint64(NUMBERED + 1)
    row[:] = 0
    at = np.uint64(0)
    seat = observer
    for _ in range(n):
        for path in range(PATHS):
            row[at + np.uint64(s.pieces[seat, path])] = 1
            at += block
        seat = after(seat, n)
    for path in range(PATHS):
        dead = s.dead[path] >> 1
        if dead:
            for space in range(rules.spaces):
                row[at + np.uint64(space)] = dead >> space & 1
        at += spaces
    for i in range(DICE_BLOCK):
        row[at + np.uint64(i)] = ONE_HOT_DICE[keep, i]
    at += np.uint64(DICE_BLOCK)
    row[at + np.uint64(s.rolls_left)] = 1
    at += np.uint64(REROLLS + 1)
    row[at + np.uint64(s.phase)] = 1
    at += np.uint64(PHASES)
    relative = s.player - observer
    row[at + np.uint64(relative + n * (relative < 0))] = 1
    at += np.uint64(n)
    if rules.powers:
        seat = observer
        for relative in range(n):
            held = powers_of(s, rules, seat)
            for power in range(PATHS):
                row[at + np.uint64(relative * PATHS + power)] = held >> power & 1
            seat = after(seat, n)
    at += np.uint64(n * PATHS)
    row[at] = s.perfection
    at += np.uint64(1)
    seat = observer
    for _ in range(n):
        row[at + np.uint64(s.color[seat])] = 1
        at += np.uint64(MAX_PLAYERS)
        seat = after(seat, n)
    row[at] = max(0, DEADLINE - (rules.max_turns - s.turn))


@inlined
def after(seat: Any, n: Any) -> Any:
    """Return the next seat; a division would cost more than the rest."""
    return seat + 1 if seat + 1 < n else 0


@inlined
def write_mask(actions: Bits, swaps: Bits, row: Any) -> None:
    """Write the legal actions, int8 (A,), from their bits."""
    for i in range(7):
        byte = (actions >> np.uint64(8 * i)) & np.uint64(255)
        for j in range(8):
            row[8 * i + j] = BYTES[byte, j]
    for k in range(row.shape[0] - Action.FIRST_SWAP):
        row[Action.FIRST_SWAP + k] = (swaps >> np.uint64(k)) & np.uint64(1)
