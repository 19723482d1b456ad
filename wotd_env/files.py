"""Atomic writes: a reader finds either the old content or the complete new content of a file."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PART = ".part-"
"""Prefix of the names of temporary files. A killed process leaves its temporary file behind."""


@contextmanager
def replacing(file: Path, *, sync: bool = True) -> Iterator[Path]:
    """Yield the path of a temporary file, which replaces `file` after the `with` block.

    The path is unique and has the suffix of `file`. After an error `file` is unchanged, and the temporary file is
    removed. If `file` is a symbolic link, the target of the link is replaced. If `sync` is true, the new content is
    flushed to the disk before the replacement, so that the content survives a power failure.

    Raises:
        OSError: if `file` cannot be written; the error names `file`.
    """
    target = file.resolve()
    part = target.with_name(f"{PART}{uuid.uuid4().hex}-{target.name}")
    try:
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
