"""A policy that calls a function of an observation and an action mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import as_actions, as_integer, check_bool, check_choice, kind_of
from wotd_env.core.game import Game
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policy import check_made_for, seen_in


class FunctionPolicy:
    """A policy that plays the actions that a function returns.

    Args:
        choose: a function `choose(observation, mask)`. It takes the observation, int8 (D,), and the action mask, int8
            (A,), of one game and returns an action. If `batched` is true, the function takes the observations, int8
            (N, D), and the masks, int8 (N, A), of N games and returns integers (N,).
        batched: whether one call of the function takes all games.
        encoding: encoding of the observations that the function takes.
        rules: the rules that the function is made for, such as `Rules(players=2)`; by default, the function plays
            under any rules. Tournaments refuse other rules, and `wotd benchmark` leaves out games with other rules.

    Raises:
        ValueError: for an invalid argument.
    """

    def __init__(
        self,
        choose: Callable[[NDArray[np.int8], NDArray[np.int8]], Any],
        batched: bool = False,
        encoding: str = "one_hot",
        rules: Rules | None = None,
    ) -> None:
        if not callable(choose):
            raise ValueError(
                f"choose must be a function (observation, mask) -> action, got {kind_of(choose)}"
            )
        if not (rules is None or isinstance(rules, Rules)):
            raise ValueError(f"rules must be a wotd_env.Rules or None, got {kind_of(rules)}")
        self._choose, self._batched, self._rules = choose, check_bool("batched", batched), rules
        self._encoding: str = check_choice("encoding", encoding, ENCODINGS)

    def check_rules(self, rules: Rules) -> None:
        """Check that the function is made for these rules."""
        if self._rules is not None:
            check_made_for("the function", self._rules, rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`.

        Raises:
            ValueError: if the function does not return an integer for each game. The actions may be illegal.
        """
        if not len(state):
            return np.zeros(0, np.int64)
        observation, mask = seen_in(self._encoding, game).observe(state), game.legal_actions(state)
        if self._batched:
            answer = self._choose(observation, mask)
        else:
            answer = [self._choose(*seen) for seen in zip(observation, mask, strict=True)]
            if None not in (actions := [as_integer(each) for each in answer]):
                answer = actions
        try:
            return as_actions(answer, len(state))
        except ValueError:
            got = f"{kind_of(answer)} from the function"
            raise ValueError(f"act must return integers {state.shape}, got {got}") from None
