"""Tables with one entry for each of the 252 rolls, or for each of the 462 keeps, of five dice.

A *keep* is a multiset of five symbols, one for each die. A symbol is a face (0 to 5), or 6 for an unrolled die. The
index of a keep in the tables is its rank in the combinatorial number system. A *roll* is a keep without an unrolled
die; rolls have the indices 0 to 251.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product
from math import comb, factorial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.arguments import check_integer, check_integers
from wotd_env.core.rules import DICE, DRAGON

Keep = Any
"""The index of a keep in compiled code, uint64, which numba accepts as an index. Python would need an int."""
Roll = Any
"""The index of a roll, like `Keep`."""

FACES = 6
UNROLLED = 6
NUM_ROLLS = comb(FACES + DICE - 1, DICE)
NUM_KEEPS = comb(FACES + DICE, DICE)
NUM_HOLDS = 1 << DICE

# The tables use Python's integers, because NumPy's default integer type depends on its version and on the platform.
_SYMBOLS = (*range(FACES), UNROLLED, UNROLLED)
_INDEX_PARTS = [[comb(symbol + i, i + 1) for symbol in _SYMBOLS] for i in range(DICE)]
INDEX_PARTS = np.array(_INDEX_PARTS, np.uint16)
"""uint16 (5, 8): the index of the keep with the ascending symbols s is the sum over i of INDEX_PARTS[i, s[i]].

An unrolled die is -1 in the field `dice` of STATE. Index -1 selects the last column, so this column equals column 6.
"""


def keep_index(symbols: list[int] | tuple[int, ...]) -> int:
    """Return the index of a keep, given its five symbols in ascending order."""
    return sum(parts[symbol] for parts, symbol in zip(_INDEX_PARTS, symbols, strict=True))


KEEPS = np.array(sorted(combinations_with_replacement(range(FACES + 1), DICE), key=keep_index), np.int8)
"""int8 (462, 5): the symbols of every keep, ascending."""

KEEP_DICE = np.where(KEEPS == UNROLLED, -1, KEEPS).astype(np.int8)
"""int8 (462, 5): KEEPS in the format of the field `dice` of STATE."""

COUNTS = (KEEPS[:, :, None] == np.arange(FACES)).sum(1).astype(np.uint8)
"""uint8 (462, 6): for every keep, the number of dice that show each face."""


def _words(rows: NDArray[Any]) -> NDArray[np.uint64]:
    """Return each row of five bytes as one integer, uint64 (N,); the first byte is the lowest."""
    return np.pad(rows.view(np.uint8), ((0, 0), (0, 3))).view("<u8")[:, 0].astype(np.uint64)


DICE_WORDS = _words(KEEP_DICE)
COUNT_WORDS = _words(np.ascontiguousarray(COUNTS[:, :DRAGON]))
"""uint64 (462,): byte e is the number of dice of element e."""

UNROLLED_DICE = (KEEPS == UNROLLED).sum(1).astype(np.uint8)
EQUILIBRIUM = keep_index((0, 1, 2, 3, 4))

MISSING = np.full(NUM_KEEPS, DRAGON, np.uint8)
"""uint8 (462,): the missing element of a roll with one dragon and four different elements; 5 for all other keeps."""
for _element in range(5):
    MISSING[keep_index(sorted({*range(5), DRAGON} - {_element}))] = _element


def _holds() -> tuple[NDArray[np.uint16], NDArray[np.uint64]]:
    """Return the keep after each hold of each roll, uint16 (252, 32), and the legal holds as bits, uint64 (252,).

    If several holds keep the same faces, only the hold with the lowest number is legal.
    """
    left = np.zeros((NUM_ROLLS, NUM_HOLDS), np.uint16)
    legal = np.zeros(NUM_ROLLS, np.uint64)
    for roll, faces in enumerate(KEEPS[:NUM_ROLLS].tolist()):
        for hold in range(NUM_HOLDS):
            kept = [face for die, face in enumerate(faces) if hold >> die & 1]
            left[roll, hold] = keep_index(kept + [UNROLLED] * (DICE - len(kept)))
        keeps = left[roll].tolist()
        legal[roll] = sum(1 << keeps.index(keep) for keep in set(keeps))
    return left, legal


HOLD_KEEP, LEGAL_HOLDS = _holds()


THROW_SIZE = np.array([FACES**unrolled for unrolled in UNROLLED_DICE.tolist()], np.uint32)
"""uint32 (462,): the number of equally probable throws of the unrolled dice of each keep."""
THROW_START = np.cumsum(THROW_SIZE, dtype=np.uint32) - THROW_SIZE
"""uint32 (462,): the index in THROW_ROLL of the first throw of each keep."""
THROW_ROLL = np.array(
    [
        keep_index(sorted([*symbols[: DICE - unrolled], *throw]))
        for symbols, unrolled in zip(KEEPS.tolist(), UNROLLED_DICE.tolist(), strict=True)
        for throw in product(range(FACES), repeat=unrolled)
    ],
    np.uint8,
)
"""uint8 (23112,): the roll after each throw: all throws of keep 0, then all throws of keep 1, and so on."""


def rolls_after(keep: int) -> NDArray[np.uint8]:
    """Return the roll after each possible throw of the k unrolled dice of a keep, uint8 (6^k,)."""
    return THROW_ROLL[THROW_START[keep] :][: THROW_SIZE[keep]]


def chance_outcomes(dice: int) -> tuple[NDArray[np.int8], NDArray[np.float64]]:
    """Return the M outcomes of rolling 0 to 5 dice: sorted faces, int8 (M, dice), and probabilities, float64 (M,)."""
    dice = check_integer("dice", dice, 0, DICE)
    outcomes = list(combinations_with_replacement(range(FACES), dice))
    ways = [factorial(dice) / np.prod([factorial(roll.count(f)) for f in range(FACES)]) for roll in outcomes]
    return np.array(outcomes, np.int8).reshape(len(outcomes), dice), np.array(ways) / FACES**dice


def rolls_of(faces: ArrayLike, kept: NDArray[np.int8], due: NDArray[np.bool_]) -> NDArray[np.uint64]:
    """Return the rolls with the given faces, uint64 (N,).

    Args:
        faces: integers (N, 5), in any order.
        kept: int8 (N, 5), the dice of the games, -1 for each die to be rolled.
        due: bool (N,): whether a roll is due. The faces of other games are ignored.

    Raises:
        ValueError: for faces that do not include the kept ones.
    """
    given = check_integers("dice", faces, (len(due), DICE))
    before, counts = ((rows[:, :, None] == np.arange(FACES)).sum(1) for rows in (kept, given))
    wrong = due & ((counts < before).any(1) | (counts.sum(1) < DICE))
    if wrong.any():
        game = int(wrong.argmax())
        held, got = ([face for face in row[game].tolist() if face >= 0] for row in (kept, given))
        raise ValueError(
            f"game {game}: dice must be five faces from 0 to 5 that include the kept ones {held}, got {got}"
        )
    ascending = np.sort(np.where(due[:, None], given, 0), 1)
    rolls: NDArray[np.uint64] = INDEX_PARTS[np.arange(DICE), ascending].sum(1, dtype=np.uint64)
    return rolls
