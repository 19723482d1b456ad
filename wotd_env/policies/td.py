"""`td:FILE`: plans every turn exactly, by a value of positions that was learnt (`python train.py td`)."""

from __future__ import annotations

from pathlib import Path

from wotd_env.core.rules import Rules
from wotd_env.planning.learned import load
from wotd_env.policies.planner import Planner

__all__ = ["Td"]


class Td(Planner):
    """Plays the best action of the exact plan of its turn, by a learnt value.

    Args:
        file: the learnt value, or the run folder that it is in.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no learnt value, or is damaged.
    """

    def __init__(self, file: str | Path) -> None:
        file = Path(file)
        learned = load(file / "value.npz" if file.is_dir() else file)
        super().__init__(learned)
        self._learned = learned

    def check_rules(self, rules: Rules) -> None:
        """Make sure that what was learnt is for some rules, see `LearnedValue.check_rules`."""
        self._learned.check_rules(rules)
