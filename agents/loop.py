"""The loop of all training runs: start or resume, update, measure at milestones, save, finish.

A learner is a module with `Settings`, `PRESETS` and a class `Learner`, which has the methods of the protocol below.
docs/reference/training.md lists the files of a run folder.
"""

import importlib
import json
import os
import platform
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar, Protocol

import torch as th
from filelock import FileLock, Timeout
from torch.utils.tensorboard import SummaryWriter

import wotd_env
from agents import checkpoint, evaluate
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.evaluate import FINAL, MEASURING, Measurement
from agents.settings import REPEATED, SettingError, kept
from wotd_env import Game, Rules, files, make_policy
from wotd_env.evaluation import Evaluation, match
from wotd_env.policy import Policy

LEARNERS = {"ppo": "agents.ppo", "td": "agents.td", "sb3": "agents.sb3"}
"""The modules of the learners; the first one is the default."""

REFERENCES = ("random", "greedy", "planner")  # the opponents in measurements, the strongest last
RESULT, REPLAY, LOCK = "result.json", "game.html", ".lock"
OF_THE_END = (RESULT, REPLAY, "value.npz", "model.onnx", "model.zip")  # files of a finished or stopped run
PACKAGES = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")


class Learner(Protocol):
    """A learner. Everything random in an update must follow from the seed and the number of the update."""

    unit: ClassVar[str]  # the unit of progress, such as "decisions"
    fixed: ClassVar[tuple[str, ...]]  # names of the settings that cannot change when a run is resumed
    per_update: int  # units of progress per update

    def update(self, number: int) -> dict[str, float]:
        """Play and learn; return named numbers for TensorBoard."""

    def policy(self) -> Policy:
        """Return the policy to measure."""

    def tensors(self) -> dict[str, th.Tensor]:
        """Return everything that a resumed run needs, as live tensors: a checkpoint is copied into them."""

    def check(self) -> None:
        """Raise ValueError if tensors from a checkpoint contain impossible values."""

    def export(self, folder: Path) -> None:
        """Write the learned policy to files, at the end of training or when it is stopped."""


class Stopped(Exception):
    """Training was stopped on request. The checkpoint of the run has been written."""


@dataclass
class Run:
    """A training run and its progress."""

    name: str  # of the learner
    settings: Any
    learner: Learner
    updates: int = 0  # number of finished updates
    seconds: float = 0.0  # wall-clock time of these updates
    curve: list[Measurement] = field(default_factory=list)
    stop: bool = False  # set it to True to save the run and stop after the current update

    @property
    def folder(self) -> Path:
        """The run folder."""
        return Path(self.settings.folder)

    @property
    def done(self) -> int:
        """Number of decisions or turns that the run has learned from."""
        return self.updates * self.learner.per_update

    @property
    def total(self) -> int:
        """Number of decisions or turns that the finished run will have learned from."""
        return int(self.settings.updates) * self.learner.per_update

    @property
    def milestone(self) -> int:
        """Number of the last milestone; milestone 0 is the untrained network."""
        updates, milestones = int(self.settings.updates), int(self.settings.milestones)
        return min(self.updates, updates) * milestones // updates


@contextmanager
def opened(name: str, settings: Any) -> Iterator[Run]:
    """Lock the run folder, and yield the run: the resumed run in `settings.resume`, or a new run in `settings.folder`.

    Raises:
        CheckpointError: if another training run uses the folder, or the run cannot be resumed.
        SettingError: if a setting names a policy or device that cannot be used.
        OSError: if the folder of a new run is not empty, or if the folder cannot be written to.
    """
    if settings.resume:
        with locked(settings.resume):
            yield _resume(name, settings)
    else:
        # Wrong settings raise an error here, before the folder is made.
        run = Run(name, settings, module_of(name).Learner(settings))
        _make_folder(run.folder)
        with locked(run.folder):
            _make_folder(run.folder)  # raises if another run has started in this folder
            save(run)
            _write_config(run)
            yield run


def module_of(name: str) -> Any:
    """Return the module of a learner."""
    return importlib.import_module(LEARNERS[name])


