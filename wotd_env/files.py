"""Atomic writes: a reader finds either the old content or the complete new content of a file."""

from __future__ import annotations

import glob
import os
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART = ".part-"
"""Prefix of the names of temporary files. A killed process leaves its temporary file behind until the next write."""


@contextmanager
def replacing(file: Path, *, sync: bool = True) -> Iterator[Path]:
    """Yield the path of an empty temporary file, which replaces `file` after the `with` block.

    The path is unique and has the suffix of `file`. After an error `file` is unchanged, and the temporary file is
    removed. Temporary files for `file` that killed processes left behind are removed too, except on Windows. If `file`
    is a symbolic link, the target of the link is replaced. If `sync` is true, the new content is flushed to the disk
    before the replacement, so that the content survives a power failure.

    Raises:
        OSError: if `file` cannot be written; the error names `file`.
    """
    target = file.resolve()
    part = target.with_name(f"{PART}{uuid.uuid4().hex}-{target.name}")
    try:
        with _created(part):
            _remove_abandoned(target)
            yield part
            if sync:
                with part.open("r+b") as stream:
                    os.fsync(stream.fileno())
            part.replace(target)
    except OSError as error:
        if error.errno is None or error.filename not in (None, part, str(part)):
            raise  # the error is about a file other than `part`
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def _created(part: Path) -> Iterator[None]:
    """Create a file, and lock it during the `with` block. The lock shows other writers that this writer is alive."""
    while sys.platform != "win32":  # Windows cannot rename an open file
        # With any umask, only this user can write to the file. The permissions of the folder decide who can replace it.
        with open(part, "xb", opener=lambda path, flags: os.open(path, flags, 0o644)) as stream:
            with suppress(OSError):  # some network file systems have no locks; nobody removes files there
                fcntl.flock(stream, fcntl.LOCK_EX)
            if part.exists():  # another writer can remove the file before it is locked
                yield
                return
    yield


def _remove_abandoned(target: Path) -> None:
    """Remove the temporary files for `target` whose writers have died."""
    if sys.platform == "win32":
        return
    for part in target.parent.glob(f"{PART}{'[0-9a-f]' * 32}-{glob.escape(target.name)}"):
        with suppress(OSError), part.open("rb") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises OSError while the writer lives
            part.unlink()


def write(file: Path, content: bytes, *, sync: bool = True) -> None:
    """Write `content` to a file atomically."""
    with replacing(file, sync=sync) as part:
        part.write_bytes(content)


def save_figure(figure: Figure, file: str | Path) -> None:
    """Write a figure to a file. The suffix of `file` selects the format. Equal figures give identical files."""
    import matplotlib as mpl

    date = {".svg": "Date", ".pdf": "CreationDate"}.get(Path(file).suffix)
    with mpl.rc_context({"svg.hashsalt": "wotd-env"}), replacing(Path(file)) as part:
        figure.savefig(part, dpi=120, metadata={date: None} if date else None)
