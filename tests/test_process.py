"""Commands survive their surroundings: streams that take no output, user files named like modules, full disks."""

import errno
import os
import shlex
import sqlite3
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.helpers import ROOT
from wotd_env import Rules
from wotd_env.arena import Tournament, run
from wotd_env.process import FAILED, WRONG_USE, exit_code, shell_command, without_current_folder

PROGRAM = """
import sys
from wotd_env.process import prepare_streams
prepare_streams()
for stream in (sys.stdout, sys.stderr):
    print("±" * 100_000, file=stream, flush=True)
    print("\\ud800", file=stream)
sys.stdin.read()
open(sys.argv[1], "w").close()
"""


def surrounded(file: Path, *flags: str, **options) -> int:
    """Run the program; return its exit code."""
    command = [sys.executable, *flags, "-c", PROGRAM, str(file)]
    environment = {**os.environ, **options.pop("env", {})}
    return subprocess.run(command, cwd=ROOT, env=environment, check=False, **options).returncode


@pytest.mark.parametrize("flags", [[], ["-u"]], ids=["buffered", "unbuffered"])
@pytest.mark.parametrize("surroundings", ["closed pipe", "full device", "no streams", "ascii", "cp866"])
def test_streams_never_end_a_program(tmp_path, flags, surroundings):
    file = tmp_path / "finished"
    if surroundings == "closed pipe":
        reader, writer = os.pipe()
        os.close(reader)
        code = surrounded(file, *flags, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
        os.close(writer)
    elif surroundings == "full device":
        if not Path("/dev/full").exists():
            pytest.skip("this system has no full device")
        with open("/dev/full", "w") as full:
            code = surrounded(file, *flags, stdin=subprocess.DEVNULL, stdout=full, stderr=full)
    elif surroundings == "no streams":
        words = shlex.join([sys.executable, *flags, "-c", PROGRAM, str(file)])
        code = subprocess.run(f"{words} <&- >&- 2>&-", shell=True, cwd=ROOT, check=False).returncode
    else:
        env = {"PYTHONIOENCODING": surroundings, "PYTHONUTF8": "0"}
        code = surrounded(file, *flags, env=env, input=b"\xff\xb1", capture_output=True)
    assert code == 0
    assert file.exists()


def test_an_unknown_width_loses_no_output():
    program = (
        "from rich import print; from wotd_env.process import prepare_streams; prepare_streams(); print(1)"
    )
    words, environment = [sys.executable, "-c", program], {**os.environ, "COLUMNS": "0"}
    assert subprocess.check_output(words, cwd=ROOT, env=environment) == b"1\n"


def test_lost_output_is_reported():
    program = PROGRAM.rpartition("open(")[0]
    if not Path("/dev/full").exists():
        pytest.skip("this system has no full device")
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=full,
            stderr=subprocess.PIPE, check=True, encoding="utf-8",
        )  # fmt: skip
    assert done.stderr.count("Warning: the output is incomplete: No space left on device") == 1


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


def full_database() -> Exception:
    connection = sqlite3.connect(":memory:")
    connection.execute("PRAGMA max_page_count = 1")
    try:
        connection.execute("CREATE TABLE numbers (number)")
    except sqlite3.OperationalError as error:
        return error
    finally:
        connection.close()
    raise AssertionError("the database is not full")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "no space"), FAILED),
        (OSError(errno.EDQUOT, "no quota"), FAILED),
        (OSError(errno.EIO, "broken disk"), FAILED),
        (caused(OSError("games.parquet cannot be written"), OSError(errno.ENOSPC, "no space")), FAILED),
        (caused(ValueError("policy cannot be made"), OSError(errno.EMFILE, "too many files")), FAILED),
        (caused(ValueError("it cannot be used"), full_database()), FAILED),
        (FileNotFoundError(errno.ENOENT, "no file"), WRONG_USE),
        (PermissionError(errno.EACCES, "not allowed"), WRONG_USE),
        (OSError("cannot listen"), WRONG_USE),
        (ValueError("wrong"), WRONG_USE),
    ],
)
def test_exit_codes_separate_failures_from_wrong_use(error, code):
    assert exit_code(error) == code


@pytest.mark.parametrize(
    "name", ["a.txt", "my game's file.txt", "$(touch x).txt", "`a`;b", 'a"b\\', "-o", "a\nb"]
)
def test_shell_commands_keep_words_whole(name):
    words = shlex.split(shell_command("wotd", "--out", Path(name)))
    assert words[:2] == ["wotd", "--out"]
    assert Path(words[2]) == Path(name)
    assert not words[2].startswith("-")


@pytest.fixture
def shadowed(tmp_path, monkeypatch):
    """Change to a folder with a file for every module of the standard library."""
    for name in filter(find_spec, sys.stdlib_module_names - {"__main__"}):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the user was imported')")
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("shadowed")
def test_files_of_the_user_do_not_break_workers():
    tournament = Tournament(("first", "random"), Rules(spaces=0), games=4)
    assert run(tournament, workers=1).to_dict() == run(tournament, workers=0).to_dict()


@pytest.mark.usefixtures("shadowed")
def test_the_command_can_be_used_among_files_named_like_modules(tmp_path_factory):
    script = tmp_path_factory.mktemp("scripts") / "wotd"
    script.write_text("from wotd_env.cli import main\n\nif __name__ == '__main__':\n    main()\n")
    arguments = ["arena", "first", "random", "--spaces", "0", "--games", "4", "--workers", "1", "--quiet"]
    done = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "file of the user" not in done.stdout + done.stderr


def test_programs_started_later_find_the_modules_of_the_current_folder(tmp_path, monkeypatch):
    monkeypatch.delenv("PYTHONSAFEPATH", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text("")
    command = [sys.executable, "-c", "import own"]
    with without_current_folder():
        with without_current_folder():
            assert subprocess.run(command, capture_output=True, check=False).returncode == 1
        assert subprocess.run(command, capture_output=True, check=False).returncode == 1
    assert subprocess.run(command, check=False).returncode == 0


def test_an_own_safe_path_is_kept(monkeypatch):
    monkeypatch.setenv("PYTHONSAFEPATH", "1")
    with without_current_folder():
        pass
    assert os.environ["PYTHONSAFEPATH"] == "1"


def test_an_error_that_is_its_own_cause_has_an_exit_code():
    error = ValueError("wrong")
    error.__cause__ = error
    assert exit_code(error) == WRONG_USE
