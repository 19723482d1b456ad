"""Requested files are complete before a command prints, and commands in messages can be pasted into a shell."""

import shlex
import sys
from pathlib import Path

import pytest
import typer
from rich.console import Console

from tests.helpers.commands import wotd
from wotd_env.cli import INTERRUPTED, WRONG_USE
from wotd_env.cli.common import say
from wotd_env.solver import storage


@pytest.mark.parametrize(
    ("command", "files"),
    [
        ("arena first random --games 4 --workers 0 --quiet", "--out a.json --out a.csv --plot a.svg"),
        ("analyze first --games 2 --quiet", "--out a.json --plot a.svg"),
        ("watch first", "--record a.txt"),
        ("record first --games 2 --quiet", "--out a.parquet"),
        ("positions --size 2 --quiet", "--out a.parquet"),
        ("solve --quiet", "--out a.wotd"),
        ("benchmark first --games 2 --size 2 --quiet", "--out a.json"),
    ],
)
def test_files_are_written_before_anything_is_printed(monkeypatch, command, files):
    wanted = [Path(word) for word in files.split() if not word.startswith("--")]
    printed = []

    def show(*arguments, **options):
        printed.append([file for file in wanted if not file.exists() or not file.stat().st_size])

    monkeypatch.setattr(typer, "echo", show)
    monkeypatch.setattr(Console, "print", show)
    spaces = "3" if command.startswith("benchmark") else "0"
    result = wotd(f"{command} --spaces {spaces} {files}")
    assert result.exit_code == 0, result.exception
    assert printed
    assert not any(printed)


@pytest.mark.parametrize("name", ["my game's file.txt", "$(touch x).txt", "a  b;c.txt"])
@pytest.mark.parametrize(
    ("ending", "code"), [("quit", 0), ("\x03", INTERRUPTED), ("other program", WRONG_USE)]
)
def test_the_command_that_continues_a_game_can_be_pasted(monkeypatch, name, ending, code):
    def change(prompt):
        if ending == "\x03":
            raise KeyboardInterrupt
        if ending == "other program":
            Path(name).write_text("changed")
            return "stop"
        return "quit"

    monkeypatch.setattr("builtins.input", change)
    result = wotd("play me first --spaces 0 --seed 0 --file", name)
    assert result.exit_code == code
    (line,) = (line for line in result.output.splitlines() if "wotd play --resume" in line)
    assert shlex.split(line[line.index("wotd play") :]) == ["wotd", "play", "--resume", name]


def test_the_command_that_solves_a_board_can_be_pasted():
    file = Path("my tables", "7's.wotd")
    assert shlex.split(storage.command(file))[-2:] == ["--out", str(file)]


def test_a_terminal_breaks_no_command(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    line = "The game is saved in a  b.txt; continue with: wotd play --resume 'a  b.txt'"
    say(f"a line of words that is wrapped\n{line}")
    assert capsys.readouterr().out.splitlines()[-1] == line
