"""A training run: begin or resume it, train to the milestones, measure its strength, write its files.

A learner is a module with `Settings`, `PRESETS` and `Run`, a subclass of the `Run` here that says how to learn.
"""

from __future__ import annotations

import functools
import json
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, NamedTuple, Self

from agents import checkpoint, report
from agents.checkpoint import CheckpointError
from agents.evaluate import FINAL, MEASURING, Counts, measure
from agents.folder import (
    CHECKPOINT,
    OF_THE_END,
    RESULT,
    locked,
    make_folder,
    remove_parts,
    write_config,
    write_json,
)
from agents.settings import Settings, check_unchanged, kept, read_settings
from wotd_env import Game, files, make_policy
from wotd_env.policy import Policy

LEARNERS = {"ppo": "agents.ppo", "td": "agents.td"}
"""The modules of the learners; the first one is the default."""

REFERENCES = ("random", "greedy", "planner")
"""The opponents that strength is measured against, the strongest last."""


class Stopped(Exception):
    """The training was stopped on request; its checkpoint is written."""


class Measurement(NamedTuple):
    """A point of the learning curve: games against one opponent after some training."""

    done: int
    """decisions or turns learned from"""
    seconds: float
    """processor time"""
    opponent: str
    games: int
    wins: int
    ties: int
    losses: int


class Run:
    """A training run and its folder, see `agents.folder`. Each file of the folder is replaced whole.

    A learner sets the class attributes, and defines the methods that raise NotImplementedError here.

    Args:
        settings: the settings; `folder` is set.

    Attributes:
        learner: name of the learner, a key of `LEARNERS`.
        unit: the unit of `done` and `total`.
        kind: class of the settings.
        fixed: names of the settings that cannot change when a run is resumed.
        packages: packages whose versions are recorded.
        game: the game.
        references: the opponents that strength is measured against, the strongest last.
        curve: the measurements.
        seconds: processor time so far, with measurements, without the `progress` callbacks of `train`.
        stop: set it to save the run and stop after the current update.
    """

    learner: ClassVar[str]
    unit: ClassVar[str]
    kind: ClassVar[type[Settings]]
    fixed: ClassVar[tuple[str, ...]]
    packages: ClassVar[tuple[str, ...]] = ("numpy", "numba", "torch")

    def __init__(self, settings: Any) -> None:
        assert settings.folder is not None
        self.settings: Any = settings
        self.folder: Path = settings.folder
        self.game = Game(settings.rules)
        self.references = {name: make_policy(name) for name in REFERENCES}
        self.curve: list[Measurement] = []
        self.milestone = -1  # the last milestone passed; -1 before the untrained network is measured
        self.seconds = 0.0
        self._counted = time.process_time()  # `seconds` contains the time up to here
        self.stop = False

    # ------------------------------------------------------------------------------------- what a learner defines

    @property
    def done(self) -> int:
        """Number of decisions or turns learned from."""
        raise NotImplementedError

    @property
    def total(self) -> int:
        """Number of decisions or turns to learn from."""
        raise NotImplementedError

    def policy(self) -> Policy:
        """Return the policy that is measured."""
        raise NotImplementedError

    def train(self, progress: Callable[[Any], None]) -> None:
        """Train to the end.

        Args:
            progress: called with the run before the first update and after every update.

        Raises:
            Stopped: if `stop` was set; the checkpoint is written.
            OSError: if a file cannot be written; the last checkpoint is intact.
        """
        raise NotImplementedError

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint: tensors in main memory, and plain values."""
        raise NotImplementedError

    def structure(self, begun: bool) -> dict[str, Any]:
        """Return values with the structure of `parts`, see `checkpoint.check`.

        Args:
            begun: whether the optimizer has a state, that is after the first update.
        """
        raise NotImplementedError

    def check(self, saved: dict[str, Any]) -> None:
        """Check the values in the learner's part of a checkpoint, whose structure is right.

        Raises:
            ValueError: naming the part that does not fit.
        """

    def restore(self, saved: dict[str, Any]) -> None:
        """Load the learner's part of a checked checkpoint."""
        raise NotImplementedError

    def save_network(self) -> None:
        """Write the file of the network, if the learner writes one at every milestone."""

    def export(self) -> None:
        """Write the files of the finished run, if the learner has any."""

    # ------------------------------------------------------------------------------------------ beginning, resuming

    @classmethod
    def begin(cls, settings: Any) -> Self:
        """Make the run folder with a first checkpoint.

        Raises:
            SettingError: if a setting names a policy or device that cannot be used; there is no folder then.
            FileExistsError: if the folder is not empty.
            OSError: if it cannot be made.
        """
        run = cls(settings)
        run.make_folder()
        return run

    def make_folder(self) -> None:
        """Make the run folder with a first checkpoint, see `begin`."""
        make_folder(self.folder)
        self.save()
        self.write_config()

    @classmethod
    def resume(cls, settings: Any) -> Self:
        """Resume the run in `settings.resume`. The policies that the settings name are loaded, see `code_options`.

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
            raise CheckpointError(f"the run in {settings.resume} cannot be resumed: {error}") from error
        try:
            run._check(saved)
        except ValueError as error:
            raise checkpoint.unusable(path, error) from error
        run.curve, run.seconds = [Measurement(*row) for row in saved["curve"]], saved["seconds"]
        run.restore(saved)
        if run.curve:
            run.milestone = run._milestones_reached()
            if run.done >= run.total and run.curve[-1].done < run.done:
                run.milestone -= 1  # the new total is already passed, so its last milestone is measured now
        remove_parts(run.folder)
        run.save()
        if run.done < run.total:
            for name in OF_THE_END:  # they belong to the shorter training
                (run.folder / name).unlink(missing_ok=True)
        run.write_config()
        return run

    @classmethod
    def read_settings(cls, folder: Path) -> Any:
        """Return the settings of an earlier run, to resume it.

        Raises:
            CheckpointError: if its checkpoint cannot be used.
        """
        path = folder / CHECKPOINT
        return read_settings(cls.kind, path, checkpoint.load(path))

    def write_config(self) -> None:
        """Write the settings and versions to `config.json`."""
        write_config(self.folder, self.settings, self.packages)

    # ------------------------------------------------------------------------------------------------ training

    def after_update(self, progress: Callable[[Any], None]) -> None:
        """Measure and save at a milestone, save and stop on request, then call `progress`.

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
            self.curve.append(Measurement(self.done, self.seconds, name, *counts))

    def _milestones_reached(self) -> int:
        return min(self.done, self.total) * int(self.settings.milestones) // self.total

    def measure(
        self,
        games: int,
        seed: int = MEASURING,
        progress: Callable[[str, int], None] = lambda name, over: None,
    ) -> dict[str, Counts]:
        """Play against each of the references.

        Args:
            games: games against each, at least.
            seed: seed of the games.
            progress: called with the name of the reference and the number of finished games.
        """
        policy = self.policy()
        return {
            name: measure(self.game, policy, other, games, seed, functools.partial(progress, name))
            for name, other in self.references.items()
        }

    @property
    def final_games(self) -> int:
        """Games of the final measurement against each of the references, at least."""
        return int(self.settings.final_games)

    def finish(self, progress: Callable[[str, int], None] = lambda name, over: None) -> dict[str, Counts]:
        """Export and measure the trained network, and write `result.json`; see `measure`."""
        self.export()
        results = self.measure(self.final_games, FINAL, progress)
        write_json(self.folder / RESULT, {name: counts._asdict() for name, counts in results.items()})
        return results

    # ---------------------------------------------------------------------------------------------- the checkpoint

    def save(self) -> None:
        """Write the checkpoint, the network and the curve.

        Raises:
            OSError: naming the file that cannot be written.
        """
        checkpoint.save(self.folder / CHECKPOINT, self._content())
        self.save_network()
        files.write(self.folder / "curve.csv", report.curve(self.curve, self.unit).encode())

    def _content(self) -> dict[str, Any]:
        curve = [tuple(row) for row in self.curve]
        common = {"settings": kept(self.settings), "seconds": self.seconds, "curve": curve}
        return {"learner": self.learner, **common, **self.parts()}

    def _check(self, saved: dict[str, Any]) -> None:
        like = {
            "learner": self.learner,
            "settings": saved.get("settings"),  # checked by `read_settings`
            "seconds": 0.0,
            "curve": [(0, 0.0, "", 0, 0, 0, 0)],
            **self.structure(begun=bool(saved.get("optimizer"))),
        }
        checkpoint.check("its content", dict.fromkeys(saved), dict.fromkeys(like))
        for name, value in like.items():
            checkpoint.check(name, saved[name], value)
        self.check(saved)


