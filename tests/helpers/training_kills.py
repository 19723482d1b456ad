"""Kill training runs with SIGKILL and resume them: `python -m tests.helpers.training_kills FOLDER [NUMBER]`.

Each training run is a separate process, forked after all imports to save time. A process kills itself, either right
before it opens, renames or removes a file of the run, or at a given Python call, so the moments are reproducible.
"""

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import torch as th

from agents import command, ppo
from agents.checkpoint import CHECKPOINT
from tests.helpers.training import same
from wotd_env.policies import oracle

SETTINGS = (
    *("--updates", "2", "--milestones", "2", "--num-envs", "8", "--num-steps", "4", "--minibatch-size", "16"),
    *("--critic-turns", "32", "--width", "4", "--update-epochs", "1"),
    *("--milestone-games", "2", "--final-games", "2"),
    *("--spaces", "0"),  # short games
)


class Moment:
    """Counts possible moments for a kill and kills this process at one of them.

    Args:
        at: index of the moment; -1 means never.
    """

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self) -> None:
        """Count one moment, and kill the process if it is the chosen one."""
        self.count += 1
        if self.count - 1 == self.at:
            os.kill(os.getpid(), signal.SIGKILL)


def at_files(folder: Path, moment: Moment) -> None:
    """Count a moment each time this process opens, renames or removes a file of a folder."""

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event in ("open", "os.mkdir", "os.rename", "os.remove") and str(arguments[0]).startswith(
            str(folder)
        ):
            moment()

    sys.addaudithook(hook)


def at_calls(folder: Path, moment: Moment) -> None:
    """Count a moment at each Python call of this process."""

    def profile(frame: object, event: str, argument: object) -> None:
        if event == "call":
            moment()

    sys.setprofile(profile)


def start(
    folder: Path, arguments: list[str], count: Callable[[Path, Moment], None] | None = None, at: int = -1
) -> tuple[int, int]:
    """Start a training run in a new process; return its id and a pipe that yields its number of moments."""
    answer, answers = os.pipe()
    if not (process := os.fork()):
        code = 3
        try:
            output = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            moment = Moment(at)
            if count:
                count(folder, moment)
            code = command.main(arguments)
            sys.setprofile(None)
            os.write(answers, b"%d" % moment.count)
        finally:
            os._exit(code)
    os.close(answers)
    return process, answer


def train_on(folder: Path, count: Callable[[Path, Moment], None] | None = None, at: int = -1) -> int | None:
    """Start or resume a training run, as a user would.

    Returns:
        The number of moments, or None if the process was killed.
    """
    begin, resume = [*SETTINGS, "--folder", str(folder)], ["--resume", str(folder)]
    arguments = resume if (folder / CHECKPOINT).exists() else begin
    process, answer = start(folder, arguments, count, at)
    _, status = os.waitpid(process, 0)
    with open(answer, "rb") as reader:
        moments = reader.read()
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return None
    if status:
        raise SystemExit(f"{arguments} ended with {status}:\n{folder.with_suffix('.log').read_text()}")
    return int(moments)


def race(folder: Path) -> list[int]:
    """Start two training runs in one folder at the same time; return their sorted exit codes."""
    pairs = [start(folder, [*SETTINGS, "--folder", str(folder)]) for _ in range(2)]
    codes = []
    for process, answer in pairs:
        _, status = os.waitpid(process, 0)
        os.close(answer)
        codes.append(os.waitstatus_to_exitcode(status))
    return sorted(codes)


def main(folder: Path, number: int = 100) -> None:
    """Kill and resume `number` training runs, race a tenth as many, and print the results as JSON."""
    th.set_num_threads(1)
    # The export takes seconds each time and only writes one file at the end.
    vars(ppo)["to_onnx"] = lambda network: b"a network"
    vars(oracle)["AT_ONCE"] = -1  # solving the board would take seconds each time
    command.main([*SETTINGS, "--folder", str(folder / "warm")])
    files = train_on(folder / "whole", at_files)
    calls = train_on(folder / "calls", at_calls)
    if files is None or calls is None:
        raise SystemExit("an uninterrupted training run was killed")
    moments = [(at_files, at) for at in range(files)]
    spread = number - len(moments)
    moments += [(at_calls, (2 * i + 1) * calls // (2 * spread)) for i in range(spread)]
    kills, wrong = 0, []
    for count, at in moments[:number]:
        run = folder / "run"
        for _ in range(2):  # the second run may finish before its moment
            kills += train_on(run, count, at) is None
        train_on(run)
        if not same(folder / "whole", run):
            wrong.append(f"{count.__name__} {at}")
        shutil.rmtree(run)
    for i in range(number // 10):
        run = folder / f"race-{i}"
        if (codes := race(run)) != [0, 2] or not same(folder / "whole", run):
            wrong.append(f"{run.name} {codes}")
    print(json.dumps({"files": files, "calls": calls, "kills": kills, "wrong": wrong}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
