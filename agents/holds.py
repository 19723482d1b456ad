"""The turn planner as a layer of a network: from the values of the ends of the turn to the values of the holds.

A turn has `ENDS` possible ends: on each path a move by 1 to 5 dice, or a swap with four dragons; an equilibrium; a swap
with five dragons; a pass, if no move is possible (R5). From their values the planner computes the value of every hold,
in exact passes over the 252 rolls and 462 keeps. This value is the mean over the ends that optimal play reaches, so its
gradient is their distribution. Ends that powers add are left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch as th
from llvmlite import ir
from numpy.typing import NDArray

from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.dice import (
    COUNTS,
    EQUILIBRIUM,
    FACES,
    HOLD_KEEP,
    NUM_HOLDS,
    NUM_KEEPS,
    NUM_ROLLS,
    UNROLLED_DICE,
)
from wotd_env.core.rules import DICE, DRAGON, PATHS
from wotd_env.planning.turn import FEWER, LANES, MORE, best, expect, largest, new_rows, row_operation

PATH_ENDS = DICE + 1
"""Ends on one path: moves by 1 to 5 dice, and a swap with four dragons."""

OTHER_ENDS = 3
"""An equilibrium, a swap with five dragons, a pass."""

ENDS = PATHS * PATH_ENDS + OTHER_ENDS
ADVANCED, SWAPPED, PASSED = range(PATHS * PATH_ENDS, ENDS)

IMPOSSIBLE = -1e3
"""The value of an impossible end; all others have larger values."""

NO_SWAP = -1


def _offers() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ends that each roll offers: int64 (252, 5), by moves, the last one repeated; int64 (252,), by a swap.

    Without a move or equilibrium, the moves are a pass.
    """
    moves, swaps = np.full((NUM_ROLLS, DICE), PASSED), np.full(NUM_ROLLS, NO_SWAP)
    for roll in range(NUM_ROLLS):
        counts = COUNTS[roll].tolist()
        ends = [PATH_ENDS * path + counts[path] - 1 for path in range(PATHS) if counts[path]]
        if roll == EQUILIBRIUM:
            ends = [ADVANCED]
        elif counts[DRAGON] == DICE - 1:
            swaps[roll] = ends[0] + DICE
        elif counts[DRAGON] == DICE:
            swaps[roll], ends = SWAPPED, [PASSED]
        moves[roll] = ends + ends[-1:] * (DICE - len(ends))
    return moves, swaps


MOVES, SWAPS = _offers()
FIRST_END = NUM_KEEPS
"""The row of the first end, after those of the turn."""

MOVE_ROWS, PASS_ROW = (FIRST_END + MOVES).astype(np.uint64), np.uint64(FIRST_END + PASSED)

SIZES = [np.flatnonzero(DICE - size == UNROLLED_DICE) for size in range(DICE + 1)]
"""The numbers of the keeps of 0 to 5 dice; each is a range, and those of more dice come first."""


def planned_holds(ends: th.Tensor, roll: th.Tensor, rerolls: th.Tensor) -> th.Tensor:
    """Return the values of the holds, (N, 32), zeros without re-rolls.

    Args:
        ends: float (N, ENDS), the values of the ends of the turn.
        roll: int64 (N,), the numbers of the rolls on the table.
        rerolls: int64 (N,), re-rolls left, 0 to 2.
    """
    if th.onnx.is_in_onnx_export():
        return _by_tensors(ends, roll, rerolls)
    planned: th.Tensor = _Planned.apply(ends, roll, rerolls)  # type: ignore[no-untyped-call]
    return planned


def _by_tensors(ends: th.Tensor, roll: th.Tensor, rerolls: th.Tensor) -> th.Tensor:
    """Compute `planned_holds` with operations of ONNX, about ten times slower."""
    moved = ends[:, th.from_numpy(MOVES)].amax(2)
    stop = th.where(moved > IMPOSSIBLE, moved, ends[:, PASSED, None])
    swapped = th.maximum(stop, ends[:, th.from_numpy(np.maximum(SWAPS, 0))])
    stop = th.where(th.from_numpy(SWAPS != NO_SWAP), swapped, stop)
    last = _means(stop)
    best = last[:, th.from_numpy(SIZES[0])]
    for size in range(1, DICE + 1):
        fewer = th.from_numpy(FEWER[SIZES[size]].astype(np.int64) - SIZES[size - 1][0])
        own = stop if size == DICE else last[:, th.from_numpy(SIZES[size])]
        best = th.maximum(own, best[:, fewer].amax(2))
    first = _means(best)
    kept = th.from_numpy(HOLD_KEEP.astype(np.int64))[roll]
    values = th.where(rerolls[:, None] > 1, first.gather(1, kept), last.gather(1, kept))
    values = th.cat([values[:, : Action.STOP_ROLLING], stop.gather(1, roll[:, None])], 1)
    return values * (rerolls[:, None] > 0)


def _means(rolls: th.Tensor) -> th.Tensor:
    """Return the values of all keeps, (N, 462), given those of the rolls, (N, 252): die by die the mean over faces."""
    parts = [rolls]
    for size in range(DICE - 1, -1, -1):
        more = MORE[SIZES[size] - NUM_ROLLS].astype(np.int64) - SIZES[size + 1][0]
        parts.append(parts[-1][:, th.from_numpy(more)].mean(2))
    return th.cat(parts, 1)


