"""The turn planner as a network layer, which maps values of the ends of a turn to values of holds.

An *end* is one way to end a turn. Without powers a turn has `ENDS` possible ends:

- on each path, a move by 1 to 5 dice and a swap with four dragons;
- an equilibrium, a swap with five dragons and, if no move is possible (R5), a pass.

Powers (R12) add `POWER_ENDS` ends:

- on each path, a move by 1 to 5 dice that include dragons (wood), and a jump by 1 to 5 dice (earth);
- an equilibrium with dragons (wood), an equilibrium with jumps (earth), and the pass by fear (water).

The tiger (metal) adds a re-roll. After this re-roll the ends have different values, because the power is used up.
If rebirth (fire) grants an extra turn, the value of the end includes this turn.

The value of a hold is the expected value of the end that optimal play reaches. So the derivative of the hold's value
with respect to the value of an end is the probability that optimal play reaches this end.

A *keep* is a set of kept dice. Arrays over all keeps have length 462. Their first 252 entries are the rolls, the keeps
of five dice.
"""

from typing import Any

import numpy as np
import torch as th
from llvmlite import ir
from numpy.typing import NDArray
from torch.nn.functional import pad

from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import (
    COUNTS,
    EQUILIBRIUM,
    FACES,
    HOLD_KEEP,
    MISSING,
    NUM_HOLDS,
    NUM_KEEPS,
    NUM_ROLLS,
    UNROLLED_DICE,
)
from wotd_env.core.rules import DICE, DRAGON, PATHS, REROLLS
from wotd_env.planning.turn import FEWER, LANES, MORE, best, expect, largest, new_rows, row_operation

PATH_ENDS = DICE + 1
OTHER_ENDS = 3
ENDS = PATHS * PATH_ENDS + OTHER_ENDS
ADVANCED, SWAPPED, PASSED = range(PATHS * PATH_ENDS, ENDS)
# WOOD is the index of the first move with dragons, and JUMP of the first jump. POWER_PATHLESS is the index of the first
# end with a power and without a path.
WOOD, JUMP, POWER_PATHLESS = range(ENDS, ENDS + 3 * PATHS * DICE, PATHS * DICE)
WOOD_ADVANCED, EARTH_ADVANCED, FEARED = range(POWER_PATHLESS, POWER_PATHLESS + 3)
POWER_ENDS = FEARED + 1 - ENDS

IMPOSSIBLE = -1e3  # the value of an impossible end; possible ends have larger values


def _moves() -> NDArray[np.int64]:
    """Return the indices of the moves that each roll allows without powers, int64 (252, 5).

    A roll that allows no move has the index ADVANCED or PASSED instead. Each row is padded with copies of its last
    index.
    """
    moves = np.full((NUM_ROLLS, DICE), PASSED)
    for roll, counts in enumerate(COUNTS[:NUM_ROLLS].tolist()):
        ends = [PATH_ENDS * path + counts[path] - 1 for path in range(PATHS) if counts[path]] or [PASSED]
        if roll == EQUILIBRIUM:
            ends = [ADVANCED]
        moves[roll] = ends + ends[-1:] * (DICE - len(ends))
    return moves


def _others(powers: bool) -> NDArray[np.int64]:
    """Return the indices of the other ends that each roll allows, int64 (252, k), padded with -1."""
    offers: list[list[int]] = []
    for roll, counts in enumerate(COUNTS[:NUM_ROLLS].tolist()):
        dragons, paths = counts[DRAGON], [path for path in range(PATHS) if counts[path]]
        ends = [SWAPPED] if dragons == DICE else []
        ends += [PATH_ENDS * path + DICE for path in paths if dragons == DICE - 1]
        if powers and roll == EQUILIBRIUM:
            ends.append(EARTH_ADVANCED)
        elif powers:
            ends += [JUMP + DICE * path + counts[path] - 1 for path in paths]
        if powers and dragons:
            wild = [path for path in range(PATHS) if path != MISSING[roll]]
            ends += [WOOD + DICE * path + counts[path] + dragons - 1 for path in wild]
            ends += [WOOD_ADVANCED] * (len(wild) < PATHS)
        offers.append(ends)
    most = max(map(len, offers))
    return np.array([ends + [-1] * (most - len(ends)) for ends in offers])


MOVES, SWAPS, OTHERS = _moves(), _others(powers=False), _others(powers=True)
FIRST_END = NUM_KEEPS  # In work arrays, the rows of the ends follow the rows of the keeps.
MOVE_ROWS, PASS_ROW = (FIRST_END + MOVES).astype(np.uint64), np.uint64(FIRST_END + PASSED)
FEAR_ROW = np.uint64(FIRST_END + FEARED)

# SIZES[k] contains the consecutive indices of all keeps of k dice.
SIZES = [np.flatnonzero(DICE - size == UNROLLED_DICE) for size in range(DICE + 1)]


