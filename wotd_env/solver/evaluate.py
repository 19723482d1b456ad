"""Evaluate a deterministic policy exactly in the two-player basic game.

The value of a position follows from the probabilities of the ends of a turn (see `planning.ends`) and the values of the
positions after the ends. The layer with the most progress (see `positions`) is evaluated first.
Passes and swaps lead to positions of the same layer, so the values after passes and swaps are iterated to convergence.

The positions of the solver do not distinguish paths or seats. So in all states that the policy gets, seat 0 is the
player to move, and the codes of the paths ascend (see `positions`). The result is exact if the policy treats all paths
and seats alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import FACES, HOLD_KEEP, KEEPS, NUM_KEEPS, NUM_ROLLS, THROW_ROLL
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE, PATHS, Phase, win_share
from wotd_env.core.state import States
from wotd_env.planning.ends import Ends, best_end, ends_of, open_ends
from wotd_env.planning.turn import LANES, MORE, NOTHING, STOPS, TIE, Rows, best, best_keep, expect, new_rows
from wotd_env.policy import Policy, ask
from wotd_env.solver import positions, turns
from wotd_env.solver.positions import Board
from wotd_env.solver.table import Progress, Table, check_solvable, check_table
from wotd_env.solver.turns import AGAIN, ENDS, JUMPED, NEVER, OTHER, PROGRESS

ROLL_CHANCES = np.bincount(THROW_ROLL[-(FACES**DICE) :], minlength=NUM_ROLLS) / FACES**DICE
"""float64 (252,): the probability of each roll of five dice."""
TOLERANCE = 1e-10
ROUNDS = 100_000
ASKED = 256  # number of positions in one call of the policy


class Evaluation(NamedTuple):
    """The results of an evaluation: expected rewards, from -1 to 1."""

    begins: float  #: reward of the policy against perfect play, if the policy has the first turn
    follows: float  #: reward of the policy against perfect play, if perfect play has the first turn
    itself: float  #: reward of the starting player if both players use the policy
    enemy_begins: float  #: reward of the best response to the policy, if the best response has the first turn
    enemy_follows: float  #: reward of the best response to the policy, if the policy has the first turn
    perfect: float  #: reward of the starting player if both players play perfectly

    @property
    def win_share(self) -> float:
        """The policy's win probability against perfect play, averaged over both seats."""
        return win_share((self.begins + self.follows) / 2, 2)

    @property
    def exploitability(self) -> float:
        """The expected reward of the best response, averaged over both seats; 0 if the policy is perfect."""
        return (self.enemy_begins + self.enemy_follows) / 2


def evaluate(
    policy: Policy,
    table: Table,
    position: tuple[list[int], list[int]] | None = None,
    progress: Progress = lambda done, total: None,
) -> Evaluation:
    """Return the exact expected rewards of a policy.

    Args:
        policy: a deterministic policy that depends only on the pieces, the dice and the number of re-rolls left.
        table: the table of the solved game. Evaluation from the start is practical only for 0 or 1 plain spaces.
        position: the position to evaluate, as two lists. The first list has the spaces of the pieces of the player to
            move. The second list has the spaces of the other player's pieces. The default is the start of the game.
        progress: called with the number of finished positions and the number of all reachable positions.

    Raises:
        IllegalActionError: if the policy chooses an illegal action.
        ValueError: if the position is impossible, or the table is not for the basic game.
    """
    check_solvable(check_table(table).rules)
    if table.rules.powers != "none" or table.rules.immunity:
        raise ValueError(f"policies are evaluated in the basic game only, got a table for {table.rules}")
    board, base = table.board, table.layout.base
    mine, theirs = position or ([0] * PATHS, [0] * PATHS)
    table.value([mine], [theirs])  # raises ValueError if the position is impossible
    codes = board.code[table.kinds, mine, theirs].astype(np.uint64)
    first = int(positions.sort_codes(board, codes))
    start = int(positions.index_of(board, base, np.uint64(first), codes))
    reachable = _reachable(board, base, first, start)
    asker, reached = _Asker(policy, table), sum(len(layer.indices) for layer in reachable)

    # Each array has the value of every position for the player to move, if the two players play as follows:
    # array     player to move   other player
    # against   policy           perfect play
    # oracle    perfect play     policy
    # itself    policy           policy
    # victim    policy           best response
    # enemy     best response    policy
    against, oracle, itself, victim, enemy = (np.full(board.positions, np.nan) for _ in range(5))
    perfect_play = np.asarray(table.values[0], np.float64) * table.unit
    done = 0
    for layer in reversed(reachable):
        for values in (against, oracle, itself, victim, enemy):
            values[layer.indices[layer.over]] = layer.result[layer.over]
        indices, after = layer.indices[~layer.over], layer.after[~layer.over]
        own = asker.ends(layer.codes[~layer.over])
        best_ends = _best_ends(_values_of_ends(after, perfect_play, perfect_play))
        _iterate(indices, _played(own, after, against, oracle), _played(best_ends, after, oracle, against))
        _iterate(indices, _played(own, after, itself, itself))
        _iterate(indices, _played(own, after, victim, enemy), _played_best(after, enemy, victim))
        done += len(layer.indices)
        progress(done, reached)
    return Evaluation(
        begins=float(against[start]),
        follows=-float(oracle[start]),
        itself=float(itself[start]),
        enemy_begins=float(enemy[start]),
        enemy_follows=-float(victim[start]),
        perfect=float(perfect_play[start]),
    )


