"""Write files so that a reader finds either the old content or the new content, never a part."""

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
"""First characters of the names of temporary files. A killed process leaves its temporary file behind."""


@contextmanager
def replacing(file: Path, *, sync: bool = True) -> Iterator[Path]:
    """Yield a temporary path beside a file; at the end of the `with` block it replaces the file.

    The temporary name is unique and has the suffix of the file. After an error the file is as it was, and the temporary
    file is removed. If the file is a symbolic link, its target is replaced. With `sync` the content is flushed to the
    disk before the replacement, so that it survives a power failure.

    Raises:
        OSError: naming the file, if it cannot be written.
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
            raise  # the error is about another file
        raise OSError(error.errno, error.strerror, str(file)) from error
    finally:
        part.unlink(missing_ok=True)


def write(file: Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file, see `replacing`; raise OSError that names the file if this fails. An old file is then unchanged."""
    with replacing(file, sync=sync) as part:
        part.write_bytes(content)


def save_figure(figure: Figure, file: str | Path) -> None:
    """Write a figure of matplotlib in the format of the file's ending. Equal figures give equal files."""
    import matplotlib as mpl

    date = {".svg": "Date", ".pdf": "CreationDate"}.get(Path(file).suffix)
    with mpl.rc_context({"svg.hashsalt": "wotd-env"}):
        figure.savefig(file, dpi=120, metadata={date: None} if date else None)
