"""Exact results of a deterministic policy in the two-player basic game: against perfect play, itself, its worst enemy.

Positions do not name paths or seats, so the policy is asked as seat 0, the paths in ascending order of their codes.
What is evaluated is the policy played that way; one that treats paths and seats alike plays so anyway.

All that a policy does in a turn is summed up by how likely each of 37 *ends* of the turn is, so its value is linear in
the values after the turn. As in solving, layers go from the end backwards, and passes and swaps, which stay in a layer,
are iterated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import (
    COUNTS,
    EQUILIBRIUM,
    FACES,
    HOLD_KEEP,
    KEEPS,
    LEGAL_HOLDS,
    NUM_KEEPS,
    NUM_ROLLS,
    THROW_ROLL,
    Roll,
)
from wotd_env.core.game import Game
from wotd_env.core.policy import Policy
from wotd_env.core.rules import DICE, DRAGON, PATHS, Phase, Rules
from wotd_env.planning.turn import LANES, MORE, NOTHING, best, expect, scratch
from wotd_env.solver import families
from wotd_env.solver.families import NEVER, OPTIONS, result, work_out
from wotd_env.solver.positions import NONE, layer_codes
from wotd_env.solver.table import Table, check_table, index

__all__ = ["Evaluation", "evaluate"]

# Ends of a turn. The moves of five dice come twice: the second time an extra turn follows (R8).
END_MOVE = 0  # 5 * path + dice - 1
END_MOVE_AGAIN = 25  # + path
END_ADVANCE = 30
END_PASS = 31
END_SWAP = 32  # + path
ENDS = 37
AGAIN = np.zeros(ENDS, np.bool_)
AGAIN[END_MOVE_AGAIN:END_ADVANCE] = True
STAYS = slice(END_PASS, ENDS)  # ends that make no progress

CHANCES = np.bincount(THROW_ROLL[-(FACES**DICE) :], minlength=NUM_ROLLS) / FACES**DICE
TOLERANCE = 1e-10
ROUNDS = 100_000
ASKED = 256  # positions about which the policy is asked in one call


class Evaluation(NamedTuple):
    """Expected results, 1 a win, -1 a loss."""

    begins: float
    """of the policy against perfect play, if it has the first turn"""
    follows: float
    """of the policy against perfect play, if it has the second turn"""
    itself: float
    """of the policy that has the first turn, against itself"""
    enemy_begins: float
    """of the best response to the policy, if that has the first turn"""
    enemy_follows: float
    """of the best response to the policy, if that has the second turn"""
    perfect: float
    """of perfect play that has the first turn, against perfect play"""

    @property
    def win_share(self) -> float:
        """The policy's share of wins against perfect play, each beginning as often."""
        return (1 + (self.begins + self.follows) / 2) / 2

    @property
    def exploitability(self) -> float:
        """The best response's mean result, each beginning as often; 0 for perfect play."""
        return (self.enemy_begins + self.enemy_follows) / 2


