"""Equities of states and actions, kinds of decisions, and errors and blunders."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env import models
from wotd_env.core.actions import Action
from wotd_env.core.game import Game
from wotd_env.core.rules import ELEMENTS, REROLLS, Phase, Power, Rules, share_difference
from wotd_env.core.state import States
from wotd_env.planning.planner import TIE, Value, best_actions, plan
from wotd_env.planning.values import hand_made
from wotd_env.policies.td import Td
from wotd_env.solver import Table, TableError, cache_file, load
from wotd_env.solver.table import check_solvable, check_table, describe_missing

KINDS = ("first hold", "second hold", "move", "swap", "extra turn", "tiger hold")
"""A `"swap"` is a decision with a legal swap. A `"tiger hold"` follows the second re-roll: only the power of the tiger
allows a third re-roll."""
ERROR = 0.01  #: smallest regret of an error (0.5 percentage points of win share with two players)
BLUNDER = 0.05  #: smallest regret of a blunder (2.5 percentage points of win share with two players)


class Analysis(NamedTuple):
    """Equities of N states and of A actions in each state, for the seat to act."""

    equity: NDArray[np.float32]  #: (N,): equity of the best action; in a finished game, the reward
    actions: NDArray[np.float32]  #: (N, A): equity of every action, -inf if it is illegal
    best: NDArray[np.int64]
    """(N,): best action (in a tie the lowest number, see `TIE`), 0 if no decision is due"""


def analyze(game: Game, state: States, table: Table) -> Analysis:
    """Return the exact equities of positions in a solved game. `state`, STATE (N,), may be in any phase.

    With three players, the result contains guarantees instead of equities. The *guarantee* of a seat is the highest
    expected reward that the seat can secure even if the other two seats cooperate against it.

    A solution ignores the turn limit, so its equities are inexact if `max_turns` may end the game soon.

    Raises:
        TypeError: if the table is not a Table.
        ValueError: if the table is for another game.
    """
    check_table(table)
    actions, equity = plan(game, state, table.for_seats)
    return Analysis(equity, actions, best_actions(actions, equity))


def regret(game: Game, state: States, actions: ArrayLike, table: Table) -> NDArray[np.float32]:
    """Return the regret of one action in each of N states, float32 (N,).

    With three players, the regret is a difference of guarantees, see `analyze`.

    Raises:
        IllegalActionError: if an action is illegal.
        TypeError, ValueError: see `analyze`.
    """
    game.check(state, actions)
    return regret_of(analyze(game, state, table), np.asarray(actions))


def regret_of(analysis: Analysis, actions: NDArray[Any]) -> NDArray[np.float32]:
    """Return the regret of one legal action in each analyzed state, float32 (N,). It is 0 for equally good actions."""
    chosen = analysis.actions[np.arange(len(actions)), actions]
    difference: NDArray[np.float32] = np.zeros_like(chosen)  # stays 0 in a finished game
    np.subtract(analysis.equity, chosen, out=difference, where=np.isfinite(chosen))
    difference[chosen >= analysis.equity - TIE] = 0  # compared as in `best_actions`
    return difference


def classify(regret: float) -> str:
    """Return `"blunder"`, `"error"` or `""` for the regret of a decision."""
    return "blunder" if regret >= BLUNDER else "error" if regret >= ERROR else ""


def define_errors(players: int) -> str:
    """Return a definition of errors and blunders, in equity and in percent of games won."""
    percent = share_difference(100.0, players)  # percent of games won per unit of equity
    return (
        f"An error loses at least {ERROR:g} of equity, {percent * ERROR:.2g} % of games won. "
        f"Errors of at least {BLUNDER:g}, {percent * BLUNDER:.2g} %, are blunders."
    )


def kinds_of(rules: Rules) -> tuple[str, ...]:
    """Return the kinds of decisions that can occur under these rules."""
    colors = rules.colors or ELEMENTS[: rules.players]
    holders = {"none": (), "own": ELEMENTS if colors == "random" else colors, "any": ELEMENTS}[rules.powers]
    return KINDS if ELEMENTS[Power.TIGER] in holders else KINDS[:-1]


def kinds(game: Game, state: States) -> NDArray[np.int64]:
    """Return the kind of each decision, as an index into KINDS, int64 (N,)."""
    swap = game.legal_actions(state)[:, Action.FIRST_SWAP :].any(1)  # raises ValueError for invalid records
    hold, left, move = state["phase"] == Phase.KEEP, state["rolls_left"], state["phase"] == Phase.MOVE
    # One condition for each of KINDS; the first true condition decides.
    conditions = [hold & (left == REROLLS), hold & (left > 0), move & ~swap, move, ~hold, hold]
    kind: NDArray[np.int64] = np.array(conditions).argmax(0)
    return kind


class Advisor:
    """A calculator of equities that uses the best available source.

    The possible sources, best first:

    - the table of the exact solution, if `wotd solve` has saved one in the cache folder;
    - the turn planner with the learned value function that is bundled for these rules;
    - the turn planner with the hand-made value function.

    If the advisor finds a damaged block in a table, it continues with the next source. Several threads may share an
    advisor.

    Args:
        game: the rules.
        table: the table to use instead of the best available source.

    Attributes:
        kind: kind of the source in use: "solution", "unlimited" (the solution without a turn limit), "guarantee",
            "learned" or "hand-made".
        source: description of the source in use.
        exact: True if the source is the exact solution and `max_turns` is at least the default. For a table of three
            players, `exact` is False: a guarantee is only a lower bound of the expected reward.
        skipped: for each better source, the reason why it is not in use. A reason may contain a file path.

    Raises:
        TypeError: if the table is not a Table.
        ValueError: if the table is for another game.
    """

    def __init__(self, game: Game, table: Table | None = None) -> None:
        self.game = game
        self.skipped: tuple[str, ...] = ()
        self._opening = threading.Lock()
        if table is None:
            self._sources = self._available()
        else:
            check_table(table).check_rules(game.rules)
            self._sources = iter([_from_table(game, table)])
        self.kind, self.source, self.exact, self._value = next(self._sources)

    def analyze(self, state: States) -> Analysis:
        """Return the equities of states, STATE (N,), in any phase; see `wotd_env.analysis.analyze`.

        Raises:
            ValueError: if a state is invalid under the rules.
            TableError: if the given table is damaged.
        """
        while True:
            value = self._value
            try:
                actions, equity = plan(self.game, state, value)
                return Analysis(equity, actions, best_actions(actions, equity))
            except TableError as error:  # damage in a block of a table is found at the first use of the block
                with self._opening:
                    if self._value is value:  # if not, another thread has already replaced the source
                        self.skipped += (str(error),)
                        if (other := next(self._sources, None)) is None:
                            raise
                        self.kind, self.source, self.exact, self._value = other

    def _available(self) -> Iterator[Source]:
        for source in (_solution, _learned):
            try:
                yield source(self.game)
            except (ValueError, OSError, ImportError) as error:
                self.skipped += (str(error),)
        yield "hand-made", "the hand-made value, every turn planned exactly", False, hand_made


# kind, description, whether the source is exact, and its value function
Source = tuple[str, str, bool, Value]


def _solution(game: Game) -> Source:
    check_solvable(game.rules)
    file = cache_file(game.rules)
    if not file.exists():
        raise FileNotFoundError(describe_missing(game.rules, file))
    return _from_table(game, load(file, game.rules))


def _from_table(game: Game, table: Table) -> Source:
    exact = game.rules.max_turns >= Rules.max_turns  # the solution ignores the turn limit
    words = f"{'' if exact else ' of the game without a turn limit'}, {table.file.name}"
    if game.rules.players == 3:
        return "guarantee", f"the guarantee of each seat{words}", False, table.for_seats
    kind = "solution" if exact else "unlimited"
    return kind, f"the exact solution{words}", exact, table.for_seats


def _learned(game: Game) -> Source:
    policy, name = Td(), models.name_of("td", game.rules)
    policy.check_rules(game.rules)
    return "learned", f"the learned value {name}, every turn planned exactly", False, policy.value
