"""Files are replaced whole or not at all."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from wotd_env import files


def test_a_written_file_has_the_new_content_and_no_part_is_left(tmp_path: Path):
    file = tmp_path / "a.txt"
    files.write(file, b"old")
    files.write(file, b"new", sync=False)
    assert file.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_and_no_part(tmp_path: Path, error: type[BaseException]):
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


def test_two_writers_of_one_file_do_not_share_a_part(tmp_path: Path):
    file = tmp_path / "a"
    with files.replacing(file) as one, files.replacing(file) as other:
        assert one != other
        one.write_bytes(b"first")
        other.write_bytes(b"last")
    assert file.read_bytes() == b"first"  # the outer block ends last


def test_the_target_of_a_link_is_replaced(tmp_path: Path):
    target, link = tmp_path / "folder" / "target", tmp_path / "link"
    target.parent.mkdir()
    link.symlink_to(target)
    files.write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"


def test_errors_name_the_file_and_not_its_part(tmp_path: Path):
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
