"""The judge of decisions: the regret of an action, from a solved table or from a value function."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import as_actions, check_integer
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.core.stream import STEP, mix
from wotd_env.planning.planner import TIE, Value, plan
from wotd_env.policies import make_policy
from wotd_env.policies.oracle import Oracle
from wotd_env.policies.planner import Planner
from wotd_env.policy import check_plays
from wotd_env.solver import Table

Source = str | Table


class Verdict(NamedTuple):
    """The judgement of one decision in each of N games, for the seat to act."""

    equity: NDArray[np.float64]  #: (N,): the equity before the decision, which is that of the best action
    regret: NDArray[np.float64]  #: (N,): the equity that the decision loses, at least 0


class Judge:
    """Judges decisions by the equities of a source.

    Args:
        game: the rules.
        source: `"table"` for the solved table in the cache folder; a table of `wotd_env.solver.load`; or the name of a
            policy that plans with a value function, such as `"td"` or `"planner"`, whose equities are estimates.
        noise: standard deviation of a normal error that is added to the equity of each action. The error depends only
            on the position, the action and `noise_seed`, so the same position has the same errors.
        noise_seed: seed of these errors.

    Raises:
        ValueError: if the rules cannot be solved, the source does not fit the rules, or an argument is invalid.
        FileNotFoundError: if there is no table for the rules; the message has the command that makes it. Small
            boards need no table in advance: they are solved within seconds.
    """

    def __init__(self, game: Game, source: Source = "table", noise: float = 0.0, noise_seed: int = 0) -> None:
        self.game, self.noise = game, checked("noise", noise)
        self.noise_seed = check_integer("noise_seed", noise_seed, 0, 2**64 - 1)
        self._value: Value
        if isinstance(source, Table):
            source.check_rules(game.rules)
            self._value = source.for_seats
        elif source == "table":
            if game.rules.players != 2:
                raise ValueError(
                    f"players must be 2, got {game.rules.players}: only games of two players have exact equities. "
                    "For estimates, set source='td'"
                )
            self._value = Oracle().table(game).for_seats
        else:
            policy = make_policy(source)
            check_plays(policy, game.rules)
            if not isinstance(policy, Planner):
                raise ValueError(
                    f"source must be 'table' or a policy that plans, such as 'td', got {source!r}"
                )
            self._value = policy.value

    def __call__(self, states: States, actions: Any) -> Verdict:
        """Return the verdict on one action in each game. `states`, STATE (N,), must be at a decision or over.

        An illegal action costs as much as a certain loss. A decision in a game that is over has the regret 0.
        """
        chosen = as_actions(actions, len(states))
        values, equity = plan(self.game, states, self._value)
        if self.noise:
            errors = self.noise * standard_normal(states, values.shape[1], self.noise_seed)
            values = (values + errors).astype(np.float32)
            equity = np.where(np.isfinite(values).any(1), values.max(1), equity).astype(np.float32)
        rows = np.arange(len(states))
        known = (chosen >= 0) & (chosen < values.shape[1])
        taken = np.where(known, values[rows, np.where(known, chosen, 0)], -np.inf)
        taken = np.where(np.isfinite(taken), taken, self.game.spec.min_reward)
        # Equally good actions are compared as in `best_actions`.
        nothing = (states["phase"] == Phase.OVER) | (taken >= equity - TIE)
        regret = np.where(nothing, 0.0, equity - taken)
        return Verdict(equity.astype(np.float64), regret.astype(np.float64))


def check_one_layout(layouts: NDArray[np.uint16]) -> None:
    """Raise ValueError if the games of an environment draw their layouts, because a judge knows one layout."""
    if len(layouts):
        raise ValueError(
            "layouts cannot be judged together, because each has its own table: make an environment with "
            "dead_pieces='LAYOUT' for each"
        )


def checked(name: str, number: float) -> float:
    """Return a number. Raise ValueError unless it is finite and not negative."""
    if isinstance(number, bool) or not isinstance(number, int | float) or not 0 <= number < np.inf:
        raise ValueError(f"{name} must be a finite number of at least 0, got {number!r}")
    return float(number)


def standard_normal(states: States, columns: int, seed: int) -> NDArray[np.float64]:
    """Return standard normal numbers, float64 (N, columns), that depend on the position, the column and the seed."""
    position = states.copy()
    position["rng"] = 0
    position["turn"] = 0  # the number of the turn does not change the game
    key: Any = np.full(len(states), seed, np.uint64)
    for word in np.ascontiguousarray(position).view(np.uint64).reshape(len(states), states.itemsize // 8).T:
        key = mix(key ^ word)
    draws: Any = mix(key[:, None] + np.arange(1, 2 * columns + 1, dtype=np.uint64) * STEP)
    uniform = ((draws >> np.uint64(11)) + np.uint64(1)) / 2.0**53  # from 2^-53 to 1
    radius, angle = np.sqrt(-2 * np.log(uniform[:, :columns])), 2 * np.pi * uniform[:, columns:]
    normal: NDArray[np.float64] = radius * np.cos(angle)
    return normal


class Scoring:
    """The conversion of a regret to a reward: minus `scale` times the regret, but at least -`clip`."""

    def __init__(self, scale: float, clip: float | None) -> None:
        self._scale = checked("scale", scale)
        self._clip = np.inf if clip is None else checked("clip", clip)

    def __call__(self, regret: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the rewards for regrets, float64 (N,)."""
        return -np.minimum(self._scale * regret, self._clip)
