"""Settings that all learners share, their checks, and consent to run code that a setting names.

Settings are plain data. A policy that a setting names is loaded when a run begins, not before.
"""

from __future__ import annotations

import math
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from wotd_env import Rules, make_policy
from wotd_env.core.arguments import check_integer
from wotd_env.policies import POLICIES
from wotd_env.policy import Policy, check_plays

OF_THIS_COMMAND = ("resume", "folder", "ray")
"""Settings that a checkpoint does not keep: the place of the run, and of the computation."""

NamesNoCode = Annotated[str, "names no code"]
"""Type of a text setting that never names a policy. Any other text may name code as MODULE:OBJECT."""


class SettingError(ValueError):
    """A setting has a wrong value."""


@dataclass(frozen=True)
class Settings:
    """The settings of every learner."""

    resume: Path | None = None
    """Run folder to resume; its settings are the defaults."""

    folder: Path | None = None
    """Run folder to make; by default runs/ and the time."""

    seed: int = 0
    """Random seed. Equal seeds and settings give equal networks on the same kind of machine."""

    rules: Rules = field(default_factory=Rules)

    milestones: int = 10
    """Number of milestones, evenly spread. At each one the strength is measured and a checkpoint is written."""

    milestone_games: int = 500
    """Games against each of random, greedy and planner at a milestone."""

    final_games: int = 10_000
    """Games against each of random, greedy and planner after the training, at least."""

    def __post_init__(self) -> None:
        check_integer("seed", self.seed, 0, 2**31 - 1)
        self.check_counts("milestones")
        for name in ("milestone_games", "final_games"):
            check_integer(name, getattr(self, name), self.rules.players, why="(the number of players)")

    def check(self, name: str, right: bool, what: str) -> None:
        """Raise SettingError that names a setting, unless its value is right."""
        if not right:
            raise SettingError(f"{name} {what}, got {getattr(self, name)!r}")

    def check_counts(self, *names: str) -> None:
        """Raise ValueError unless these settings are positive integers."""
        for name in names:
            check_integer(name, getattr(self, name), 1)

    def check_positive(self, *names: str) -> None:
        """Raise SettingError unless these settings are positive numbers."""
        for name in names:
            self.check(name, 0 < getattr(self, name) < math.inf, "must be a positive number")

    def check_shares(self, *names: str) -> None:
        """Raise SettingError unless these settings are from 0 to 1."""
        for name in names:
            self.check(name, 0 <= getattr(self, name) <= 1, "must be from 0 to 1")

    def policy(self, name: str) -> Policy:
        """Load the policy that a setting names; raise SettingError if it cannot be loaded or play the rules."""
        try:
            policy = make_policy(getattr(self, name))
            check_plays(policy, self.rules)
        except (ImportError, OSError, ValueError) as error:
            raise SettingError(f"{name} must name a policy for the rules at hand: {error}") from error
        return policy


def names_code(value: Any) -> bool:
    """Return whether a setting is the name of a policy as MODULE:OBJECT, also behind the name of another policy."""
    if not isinstance(value, str):
        return isinstance(value, list | tuple) and any(map(names_code, value))
    while ":" in value and not os.path.isdir(value):
        kind, _, value = value.partition(":")
        if kind not in POLICIES:
            return True
    return False


def code_options(settings: Settings) -> dict[str, str]:
    """Return the options of `train.py`, with their values, for the settings that name code.

    Loading such a policy runs its code. A checkpoint must not decide that, so the user has to repeat these options.
    Every text counts, unless its type is `NamesNoCode`.
    """
    hints = get_type_hints(type(settings), include_extras=True)
    values = {name: getattr(settings, name) for name, hint in hints.items() if hint != NamesNoCode}
    return {f"--{name.replace('_', '-')}": value for name, value in values.items() if names_code(value)}


def kept(settings: Settings) -> dict[str, Any]:
    """Return the settings that a checkpoint keeps, as plain values."""
    return {name: value for name, value in asdict(settings).items() if name not in OF_THIS_COMMAND}
