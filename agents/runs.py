"""A training run and its folder: start or resume the run, train, measure the strength, and write the files.

A learner is a module with `Settings`, `PRESETS` and `Run`. Its `Run` is a subclass of the `Run` in this module and
defines how to learn. docs/reference/training.md lists the files of a run folder.
"""

import copy
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch as th
from filelock import FileLock, Timeout
from torch import nn
from torch.utils.tensorboard import SummaryWriter

import wotd_env
from agents import checkpoint, evaluate
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.evaluate import FINAL, MEASURING, Counts, Measurement, measure
from agents.export import NetworkPolicy, to_onnx
from agents.settings import SettingError, Settings, kept
from wotd_env import STATE, Game, Rules, files, make_policy
from wotd_env.core.checks import check_states
from wotd_env.core.state import States
from wotd_env.policy import Policy
from wotd_env.process import shell_command

LEARNERS = {"ppo": "agents.ppo", "td": "agents.td", "sb3": "agents.sb3"}
"""The modules of the learners; the first one is the default."""

REFERENCES = ("random", "greedy", "planner")  # the opponents in measurements, the strongest last

RESULT, REPLAY, LOCK = "result.json", "game.html", ".lock"

PACKAGES = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")

OF_THE_END = (RESULT, REPLAY, "model.onnx")  # files that only a finished run has
T = TypeVar("T")


class Stopped(Exception):
    """Training was stopped on request. The checkpoint of the run has been written."""


