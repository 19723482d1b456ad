"""Small training runs for the tests, and tools to damage and compare their files."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch as th

from agents import checkpoint, command, ppo, sb3, td
from agents.runs import LEARNERS, Run
from wotd_env import STATE, Rules

TINY_PPO = ppo.Settings(
    rules=Rules(spaces=1),
    updates=4,
    milestones=2,
    games=8,
    steps=4,
    batch_size=16,
    width=8,
    epochs=1,
    critic_turns=64,
    milestone_games=5,
    final_games=5,
    threads=1,
)

TINY_SB3 = dataclasses.replace(
    sb3.PRESETS["quick"],
    rules=Rules(spaces=1),
    updates=4,
    milestones=2,
    games=8,
    steps=16,
    batch_size=64,
    width=8,
    milestone_games=5,
    final_games=5,
)

TINY_TD = td.Settings(
    rules=Rules(spaces=1),
    updates=6,
    milestones=2,
    games=16,
    turns=4,
    replay=2,
    batches=3,
    batch_size=32,
    width=32,
    milestone_games=5,
    final_games=5,
    threads=1,
)

VARIANTS = [
    Rules(spaces=3),
    Rules(players=3, spaces=3, powers="any"),
    Rules(players=5, spaces=3, powers="own", immunity=True, colors="random"),
    Rules(players=4, spaces=3, dead_pieces=5, start="loser"),
]
"""Rules of all kinds."""


def kind_of_run(settings: Any) -> Any:
    """Return the class of the training runs with these settings."""
    return sys.modules[type(settings).__module__].Run


def trained(settings: Any, folder: Path, **changes: Any) -> Any:
    """Train a run to its end without measurements; return it."""
    run = kind_of_run(settings)(dataclasses.replace(settings, folder=folder, **changes)).begin()
    run.train(lambda run: None)
    return run


def resumed(run: Any, **changes: Any) -> Any:
    """Resume a run from its folder with changed settings; return it."""
    return type(run).resume(dataclasses.replace(run.read_settings(run.folder), **changes))


def arguments(settings: Any, folder: Path) -> list[str]:
    """Return the command line for settings whose rules differ from the default only in the number of spaces."""
    words = [kind_of_run(settings).learner, "--folder", str(folder), "--spaces", str(settings.rules.spaces)]
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value != field.default and field.name not in ("rules", "folder", "resume"):
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return words


def same(one: Run, other: Run) -> bool:
    """Return whether two runs have the same training state and curve."""
    measured = [[row._replace(seconds=0) for row in run.curve] for run in (one, other)]
    return _equal(one.parts(), other.parts()) and measured[0] == measured[1]


def _equal(one: Any, other: Any) -> bool:
    if isinstance(one, th.Tensor):
        return bool(one.equal(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


def contents(folder: Path) -> dict[str, bytes]:
    """Return the contents of the files in a folder by name."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Resume a run, which must fail with one line and change nothing; return that line."""
    before = contents(folder)
    assert command.main(["--resume", str(folder), *options]) == 2
    message = capsys.readouterr().err
    assert message.startswith("train.py: error: ")
    assert message.count("\n") == 1
    assert str(folder) in message
    assert contents(folder) | {".lock": b""} == before | {".lock": b""}
    return message


def rejected(
    words: list[str], capsys: pytest.CaptureFixture[str], learners: dict[str, str] = LEARNERS
) -> str:
    """Run `train.py`, which must exit with 2, and return its output in one line."""
    try:
        code: Any = command.main(words, learners)
    except SystemExit as stop:  # raised by the parser
        code = stop.code
    assert code == 2
    output = capsys.readouterr()
    return " ".join((output.out + output.err).replace("│", "").split())


def flip(path: Path) -> None:
    """Damage a file."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)


def change_checkpoint(folder: Path, change: Callable[[Any], Any]) -> None:
    """Change the content of a checkpoint and keep its digest valid, as an attacker could."""
    content = checkpoint.load(folder / "checkpoint.pt")
    change(content)
    checkpoint.save(folder / "checkpoint.pt", content)


def put(value: Any, *where: Any) -> Callable[[Any], None]:
    """Return a function that changes one value of a checkpoint."""

    def change(content: Any) -> None:
        for key in where[:-1]:
            content = content[key]
        content[where[-1]] = value

    return change


def in_games(field: str, value: Any) -> Callable[[Any], None]:
    """Return a function that changes a field of the third game of a checkpoint."""

    def change(content: Any) -> None:
        content["state"].numpy().view(STATE)[field][2] = value

    return change


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """Limit the size of all files, in bytes, to simulate a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