def evaluate(
    policy: Policy,
    table: Table,
    position: tuple[list[int], list[int]] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Return the exact results of a policy.

    Args:
        policy: must be deterministic, and decide by pieces, dice and re-rolls left alone.
        table: the solution of the board to play on; whole games are practical on boards of 0 and 1 plain spaces.
        position: the spaces of the pieces of the player to move and of the other one; by default the start.
        progress: is called now and then with the positions done and all that can be reached.

    Raises:
        IllegalActionError: if the policy chooses an illegal action.
        TypeError: if the table is none.
        ValueError: if the position cannot be.
    """
    check_table(table)
    b = table.board
    mine, theirs = position or ([0] * PATHS, [0] * PATHS)
    table.value([mine], [theirs])  # raises if it cannot be
    codes = b.code[mine, theirs].astype(np.uint64)
    first = int(b.progress[codes].sum())
    start = int(index(b, codes, table.layout.base))
    layers = _reachable(table, first, start)
    asker = _Asker(policy, b)

    perfect = np.asarray(table.values, np.float64) * table.unit
    against, oracle = (
        np.full(b.positions, np.nan) for _ in range(2)
    )  # the policy, and perfect play, to move
    itself = np.full(b.positions, np.nan)
    victim, enemy = (
        np.full(b.positions, np.nan) for _ in range(2)
    )  # the policy, and the best response, to move
    done = 0
    for rows, codes, over, results, after in reversed(layers):
        for values in (against, oracle, itself, victim, enemy):
            values[rows[over]] = results[over]
        rows, codes, after = rows[~over], codes[~over], after[~over]
        own = asker.ends(codes)
        best = _perfect_ends(_values_of_ends(after, perfect, perfect))
        _settle(rows, _linear(own, after, against, oracle), _linear(best, after, oracle, against))
        _settle(rows, _linear(own, after, itself, itself))
        _settle(rows, _linear(own, after, victim, enemy), _greedy(after, enemy, victim))
        done += len(over)
        if progress:
            progress(done, sum(len(layer[0]) for layer in layers))
    return Evaluation(
        begins=float(against[start]),
        follows=-float(oracle[start]),
        itself=float(itself[start]),
        enemy_begins=float(enemy[start]),
        enemy_follows=-float(victim[start]),
        perfect=float(perfect[start]),
    )


def _reachable(table: Table, first: int, start: int) -> list[tuple[Any, ...]]:
    """Return for every layer the positions that can be reached from a start.

    They come as places in the table, codes (n, 5), whether the game is over, its result then, and the places after
    each end of the turn (n, ENDS), -1 where it is not possible.
    """
    b = table.board
    reached = np.zeros(b.positions, np.bool_)
    reached[start] = True
    layers = []
    for total in range(first, len(b.sizes)):
        low, size = int(table.layout.base[total]), int(b.sizes[total])
        if not reached[low : low + size].any():
            continue
        codes = np.empty((size, PATHS), np.uint64)
        layer_codes(b, total, codes)
        after = np.empty((size, ENDS), np.int64)
        results = np.empty(size)
        ends_of(b, codes, table.layout.base, after, results)
        while True:
            found = after[reached[low : low + size]]
            found = np.unique(found[found >= 0])
            if reached[found].all():
                break
            reached[found] = True
        here = np.flatnonzero(reached[low : low + size])
        layers.append((here + low, codes[here], results[here] == results[here], results[here], after[here]))
    return layers


def _values_of_ends(
    after: NDArray[np.int64], own: NDArray[np.float64], other: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return what each end of the turn is worth to the player to move (n, ENDS)."""
    values = np.where(AGAIN, own[after], -other[after])
    values[after < 0] = NEVER
    return values


def _linear(
    ends: NDArray[np.float64], after: NDArray[np.int64], own: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Callable[[], NDArray[np.float64]]]:
    """Return the values of the player to move, and what updates them if its turns end with these probabilities."""
    moved = _values_of_ends(after, own, other)
    progress = ends[:, : STAYS.start] * np.where(ends[:, : STAYS.start] > 0, moved[:, : STAYS.start], 0)
    fixed = progress.sum(1)
    stays, where = ends[:, STAYS], after[:, STAYS]

    def update() -> Any:
        return fixed - np.where(stays > 0, stays * np.nan_to_num(other[where]), 0).sum(1)

    return own, update


def _greedy(
    after: NDArray[np.int64], own: NDArray[np.float64], other: NDArray[np.float64]
) -> tuple[NDArray[np.float64], Callable[[], NDArray[np.float64]]]:
    """Return the values of the player to move, and what updates them if it plays its turns as well as possible."""

    def update() -> NDArray[np.float64]:
        out = np.empty(len(after))
        best_turns(
            np.nan_to_num(_values_of_ends(after, own, other)), scratch(NUM_KEEPS + OPTIONS, np.float64), out
        )
        return out

    return own, update


def _settle(
    rows: NDArray[np.int64], *players: tuple[NDArray[np.float64], Callable[[], NDArray[np.float64]]]
) -> None:
    """Iterate the values of a layer, of one player and the other in turn, until they stay as they are."""
    for _ in range(ROUNDS):
        change = 0.0
        for values, update in players:
            new = update()
            change = max(change, float(np.abs(new - np.nan_to_num(values[rows], nan=9.0)).max(initial=0)))
            values[rows] = new
        if change < TOLERANCE:
            return
    raise ArithmeticError(
        f"values still change by {change} after {ROUNDS} rounds: the policy may never end a game"
    )


class _Asker:
    """Asks a policy for all its decisions in a position."""

    def __init__(self, policy: Policy, board: Any) -> None:
        self._policy = policy
        self._board = board
        self._game = Game(Rules(spaces=board.spaces), skip_forced=False)
        self._rng = np.random.default_rng(0)
        holds = np.repeat(self._game.reset(1, starting_player=0, roll=False), NUM_ROLLS)
        self._game.roll(holds, KEEPS[:NUM_ROLLS])
        moves = holds.copy()
        self._game.decide(moves, np.full(NUM_ROLLS, Action.STOP_ROLLING))
        second = holds.copy()
        second["rolls_left"] = 1
        self._phases = (holds, second, moves)

    def ends(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the probabilities with which turns in positions (n, 5) end, (n, ENDS)."""
        parts = [self._ends(codes[i : i + ASKED]) for i in range(0, len(codes), ASKED)]
        return np.concatenate(parts) if parts else np.empty((0, ENDS))

    def _ends(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        first, second, moves = (self._act(phase, codes) for phase in self._phases)
        rolls = np.arange(NUM_ROLLS)
        action = moves[1]
        number = COUNTS[rolls, np.clip(action - Action.MOVE_ON, 0, PATHS - 1)].astype(np.int64)
        end = np.select(
            [action >= Action.FIRST_SWAP, action == Action.PASS, action == Action.EQUILIBRIUM],
            [END_SWAP + action - Action.FIRST_SWAP, END_PASS, END_ADVANCE],
            END_MOVE + DICE * (action - Action.MOVE_ON) + number - 1,
        )
        asked = (moves[0]["phase"] == Phase.EXTRA).reshape(end.shape)  # R8: after a move of five dice alone
        if asked.any():
            again = self._policy.act(self._game, moves[0][asked.ravel()], self._rng) == Action.PERFECTION_TURN
            end[asked] = np.where(again, END_MOVE_AGAIN + end[asked] // DICE, end[asked])
        out = np.zeros((len(codes), ENDS))
        flow(HOLD_KEEP[rolls, first[1]], HOLD_KEEP[rolls, second[1]], end, out)
        return out

    def _act(
        self, phase: NDArray[np.void], codes: NDArray[np.uint64]
    ) -> tuple[NDArray[np.void], NDArray[np.int64]]:
        """Return the states after the policy's decisions in all rolls, and the decisions (n, 252)."""
        state = np.tile(phase, len(codes))
        for seat, spaces in enumerate((self._board.mine, self._board.theirs)):
            state["pieces"][:, seat] = np.repeat(spaces[codes], NUM_ROLLS, axis=0)
        actions = self._policy.act(self._game, state, self._rng)
        self._game.decide(state, actions)
        return state, actions.reshape(len(codes), NUM_ROLLS)


def _perfect_ends(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the probabilities with which turns end that are played best for values of the ends, (n, ENDS)."""
    n = len(values)
    holds = np.empty((2, n, NUM_ROLLS), np.uint16)
    end = np.empty((n, NUM_ROLLS), np.int64)
    best_choices(values, scratch(NUM_KEEPS + NUM_ROLLS, np.float64), holds, end)
    out = np.zeros((n, ENDS))
    flow(holds[0], holds[1], end, out)
    return out


# -------------------------------------------------------------------------------------------------------------- kernels


@kernel
def ends_of(b: Any, all_codes: Any, base: Any, after: Any, results: Any) -> None:
    """Write where positions (n, 5) are kept after each end of the turn, and results, nan where the game goes on."""
    codes = np.empty(PATHS, np.uint64)
    for i in range(all_codes.shape[0]):
        position = all_codes[i]
        after[i] = -1
        over = 3
        for path in range(PATHS):
            over &= b.numbered[position[path]]
        results[i] = result(b, position) if over else np.nan
        if over:
            continue
        for path in range(PATHS):
            for count in range(1, DICE + 1):
                code = b.after[position[path], count]
                if code != NONE:
                    codes[:] = position
                    codes[path] = code
                    if count == DICE:
                        after[i, END_MOVE_AGAIN + path] = index(b, codes, base)
                        codes[:] = position
                        codes[path] = code
                    after[i, END_MOVE + DICE * path + count - 1] = seen_by_other(b, codes, base)
            code = b.swapped[position[path]]
            if code != NONE:
                codes[:] = position
                codes[path] = code
                after[i, END_SWAP + path] = seen_by_other(b, codes, base)
        codes[:] = position
        after[i, END_PASS] = seen_by_other(b, codes, base)
        for path in range(PATHS):
            code = b.after[position[path], 1]
            codes[path] = position[path] if code == NONE else code
        if (codes != position).any():
            after[i, END_ADVANCE] = seen_by_other(b, codes, base)


@kernel
def seen_by_other(b: Any, codes: Any, base: Any) -> Any:
    """Return where the position of five codes, which are overwritten, is kept with the players exchanged."""
    for path in range(PATHS):
        codes[path] = b.flip[codes[path]]
    return index(b, codes, base)


@kernel
def flow(first: Any, second: Any, end: Any, out: Any) -> None:
    """Add up the probabilities of the ends of turns, (n, ENDS).

    `first` and `second` (n, 252) are the keeps that the holds leave of each roll, the roll itself if it stands; `end`
    (n, 252) is what is made of each roll that stands.
    """
    mass = np.empty((2, NUM_KEEPS))
    for i in range(out.shape[0]):
        mass[:] = 0
        stands = np.zeros(NUM_ROLLS)
        for roll in range(NUM_ROLLS):
            keep = first[i, roll]
            if keep == roll:
                stands[roll] += CHANCES[roll]
            else:
                mass[0, keep] += CHANCES[roll]
        spread(mass[0])
        for roll in range(NUM_ROLLS):
            keep = second[i, roll]
            if keep == roll:
                stands[roll] += mass[0, roll]
            else:
                mass[1, keep] += mass[0, roll]
        spread(mass[1])
        for roll in range(NUM_ROLLS):
            out[i, end[i, roll]] += stands[roll] + mass[1, roll]


@kernel
def spread(mass: Any) -> None:
    """Let the probabilities of partial keeps flow on to rolls."""
    for i in range(NUM_KEEPS - 1, NUM_ROLLS - 1, -1):
        for face in range(FACES):
            mass[MORE[i - NUM_ROLLS, face]] += mass[i] / FACES


@kernel
def best_turns(values: Any, work: Any, out: Any) -> None:
    """Write what turns are worth whose ends have these values, (n, ENDS)."""
    for first in range(0, out.size, LANES):
        lanes = min(LANES, out.size - first)
        for lane in range(lanes):
            ends = values[first + lane]
            for path in range(PATHS):
                for i in range(DICE * path, DICE * path + DICE):
                    work[families.MOVE + i, lane] = ends[END_MOVE + i]
                five = families.MOVE + DICE * path + DICE - 1
                work[five, lane] = max(work[five, lane], ends[END_MOVE_AGAIN + path])
                work[families.SWAP + path, lane] = ends[END_SWAP + path]
            work[families.ADVANCE, lane] = ends[END_ADVANCE]
            work[families.PASS, lane] = ends[END_PASS]
        work_out(work, np.uint64(0))
        for lane in range(lanes):
            out[first + lane] = work[NOTHING, lane]


@kernel
def best_choices(values: Any, work: Any, holds: Any, end: Any) -> None:
    """Write the holds (2, n, 252) and the ends (n, 252) that are best for values of the ends, the lowest of equals."""
    for first in range(0, values.shape[0], LANES):
        lanes = min(LANES, values.shape[0] - first)
        for lane in range(lanes):
            for roll in range(NUM_ROLLS):
                chosen = best_end(values[first + lane], roll)
                end[first + lane, roll] = chosen
                work[roll, lane] = values[first + lane, chosen]
                work[NUM_KEEPS + roll, lane] = work[roll, lane]  # where the rolling stops
        for stage in range(1, -1, -1):
            expect(work)
            for lane in range(lanes):
                for roll in range(NUM_ROLLS):
                    keep, most = NUM_KEEPS, -np.inf
                    for hold in range(Action.STOP_ROLLING + 1):
                        if LEGAL_HOLDS[roll] >> np.uint64(hold) & np.uint64(1):
                            left = HOLD_KEEP[roll, hold]
                            value = (
                                work[NUM_KEEPS + roll, lane]
                                if hold == Action.STOP_ROLLING
                                else work[left, lane]
                            )
                            if value > most:
                                keep, most = left, value
                    holds[stage, first + lane, roll] = keep
            best(work)


@kernel
def best_end(values: Any, roll: Roll) -> Any:
    """Return the best end of a turn with a roll that stands."""
    chosen, most = END_PASS, NEVER / 2
    if roll == EQUILIBRIUM:
        if values[END_ADVANCE] > most:
            chosen, most = END_ADVANCE, values[END_ADVANCE]
    else:
        for path in range(PATHS):
            count = COUNTS[roll, path]
            if count:
                move = END_MOVE + DICE * path + count - 1
                if values[move] > most:
                    chosen, most = move, values[move]
    if chosen == END_PASS:
        most = values[END_PASS]
    elif chosen < END_MOVE_AGAIN and (chosen - END_MOVE) % DICE == DICE - 1:  # R8: moved by five dice
        again = END_MOVE_AGAIN + (chosen - END_MOVE) // DICE
        return again if values[again] > most else chosen
    if COUNTS[roll, DRAGON] >= DICE - 1:
        for path in range(PATHS):
            if (COUNTS[roll, path] or COUNTS[roll, DRAGON] == DICE) and values[END_SWAP + path] > most:
                chosen, most = END_SWAP + path, values[END_SWAP + path]
    return chosen