class Run:
    """A training run. Each file in its folder is replaced atomically.

    A subclass sets the class attributes and defines `update`. Its `__init__` sets `network`, `optimizer` and `state`.

    Args:
        settings: the settings of the learner; `folder` must not be None.
    """

    learner: ClassVar[str]
    unit: ClassVar[str]  # the unit of `done` and `total`: "decisions" or "turns"
    kind: ClassVar[type[Settings]]
    fixed: ClassVar[tuple[str, ...]]  # names of the settings that cannot change when a run is resumed
    network: nn.Module
    optimizer: th.optim.Optimizer
    state: States  # STATE (G,): the games that the learner learns from

    def __init__(self, settings: Any) -> None:
        assert settings.folder is not None
        self.settings: Any = settings
        self.folder: Path = settings.folder
        self.game = Game(settings.rules)
        self.references = {name: make_policy(name) for name in REFERENCES}
        self.curve: list[Measurement] = []
        self.milestone = -1  # number of the last milestone; -1 before the untrained network is measured
        self.updates = 0  # number of finished updates
        self.board: SummaryWriter | None = None
        self.stop = False  # set it to True to save the run and stop after the current update
        self._start = time.process_time()
        self._second: Executor | None = None

    @property
    def seconds(self) -> float:
        """Processor time of the run in seconds, without the `progress` callbacks of `train`."""
        return time.process_time() - self._start

    # ------------------------------------------------------------------------------------- what a learner defines

    @property
    def per_update(self) -> int:
        """Number of decisions or turns that an update learns from."""
        return int(self.settings.games * self.settings.steps)

    def policy(self) -> Policy:
        """Return the policy to measure; by default it plays the network's most likely actions."""
        return NetworkPolicy(self.network)

    def update(self) -> dict[str, float]:
        """Play, learn, and increase `updates`; return named numbers for TensorBoard."""
        raise NotImplementedError

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint: tensors in main memory, and plain values."""
        moments = self.optimizer.state_dict()["state"]
        return {
            "updates": self.updates,
            "network": {name: weights.cpu() for name, weights in self.network.state_dict().items()},
            "optimizer": {i: {name: x.cpu() for name, x in of_one.items()} for i, of_one in moments.items()},
            "state": th.from_numpy(self.state.view(np.uint8)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Load the learner's part of a checkpoint. The caller has checked its types and shapes against `parts()`.

        Raises:
            ValueError: if `saved` contains a wrong value.
        """
        self.network.load_state_dict(saved["network"])
        checkpoint.load_adam(self.optimizer, saved["optimizer"])
        state = saved["state"].contiguous().numpy().view(STATE)
        check_states(self.settings.rules, state)
        self.state[:] = state
        self.updates = saved["updates"]

    def export(self) -> None:
        """Write the trained network to the run folder, by default as an ONNX file."""
        files.write(self.folder / "model.onnx", to_onnx(copy.deepcopy(self.network).cpu()))

    @property
    def done(self) -> int:
        """Number of decisions or turns that the run has learned from."""
        return self.updates * self.per_update

    @property
    def total(self) -> int:
        """Number of decisions or turns that the finished run will have learned from."""
        return int(self.settings.updates) * self.per_update

    # ------------------------------------------------------------------------------------------ starting, resuming

    def begin(self) -> Self:
        """Make the run folder and save the run."""
        make_folder(self.folder)
        self.save()
        self.write_config()
        return self

    @classmethod
    def read_settings(cls, folder: Path) -> Any:
        """Return the settings of the run in a folder, to resume the run.

        A setting that is missing in the checkpoint gets its default value.

        A setting can name a policy. Loading this policy can run code, so get the user's consent first (see
        `code_options`).

        Raises:
            CheckpointError: if the checkpoint cannot be used, or if its settings are not those of this learner.
        """
        path = folder / CHECKPOINT
        values: Any = checkpoint.load(path).get("settings")
        try:
            checkpoint.check("settings", values, {})
            values = (usual := kept(cls.kind())) | values
            checkpoint.check("settings", values, usual | {"rules": values["rules"]})
            of_run = {"rules": Rules.from_dict(values["rules"]), "resume": folder, "folder": folder}
            return cls.kind(**values | of_run)
        except ValueError as error:
            raise checkpoint.unusable(path, error) from error

    @classmethod
    def resume(cls, settings: Any) -> Self:
        """Resume the run in `settings.resume`. Load the policies that the settings name (see `code_options`).

        Raises:
            CheckpointError: if the checkpoint or a setting cannot be used. In this case, no file is changed.
            OSError: if the folder cannot be written to.
        """
        before = cls.read_settings(settings.resume)
        for name in cls.fixed:
            if getattr(settings, name) != (value := getattr(before, name)):
                resumed = f"when the run in {settings.resume} is resumed"
                raise CheckpointError(f"{name} cannot change {resumed}: it is {value}")
        try:
            run = cls(settings)
        except (
            SettingError,
            MemoryError,
            RuntimeError,
        ) as error:  # torch has no own error for missing memory
            raise CheckpointError(f"the run in {settings.resume} cannot be resumed: {error}") from error
        path = run.folder / CHECKPOINT
        saved = checkpoint.load(path)
        try:
            checkpoint.check("its content", saved, run._content() | {"settings": saved["settings"]})
            run.restore(saved)
            run.curve = [Measurement(**row) for row in saved["curve"]]
            run._start -= saved["seconds"]
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise checkpoint.unusable(path, error) from error
        if run.curve:
            run.milestone = run._milestones_reached()
            if run.done >= run.total and run.curve[-1].done < run.done:
                run.milestone -= 1  # the final network has not been measured yet
        run.save()
        if run.done < run.total:
            for name in OF_THE_END:  # the run continues, so these files are out of date
                (run.folder / name).unlink(missing_ok=True)
        run.write_config()
        return run

    def write_config(self) -> None:
        """Write the settings and the versions of packages to `config.json`."""
        versions = {"wotd-env": wotd_env.__version__, "python": platform.python_version()}
        versions |= {package: version(package) for package in PACKAGES}
        machine = {"system": platform.platform(), "cores": os.cpu_count()}
        config = {"settings": asdict(self.settings), "versions": versions, "machine": machine}
        write_json(self.folder / "config.json", config)

    # ------------------------------------------------------------------------------------------------ training

    def train(self, progress: Callable[[Any], None]) -> None:
        """Train to the end. Call `progress(self)` before the first update, and after every update.

        Raises:
            Stopped: if `stop` is set.
            OSError: if a file cannot be written; the last checkpoint is intact.
        """
        with ThreadPoolExecutor(1) as self._second, self.tensorboard():
            self.after_update(progress)
            while self.updates < self.settings.updates:
                start = time.perf_counter()
                numbers = {f"train/{name}": value for name, value in self.update().items()}
                speed = self.per_update / (time.perf_counter() - start)
                self.log(**numbers, **{f"time/{self.unit}_per_second": speed})
                self.after_update(progress)

    def beside(self, task: Callable[[], T]) -> Callable[[], T]:
        """Return a function that waits for a task and returns its result.

        If `settings.threads` > 1, the task starts at once in a second thread. Otherwise the returned function runs it.
        """
        if self._second and self.settings.threads > 1:
            return self._second.submit(task).result
        return task

    def after_update(self, progress: Callable[[Any], None]) -> None:
        """Measure the strength and save the run at a milestone. Call `progress` after every update.

        If `stop` is set, save the run and raise Stopped; do not call `progress`.
        """
        reached = self._milestones_reached()
        if reached > self.milestone:
            self.milestone = reached
            self.pass_milestone()
            self.save()
        elif self.stop:
            self.save()
        if self.stop:
            raise Stopped
        before = time.process_time()
        progress(self)
        self._start += time.process_time() - before

    def pass_milestone(self) -> None:
        """Measure the strength of the policy, and add the results to the learning curve."""
        seconds = self.seconds
        for name, counts in self.measure(self.settings.milestone_games).items():
            self.curve.append(Measurement(self.done, seconds, name, *counts))
            self.log(**{f"strength/wins_against_{name}": counts.wins / counts.games})

    def log(self, **values: float) -> None:
        """Write values to TensorBoard, if its writer is open."""
        for name, value in values.items():
            if self.board:
                self.board.add_scalar(name, value, self.done)

    @contextmanager
    def tensorboard(self) -> Iterator[None]:
        """Open TensorBoard's writer for `log`. Drop the values that a killed process wrote after its last save."""
        # Without this hook, TensorBoard's thread would print the same write error that this thread raises.
        hook, others = threading.excepthook, set(threading.enumerate())
        threading.excepthook = lambda args: None if args.exc_type is OSError else hook(args)
        try:
            self.board = SummaryWriter(str(self.folder), purge_step=self.done)
            yield
        finally:
            if self.board:
                self.board.close()
            self.board = None
            for thread in set(threading.enumerate()) - others:  # the writer's thread needs the hook
                thread.join(timeout=1)
            threading.excepthook = hook

    def _milestones_reached(self) -> int:
        return min(self.done, self.total) * int(self.settings.milestones) // self.total

    def measure(self, games: int, seed: int = MEASURING) -> dict[str, Counts]:
        """Play at least `games` games against each reference; return a dict from the references to the results."""
        policy, opponents = self.policy(), self.references.items()
        return {name: measure(self.game, policy, opponent, games, seed) for name, opponent in opponents}

    def finish(self) -> dict[str, Counts]:
        """Measure the trained network; write the network, the results and the replay of a game; return the results."""
        self.export()
        evaluate.replay(self.game, self.policy()).save(self.folder / REPLAY)
        results = self.measure(self.settings.final_games, FINAL)
        write_json(self.folder / RESULT, {name: counts._asdict() for name, counts in results.items()})
        return results

    # ---------------------------------------------------------------------------------------------- the checkpoint

    def save(self) -> None:
        """Write the checkpoint and the learning curve."""
        checkpoint.save(self.folder / CHECKPOINT, self._content())
        files.write(self.folder / "curve.csv", evaluate.curve(self.curve, self.unit).encode())

    def _content(self) -> dict[str, Any]:
        common = {"learner": self.learner, "settings": kept(self.settings), "seconds": self.seconds}
        return common | {"curve": [row._asdict() for row in self.curve]} | self.parts()