def read_settings(name: str, folder: Path) -> Any:
    """Return the settings of the run in a folder, to resume the run.

    A setting that the checkpoint lacks, or that names a policy, gets its default value.

    Raises:
        CheckpointError: if the checkpoint cannot be used, or its settings are not those of the learner.
    """
    kind = module_of(name).Settings
    path = folder / CHECKPOINT
    saved = checkpoint.load(path)[1].get("settings")
    try:
        usual = kept(kind())
        if not isinstance(saved, dict) or not saved.keys() <= usual.keys():
            raise ValueError(f"settings must be a dict with keys among {', '.join(usual)}")
        values = {key: value for key, value in saved.items() if key not in REPEATED}
        for key, value in values.items():
            if not isinstance(value, float | int if isinstance(usual[key], float) else type(usual[key])):
                raise ValueError(f"{key} must be of type {type(usual[key]).__name__}, got {value!r}")
        rules = Rules.from_dict(values.pop("rules", None) or {})
        return kind(**values, rules=rules, resume=folder, folder=folder)
    except ValueError as error:
        raise checkpoint.unusable(path, error) from error


def _resume(name: str, settings: Any) -> Run:
    folder: Path = settings.resume
    path = folder / CHECKPOINT
    tensors, facts = checkpoint.load(path)
    if settings.folder != folder:
        raise CheckpointError(
            f"folder is {folder} and cannot change on resume, got {settings.folder}: omit --folder"
        )
    before = facts.get("settings", {})
    for setting in module_of(name).Learner.fixed:
        value, given = before.get(setting), kept(settings)[setting]
        if json.loads(json.dumps(given)) != value:
            cure = f"repeat --{setting} {value}" if setting in REPEATED else f"omit --{setting}"
            raise CheckpointError(
                f"{setting} is {value} in {folder} and cannot change on resume, got {given}: {cure}"
            )
    try:
        run = Run(name, settings, module_of(name).Learner(settings))
    except SettingError as error:
        raise CheckpointError(f"the run in {folder} cannot be resumed: {error}") from error
    try:
        checkpoint.restore(tensors, run.learner.tensors())
        run.learner.check()
        run.updates, run.seconds = int(facts["updates"]), float(facts["seconds"])
        run.curve = [Measurement(*row) for row in facts["curve"]]
    except (KeyError, RuntimeError, TypeError, ValueError) as error:
        raise checkpoint.unusable(path, error) from error
    save(run)
    if run.updates < settings.updates:
        for file in OF_THE_END:  # the run continues, so these files are out of date
            (folder / file).unlink(missing_ok=True)
    _write_config(run)
    return run


def _write_config(run: Run) -> None:
    """Write the settings and the versions of packages to `config.json`."""
    versions = {"wotd-env": wotd_env.__version__, "python": platform.python_version()}
    versions |= {package: version(package) for package in PACKAGES}
    machine = {"system": platform.platform(), "cores": os.cpu_count()}
    write_json(
        run.folder / "config.json",
        {"settings": asdict(run.settings), "versions": versions, "machine": machine},
    )


