"""Wrappers of policies: `Blamed` raises errors that name the policy, and `Asker` turns errors into forfeits."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.checks import IllegalActionError
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import States
from wotd_env.core.words import describe_action
from wotd_env.policy import Policy, RulesBound, ask, check_plays

# The last lines of the error message if a policy without a method `check_rules` fails.
NO_CHECK = (
    "\nThe rules were {}. If the policy cannot play them, give it a method check_rules(rules) that raises "
    "ValueError."
)

FORFEITED = -1  # placeholder for the action in a game that is forfeited or over


class BrokenPolicyError(RuntimeError):
    """Raised if a policy fails. The message contains the policy's name and the traceback, if any."""


class Blamed:
    """Wraps a policy, so that error messages contain the policy's name."""

    def __init__(self, name: str, policy: Policy) -> None:
        self.name, self._policy = name, policy

    def __repr__(self) -> str:
        return repr(self.name)

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the policy cannot play games with these rules."""
        check_plays(self._policy, rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the actions; raise IllegalActionError for illegal actions, and BrokenPolicyError for other errors."""
        before = state.copy()  # the policy may change `state`
        failed = f"policy {self.name!r} failed"
        try:
            actions = self._policy.act(game, state, rng)
        except Exception as error:
            hint = "" if isinstance(self._policy, RulesBound) else NO_CHECK.format(game.rules)
            message = f"{failed}: {type(error).__name__}: {error}{own_traceback(error)}{hint}"
            raise BrokenPolicyError(message) from error
        try:
            game.check(before, actions)
        except IllegalActionError as error:
            raise IllegalActionError(error.game, error.action, error.legal, f"{failed}: {error}") from None
        except (ValueError, TypeError) as error:
            raise BrokenPolicyError(f"{failed}: {error}") from None
        return actions


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


def own_traceback(error: Exception | None) -> str:
    """Return the traceback from the first frame inside the policy, or "" if the policy did not raise the error."""
    callers = __file__, ask.__code__.co_filename
    frame = error.__traceback__ if error else None
    while frame is not None and frame.tb_frame.f_code.co_filename in callers:
        frame = frame.tb_next
    if error is None or frame is None:
        return ""
    return "\n\n" + "".join(traceback.format_exception(error.with_traceback(frame))).rstrip()
