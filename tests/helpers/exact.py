"""The value of one turn computed with the rules engine, given a table for the positions after it.

It checks the solver's values independently: it shares no code for moves or dice with `wotd_env.solver`.
"""

from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from wotd_env import STATE, Game, Phase, analysis, solver
from wotd_env.core.dice import HOLD_KEEP, KEEPS, NUM_KEEPS, NUM_ROLLS, UNROLLED, keep_index
from wotd_env.policy import Policy, play_policies

END, EXTRA = 52, 53


def rolls_after() -> np.ndarray:
    """Return the probability of every roll after every keep, (462, 252)."""
    chance = np.zeros((NUM_KEEPS, NUM_ROLLS))
    throws = {k: Counter(tuple(sorted(t)) for t in product(range(6), repeat=k)) for k in range(6)}
    for number, keep in enumerate(KEEPS.tolist()):
        kept = [face for face in keep if face != UNROLLED]
        for throw, ways in throws[5 - len(kept)].items():
            chance[number, keep_index(sorted(kept + list(throw)))] += ways / 6 ** (5 - len(kept))
    return chance


ROLLS_AFTER = rolls_after()


def before_roll(mine, theirs, player=0) -> np.ndarray:
    """Return positions before the first roll of a turn of `player`, STATE (N,)."""
    state = np.zeros(len(mine), STATE)
    state["color"] = np.arange(5)
    state["player"] = player
    state["rolls_left"] = 2
    state["dice"] = -1
    state["pieces"][:, player], state["pieces"][:, 1 - player] = mine, theirs
    return state


def random_positions(
    spaces: int, count: int, seed: int, late: bool = False, dead: Any = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return legal pieces of two players, (N, 5) each, in unfinished games; with `late`, near the end.

    `dead` has the dead pieces of the paths, as in a record.
    """
    rng = np.random.default_rng(seed)
    pieces = rng.integers(spaces if late else 0, spaces + 6, (200 * count, 2, 5))
    pieces *= dead >> pieces & 1 == 0  # a piece on the space of a dead piece starts off the board
    apart = ((pieces[:, 0] != pieces[:, 1]) | (pieces[:, 0] == 0)).all(1)
    running = ~np.any(np.all(pieces > spaces, axis=2), axis=1)
    pieces = pieces[apart & running][:count]
    assert len(pieces) == count
    return pieces[:, 0], pieces[:, 1]


def value_after(game: Game, table: solver.Table, state: np.ndarray, seat: int) -> np.ndarray:
    """Return the values, for a seat, of states that are over or before a roll."""
    over = state["phase"] == Phase.OVER
    return np.where(over, game.rewards(state)[:, seat], table.for_seats(game, state)[:, seat])


def value_of_rolls(
    game: Game, table: Any, position: np.ndarray, after_turn: Callable[..., np.ndarray] = value_after
) -> np.ndarray:
    """Return the value of the best move for every roll without re-rolls, (252,); `after_turn` is as `value_after`."""
    seat = int(position["player"])
    state = np.repeat(position.reshape(1), NUM_ROLLS)
    game.roll(state, KEEPS[:NUM_ROLLS])
    game.decide(state, np.full(NUM_ROLLS, 31))
    assert (state["phase"] == Phase.MOVE).all()
    roll, action = np.nonzero(game.legal_actions(state))
    after = state[roll]
    game.decide(after, action)
    extra = after["phase"] == Phase.EXTRA
    values = np.full(len(after), -np.inf)
    values[~extra] = after_turn(game, table, after[~extra], seat)
    for choice in (END, EXTRA):
        chosen = after[extra]
        game.decide(chosen, np.full(len(chosen), choice))
        values[extra] = np.maximum(values[extra], after_turn(game, table, chosen, seat))
    best = np.full(NUM_ROLLS, -np.inf)
    np.maximum.at(best, roll, values)
    return best


def one_turn(
    game: Game, table: Any, position: np.ndarray, after_turn: Callable[..., np.ndarray] = value_after
) -> float:
    """Return the value before a turn, computed with the engine from the values after it in the table."""
    values = value_of_rolls(game, table, position, after_turn)
    for _ in range(2):
        values = (ROLLS_AFTER @ values)[HOLD_KEEP].max(1)
    return float(ROLLS_AFTER[-1] @ values)


def play(game: Game, state: np.ndarray, policies: list[Policy]) -> np.ndarray:
    """Play games of two players in place, each seat by its policy; return the rewards of seat 0, (N,)."""
    seats = np.tile([0, 1], (len(state), 1))
    for _ in play_policies(game, state, seats, policies, np.random.default_rng(2)):
        pass
    return game.rewards(state)[:, 0]


def check_oracle(game: Game, table: solver.Table, oracle: Policy) -> None:
    """Assert that an oracle has no regret in single decisions and in whole games."""
    state = game.reset(200, seed=3)
    actions = oracle.act(game, state, np.random.default_rng(0))
    assert (analysis.regret(game, state, actions, table) <= 1e-6).all()
    assert analysis.grade(oracle, table, 20).all.regret < 1e-6