def planned_holds(ends: th.Tensor, roll: th.Tensor, rerolls: th.Tensor) -> th.Tensor:
    """Return the values of the holds, float32 (N, 32). The values are 0 in positions without re-rolls.

    Args:
        ends: the values of the ends, float (N, 1, ENDS) or, with powers, float (N, 2, ENDS + POWER_ENDS). With powers,
            `ends[:, 1]` contains the values after the last re-roll, and `ends[:, 0]` the values before it.
        roll: int64 (N,), the indices of the current rolls.
        rerolls: int64 (N,), the number of re-rolls left: 0 to 2, plus 1 if the tiger can be used.
    """
    plan: Any = _by_tensors if th.onnx.is_in_onnx_export() else _Planned.apply
    planned: th.Tensor = plan(ends, roll, rerolls)
    return planned


def _by_tensors(ends: th.Tensor, roll: th.Tensor, rerolls: th.Tensor) -> th.Tensor:
    """Compute `planned_holds` with operations that ONNX supports; this is much slower than `_Planned`."""
    stop, last = (_stops(ends[:, i]) for i in (0, -1))
    kept = th.from_numpy(HOLD_KEEP.astype(np.int64))[roll]
    expected = _means(last)
    values = expected.gather(1, kept)
    for left in range(2, REROLLS + ends.shape[1]):
        best = expected[:, th.from_numpy(SIZES[0])]
        for size in range(1, DICE + 1):
            fewer = th.from_numpy(FEWER[SIZES[size]].astype(np.int64) - SIZES[size - 1][0])
            own = stop if size == DICE else expected[:, th.from_numpy(SIZES[size])]
            best = th.maximum(own, best[:, fewer].amax(2))
        expected = _means(best)
        values = th.where(rerolls[:, None] < left, values, expected.gather(1, kept))
    values = th.cat([values[:, : Action.STOP_ROLLING], stop.gather(1, roll[:, None])], 1)
    return values * (rerolls[:, None] > 0)


def _stops(ends: th.Tensor) -> th.Tensor:
    """Return the value of stopping with each roll, (N, 252)."""
    powers = ends.shape[1] > ENDS
    moved = ends[:, th.from_numpy(MOVES)].amax(2)
    feared = th.maximum(moved, ends[:, FEARED, None]) if powers else moved
    movable = (moved > IMPOSSIBLE) & th.from_numpy(MOVES[:, 0] != PASSED)
    stop = th.where(movable, feared, ends[:, PASSED, None])
    padded = pad(ends, (0, 1), value=IMPOSSIBLE)
    return th.maximum(stop, padded[:, th.from_numpy(OTHERS if powers else SWAPS)].amax(2))


def _means(rolls: th.Tensor) -> th.Tensor:
    """Return the values of all keeps, (N, 462), for given values of all rolls, (N, 252)."""
    parts = [rolls]
    for size in range(DICE - 1, -1, -1):
        more = MORE[SIZES[size] - NUM_ROLLS].astype(np.int64) - SIZES[size + 1][0]
        parts.append(parts[-1][:, th.from_numpy(more)].mean(2))
    return th.cat(parts, 1)


class _Planned(th.autograd.Function):
    """`planned_holds` and its gradient, computed by compiled functions."""

    @staticmethod
    def forward(ctx: Any, ends: th.Tensor, roll: th.Tensor, rerolls: th.Tensor) -> th.Tensor:
        ctx.save_for_backward(ends, roll, rerolls)
        out = np.zeros((len(ends), NUM_HOLDS), np.float32)
        value_holds(_array(ends), _array(roll), _array(rerolls), new_rows(NUM_KEEPS + ends.shape[2]), out)
        return th.from_numpy(out).to(ends.device)

    @staticmethod
    def backward(ctx: Any, gradient: th.Tensor) -> tuple[th.Tensor, None, None]:
        ends, roll, rerolls = ctx.saved_tensors
        out = np.zeros(ends.shape, np.float32)
        work = new_rows(NUM_KEEPS + ends.shape[2])
        credit_ends(_array(ends), _array(roll), _array(rerolls), _array(gradient), work, out)
        return th.from_numpy(out).to(ends.device), None, None


def _array(tensor: th.Tensor) -> Any:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


def _emit_after_moves(builder: Any, rows: list[Any]) -> Any:
    moved, feared, passed = rows
    possible = builder.fcmp_ordered(">", moved, ir.Constant(moved.type, [IMPOSSIBLE] * LANES))
    best = builder.select(builder.fcmp_ordered(">", feared, moved), feared, moved)
    return builder.select(possible, best, passed)


after_moves = row_operation(_emit_after_moves)
"""Kernel `after_moves(rows, out, (a, b, c))`: set row `out` to row c if row a is impossible, else to max(a, b)."""


@kernel
def stop(ends: Any, after: Any, first: Any, lanes: Any, work: Any) -> None:
    """Write the value of stopping with each roll to `work`. `after` is 1 after the tiger's re-roll, else 0."""
    for lane in range(lanes):
        for end in range(ends.shape[2]):
            work[FIRST_END + end, lane] = ends[first + lane, after, end]
    powers = ends.shape[2] > ENDS
    others = OTHERS if powers else SWAPS
    for roll in range(NUM_ROLLS):
        moves, this = MOVE_ROWS[roll], np.uint64(roll)
        largest(work, this, (moves[0], moves[1], moves[2], moves[3], moves[4]))
        after_moves(work, this, (this, FEAR_ROW if powers and moves[0] != PASS_ROW else this, PASS_ROW))
        for end in others[roll]:
            if end >= 0:
                largest(work, this, (this, np.uint64(FIRST_END + end)))


