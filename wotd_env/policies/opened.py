"""The files, such as weights, that policies of other modules open while they are imported and made."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_opened: dict[str, set[str]] = defaultdict(set)  # module -> paths
_current = threading.local()
_install = threading.Lock()
_installed = False


@contextlib.contextmanager
def watch(module: str) -> Iterator[None]:
    """Record the files that this thread opens for reading, under the name of a module."""
    global _installed  # an audit hook cannot be removed, so there is one for the process
    with _install:
        if not _installed:
            sys.addaudithook(_note)
            _installed = True
    _current.module = module
    try:
        yield
    finally:
        _current.module = None


def opened_by(module: str) -> list[Path]:
    """Return the recorded data files of a module that still exist, without code."""
    installed = {sys.prefix, sys.base_prefix}
    files = {Path(name).absolute() for name in _opened[module]}
    return sorted(
        file
        for file in files
        if file.is_file()
        and file.suffix not in (".py", ".pyc", ".so")
        and "__pycache__" not in file.parts
        and file.parts[1:2] not in (("proc",), ("sys",), ("dev",))
        and not any(file.is_relative_to(folder) for folder in installed)
    )


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not (module := getattr(_current, "module", None)):
        return
    path, _, flags = arguments
    if isinstance(path, str | bytes | os.PathLike) and not flags & (os.O_WRONLY | os.O_CREAT):
        _opened[module].add(os.path.abspath(os.fsdecode(path)))