def is_begun(folder: Path) -> bool:
    """Return whether a folder contains a run to resume."""
    return (folder / CHECKPOINT).is_file()


def read_result(folder: Path) -> dict[str, Counts] | None:
    """Return the final strength of a finished run by opponent, or None if the run is not finished."""
    if not (folder / RESULT).is_file():
        return None
    return {name: Counts(**counts) for name, counts in json.loads((folder / RESULT).read_text()).items()}


@contextmanager
def opened(kind: type[Run], settings: Any) -> Iterator[Any]:
    """Lock the run folder; resume the run in `settings.resume`, or begin one in `settings.folder`.

    Raises:
        CheckpointError: if another training uses the folder, or the run cannot be resumed.
        SettingError: if a setting names a policy or device that cannot be used.
        OSError: if the folder is not empty, or cannot be written to.
    """
    if settings.resume:
        with locked(settings.resume):
            yield kind.resume(settings)
    else:
        run = kind(settings)  # a wrong setting leaves no folder
        make_folder(run.folder)
        with locked(run.folder):
            run.make_folder()
            yield run


@contextmanager
def stopping(run: Run, say: Callable[[str], None]) -> Iterator[None]:
    """Stop the run after the current update on Ctrl-C or SIGTERM; a second signal stops it at once."""

    def stop(signum: int, frame: FrameType | None) -> None:
        if run.stop:
            raise KeyboardInterrupt
        run.stop = True
        say("Stopping after the current update. Press Ctrl-C again to stop at once.")

    handlers = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
