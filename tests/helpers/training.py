"""Small training runs for the tests, and tools to damage and compare their files."""

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch as th

from agents import checkpoint, command, loop, ppo, sb3, td
from agents.checkpoint import CHECKPOINT
from agents.loop import Run
from wotd_env import STATE, Rules

Change = Callable[[dict[str, th.Tensor], dict[str, Any]], Any]

FEW: dict[str, Any] = {"rules": Rules(spaces=1), "milestones": 2, "milestone_games": 5, "final_games": 5}

TINY_PPO = ppo.Settings(
    **FEW,
    updates=4,
    num_envs=8,
    num_steps=4,
    minibatch_size=16,
    width=8,
    update_epochs=1,
    critic_turns=64,
)

TINY_SB3 = sb3.Settings(
    **FEW, total_timesteps=512, num_envs=8, n_steps=16, batch_size=64, n_epochs=1, width=8
)

TINY_TD = td.Settings(**FEW, updates=6, games=16, turns=4, replay=2, batches=3, batch_size=32, width=32)

LEARNING_TD = dataclasses.replace(
    TINY_TD,
    rules=Rules(spaces=0),
    updates=60,
    games=512,
    turns=16,
    replay=8,
    batches=32,
    batch_size=1024,
    milestones=1,
)
"""Settings of a run that takes seconds and learns to play well."""

VARIANTS = [
    Rules(spaces=3),
    Rules(players=3, spaces=3, powers="any"),
    Rules(players=5, spaces=3, powers="own", immunity=True, colors="random"),
    Rules(players=4, spaces=3, dead_pieces=5, start="loser"),
]
"""Rules of all kinds."""


def learner_of(settings: Any) -> str:
    """Return the name of the learner with these settings."""
    return next(name for name, module in loop.LEARNERS.items() if module == type(settings).__module__)


@contextmanager
def started(settings: Any, folder: Path, **changes: Any) -> Iterator[Run]:
    """Start a run in a folder, and keep the folder locked."""
    with loop.opened(learner_of(settings), dataclasses.replace(settings, folder=folder, **changes)) as run:
        yield run


def trained(settings: Any, folder: Path, **changes: Any) -> Run:
    """Train a run to its end without the final measurement; return it."""
    with started(settings, folder, **changes) as run:
        loop.train(run, lambda run: None)
        return run


def settings_in(folder: Path) -> Any:
    """Return the settings of the run in a folder, to resume the run."""
    return loop.read_settings(str(checkpoint.load(folder / CHECKPOINT)[1]["learner"]), folder)


@contextmanager
def resumed(folder: Path, **changes: Any) -> Iterator[Run]:
    """Resume the run in a folder with changed settings."""
    settings = dataclasses.replace(settings_in(folder), **changes)
    with loop.opened(learner_of(settings), settings) as run:
        yield run


def arguments(settings: Any, folder: Path) -> list[str]:
    """Return the command line for settings whose rules differ from the default only in the number of spaces."""
    words = [learner_of(settings), "--folder", str(folder), "--spaces", str(settings.rules.spaces)]
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        if value != field.default and field.name not in ("rules", "folder", "resume"):
            words += [f"--{field.name.replace('_', '-')}", str(value)]
    return words


def same(one: Path, other: Path) -> bool:
    """Return whether two run folders have the same training state and curve."""
    (tensors, facts), (others, other_facts) = (
        checkpoint.load(folder / CHECKPOINT) for folder in (one, other)
    )
    # without the seconds
    curves = [[(row[0], *row[2:]) for row in each["curve"]] for each in (facts, other_facts)]
    equal = tensors.keys() == others.keys() and all(
        tensor.equal(others[name]) for name, tensor in tensors.items()
    )
    return equal and curves[0] == curves[1] and facts["updates"] == other_facts["updates"]


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


def rejected(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """Run `train.py`, which must exit with 2, and return its output in one line."""
    try:
        code: Any = command.main(words)
    except SystemExit as stop:  # raised by the parser
        code = stop.code
    assert code == 2
    output = capsys.readouterr()
    return " ".join((output.out + output.err).replace("│", "").split())


def change_checkpoint(folder: Path, change: Change) -> None:
    """Change the content of a checkpoint and keep its digest valid, as an attacker could."""
    tensors, facts = checkpoint.load(folder / CHECKPOINT)
    change(tensors, facts)
    checkpoint.save(folder / CHECKPOINT, tensors, facts)


def put(value: Any, *where: Any) -> Change:
    """Return a function that changes one of the facts of a checkpoint."""

    def change(tensors: dict[str, th.Tensor], facts: Any) -> None:
        for key in where[:-1]:
            facts = facts[key]
        facts[where[-1]] = value

    return change


def replace_tensor(name: str, value: th.Tensor) -> Change:
    """Return a function that replaces a tensor of a checkpoint."""
    return lambda tensors, facts: tensors.__setitem__(name, value)


def in_games(field: str, value: Any) -> Change:
    """Return a function that changes a field of the third game of a checkpoint."""

    def change(tensors: dict[str, th.Tensor], facts: Any) -> None:
        tensors["state"].numpy().view(STATE)[field][2] = value

    return change
