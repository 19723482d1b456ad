"""The settings that all learners have, and their checks."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from wotd_env import Rules, make_policy
from wotd_env.core.arguments import check_integer
from wotd_env.policy import check_plays

Count = Annotated[int, "an integer of at least 1"]
Share = Annotated[float, "from 0 to 1"]
Positive = Annotated[float, "a positive number"]
NotNegative = Annotated[float, "a number that is not negative"]
LIMITS = {
    Share: lambda value: 0 <= value <= 1,
    Positive: lambda value: 0 < value < math.inf,
    NotNegative: lambda value: 0 <= value < math.inf,
}
LARGEST = 1 << 24  # of counts; a larger one is a mistake, or a crafted checkpoint

OF_THIS_COMMAND = ("resume", "folder", "ray", "init")
"""Settings that a checkpoint does not keep."""

REPEATED = ("against",)
"""Settings that name a policy. Loading a policy can run code, so a resumed run needs them on the command line again."""


class SettingError(ValueError):
    """A setting has a wrong value."""


@dataclass(frozen=True)
class Settings:
    """The settings of every learner."""

    resume: Path | None = None  # Run folder to resume; its settings are the defaults.
    folder: Path | None = None  # Run folder to create; by default runs/ followed by the time.
    # Random seed. The same seed and settings give the same network on the same kind of machine.
    seed: int = 0

    rules: Rules = field(default_factory=Rules)

    # Dead pieces of games: any, as in the rules, or train, the training layouts of the track generalization.
    layouts: Literal["any", "train"] = "any"
    # Number of evenly spaced milestones. At each one the strength is measured and a checkpoint is written.
    milestones: Count = 10
    milestone_games: int = 500  # Games against each of random, greedy and planner at a milestone.
    # Minimum number of games against each of random, greedy and planner after training.
    final_games: int = 10_000

    def __post_init__(self) -> None:
        check_integer("seed", self.seed, 0, 2**31 - 1)
        for name in ("milestone_games", "final_games"):
            check_integer(name, getattr(self, name), self.rules.players, why="(the number of players)")
        for name, hint in get_type_hints(type(self), include_extras=True).items():
            value = getattr(self, name)
            if hint == Count:
                check_integer(name, value, 1, LARGEST)
            elif hint in LIMITS:
                self.check(name, LIMITS[hint](value), f"must be {hint.__metadata__[0]}")
            elif get_origin(hint) is Literal:
                self.check(name, value in get_args(hint), f"must be {' or '.join(get_args(hint))}")

    def training_layouts(self) -> list[str] | None:
        """Return the layouts of the training games; None if the rules place the dead pieces."""
        if self.layouts == "any":
            return None
        from wotd_env.benchmark import generalization  # needs the extra arena

        boards = generalization.BOARDS.values()
        self.check("layouts", self.rules in boards, f"needs the rules {' or '.join(map(str, boards))}")
        return generalization.layouts("train", self.rules.spaces)

    def check(self, name: str, right: bool, what: str) -> None:
        """Raise SettingError unless `right` is true."""
        if not right:
            raise SettingError(f"{name} {what}, got {getattr(self, name)!r}")

    def policy(self, name: str, kind: Any = object, what: str = "") -> Any:
        """Load the policy that a setting names.

        Raises:
            SettingError: if the policy cannot be loaded, cannot play the rules, or is not an instance of `kind`.
                In the message, `what` describes the policies of this kind.
        """
        try:
            policy = make_policy(getattr(self, name))
            check_plays(policy, self.rules)
        except (ImportError, OSError, ValueError) as error:
            raise SettingError(f"{name} must name a policy for the rules at hand: {error}") from error
        self.check(name, isinstance(policy, kind), f"must be {what}")
        return policy


def kept(settings: Settings) -> dict[str, Any]:
    """Return the settings that a checkpoint keeps, as plain values."""
    return {name: value for name, value in asdict(settings).items() if name not in OF_THIS_COMMAND}
