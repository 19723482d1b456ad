"""The ends of a turn, found by asking the engine: what each roll offers, and which of the offers is best.

The effect of an action depends on the roll only through the number of dice by which a piece moves. An *end* is an
action of phase MOVE together with this number of dice, e.g. (move on path 1, 3 dice). So the 252 rolls offer few ends,
33 in the basic two-player game. All other modules take from here what a roll offers.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core.actions import Action, power_of
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import KEEPS, NUM_ROLLS
from wotd_env.core.game import Game
from wotd_env.core.rules import PATHS, Phase, Power, Rules
from wotd_env.core.state import STATE
from wotd_env.planning.turn import LANES, TIE, Rows, emit_largest, largest, row_operation

MOST_FREE = 4  # the largest number of power-free moves that a roll offers
OTHERS = 2 + MOST_FREE  # the first column of `Ends.offers` with other ends


class Ends(NamedTuple):
    """The K ends of a turn, in ascending order of actions and then of dice, and the ends that each roll offers.

    The end `passing` is a pass, and the next end is the power fear. Every roll offers these two ends, so the other
    fields do not list them as offers.
    """

    action: NDArray[np.int64]  # (K,)
    dice: NDArray[np.int64]  # (K,): the number of dice by which a piece moves; 0 for swaps, passes and fear
    perfection: NDArray[np.bool_]  # (K,): whether the player earns an extra turn
    passing: int
    roll: NDArray[np.int64]  # (K,): a roll that offers the end; few different rolls
    by_roll: NDArray[np.int64]  # (K,): all ends, first `passing` and fear, then grouped by `roll`
    offers: NDArray[np.uint8]  # (252, W): what each roll offers, see `offers_of`

    def offered(self, roll: int) -> list[int]:
        """Return all ends that a roll offers."""
        frees, others, *ends = self.offers[roll].tolist()
        return [*ends[:frees], self.passing, self.passing + 1, *ends[MOST_FREE : MOST_FREE + others]]


@functools.cache  # at most eight entries
def ends_of(players: int, powers: bool) -> Ends:
    """Return the ends of games with this number of players, with or without powers."""
    stays = [(int(Action.PASS), 0, 0), (int(Action.NO_MOVE_BY_FEAR), 0, 0)]
    offers = _ask(players, powers)
    ends = sorted({*stays, *(end for offered in offers for end in offered)})
    index = {end: i for i, end in enumerate(ends)}
    roll_of, missing = dict.fromkeys(stays, 0), {*ends}.difference(stays)
    # Few different rolls save time, because the planner computes the legal moves once for each of them.
    while missing:
        roll = max(range(NUM_ROLLS), key=lambda r: len(missing.intersection(offers[r])))
        found = missing.intersection(offers[roll])
        roll_of |= dict.fromkeys(sorted(found), roll)
        missing -= found
    free, other = [], []
    for offered in offers:
        moves = [end for end in offered if end[0] < Action.PASS and power_of(end[0]) is None]
        free.append([index[end] for end in moves])
        other.append([index[end] for end in offered if end not in moves])
    action, dice, perfection = np.array(ends, np.int64).T
    return Ends(
        action=np.ascontiguousarray(action),
        dice=np.ascontiguousarray(dice),
        perfection=perfection == 1,
        passing=index[stays[0]],
        roll=np.array([roll_of[end] for end in ends], np.int64),
        by_roll=np.array([index[end] for end in roll_of], np.int64),
        offers=offers_of(free, other),
    )


def offers_of(free: list[list[int]], other: list[list[int]]) -> NDArray[np.uint8]:
    """Return one array of all offers, uint8 (252, W), because kernels pass on few arrays faster than many.

    Each row has the number of power-free moves, the number of other ends, then four power-free moves, and then all
    other ends. If there are fewer than four power-free moves, some are repeated. The rolls that offer other ends come
    last, because the last rolls have the most dragons.
    """
    assert sorted(other, key=bool) == other
    offers = np.zeros((NUM_ROLLS, OTHERS + max(map(len, other))), np.uint8)
    for row, moves, ends in zip(offers, free, other, strict=True):
        row[:OTHERS] = [len(moves), len(ends), *((moves or [0]) * MOST_FREE)[:MOST_FREE]]
        row[OTHERS : OTHERS + len(ends)] = ends
    return offers


def _ask(players: int, powers: bool) -> list[list[tuple[int, int, int]]]:
    """Return (action, dice, perfection) for each end that each roll offers, except passes and fear, ascending.

    Four positions suffice: one in which all pieces can move, two in which a jump passes one dead piece, and one in
    which all pieces can be swapped.
    """
    probes = np.zeros(4, STATE)
    probes["phase"], probes["color"] = Phase.MOVE, np.arange(PATHS)
    probes["dead"][1:3] = [[0b101010], [0b010100]]
    probes["pieces"][3, :players] = np.arange(players)[:, None]
    probes["pieces"][3, 0] = players
    game = Game(Rules(players, powers="any" if powers else "none"))
    states = np.tile(probes, NUM_ROLLS)
    states["dice"] = np.repeat(KEEPS[:NUM_ROLLS], len(probes), axis=0)
    asked, actions = np.nonzero(game.legal_actions(states))
    after = states[asked]
    game.decide(after, actions)
    offers: list[set[tuple[int, int, int]]] = [set() for _ in range(NUM_ROLLS)]
    spaces = (after["pieces"] - states["pieces"][asked])[:, 0].max(1)
    for i, action in enumerate(actions.tolist()):
        if action not in (Action.PASS, Action.NO_MOVE_BY_FEAR):
            dice = int(spaces[i]) - (power_of(action) == Power.ANXIETY) if action < Action.PASS else 0
            offers[asked[i] // len(probes)].add((action, dice, int(after["perfection"][i])))
    return [sorted(offered) for offered in offers]


def _emit_best(builder: Any, rows: list[Any]) -> Any:
    passing, fear, *moves = rows
    move = emit_largest(builder, moves)
    possible = builder.fcmp_ordered(">", move, ir.Constant(move.type, [-np.inf] * LANES))
    return builder.select(possible, emit_largest(builder, [move, fear]), passing)


_best = row_operation(_emit_best)
"""Kernel `_best(rows, out, (passing, fear, *moves))`: set row `out` to the best value of what is legal."""


@kernel
def value_rolls(offers: Any, passing: Any, rows: Rows, out: Any, first: Any) -> None:
    """Set row `out + roll` to the value of stopping with each roll. `offers` and `passing` are fields of `Ends`.

    Before the call, row `first + end` must have the values of each end, -inf for an end that is impossible. Only
    `passing` needs a value if a move is possible, too, and fear if none is.
    """
    first = np.int64(first)
    stay = first + np.int64(passing)
    for roll in range(NUM_ROLLS):
        frees, a, b = offers[roll, 0], first + offers[roll, 2], first + offers[roll, 3]
        if frees == 0:
            largest(rows, out + roll, (stay,))
        elif frees == 1:
            _best(rows, out + roll, (stay, stay + 1, a))
        elif frees == 2:
            _best(rows, out + roll, (stay, stay + 1, a, b))
        else:  # reading one row twice is faster than one more branch
            _best(rows, out + roll, (stay, stay + 1, a, b, first + offers[roll, 4], first + offers[roll, 5]))
    roll = NUM_ROLLS - 1
    while roll >= 0 and offers[roll, 1]:
        for k in range(OTHERS, OTHERS + offers[roll, 1]):
            largest(rows, out + roll, (out + roll, first + offers[roll, k]))
        roll -= 1


@kernel
def open_ends(ends: Ends, values: Any, roll: Any, out: Any) -> Any:
    """Fill `out`, int64 (K,), with the ends that are legal after a roll. Return their number.

    `values`, (K,), has the value of each end, as in `value_rolls`.
    """
    offered = ends.offers[roll]
    count = np.int64(0)
    for end in offered[2 : 2 + offered[0]]:
        if values[end] > -np.inf:
            out[count] = end
            count += 1
    # If a move without a power is possible, passing is illegal (R5); otherwise fear is illegal (R12).
    if not count or values[ends.passing + 1] > -np.inf:
        out[count] = ends.passing + (count > 0)
        count += 1
    for end in offered[OTHERS : OTHERS + offered[1]]:
        if values[end] > -np.inf:
            out[count] = end
            count += 1
    return count


@kernel
def best_end(values: Any, candidates: Any) -> Any:
    """Return the best of the candidates. In a tie (see `turn.TIE`), the lowest action number wins."""
    most = values[candidates[0]]
    for end in candidates:
        most = max(most, values[end])
    best = np.int64(values.size)
    for end in candidates:
        if values[end] >= most - TIE:
            best = min(best, end)
    return best
