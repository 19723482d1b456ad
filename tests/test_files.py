"""Files are replaced atomically: completely or not at all."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from wotd_env import files


def test_write_replaces_the_content_and_leaves_no_temporary_file(tmp_path: Path):
    file = tmp_path / "a.txt"
    files.write(file, b"old")
    files.write(file, b"new", sync=False)
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_errors_keep_the_old_file_and_leave_no_temporary_file(tmp_path: Path, error: type[BaseException]):
    file = tmp_path / "a.svg"
    file.write_bytes(b"old")

    def write_half() -> None:
        with files.replacing(file) as part:
            part.write_bytes(b"half")
            assert part.suffix == ".svg"
            raise error

    with pytest.raises(error):
        write_half()
    assert file.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [file]


def test_concurrent_writers_use_different_temporary_files(tmp_path: Path):
    file = tmp_path / "a"
    with files.replacing(file) as one, files.replacing(file) as other:
        assert one != other
        one.write_bytes(b"first")
        other.write_bytes(b"last")
    assert file.read_bytes() == b"first"  # the outer block ends last


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no flock")
def test_the_next_write_removes_the_file_of_a_killed_writer(tmp_path: Path):
    file = tmp_path / "a.txt"
    code = f"""
import os, pathlib
from wotd_env import files
with files.replacing(pathlib.Path({str(file)!r})) as part:
    part.write_text("half")
    os.kill(os.getpid(), {signal.SIGKILL})
"""
    assert subprocess.run([sys.executable, "-c", code]).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    others = [tmp_path / f"{left.name}.txt", tmp_path / f"{files.PART}mine-a.txt", tmp_path / "a"]
    for other in others:
        other.write_text("mine")
    files.write(tmp_path / "a", b"the file with another name")
    assert left.exists()
    with files.replacing(file) as living:
        living.write_text("first")
        files.write(file, b"second")
        assert living.read_text() == "first"
    assert file.read_text() == "first"
    assert sorted(tmp_path.iterdir()) == sorted([file, *others])


def test_write_through_a_symlink_replaces_its_target(tmp_path: Path):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)
    files.write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_errors_name_the_file_not_the_temporary_file(tmp_path: Path):
    file = tmp_path / "nowhere" / "a"
    with pytest.raises(FileNotFoundError) as missing:
        files.write(file, b"")
    assert missing.value.filename == str(file)
    with pytest.raises(OSError, match="No space") as full, files.replacing(tmp_path / "a"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert full.value.filename == str(tmp_path / "a")
    with pytest.raises(FileNotFoundError) as other, files.replacing(tmp_path / "a"):
        (tmp_path / "input").read_bytes()
    assert other.value.filename == str(tmp_path / "input")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs the user database of POSIX")
@pytest.mark.parametrize(
    "call",
    [
        "from wotd_env import solver; solver.solve(0, solver.cache_file(0))",
        "import sys; sys.argv = ['wotd', 'serve', '--policy', 'x']; from wotd_env.cli import main; main()",
    ],
    ids=["table", "games of the server"],
)
def test_a_missing_home_is_named_and_makes_no_folder(tmp_path: Path, call: str):
    script = (
        "import os, pwd\n"
        "def getpwuid(number): raise KeyError(number)\n"
        "pwd.getpwuid = getpwuid\n"
        "for name in ('HOME', 'XDG_CACHE_HOME', 'XDG_DATA_HOME'): os.environ.pop(name, None)\n"
    )
    done = subprocess.run([sys.executable, "-c", script + call], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode
    assert "could not determine the home directory" in done.stderr
    assert not list(tmp_path.iterdir())