def _make_folder(folder: Path) -> None:
    """Make a run folder; raise FileExistsError if it contains files other than a lock and temporary files."""
    folder.mkdir(parents=True, exist_ok=True)
    if (folder / CHECKPOINT).exists():
        raise FileExistsError(f"folder {folder} already contains a run; resume it with --resume {folder}")
    names = sorted(path.name for path in folder.iterdir())
    if found := [name for name in names if name != LOCK and not name.startswith(files.PART)]:
        raise FileExistsError(f"folder {folder} is not empty, it contains {found[0]}; choose another folder")


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Lock a run folder; raise CheckpointError if another training run uses it."""
    try:
        lock = FileLock(folder / LOCK).acquire(blocking=False)
    except Timeout as error:
        raise CheckpointError(f"another training run uses {folder}; wait for its end or stop it") from error
    with lock:
        yield


def train(run: Run, progress: Callable[[Run], None]) -> None:
    """Train to the end and export. Call `progress(run)` before the first update, and after every update.

    Raises:
        Stopped: if `run.stop` is set.
        OSError: if a file cannot be written; the last checkpoint is intact.
    """
    updates = int(run.settings.updates)
    with _tensorboard(run) as board:
        if not run.curve or (run.updates >= updates and run.curve[-1].done < run.done):
            _measure(run, board)
        progress(run)
        while run.updates < updates:
            start, milestone = time.perf_counter(), run.milestone
            numbers = run.learner.update(run.updates)
            taken = time.perf_counter() - start
            run.updates += 1
            run.seconds += taken
            numbers = {f"train/{name}": value for name, value in numbers.items()}
            _log(
                board, run, numbers | {f"time/{run.learner.unit}_per_second": run.learner.per_update / taken}
            )
            if run.milestone > milestone:
                _measure(run, board)
            elif run.stop:
                save(run)
            if run.stop:
                break
            progress(run)
    run.learner.export(run.folder)
    if run.stop:
        raise Stopped


def _measure(run: Run, board: SummaryWriter) -> None:
    """Add a milestone to the learning curve, and save the run."""
    for name, result in strengths(run, run.settings.milestone_games, MEASURING).items():
        run.curve.append(Measurement(run.done, run.seconds, name, *result[:4]))
        share = result.wins / result.games
        _log(board, run, {f"strength/wins_against_{name}": share})
        board.add_scalar(f"strength_by_seconds/wins_against_{name}", share, int(run.seconds))
    with suppress(ImportError, OSError, ValueError):  # there is no table of these rules
        grades = evaluate.graded(run.learner.policy(), run.settings.rules, run.settings.milestone_games)
        _log(board, run, {"strength/regret": grades.regret})
    save(run)


def strengths(run: Run, games: int, seed: int) -> dict[str, Evaluation]:
    """Play at least `games` games against each reference; return a dict from the references to the results."""
    policy, game = run.learner.policy(), Game(run.settings.rules)
    return {name: match(game, policy, make_policy(name), games, seed) for name in references(run)}


def references(run: Run) -> tuple[str, ...]:
    """Return the names of the opponents in measurements, the strongest last."""
    against = getattr(run.settings, "against", "none")
    return REFERENCES if against == "none" else (against,)


def finish(run: Run) -> dict[str, Evaluation]:
    """Measure the trained network; write the results and the replay of a game; return the results."""
    evaluate.replay(Game(run.settings.rules), run.learner.policy()).save(run.folder / REPLAY)
    results = strengths(run, run.settings.final_games, FINAL)
    write_json(run.folder / RESULT, {name: result._asdict() for name, result in results.items()})
    return results


def save(run: Run) -> None:
    """Write the checkpoint and the learning curve."""
    facts = {
        "learner": run.name,
        "settings": kept(run.settings),
        "updates": run.updates,
        "seconds": run.seconds,
    }
    checkpoint.save(run.folder / CHECKPOINT, run.learner.tensors(), facts | {"curve": run.curve})
    files.write(run.folder / "curve.csv", evaluate.curve(run.curve, run.learner.unit).encode())


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


@contextmanager
def _tensorboard(run: Run) -> Iterator[SummaryWriter]:
    """Open TensorBoard's writer. Drop the values that a killed process wrote after its last save."""
    # Without this hook, TensorBoard's thread would print the same write error that this thread raises.
    hook, others = threading.excepthook, set(threading.enumerate())
    threading.excepthook = lambda args: None if args.exc_type is OSError else hook(args)
    board = None
    try:
        board = SummaryWriter(str(run.folder), purge_step=run.done)
        yield board
    finally:
        if board:
            board.close()
        for thread in set(threading.enumerate()) - others:  # the writer's thread needs the hook
            if thread.daemon:
                thread.join(timeout=1)
        threading.excepthook = hook


def _log(board: SummaryWriter, run: Run, values: dict[str, float]) -> None:
    for name, value in values.items():
        board.add_scalar(name, value, run.done)


def write_json(file: Path, content: Any) -> None:
    """Write an indented JSON file."""
    files.write(file, (json.dumps(content, indent=2, default=str) + "\n").encode())