class _Layer(NamedTuple):
    """The positions of one layer that are reachable from the evaluated position."""

    indices: NDArray[np.int64]  # (N,): indices of the positions in the table
    codes: NDArray[np.uint64]  # (N, 5)
    over: NDArray[np.bool_]  # (N,)
    result: NDArray[np.float64]  # (N,): results of ended games, nan for running games
    # (N, 2, ENDS): index of the position after each end, by OTHER and AGAIN; -1 if impossible
    after: NDArray[np.int64]


def _reachable(board: Board, base: NDArray[np.int64], first: int, start: int) -> list[_Layer]:
    """Return the reachable positions, by layer. `start` is the index of the evaluated position, `first` its layer."""
    reached = np.zeros(board.positions, np.bool_)
    reached[start] = True
    layers = []
    for total in range(first, len(board.sizes)):
        low, size = int(base[total]), int(board.sizes[total])
        if not reached[low : low + size].any():
            continue
        codes, after, result = positions_after(board, ends_of(2, powers=False), base, np.uint64(total), size)
        while True:
            found = after[reached[low : low + size]]
            found = np.unique(found[found >= 0])
            if reached[found].all():
                break
            reached[found] = True
        here = np.flatnonzero(reached[low : low + size])
        layers.append(_Layer(here + low, codes[here], ~np.isnan(result[here]), result[here], after[here]))
    return layers


_Values = NDArray[np.float64]
# (values of all positions in which the player is to move, function that returns the new values of one layer)
_Player = tuple[_Values, Callable[[], _Values]]


def _values_of_ends(after: NDArray[np.int64], own: _Values, other: _Values) -> _Values:
    """Return the value of each end of the turn for the player to move, (n, 2, ENDS), by OTHER and AGAIN."""
    values = np.stack([-other[after[:, OTHER]], own[after[:, AGAIN]]], 1)
    values[after < 0] = NEVER
    return values


def _played(chances: _Values, after: NDArray[np.int64], own: _Values, other: _Values) -> _Player:
    """Return a player who reaches the ends of a turn with the probabilities `chances`, (n, 2, ENDS)."""
    values = _values_of_ends(after, own, other)[..., :PROGRESS]
    ends = chances[..., :PROGRESS]
    fixed = (ends * np.where(ends > 0, values, 0)).sum((1, 2))
    # After an end without progress, the other player moves next.
    stays, where = chances[:, OTHER, PROGRESS:], after[:, OTHER, PROGRESS:]

    def update() -> _Values:
        new: _Values = fixed - np.where(stays > 0, stays * np.nan_to_num(other[where]), 0).sum(1)
        return new

    return own, update


def _played_best(after: NDArray[np.int64], own: _Values, other: _Values) -> _Player:
    def update() -> _Values:
        new = np.empty(len(after))
        values = np.nan_to_num(_values_of_ends(after, own, other), neginf=NEVER).max(1)
        best_turns(ends_of(2, powers=False).offers, values, new_rows(NUM_KEEPS + ENDS, np.float64), new)
        return new

    return own, update


