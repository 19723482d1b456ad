"""The surroundings of a process: its standard streams, its exit codes, shell commands, and processes that it starts."""

from __future__ import annotations

import contextlib
import errno
import io
import math
import os
import shlex
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FAILED, WRONG_USE = 1, 2
"""Exit codes of all commands: the run or its surroundings failed; the command was used wrongly."""

NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""errno values that mean that the disk is full."""

_SURROUNDINGS = (*NO_ROOM, errno.EIO, errno.ENOMEM, errno.EMFILE, errno.ENFILE)

_SAFE_PATH, _OURS = "PYTHONSAFEPATH", "wotd-env"
_starting = 0  # number of `with` blocks of `without_current_folder` that are running
_lock = threading.Lock()


class _Unfailing(io.FileIO):
    """A file descriptor that accepts all output, also if the reader has left or the device is full."""

    _failed = False

    def write(self, data: Any, /) -> int:
        """Write the data, or drop it if it cannot be written; return its size in bytes."""
        try:
            return super().write(data)
        except OSError as error:
            if not (self._failed or isinstance(error, BrokenPipeError) or self.fileno() == 2):
                print(f"Warning: the output is incomplete: {error.strerror}", file=sys.stderr)
            self._failed = True
            return memoryview(data).nbytes


def prepare_streams() -> None:
    """Make the standard streams of a command robust: printing and reading text never raise an error.

    Characters that a terminal cannot show are replaced. Output is dropped after the reader of a pipe has left or if the
    device is full. Missing streams are replaced by the null device. A width of 0 in the environment is removed.
    """
    if os.environ.get("COLUMNS") == "0":  # an unknown width; the package rich would print nothing
        del os.environ["COLUMNS"]
    for name in ("stdin", "stdout", "stderr"):
        stream, mode = getattr(sys, name), "r" if name == "stdin" else "w"
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8", errors="replace"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            raw = getattr(stream.buffer, "raw", stream.buffer)  # `python -u` has no buffer
            with contextlib.suppress(OSError):
                stream.reconfigure(errors="replace")
            if mode == "r" or not isinstance(raw, io.FileIO):  # Windows consoles are not FileIO
                continue
            own = _Unfailing(stream.fileno(), "w", closefd=False)
            text = io.TextIOWrapper(
                own if raw is stream.buffer else io.BufferedWriter(own),
                encoding=stream.encoding,
                errors="replace",
                line_buffering=stream.line_buffering,
                write_through=stream.write_through,
            )
            setattr(sys, name, text)


def exit_code(error: Exception) -> int:
    """Return the exit code of a command that ends with this error: FAILED if its cause is the machine, or WRONG_USE."""
    cause: BaseException | None = error
    seen: list[BaseException] = []  # a policy of the user may raise an error that is its own cause
    while cause is not None and cause not in seen:
        if isinstance(cause, OSError) and cause.errno in _SURROUNDINGS:
            return FAILED
        if getattr(cause, "sqlite_errorname", "").startswith(("SQLITE_FULL", "SQLITE_IOERR")):
            return FAILED
        seen.append(cause)
        cause = cause.__cause__
    return WRONG_USE


def physical_memory() -> float:
    """Return the memory of this machine in bytes, or infinity if the operating system does not report it."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # such as on Windows
        return math.inf


def shell_command(*words: object) -> str:
    """Return the command of a shell that consists of these words. A path never looks like an option."""
    return shlex.join(
        f"./{word}" if isinstance(word, Path) and str(word).startswith("-") else str(word) for word in words
    )


@contextlib.contextmanager
def without_current_folder() -> Iterator[None]:
    """Start Python processes in the `with` block without the current folder on their import path.

    Otherwise, a file such as `select.py` in the current folder would replace a module of the standard library. Such a
    process calls `restore_environment` first. Processes of `multiprocessing` then get the import path of this process.
    """
    global _starting
    with _lock:
        _starting += 1
        os.environ.setdefault(_SAFE_PATH, _OURS)
    try:
        yield
    finally:
        with _lock:
            _starting -= 1
            if not _starting:
                restore_environment()


def restore_environment() -> None:
    """Remove the variable of `without_current_folder`, so that the programs that this process starts do not get it."""
    if os.environ.get(_SAFE_PATH) == _OURS:
        del os.environ[_SAFE_PATH]
