"""A wrapper of policies whose error messages contain the policy's name."""

from __future__ import annotations

import traceback

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.checks import IllegalActionError
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policy import Policy, RulesBound, ask, check_plays

# The last lines of the error message if a policy without a method `check_rules` fails.
NO_CHECK = (
    "\nThe rules were {}. If the policy cannot play them, give it a method check_rules(rules) that raises "
    "ValueError."
)


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


def own_traceback(error: Exception | None) -> str:
    """Return the traceback from the first frame inside the policy, or "" if the policy did not raise the error.

    The first frame of a caught error is the caller of the policy. This caller may use `ask`.
    """
    frame = error.__traceback__ and error.__traceback__.tb_next if error else None
    while frame is not None and frame.tb_frame.f_code is ask.__code__:
        frame = frame.tb_next
    if error is None or frame is None:
        return ""
    return "\n\n" + "".join(traceback.format_exception(error.with_traceback(frame))).rstrip()