def _iterate(indices: NDArray[np.int64], *players: _Player) -> None:
    """Update the values of a layer, player by player, until they converge."""
    for _ in range(ROUNDS):
        change = 0.0
        for values, update in players:
            new = update()
            old = np.nan_to_num(values[indices], nan=np.inf)  # without an old value, the change is infinite
            change = max(change, float(np.abs(new - old).max(initial=0)))
            values[indices] = new
        if change < TOLERANCE:
            return
    raise ArithmeticError(f"values still change by {change} after {ROUNDS} iterations: a game may never end")


class _Asker:
    """Asks a policy for all decisions of a turn."""

    def __init__(self, policy: Policy, table: Table) -> None:
        self._policy, self._pieces = policy, table.board.pieces
        self._game, self._rng = Game(table.rules, skip_forced=False), np.random.default_rng(0)
        first_hold = np.repeat(self._game.reset(1, starting_player=0, roll=False), NUM_ROLLS)
        self._game.roll(first_hold, KEEPS[:NUM_ROLLS])
        move = first_hold.copy()
        self._game.decide(move, np.full(NUM_ROLLS, Action.STOP_ROLLING))
        second_hold = first_hold.copy()
        second_hold["rolls_left"] = 1
        self._decisions = (first_hold, second_hold, move)
        ends = ends_of(2, powers=False)
        self._end = np.full((NUM_ROLLS, self._game.num_actions), -1)  # by roll and action
        for roll in range(NUM_ROLLS):
            offered = ends.offered(roll)
            self._end[roll, ends.action[offered]] = offered

    def ends(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        """Return the probability of each end of the policy's turn in each position, (n, 2, ENDS)."""
        parts = (self._ends(codes[i : i + ASKED]) for i in range(0, len(codes), ASKED))
        return np.concatenate([np.empty((0, 2, ENDS)), *parts])

    def _ends(self, codes: NDArray[np.uint64]) -> NDArray[np.float64]:
        first, second, moves = (self._decide(decision, codes) for decision in self._decisions)
        rolls = np.arange(NUM_ROLLS)
        ends = self._end[rolls, moves[1]]
        asked = (moves[0]["phase"] == Phase.EXTRA).reshape(ends.shape)
        again = np.zeros(ends.shape, np.int64)
        if asked.any():
            extra = ask(self._policy, self._game, moves[0][asked.ravel()], self._rng)
            again[asked] = extra == Action.PERFECTION_TURN
        return chances_of(np.stack([HOLD_KEEP[rolls, first[1]], HOLD_KEEP[rolls, second[1]]]), ends, again)

    def _decide(self, decision: States, codes: NDArray[np.uint64]) -> tuple[States, NDArray[np.int64]]:
        """Ask the policy for an action after every roll in every position.

        Return the states after the actions, (n * 252,), and the actions, (n, 252).
        """
        state = np.tile(decision, len(codes))
        pieces = self._pieces[codes].transpose(0, 2, 1)
        state["pieces"][:, :2] = np.repeat(pieces, NUM_ROLLS, axis=0)
        actions = ask(self._policy, self._game, state, self._rng)
        self._game.decide(state, actions)
        return state, actions.reshape(len(codes), NUM_ROLLS)


def _best_ends(values: _Values) -> _Values:
    """Return the probability of each end in perfect play, (n, 2, ENDS)."""
    holds = np.empty((2, len(values), NUM_ROLLS), HOLD_KEEP.dtype)
    ends = np.empty((len(values), NUM_ROLLS), np.int64)
    best_values = values.max(1)
    best_choices(
        ends_of(2, powers=False), best_values, new_rows(NUM_KEEPS + NUM_ROLLS, np.float64), holds, ends
    )
    again = (values[:, OTHER] < best_values - TIE).astype(np.int64)
    return chances_of(holds, ends, np.take_along_axis(again, ends, 1))


@kernel
def positions_after(board: Board, ends: Ends, base: Any, total: Any, n: Any) -> tuple[Any, Any, Any]:
    """Return the codes, uint64 (n, 5), of all n positions of layer `total`, a uint64, and what follows them.

    The second array, int64 (n, 2, ENDS), has the index of the position after each end; the third array, float64 (n,),
    has the results (see `_Layer`).
    """
    codes = np.empty((n, PATHS), np.uint64)
    mirrors, partners = np.empty((n, PATHS), np.uint64), np.empty((n, PATHS), np.uint64)
    over, result = np.empty(n, np.bool_), np.empty(n)
    for i in range(n):
        positions.write_multiset(board.below, board.progress, total, i, codes[i])
        positions.write_mirror(board, codes[i], mirrors[i], partners[i])
        over[i] = turns.is_over(board, codes[i])
        result[i] = turns.final_result(board, codes[i]) if over[i] else np.nan
    after = np.empty((4, ENDS, n), np.int64)  # the shape with powers has the indices after passes and swaps
    turns.write_indices(board, ends, base, total, turns.Positions(codes, mirrors, partners, over), after)
    for end in range(ENDS):
        if not ends.perfection[end]:
            after[AGAIN, end] = -1
    return codes, after[:JUMPED].transpose(2, 0, 1), result


@kernel
def chances_of(holds: Any, ends: Any, again: Any) -> NDArray[np.float64]:
    """Return the probability of each end of a turn in n positions, (n, 2, ENDS), by OTHER and AGAIN.

    `holds`, (2, n, 252), has the keep for each hold of the turn, position and roll. Keeps are indices into KEEPS.
    `ends`, (n, 252), has the end that the player chooses in each position for each final roll. `again`, (n, 252), is 1
    where the player takes the extra turn, otherwise 0.
    """
    chances = np.zeros((ends.shape[0], 2, ENDS))
    for i in range(ends.shape[0]):
        stops = np.zeros(NUM_ROLLS)
        rolls = np.empty(NUM_ROLLS)
        rolls[:] = ROLL_CHANCES
        for hold in range(2):
            keeps = np.zeros(NUM_KEEPS)
            for roll in range(NUM_ROLLS):
                keep = holds[hold, i, roll]
                if keep == roll:
                    stops[roll] += rolls[roll]
                else:
                    keeps[keep] += rolls[roll]
            # Roll the missing dice one at a time.
            for keep in range(NUM_KEEPS - 1, NUM_ROLLS - 1, -1):
                for face in range(FACES):
                    keeps[MORE[keep - NUM_ROLLS, face]] += keeps[keep] / FACES
            rolls[:] = keeps[:NUM_ROLLS]
        for roll in range(NUM_ROLLS):
            chances[i, again[i, roll], ends[i, roll]] += stops[roll] + rolls[roll]
    return chances


@kernel
def best_turns(offers: Any, values: Any, rows: Rows, out: Any) -> None:
    """Write the value of an optimal turn in each position to `out`. `values`, (n, ENDS), has the value of each end."""
    for first in range(0, out.size, LANES):
        lanes = min(LANES, out.size - first)
        for lane in range(lanes):
            for end in range(ENDS):
                rows[NUM_KEEPS + end, lane] = values[first + lane, end]
        turns.value_turns(offers, rows, NUM_KEEPS)
        for lane in range(lanes):
            out[first + lane] = rows[NOTHING, lane]


@kernel
def best_choices(table: Ends, values: Any, rows: Rows, holds: Any, ends: Any) -> None:
    """Write the optimal choices to `holds` and `ends` (see `chances_of`).

    `values`, (n, ENDS), has the value of each end.
    """
    candidates = np.empty(ENDS, np.int64)
    for first in range(0, values.shape[0], LANES):
        lanes = min(LANES, values.shape[0] - first)
        for lane in range(lanes):
            for roll in range(NUM_ROLLS):
                count = open_ends(table, values[first + lane], roll, candidates)
                end = best_end(values[first + lane], candidates[:count])
                ends[first + lane, roll] = end
                rows[roll, lane] = values[first + lane, end]
                rows[STOPS + roll, lane] = rows[roll, lane]
        for hold in range(1, -1, -1):
            expect(rows)
            for lane in range(lanes):
                for roll in range(NUM_ROLLS):
                    holds[hold, first + lane, roll] = best_keep(rows, rows, roll, lane)
            best(rows)
