"""Fixtures for the tests of the examples."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.helpers import ROOT


@pytest.fixture
def no_measuring(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], None]:
    """Return a function that makes an example print 25 % as its strength, because measuring takes longest."""
    return lambda example: monkeypatch.setattr(example, "evaluate", lambda *_: SimpleNamespace(share=0.25))


@pytest.fixture
def run_example(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[str, str], str]:
    """Return a function `run(name, options)` that runs an example as a script, and returns what it prints."""
    import runpy

    def run(name: str, options: str) -> str:
        monkeypatch.chdir(ROOT)
        monkeypatch.setattr(sys, "argv", [f"examples/{name}.py", *shlex.split(options)])
        runpy.run_path(f"examples/{name}.py", run_name="__main__")
        return capsys.readouterr().out

    return run


@pytest.fixture
def save_and_measure(run_example: Callable[[str, str], str], tmp_path: Path) -> Callable[[str, str], None]:
    """Return a function that trains by an example, and then runs the two commands that the example prints."""
    from typer.testing import CliRunner

    from wotd_env.cli import app

    def run(name: str, options: str) -> None:
        file = tmp_path / "the network.zip"  # a name that a shell would split
        lines = run_example(
            name, f"{options} --evaluation-games 4 --save {shlex.quote(str(file))}"
        ).splitlines()
        assert file.is_file()
        arena, benchmark = (shlex.split(line) for line in lines[-2:])
        assert (arena[:2], benchmark[:2]) == (["wotd", "arena"], ["wotd", "benchmark"])
        small = ["--games", "4", "--quiet"]
        stored = ["--workers", "0", "--file", str(tmp_path / "arena.sqlite")]
        for command in ([*arena[1:], *small, *stored], [*benchmark[1:], *small, "--size", "2"]):
            result = CliRunner().invoke(app, command)
            assert result.exit_code == 0, result.output  # 3 if the policy forfeits games

    return run
