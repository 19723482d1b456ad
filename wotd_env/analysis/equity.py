"""Equity of states and actions, regret of decisions, definition of errors and blunders."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.actions import Action
from wotd_env.core.game import Game
from wotd_env.core.rules import ELEMENTS, REROLLS, Phase, Power, Rules
from wotd_env.core.state import States
from wotd_env.planning.planner import plan
from wotd_env.solver import Table
from wotd_env.solver.table import check_table

KINDS = ("first hold", "second hold", "move", "swap", "extra turn", "tiger hold")
"""Kinds of decisions. A `"swap"` is a move decision in which calling the dragon is legal. A `"tiger hold"` is the hold
after the second re-roll, in which the power of the tiger may be used."""
ERROR = 0.01  #: smallest regret of an error; with two players it costs 0.5 percentage points of win rate
BLUNDER = 0.05  #: smallest regret of a blunder; with two players it costs 2.5 percentage points of win rate


class Analysis(NamedTuple):
    """Equities of N states and of A actions in each state, for the seat to act."""

    equity: NDArray[np.float32]  #: (N,): equity of the best action; the reward if the game is over
    actions: NDArray[np.float32]  #: (N, A): equity of every action, -inf if it is illegal
    best: NDArray[np.int64]  #: (N,): best action, the lowest one in a tie; 0 if there is no decision


def analyze(game: Game, state: States, table: Table) -> Analysis:
    """Return the exact equities of states, STATE (N,), of a solved game; the states may be in any phase.

    With a table of three players, an equity is the guarantee of the seat to act: the expected reward that this seat can
    force even if the other two seats cooperate against it. The solution ignores the turn limit, so equities are inexact
    if `max_turns` may end the game soon.

    Raises:
        TypeError: if the table is not a Table.
        ValueError: if the table is for another game.
    """
    check_table(table)
    actions, equity = plan(game, state, table.for_seats)
    return Analysis(equity, actions, actions.argmax(1))


def regret(game: Game, state: States, actions: ArrayLike, table: Table) -> NDArray[np.float32]:
    """Return the regret of one action in each of N states, float32 (N,); the best action has regret 0.

    With a table of three players the regret is the best guarantee minus the guarantee after the action.

    Raises:
        IllegalActionError: if an action is illegal.
        TypeError, ValueError: see `analyze`.
    """
    game.check(state, actions)
    return regret_of(analyze(game, state, table), np.asarray(actions))


def regret_of(analysis: Analysis, actions: NDArray[Any]) -> NDArray[np.float32]:
    """Return the regret of legal actions (N,) in analyzed states, float32 (N,)."""
    rows = np.arange(len(actions))
    best, chosen = analysis.actions[rows, analysis.best], analysis.actions[rows, actions]
    difference = np.zeros_like(best)  # stays 0 in a finished game
    np.subtract(best, chosen, out=difference, where=np.isfinite(best))
    return difference


def classify(regret: float) -> str:
    """Return `"blunder"`, `"error"` or `""` for the regret of a decision."""
    return "blunder" if regret >= BLUNDER else "error" if regret >= ERROR else ""


def define_errors(players: int) -> str:
    """Return a text that defines errors and blunders, in equity and in percent of games won."""
    percent = 100 * (players - 1) / players  # percent of games won per unit of equity
    return (
        f"An error loses at least {ERROR:g} of equity, {percent * ERROR:.2g} % of games won. "
        f"Errors of at least {BLUNDER:g}, {percent * BLUNDER:.2g} %, are blunders."
    )


def kinds_of(rules: Rules) -> tuple[str, ...]:
    """Return the kinds of decisions in games with these rules; tiger holds need a seat with the power of the tiger."""
    colors = rules.colors or ELEMENTS[: rules.players]
    holders = {"none": (), "own": ELEMENTS if colors == "random" else colors, "any": ELEMENTS}[rules.powers]
    return KINDS if ELEMENTS[Power.TIGER] in holders else KINDS[:-1]


def kinds(game: Game, state: States) -> NDArray[np.int64]:
    """Return the kind of each decision, as an index into KINDS, int64 (N,)."""
    hold, left, move = state["phase"] == Phase.KEEP, state["rolls_left"], state["phase"] == Phase.MOVE
    swap = game.legal_actions(state)[:, Action.FIRST_SWAP :].any(1)
    # The conditions are in the order of KINDS; argmax returns the first true one.
    conditions = [hold & (left == REROLLS), hold & (left > 0), move & ~swap, move, ~hold, hold]
    kind: NDArray[np.int64] = np.array(conditions).argmax(0)
    return kind
