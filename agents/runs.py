"""What all learners have in common: settings, and a run with its folder.

A learner is a module with `Settings`, `PRESETS` and `Run`. It says how it learns, and builds on what
is here for the rest: a run folder that is locked, begun, resumed and checked, measurements at milestones, the end.
"""

from __future__ import annotations

import functools
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar

import torch as th
from filelock import FileLock, Timeout

import wotd_env
from agents import checkpoint, report
from agents.checkpoint import CheckpointError
from agents.evaluate import FINAL, MEASURING, Counts, measure
from wotd_env import Game, Rules, make_policy
from wotd_env.core.arguments import check_integer
from wotd_env.intervals import proportion_confint
from wotd_env.policies import POLICIES
from wotd_env.policy import Policy, check_plays

CHECKPOINT, RESULT, LOCK = "checkpoint.pt", "result.json", ".lock"

OF_THE_END = (RESULT, "model.onnx")
"""What is there only when a training has come to its end."""

REFERENCES = ("random", "greedy", "planner")
"""The opponents that strength is measured against, the strongest last."""

S = TypeVar("S", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """What every learner is set to."""

    policies: ClassVar[tuple[str, ...]] = ()
    """Names of the settings that name a policy which is made anew when a run is resumed."""

    resume: Path | None = None
    """Run folder to go on with; its settings are the defaults then."""

    folder: Path | None = None
    """Run folder to make; by default runs/ and the time."""

    seed: int = 0
    """Same seed and settings, on the same kind of machine: same network."""

    rules: Rules = field(default_factory=Rules)

    milestones: int = 10
    """Times that a measurement and a checkpoint are made, evenly spread over the training."""

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
        """Raise ValueError that names a setting, unless it is right."""
        if not right:
            raise ValueError(f"{name} {what}, got {getattr(self, name)!r}")

    def check_counts(self, *names: str) -> None:
        """Raise ValueError unless these settings are positive integers."""
        for name in names:
            check_integer(name, getattr(self, name), 1)

    def check_positive(self, *names: str) -> None:
        """Raise ValueError unless these settings are positive numbers."""
        for name in names:
            self.check(name, 0 < getattr(self, name) < math.inf, "must be a positive number")

    def check_shares(self, *names: str) -> None:
        """Raise ValueError unless these settings are from 0 to 1."""
        for name in names:
            self.check(name, 0 <= getattr(self, name) <= 1, "must be from 0 to 1")


def policy_of(setting: str, name: str, rules: Rules) -> Policy:
    """Return the policy that a setting names.

    Raises:
        ValueError: naming the setting, if there is no such policy, it is for other rules, or an extra is missing.
    """
    try:
        policy = make_policy(name)
        check_plays(policy, rules)
    except (ImportError, OSError, ValueError) as error:
        raise ValueError(f"{setting} must name a policy for the rules at hand: {error}") from error
    return policy


def options_that_are_code(settings: Any) -> list[str]:
    """Return the options of `train.py` for those settings that name a policy by MODULE:OBJECT.

    To make such a policy runs that code, so `train.py` does not do it because a checkpoint says so.
    """
    named = {name: getattr(settings, name) for name in settings.policies}
    code = {
        name: value
        for name, value in named.items()
        if ":" in value and value.partition(":")[0] not in POLICIES and not os.path.isdir(value)
    }
    return [word for name, value in code.items() for word in (f"--{name}", value)]


class Stopped(Exception):
    """The training was stopped on request; its checkpoint is written."""


def make_folder(folder: Path) -> None:
    """Make an empty run folder, or take one that is empty but for what a start cut short leaves behind.

    Raises:
        FileExistsError: if there is something in it.
        OSError: if it cannot be made.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"there is a run in folder {folder}; --resume {folder} goes on with it")
    if found := {path.name for path in folder.iterdir()} - {LOCK, f"new-{CHECKPOINT}"}:
        raise FileExistsError(
            f"folder {folder} is not empty, choose another one; there is {min(found)} in it"
        )


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other trainings out of a run folder.

    Raises:
        CheckpointError: if another one is at work in it.
    """
    lock = FileLock(folder / LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout as error:
        raise CheckpointError(
            f"another training is at work in {folder}; wait for its end or stop it"
        ) from error
    try:
        yield
    finally:
        lock.release()


def best(results: Sequence[tuple[int, int, int]]) -> int:
    """Return which of some snapshots to keep: the last one that is not surely weaker than the best.

    The best of many results is so by luck above all, and learning goes on.

    Args:
        results: games, wins and ties of each snapshot, the oldest first.
    """
    shares = [(wins + ties / 2) / games for games, wins, ties in results]
    bands = [
        proportion_confint(share * games, games) for share, (games, *_) in zip(shares, results, strict=True)
    ]
    surely, _ = bands[shares.index(max(shares))]
    return max(i for i, (_, at_most) in enumerate(bands) if at_most >= surely)


def plain(settings: Any) -> dict[str, Any]:
    """Return settings as plain values; where the run lies and where it is worked on does not belong to them."""
    return {
        name: value for name, value in asdict(settings).items() if name not in ("resume", "folder", "ray")
    }


def read_settings(kind: type[S], path: Path, saved: dict[str, Any]) -> S:
    """Return the settings in a checkpoint, to go on with it; those that are newer than it have their defaults.

    Raises:
        CheckpointError: if they are not of this kind.
    """
    try:
        values: Any = saved.get("settings")
        rules: Any = values.get("rules") if isinstance(values, dict) else None  # checked by themselves
        known = plain(kind())
        if isinstance(values, dict):
            values = known | values
        checkpoint.check("settings", values, {**known, "rules": rules})
        changed = {"rules": Rules.from_dict(rules), "resume": path.parent, "folder": path.parent}
        settings: S = kind(**values | changed)
        return settings
    except ValueError as error:
        raise CheckpointError(f"{path} cannot be used: {error}. {checkpoint.CURE}") from error


def check_unchanged(settings: Any, before: Any, names: Iterable[str]) -> None:
    """Make sure that a run is resumed with the settings that it was begun with, as far as they are named.

    Raises:
        CheckpointError: naming the first one that differs.
    """
    for name in names:
        if getattr(settings, name) != getattr(before, name):
            raise CheckpointError(
                f"{name} cannot change when the run in {settings.resume} is resumed: it is {getattr(before, name)}"
            )


def write_config(folder: Path, settings: Any, packages: Iterable[str]) -> None:
    """Write down, for people, what a run is made with: its settings, and versions of packages.

    Raises:
        OSError: naming the file, if it cannot be written.
    """
    config = {
        "settings": asdict(settings),
        "versions": {
            "wotd-env": wotd_env.__version__,
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
    }
    checkpoint.write(folder / "config.json", (json.dumps(config, indent=2, default=str) + "\n").encode())


Row = tuple[int, float, str, int, int, int, int]
"""A measurement: what was learnt from so far, seconds, opponent, games, wins, ties, losses."""


class Run:
    """A training and its run folder, for a learner to build on.

    The folder has `checkpoint.pt`, all that `--resume` needs; `config.json`, `curve.csv`, `curve.png` and `result.json`
    to be read; and what the learner leaves. Each of its files is the old or the new one at any time.

    A learner sets the class attributes, and defines all that raises NotImplementedError here.

    Args:
        settings: the settings; `folder` is set.

    Attributes:
        learner: its name for `train.py`.
        unit: what it learns from.
        kind: its settings.
        fixed: names of the settings that cannot change when a run is resumed.
        part_names: names of what a checkpoint holds of this learner alone; one is `optimizer`, the state of Adam.
        packages: those whose versions are written down.
        game: the rules.
        references: the policies that strength is measured against, the strongest last.
        curve: the measurements.
        seconds: processor time spent so far, measurements included; without what `progress` of `train` does.
        stop: set it to have the training saved and stopped after the update in progress.
    """

    learner: ClassVar[str]
    unit: ClassVar[str]
    kind: ClassVar[type[Settings]]
    fixed: ClassVar[tuple[str, ...]]
    part_names: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]] = ("numpy", "numba", "torch")

    def __init__(self, settings: Any) -> None:
        assert settings.folder is not None
        self.settings: Any = settings
        self.folder: Path = settings.folder
        self.game = Game(settings.rules)
        self.references = {name: make_policy(name) for name in REFERENCES}
        self.curve: list[Row] = []
        self.milestone = -1  # the last one that was passed; -1 before the network is first measured
        self.seconds = 0.0
        self._counted = time.process_time()  # up to here
        self.stop = False

    # ------------------------------------------------------------------------------------------ what a learner says

    @property
    def done(self) -> int:
        """What has been learnt from."""
        raise NotImplementedError

    @property
    def total(self) -> int:
        """What there is to learn from."""
        raise NotImplementedError

    def player(self) -> Policy:
        """Return the policy that is measured."""
        raise NotImplementedError

    def train(self, progress: Callable[[Any], None]) -> None:
        """Train up to the end that is set.

        Args:
            progress: called with the run after every update.

        Raises:
            Stopped: if `stop` was set; the checkpoint is written then.
            OSError: if a file cannot be written; the last checkpoint is intact.
        """
        raise NotImplementedError

    def parts(self) -> dict[str, Any]:
        """Return what a checkpoint holds of this learner alone, tensors and plain values, by `part_names`."""
        raise NotImplementedError

    def check(self, saved: dict[str, Any]) -> None:
        """Make sure that the learner's own parts of a checkpoint fit this run.

        Raises:
            ValueError: naming the part that does not fit.
        """
        raise NotImplementedError

    def restore(self, saved: dict[str, Any]) -> None:
        """Take over the learner's own parts of a checkpoint that is known to be right."""
        raise NotImplementedError

    def save_network(self) -> None:
        """Write the file that a policy is made of."""
        raise NotImplementedError

    # ---------------------------------------------------------------------------------------- beginning, going on

    @classmethod
    def begin(cls, settings: Any) -> Self:
        """Make the run folder, with a first checkpoint in it.

        Raises:
            FileExistsError: if there is something in it.
            OSError: if it cannot be made.
        """
        make_folder(settings.folder)
        run = cls(settings)
        run.save()
        run.write_config()
        return run

    @classmethod
    def resume(cls, settings: Any) -> Self:
        """Go on with the run in `settings.resume`.

        Raises:
            CheckpointError: if its checkpoint cannot be used, or does not fit the settings; no file is changed.
            OSError: if the folder cannot be written to.
        """
        path = settings.resume / CHECKPOINT
        saved = checkpoint.load(path)
        check_unchanged(settings, read_settings(cls.kind, path, saved), cls.fixed)
        try:
            run = cls(settings)
        except ValueError as error:
            raise CheckpointError(f"the run in {settings.resume} cannot go on: {error}") from error
        try:
            run._check(saved)
        except ValueError as error:
            raise CheckpointError(f"{path} cannot be used: {error}. {checkpoint.CURE}") from error
        run.curve, run.seconds = saved["curve"], saved["seconds"]
        run.restore(saved)
        if run.curve:
            run.milestone = run._milestones_reached()
            if run.done >= run.total and run.curve[-1][0] < run.done:
                run.milestone -= 1  # less is to be learnt than has been: the end is not measured yet
        run.save()
        if run.done < run.total:
            for name in OF_THE_END:
                (run.folder / name).unlink(missing_ok=True)  # of a shorter training
        run.write_config()
        return run

    @classmethod
    def read_settings(cls, folder: Path) -> Any:
        """Return the settings of an earlier run, to go on with it.

        Raises:
            CheckpointError: if its checkpoint cannot be used.
        """
        path = folder / CHECKPOINT
        return read_settings(cls.kind, path, checkpoint.load(path))

    def write_config(self) -> None:
        """Write down what the run is made with."""
        write_config(self.folder, self.settings, self.packages)

    # ------------------------------------------------------------------------------------------------ on the way

    def after_update(self, progress: Callable[[Any], None]) -> None:
        """Do what is due: measure and save at a milestone, save and end on request, then show progress.

        Raises:
            Stopped: if `stop` was set.
            OSError: if a file cannot be written.
        """
        self._count_seconds()
        reached = self._milestones_reached()
        if reached > self.milestone:
            self.milestone = reached
            self.pass_milestone()
            self.save()
        elif self.stop:
            self.save()
        if self.stop:
            raise Stopped
        self._count_seconds()
        progress(self)
        self._counted = time.process_time()

    def _count_seconds(self) -> None:
        now = time.process_time()
        self.seconds += now - self._counted
        self._counted = now

    def pass_milestone(self) -> None:
        """Measure the strength."""
        for name, counts in self.measure(self.settings.milestone_games).items():
            self.curve.append((self.done, self.seconds, name, *counts))

    def _milestones_reached(self) -> int:
        return min(self.done, self.total) * int(self.settings.milestones) // self.total

    def measure(
        self,
        games: int,
        seed: int = MEASURING,
        progress: Callable[[str, int], None] = lambda name, over: None,
    ) -> dict[str, Counts]:
        """Play at least so many games against each of the references.

        Calls `progress` with the name of the reference and how many games against it are over.
        """
        player = self.player()
        return {
            name: measure(self.game, player, other, games, seed, functools.partial(progress, name))
            for name, other in self.references.items()
        }

    @property
    def final_games(self) -> int:
        """Games that the result is measured by, against each of the references, at least."""
        return int(self.settings.final_games)

    def finish(self, progress: Callable[[str, int], None] = lambda name, over: None) -> dict[str, Counts]:
        """Measure the result of the training, see `measure`."""
        return self.measure(self.final_games, FINAL, progress)

    # ---------------------------------------------------------------------------------------------- the checkpoint

    def save(self) -> None:
        """Write the checkpoint, the network and the curve.

        Raises:
            OSError: naming the file that cannot be written.
        """
        checkpoint.save(self.folder / CHECKPOINT, self._content())
        self.save_network()
        checkpoint.write(self.folder / "curve.csv", report.curve(self.curve, self.unit).encode())

    def _content(self) -> dict[str, Any]:
        common = {"settings": plain(self.settings), "seconds": self.seconds, "curve": self.curve}
        return {"learner": self.learner, **common, **self.parts()}

    def _check(self, saved: dict[str, Any]) -> None:
        known = ("learner", "settings", "seconds", "curve", *self.part_names)
        checkpoint.check("its content", dict.fromkeys(saved), dict.fromkeys(known))
        checkpoint.check("learner", saved["learner"], self.learner)
        checkpoint.check("seconds", saved["seconds"], 0.0)
        if saved["seconds"] < 0:
            raise CheckpointError(f"seconds must not be negative, got {saved['seconds']}")
        check_list("curve", saved["curve"], (0, 0.0, "", 0, 0, 0, 0), bool(saved["optimizer"]))
        for i, (done, seconds, opponent, games, *counts) in enumerate(saved["curve"]):
            right = min(done, seconds, *counts) >= 0 and opponent in self.references
            if not right or not 0 < games == sum(counts):
                raise CheckpointError(f"curve[{i}] is no measurement: {saved['curve'][i]}")
        self.check(saved)


def check_list(name: str, saved: Any, like: Any, begun: bool) -> None:
    """Make sure that a value from a file is a list of values that are like another one, see `checkpoint.check`.

    Raises:
        CheckpointError: if it is not, or if it is empty though the learning has begun.
    """
    if type(saved) is not list or len(saved) < begun:
        raise CheckpointError(f"{name} must be a list that is not empty")
    for i, entry in enumerate(saved):
        checkpoint.check(f"{name}[{i}]", entry, like)


def check_adam(saved: Any, parameters: Iterable[th.Tensor], begun: bool) -> None:
    """Make sure that a value from a file is the state of Adam for some parameters, empty before the first step.

    Raises:
        CheckpointError: if it is not.
    """
    like = {
        i: {"step": th.tensor(0.0), "exp_avg": p.data, "exp_avg_sq": p.data} for i, p in enumerate(parameters)
    }
    checkpoint.check("optimizer", saved, like if begun else {})
    if any((moments["exp_avg_sq"] < 0).any() or moments["step"] < 1 for moments in saved.values()):
        raise CheckpointError("optimizer has squares or steps that are negative")