class _Planned(th.autograd.Function):
    """`planned_holds`, by the passes of the turn planner, sixteen positions side by side."""

    @staticmethod
    def forward(ctx: Any, ends: th.Tensor, roll: th.Tensor, rerolls: th.Tensor) -> th.Tensor:
        ctx.save_for_backward(ends, roll, rerolls)
        out = np.zeros((len(ends), NUM_HOLDS), np.float32)
        value_holds(_array(ends), _array(roll), _array(rerolls), new_rows(NUM_KEEPS + ENDS), out)
        return th.from_numpy(out).to(ends.device)

    @staticmethod
    def backward(ctx: Any, gradient: th.Tensor) -> tuple[th.Tensor, None, None]:
        ends, roll, rerolls = ctx.saved_tensors
        out = np.zeros((len(ends), ENDS), np.float32)
        work = new_rows(NUM_KEEPS + ENDS), new_rows(), new_rows()
        credit_ends(_array(ends), _array(roll), _array(rerolls), _array(gradient), *work, out)
        return th.from_numpy(out).to(ends.device), None, None


def _array(tensor: th.Tensor) -> Any:
    return np.ascontiguousarray(tensor.detach().cpu().numpy())


def _emit_unless_impossible(builder: Any, rows: list[Any]) -> Any:
    possible = builder.fcmp_ordered(">", rows[0], ir.Constant(rows[0].type, [IMPOSSIBLE] * LANES))
    return builder.select(possible, *rows)


unless_impossible = row_operation(_emit_unless_impossible)
"""Kernel `unless_impossible(rows, out, (a, b))`: write row `a` to row `out`, and `b` where `a` is impossible."""


@kernel
def stop(ends: Any, first: Any, lanes: Any, work: Any) -> None:
    """Fill the rows of the rolls with their values after the last roll, for some positions."""
    for lane in range(lanes):
        for end in range(ENDS):
            work[FIRST_END + end, lane] = ends[first + lane, end]
    for roll in range(NUM_ROLLS):
        moves, this = MOVE_ROWS[roll], np.uint64(roll)
        largest(work, this, (moves[0], moves[1], moves[2], moves[3], moves[4]))
        unless_impossible(work, this, (this, PASS_ROW))
        if SWAPS[roll] != NO_SWAP:
            largest(work, this, (this, np.uint64(FIRST_END + SWAPS[roll])))


@kernel
def value_holds(ends: Any, roll: Any, rerolls: Any, work: Any, out: Any) -> None:
    """Write the values of the holds, (N, 32); nothing without re-rolls."""
    n = out.shape[0]
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        most = rerolls[first : first + lanes].max()
        if most == 0:
            continue
        stop(ends, first, lanes, work)
        for lane in range(lanes):
            if rerolls[first + lane]:
                out[first + lane, Action.STOP_ROLLING] = work[roll[first + lane], lane]
        for left in range(1, most + 1):
            if left > 1:
                best(work)
            expect(work)
            for lane in range(lanes):
                if rerolls[first + lane] == left:
                    for hold in range(Action.STOP_ROLLING):
                        out[first + lane, hold] = work[HOLD_KEEP[roll[first + lane], hold], lane]


@kernel
def credit_ends(
    ends: Any, roll: Any, rerolls: Any, gradient: Any, work: Any, means: Any, bests: Any, out: Any
) -> None:
    """Write the gradients of the ends, (N, ENDS), given those of the holds, (N, 32)."""
    n = out.shape[0]
    mass = np.zeros(NUM_KEEPS, np.float32)
    stopped = np.zeros(NUM_ROLLS, np.float32)
    for first in range(0, n, LANES):
        lanes = min(LANES, n - first)
        most = rerolls[first : first + lanes].max()
        if most == 0:
            continue
        stop(ends, first, lanes, work)
        if most > 1:
            expect(work)
            means[:] = work[:NUM_KEEPS]
            best(work)
            bests[:] = work[:NUM_KEEPS]
        for lane in range(lanes):
            i = first + lane
            if rerolls[i] == 0:
                continue
            mass[:] = 0
            stopped[:] = 0
            for hold in range(Action.STOP_ROLLING):
                mass[HOLD_KEEP[roll[i], hold]] += gradient[i, hold]
            spread(mass)
            if rerolls[i] > 1:
                for r in range(NUM_ROLLS):
                    flow = mass[r]
                    mass[r] = 0
                    if flow != 0:
                        row = np.int64(r)
                        while means[row, lane] < bests[row, lane]:
                            for k in range(DICE):
                                fewer = np.int64(FEWER[row, k])
                                if bests[fewer, lane] == bests[row, lane]:
                                    row = fewer
                                    break
                        if row < NUM_ROLLS:
                            stopped[row] += flow
                        else:
                            mass[row] += flow
                spread(mass)
            stopped += mass[:NUM_ROLLS]
            stopped[roll[i]] += gradient[i, Action.STOP_ROLLING]
            for r in range(NUM_ROLLS):
                if stopped[r] != 0:
                    chosen = MOVES[r, 0]
                    for k in range(1, DICE):
                        if ends[i, MOVES[r, k]] > ends[i, chosen]:
                            chosen = MOVES[r, k]
                    if ends[i, chosen] <= IMPOSSIBLE:
                        chosen = PASSED
                    if SWAPS[r] != NO_SWAP and ends[i, SWAPS[r]] > ends[i, chosen]:
                        chosen = SWAPS[r]
                    out[i, chosen] += stopped[r]


@kernel
def spread(mass: Any) -> None:
    """Spread the mass of partial keeps evenly over the rolls that can follow."""
    for i in range(NUM_KEEPS - 1, NUM_ROLLS - 1, -1):
        if mass[i] != 0:
            flow = mass[i] / np.float32(FACES)
            for face in range(FACES):
                mass[MORE[i - NUM_ROLLS, face]] += flow
            mass[i] = 0
