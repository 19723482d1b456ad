"""Record the files, such as weights, that a policy outside this package opens while it is imported and created."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import sysconfig
import threading
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_opened: dict[str, set[str]] = defaultdict(set)  # module -> paths of the opened files
_current = threading.local()


@contextlib.contextmanager
def watch(module: str) -> Iterator[None]:
    """Record the files that this thread opens for reading in the `with` block, as files of `module`.

    In nested blocks, the files are also recorded as files of the modules of the outer blocks.
    """
    _install()
    outer = getattr(_current, "modules", ())
    _current.modules = (*outer, module)
    try:
        yield
    finally:
        _current.modules = outer


@functools.cache
def _install() -> None:
    """Install the audit hook once per process, because Python cannot remove an audit hook."""
    sys.addaudithook(_note)


def opened_by(module: str) -> list[Path]:
    """Return the recorded data files of a module. Missing files, source code and installed packages are left out."""
    standard_library = sysconfig.get_path("stdlib")
    return sorted(
        file
        for file in map(Path, tuple(_opened[module]))  # copied, because other threads may add paths
        if file.is_file()
        and file.suffix not in (".py", ".pyc", ".so")
        and "__pycache__" not in file.parts
        and file.parts[1:2] not in (("proc",), ("sys",), ("dev",))
        and not file.is_relative_to(standard_library)
        and not {"site-packages", "dist-packages"} & set(file.parts)
    )


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event != "open" or not (modules := getattr(_current, "modules", ())):
        return
    path, _, flags = arguments
    if isinstance(path, str | bytes | os.PathLike) and not flags & (os.O_WRONLY | os.O_CREAT):
        for module in modules:
            _opened[module].add(os.path.abspath(os.fsdecode(path)))
