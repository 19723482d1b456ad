"""Decisions of policies in a tournament: errors and illegal actions become forfeits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.core.words import describe_action
from wotd_env.policy import Policy, ask

FORFEITED = -1  # placeholder for the action in a game that is forfeited or over


class Failure(NamedTuple):
    """The reason why a policy forfeits a game."""

    reason: str
    error: Exception | None = None


@dataclass
class Asker:
    """Asks policies for actions and checks the actions. Calls of `Policy.act` are numbered from 1."""

    game: Game
    policies: Sequence[Policy]
    generators: Sequence[np.random.Generator]
    fatal_calls: Mapping[int, str]  # number of a call to skip -> reason why its games are forfeited
    on_call: Callable[[int], None]  # gets the number of a call before the call, and 0 after the call
    calls: int = 0

    def __call__(self, policy: int, state: States) -> tuple[NDArray[np.int64], dict[int, Failure]]:
        """Ask a policy, given by its index, for its actions in N games, STATE (N,).

        If the policy raises an exception, the policy is asked again for each game separately.

        Returns:
            The actions, int64 (N,), each legal or FORFEITED, and a dict: index of a forfeited game -> its failure.
        """
        self.calls += 1
        if self.calls in self.fatal_calls:
            fatal = Failure(self.fatal_calls[self.calls])
            return np.full(len(state), FORFEITED), dict.fromkeys(range(len(state)), fatal)
        self.on_call(self.calls)
        actions: NDArray[np.int64] | None = None
        try:
            actions = ask(self.policies[policy], self.game, state, self.generators[policy])
        except Exception as error:
            if len(state) == 1:
                reason = f"raised {f'{type(error).__name__}: {error}'[:500]}"
                return np.array([FORFEITED]), {0: Failure(reason, error)}
        finally:
            self.on_call(0)
        if actions is None:  # outside the `except` block, so that later errors are not chained to `error`
            single = [self(policy, state[i : i + 1]) for i in range(len(state))]
            failures = {i: failed[0] for i, (_, failed) in enumerate(single) if failed}
            return np.concatenate([action for action, _ in single]), failures
        known = (actions >= 0) & (actions < self.game.num_actions)
        legal = self.game.legal_actions(state)[np.arange(len(state)), np.where(known, actions, 0)]
        failures = {}
        for i in np.flatnonzero(~known | (legal == 0)).tolist():
            words = "no such action"
            if known[i]:
                phase = Phase(state["phase"][i]).name
                words = f"{describe_action(int(actions[i]), self.game.rules)}, in phase {phase}"
            failures[i] = Failure(f"illegal action {actions[i]} ({words})")
        actions[list(failures)] = FORFEITED
        return actions, failures
