"""What decisions are worth, and what they give away against the best ones."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.actions import Action
from wotd_env.core.game import Game
from wotd_env.core.rules import REROLLS, Phase
from wotd_env.core.state import States
from wotd_env.planning.planner import plan
from wotd_env.solver import Table
from wotd_env.solver.table import check_table

__all__ = ["BLUNDER", "ERROR", "KINDS", "Analysis", "analyze", "kinds", "lost", "regret"]

KINDS = ("first hold", "second hold", "move", "swap", "extra turn")
"""Kinds of decisions. `"swap"` is a move where calling the dragon is possible."""

ERROR = 0.01
"""A decision with at least this regret is an error: a two-hundredth of the way from a loss to a win."""
BLUNDER = 0.05
"""A decision with at least this regret is a blunder."""


class Analysis(NamedTuple):
    """What states are worth to the seats to act; N states, A actions."""

    equity: NDArray[np.float32]
    """(N,): of the state, with the best action; the result where the game is over."""
    actions: NDArray[np.float32]
    """(N, A): of every action, -inf if it is not legal."""
    best: NDArray[np.int64]
    """(N,): the best action, of equals the lowest; 0 where there is nothing to decide."""


def analyze(game: Game, state: States, table: Table) -> Analysis:
    """Return the exact equities of states, STATE (N,), in any phase, of the two-player basic game.

    The solution knows no limit of turns: where `max_turns` may end a game soon, they are those of the game without it.

    Raises:
        TypeError: if the table is none.
        ValueError: if the game has other rules, or another board than the table.
    """
    check_table(table)
    actions, equity = plan(game, state, table.for_seats)
    return Analysis(equity, actions, actions.argmax(1))


def regret(game: Game, state: States, actions: ArrayLike, table: Table) -> NDArray[np.float32]:
    """Return what actions (N,) give away in states at their decisions, float32 (N,), 0 for the best.

    Raises:
        IllegalActionError: if an action is illegal.
        TypeError, ValueError: as by `analyze`.
    """
    game.check(state, actions)
    return lost(analyze(game, state, table), np.asarray(actions))


def lost(analysis: Analysis, actions: NDArray[Any]) -> NDArray[np.float32]:
    """Return what legal actions (N,) give away, float32 (N,)."""
    rows = np.arange(len(actions))
    best, chosen = analysis.actions[rows, analysis.best], analysis.actions[rows, actions]
    difference = np.zeros_like(best)  # stays 0 in a finished game
    np.subtract(best, chosen, out=difference, where=np.isfinite(best))
    return difference


def kinds(game: Game, state: States) -> NDArray[np.int64]:
    """Return the kind of each decision, as an index into KINDS, int64 (N,)."""
    swap = game.legal_actions(state)[:, Action.FIRST_SWAP :].any(1)
    phase = state["phase"]
    hold = np.where(state["rolls_left"] == REROLLS, 0, 1)
    return np.select([phase == Phase.KEEP, phase == Phase.MOVE], [hold, np.where(swap, 3, 2)], 4)