@contextmanager
def opened(kind: type[Run], settings: Any) -> Iterator[Any]:
    """Lock the run folder, and yield the run: the resumed run in `settings.resume`, or a new run in `settings.folder`.

    Raises:
        CheckpointError: if another training run uses the folder, or the run cannot be resumed.
        SettingError: if a setting names a policy or device that cannot be used.
        OSError: if the folder of a new run is not empty, or if the folder cannot be written to.
    """
    if settings.resume:
        with locked(settings.resume):
            yield kind.resume(settings)
    else:
        run = kind(settings)  # wrong settings raise here, before the folder is made
        make_folder(run.folder)
        with locked(run.folder):
            yield run.begin()  # raises if another run has started in this folder


@contextmanager
def stopping(run: Run, say: Callable[[str], None]) -> Iterator[None]:
    """Make Ctrl-C and SIGTERM stop the run after the current update; a second signal stops it at once."""

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


# --------------------------------------------------------------------------------------------------------- the folder


def make_folder(folder: Path) -> None:
    """Make a run folder; raise FileExistsError if it contains files other than a lock and temporary files."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / CHECKPOINT).exists():
        resume = shell_command("--resume", folder)
        raise FileExistsError(f"folder {folder} already contains a run; resume it with {resume}")
    names = sorted(path.name for path in folder.iterdir())
    if found := [name for name in names if name != LOCK and not name.startswith(files.PART)]:
        raise FileExistsError(f"folder {folder} is not empty, it contains {found[0]}; choose another folder")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run folder; raise CheckpointError if another training run uses it."""
    try:
        lock = FileLock(folder / LOCK).acquire(blocking=False)
    except Timeout as error:
        why = f"another training run uses {folder}; wait for its end or stop it"
        raise CheckpointError(why) from error
    with lock:
        yield


def write_json(file: Path, content: Any) -> None:
    """Write an indented JSON file."""
    files.write(file, (json.dumps(content, indent=2, default=str) + "\n").encode())