@kernel
def best_end(ends: Any, roll: Any) -> Any:
    """Return the index of the best end for a final roll; `ends` contains the values of all ends."""
    powers = len(ends) > ENDS
    chosen = MOVES[roll, 0]
    for end in MOVES[roll, 1:]:
        if ends[end] > ends[chosen]:
            chosen = end
    if ends[chosen] <= IMPOSSIBLE:
        chosen = PASSED
    elif powers and chosen != PASSED and ends[FEARED] > ends[chosen]:
        chosen = FEARED
    for end in (OTHERS if powers else SWAPS)[roll]:
        if end >= 0 and ends[end] > ends[chosen]:
            chosen = end
    return chosen


@kernel
def value_holds(ends: Any, roll: Any, rerolls: Any, work: Any, out: Any) -> None:
    """Write the values of the holds to `out`, (N, 32), for positions with re-rolls left."""
    tiger = ends.shape[1] - 1
    n = out.shape[0]
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        most = rerolls[first : first + lanes].max()
        if most == 0:
            continue
        stop(ends, 0, first, lanes, work)
        for lane in range(lanes):
            if rerolls[first + lane]:
                out[first + lane, Action.STOP_ROLLING] = work[roll[first + lane], lane]
        if tiger:
            stop(ends, tiger, first, lanes, work)
        for left in range(1, most + 1):
            if left > 1:
                if tiger:
                    stop(ends, 0, first, lanes, work)
                best(work)
            expect(work)
            for lane in range(lanes):
                if rerolls[first + lane] == left:
                    for hold in range(Action.STOP_ROLLING):
                        out[first + lane, hold] = work[HOLD_KEEP[roll[first + lane], hold], lane]


@kernel
def credit_ends(ends: Any, roll: Any, rerolls: Any, gradient: Any, work: Any, out: Any) -> None:
    """Compute the gradient with respect to `ends`; write it to `out`."""
    tiger = ends.shape[1] - 1
    n = out.shape[0]
    # Gradients: `mass` for the values of the keeps, `stopped` for the values of stopping with each roll.
    mass = np.zeros(NUM_KEEPS, np.float32)
    stopped = np.zeros(NUM_ROLLS, np.float32)
    # Values of the keeps: `means` before a call of `best`, `bests` after it. Index 0 is for the last re-roll, index 1
    # for the re-roll before it.
    means = np.empty((REROLLS, NUM_KEEPS, LANES), np.float32)
    bests = np.empty((REROLLS, NUM_KEEPS, LANES), np.float32)
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        most = rerolls[first : first + lanes].max()
        stop(ends, tiger, first, lanes, work)
        for level in range(most - 1):
            expect(work)
            if tiger:
                stop(ends, 0, first, lanes, work)
            means[level] = work[:NUM_KEEPS]
            best(work)
            bests[level] = work[:NUM_KEEPS]
        for lane in range(lanes):
            i = first + lane
            if rerolls[i] == 0:
                continue
            mass[:] = 0
            stopped[:] = 0
            for hold in range(Action.STOP_ROLLING):
                mass[HOLD_KEEP[roll[i], hold]] += gradient[i, hold]
            spread(mass)
            for level in range(rerolls[i] - 2, -1, -1):
                follow(mass, means[level, :, lane], bests[level, :, lane], stopped)
                spread(mass)
            if not tiger:
                stopped += mass[:NUM_ROLLS]
            stopped[roll[i]] += gradient[i, Action.STOP_ROLLING]
            for r in range(NUM_ROLLS):
                if stopped[r] != 0:
                    out[i, 0, best_end(ends[i, 0], r)] += stopped[r]
                if tiger and mass[r] != 0:
                    out[i, tiger, best_end(ends[i, tiger], r)] += mass[r]


@kernel
def follow(mass: Any, means: Any, bests: Any, stopped: Any) -> None:
    """Move the mass of each roll to the roll's best keep, or to `stopped[roll]` if stopping is best."""
    for r in range(NUM_ROLLS):
        flow = mass[r]
        mass[r] = 0
        if flow != 0:
            row = np.int64(r)
            while means[row] < bests[row]:
                for k in range(DICE):
                    fewer = np.int64(FEWER[row, k])
                    if bests[fewer] == bests[row]:
                        row = fewer
                        break
            if row < NUM_ROLLS:
                stopped[row] += flow
            else:
                mass[row] += flow


@kernel
def spread(mass: Any) -> None:
    """Distribute the mass of each keep of fewer than five dice over the next rolls, weighted by probability."""
    for i in range(NUM_KEEPS - 1, NUM_ROLLS - 1, -1):
        if mass[i] != 0:
            flow = mass[i] / np.float32(FACES)
            for face in range(FACES):
                mass[MORE[i - NUM_ROLLS, face]] += flow
            mass[i] = 0
