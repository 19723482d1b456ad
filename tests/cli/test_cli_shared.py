"""Shared parts of the commands: interruptions, progress bars, unwritable files and failing policies."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers import ROOT
from tests.helpers.commands import wotd
from wotd_env.cli import FAILED, INTERRUPTED, WRONG_USE, common
from wotd_env.cli.common import say


def interrupt(*arguments, **options):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "where", "expected"),
    [
        ("policies", "wotd_env.cli.policies.files", "Interrupted.\n"),
        ("speed", "wotd_env.speed.rate", "Interrupted.\n"),
        ("watch first", "wotd_env.cli.watch.show_game", "Interrupted.\n"),
        ("analyze first --table a.wotd --quiet", "wotd_env.solver.load", "Interrupted.\n"),
        ("solve --verify a.wotd --quiet", "wotd_env.solver.verify", "Interrupted.\n"),
        (
            "solve --spaces 0 --quiet",
            "wotd_env.solver.solve",
            "Interrupted. Finished layers are saved; run the same command to continue.\n",
        ),
        (
            "arena first random --quiet",
            "wotd_env.arena.run",
            "Interrupted. Finished games are saved in arena.sqlite; run the same command to continue.\n",
        ),
        (
            "arena first random --quiet --fresh --file a.sqlite",
            "wotd_env.arena.run",
            "Interrupted. Finished games are saved in a.sqlite; run the same command without --fresh to continue.\n",
        ),
    ],
)
def test_interrupted_commands_say_how_to_continue(monkeypatch, arguments, where, expected):
    monkeypatch.setattr("wotd_env.policies.oracle.Oracle.table", lambda self, game: None)
    monkeypatch.setattr(where, interrupt)
    result = wotd(arguments)
    assert result.exit_code == INTERRUPTED
    assert result.stderr == expected


@pytest.mark.parametrize(
    ("unit", "steps", "end"),
    [
        (
            "games",
            [(0, 20_000_000), (10_000_000, 20_000_000), (20_000_000, 20_000_000)],
            "games, 10,000,000/s, took",
        ),
        ("games", [(512, 1024), (1024, 1024)], "games, 512/s, took"),
        ("games", [(1024, 1024)], "games, took"),  # nothing left to play
        ("positions", [(4_000_000, 2_147_483_647), (2_147_483_647,) * 2], "positions, 2,143,483,647/s, took"),
        (
            "games of " + "a" * 100,
            [(256, 10_000_000), (10_000_000,) * 2],
            f"games of {'a' * 14}…, 9,999,744/s, took",
        ),
    ],
)
def test_a_progress_bar_fits_a_line_and_shows_the_average_rate(monkeypatch, capsys, unit, steps, end):
    monkeypatch.setenv("COLUMNS", "80")
    clock = iter(range(100))

    class Time:
        monotonic = staticmethod(lambda: next(clock))  # each step takes a second

    monkeypatch.setattr(common, "time", Time)
    with common.progress_bar(unit) as move:
        for done, total in steps:
            move(done, total)
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line.rstrip()) <= 80
    done = steps[-1][0]
    assert f"{done}/{done}" in line
    assert "━" * 5 in line
    assert " 0/s" not in line
    assert line.rstrip().endswith(f"{end} 0:00:00")


@pytest.mark.parametrize("quiet", [False, True])
def test_progress_in_a_file_is_a_line_every_ten_seconds(monkeypatch, capsys, quiet):
    clock = iter(range(0, 100, 4))  # each step takes four seconds

    class Time:
        monotonic = staticmethod(lambda: next(clock))

    monkeypatch.setattr(common, "time", Time)
    with common.progress_bar("games", quiet) as move:
        for done in range(0, 9_000, 1_000):
            move(done, 8_000)
    printed = capsys.readouterr().err
    if quiet:
        assert printed == ""
        return
    *lines, bar = printed.splitlines()
    assert lines == ["3,000 of 8,000 games, 250/s", "6,000 of 8,000 games, 250/s"]
    assert "8000/8000" in bar


def test_check_writable_does_not_change_files(tmp_path):
    old = tmp_path / "old.json"
    old.write_text("old")
    os.utime(old, (1, 1))
    (tmp_path / "link.json").symlink_to("new.json")
    before = sorted(tmp_path.iterdir())
    for name in ("old.json", "new.json", "link.json"):
        common.check_writable(tmp_path / name, ".json")
    assert sorted(tmp_path.iterdir()) == before
    assert old.read_text() == "old"
    assert old.stat().st_mtime == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("a.txt", r"must end in \.json, got a\.txt"),
        ("nowhere/a.json", "nowhere/a.json cannot be written: no folder nowhere"),
        ("old.json/a.json", "old.json/a.json cannot be written: no folder old.json"),
        ("old.json/deeper/a.json", "a.json cannot be written: no folder old.json/deeper"),
        ("folder.json", "folder.json cannot be written: it exists and is not a regular file"),
        ("pipe.json", "pipe.json cannot be written: it exists and is not a regular file"),
        ("link.json", "link.json cannot be written: no folder ."),
        ("a" * 300 + ".json", "a.json cannot be written: File name too long"),
        ("/proc/a.json", "/proc/a.json cannot be written: "),
    ],
)
def test_check_writable_refuses_unwritable_files(name, message):
    Path("old.json").write_text("old")
    Path("folder.json").mkdir()
    os.mkfifo("pipe.json")
    Path("link.json").symlink_to("nowhere/a.json")
    before = sorted(Path.cwd().iterdir())
    with pytest.raises((OSError, ValueError), match=message):
        common.check_writable(Path(name), ".json")
    assert sorted(Path.cwd().iterdir()) == before


def test_check_writable_refuses_missing_permissions(powerless):
    file, folder = powerless / "old.json", powerless / "folder"
    file.write_text("old")
    file.chmod(0o400)
    folder.mkdir(0o500)
    for target in (file, folder / "new.json"):
        with pytest.raises(PermissionError, match=r"\.json cannot be written: Permission denied"):
            common.check_writable(target, ".json")


@pytest.mark.parametrize(
    ("command", "option", "name", "writer"),
    [
        ("arena first random --games 2 --workers 0", "--out", "a.json", "wotd_env.arena.show.write"),
        ("arena first random --games 2 --workers 0", "--plot", "a.svg", "matplotlib.figure.Figure.savefig"),
        ("analyze first --games 2", "--out", "a.json", "pathlib.Path.write_bytes"),
        ("analyze first --games 2", "--plot", "a.svg", "matplotlib.figure.Figure.savefig"),
    ],
)
def test_old_results_survive_a_full_disk(tmp_path, monkeypatch, command, option, name, writer):
    def half(*arguments, **options):
        (file,) = (each for each in arguments if isinstance(each, Path))
        file.write_text("half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = tmp_path / "results" / name
    file.parent.mkdir()
    file.write_text("old")
    monkeypatch.setattr(writer, half)
    result = wotd(f"{command} --spaces 0 --quiet {option}", file)
    assert result.exit_code == FAILED
    assert result.stderr == f"Error: {file}: No space left on device\n"
    assert [*file.parent.iterdir()] == [file]
    assert file.read_text() == "old"


@pytest.mark.parametrize("option", ["--out", "--plot"])
def test_arena_checks_output_files_before_playing(monkeypatch, option):
    monkeypatch.setattr("wotd_env.arena.run", interrupt)
    ending = {"--out": "json", "--plot": "png"}[option]
    Path(f"a.{ending}").mkdir()
    result = wotd(f"arena first random {option} a.{ending}")
    assert result.exit_code == WRONG_USE
    assert f"a.{ending} cannot be written: it exists and is not a regular file" in result.stderr
    result = wotd(f"arena first random {option} b.{ending} --file ./b.{ending}")
    assert result.exit_code == WRONG_USE
    assert f"b.{ending} is the file of the games" in result.stderr


@pytest.mark.parametrize("module", ["scipy", "choix"])
def test_arena_names_its_missing_extra(module):
    code = f"import sys; sys.modules['{module}'] = None; from wotd_env.cli import main; main()"
    command = [sys.executable, "-c", code, "arena", "random", "first"]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == WRONG_USE
    assert done.stderr.startswith("Error: a tournament needs ")
    assert "part of the extra arena: pip install 'wotd-env[arena]'" in " ".join(done.stderr.split())


def test_arena_shows_the_traceback_of_a_broken_policy():
    result = wotd("arena first tests.helpers.arena_policies:Broken --workers 0 --quiet")
    assert result.exit_code == FAILED
    assert result.stderr.startswith(
        "Error: policy 'tests.helpers.arena_policies:Broken' failed in its first decision: "
    )
    assert "in _helper" in result.stderr
    assert isinstance(result.exception, SystemExit)


@pytest.mark.parametrize(
    "command",
    ["watch {} --spaces 0", "record {} --games 2 --quiet", "analyze {} --spaces 0 --games 2 --quiet"],
)
@pytest.mark.parametrize(
    ("policy", "expected", "traced"),
    [
        ("Broken", "ZeroDivisionError: nothing can be divided by it\n\nTraceback", "in _helper"),
        ("Raises", "KeyError: 'turn four'\n\nTraceback", 'raise KeyError("turn four")'),
        ("Nonsense", "game 0: action 999", None),
        ("Malformed", "actions must", None),
    ],
)
def test_errors_name_the_failing_policy_and_show_its_traceback(command, policy, expected, traced):
    pytest.importorskip("pyarrow")
    name = f"tests.helpers.arena_policies:{policy}"
    result = wotd(command.format(name))
    assert result.exit_code == FAILED
    *_, message = result.stderr.partition("Error: ")
    assert message.startswith(f"policy {name!r} failed: {expected}")
    assert message.count("Traceback") == (traced is not None)
    assert (traced or "") in message
    assert "wotd_env/" not in message


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two three four five six", ["one two three four", "five six"]),
        ("e2   move on earth, to space 2", ["e2   move on earth,", "to space 2"]),
        ("a-word-longer-than-the-line", ["a-word-longer-than-the-line"]),
        ("short\n\nlines stay", ["short", "", "lines stay"]),
    ],
)
def test_lines_are_wrapped_between_words_only_on_a_terminal(text, shown, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    say(text)
    assert capsys.readouterr().out.splitlines() == shown
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    say(text)
    assert capsys.readouterr().out == f"{text}\n"  # scripts read whole lines
