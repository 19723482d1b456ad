"""Train the learners of `train.py` for the entries `td` and `ppo`."""

import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from agents.loop import locked, module_of, opened, train
from entries.entry import WEIGHTS
from wotd_env import make_policy
from wotd_env.policy import Policy


@dataclass(frozen=True)
class Learner:
    """A learner with the preset `quick`."""

    name: str  # name of the entry, and of the learner
    updates: dict[int, int]  # budget in minutes -> number of updates

    def train(self, budget: int, seed: int) -> None:
        if (folder := self._folder(budget, seed)).is_dir():
            with locked(folder):  # raises an error if another process trains there
                shutil.rmtree(folder)
        settings = replace(
            module_of(self.name).PRESETS["quick"],
            updates=self.updates[budget],
            seed=seed,
            folder=folder,
            milestones=1,  # few measurements, because the benchmark measures the strength later
            milestone_games=2,
            final_games=2,
        )
        with opened(self.name, settings) as run:
            train(run, lambda _: None)

    def load(self, budget: int = 5, seed: int = 0) -> Policy | None:
        folder = self._folder(budget, seed)
        return make_policy(str(folder)) if folder.is_dir() else None

    def _folder(self, budget: int, seed: int) -> Path:
        return WEIGHTS / self.name / f"{budget}-{seed}"
