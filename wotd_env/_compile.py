"""`kernel`: the one decorator of compiled functions. It is numba's `njit`, serial, with what it leaves open settled.

- Kernels release the GIL and start no threads of their own: numba's threading layers break forked workers.
- Kernels are cached, and the cache is dropped when *any* source that they can use changes. numba looks at the
  function's own file only, but a kernel also bakes in the functions and tables of the files that one imports.
- Compiling takes seconds, so it is announced: one log line in a process that finds nothing in the cache.
- Where no cache folder can be written (read-only install and home), kernels are compiled in every process.

This module imports numba; import it, and the modules with kernels, only where a kernel is needed.
"""

import ast
import functools
import hashlib
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parent


def kernel(function: _Function) -> _Function:
    """Compile `function` (nopython mode, `nogil`, cached) when it is first called.

    The function keeps its static type. Anything it reads from module level is a constant of the compiled code.
    """
    return _compiled(function, forceinline=False)


def inlined(function: _Function) -> _Function:
    """Compile `function` into every kernel that calls it.

    A call costs more than a short body, and one that passes an array counts references to it, atomically; but every
    copy costs time to compile.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: _Function, forceinline: bool) -> _Function:
    dispatcher: Any = numba.njit(nogil=True, forceinline=forceinline)(function)
    try:
        dispatcher._cache = _Cache(function)
    except (OSError, RuntimeError):  # no folder can be written, or there is no source to compare with
        dispatcher._cache = _NoCache()
    return dispatcher  # type: ignore[no-any-return]  # to its callers it is the function


class _Cache(FunctionCache):
    """numba's file cache, valid as long as no source in reach of the function has changed."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = _stamp(Path(function.__code__.co_filename))
        self._cache_file = IndexDataCacheFile(  # type: ignore[no-untyped-call]
            self._cache_path, self._impl.filename_base, stamp
        )

    def load_overload(self, *args: Any) -> Any:
        cached = super().load_overload(*args)  # type: ignore[no-untyped-call]
        if cached is None:
            _announce("once on this machine")
        return cached


class _NoCache(NullCache):
    """No cache: every process compiles."""

    def load_overload(self, *args: Any) -> None:
        _announce("in every process, because no cache folder is writable (NUMBA_CACHE_DIR names another one)")


@functools.cache  # so that it speaks once in a process
def _announce(how_often: str) -> None:
    # A warning is the lowest level that shows where logging is not set up, and a silent pause looks hung.
    logging.getLogger("wotd_env").warning("compiling kernels, %s: this takes some seconds", how_often)


@functools.cache
def _stamp(file: Path) -> str:
    """Return a digest of `file` and of all files of this package that it imports, however indirectly."""
    digest = hashlib.sha256()
    for source in sorted(_reach(file, set())):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def _reach(file: Path, found: set[Path]) -> set[Path]:
    """Add to `found`, and return, `file` and the files of this package in reach of its import statements."""
    found.add(file)
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            sources = [_source(_PACKAGE.parent, name.name) for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            folder = file.parents[node.level - 1] if node.level else _PACKAGE.parent
            module = node.module or ""
            names = [name.name for name in node.names]
            sources = [_source(folder, f"{module}.{name}") or _source(folder, module) for name in names]
        else:
            continue
        for source in sources:
            if source and source not in found and source.is_relative_to(_PACKAGE):
                _reach(source, found)
    return found


def _source(folder: Path, module: str) -> Path | None:
    """Return the file of a module named from `folder`, None if it has none there."""
    path = folder.joinpath(*module.split("."))
    return next((file for file in (path.with_suffix(".py"), path / "__init__.py") if file.is_file()), None)
