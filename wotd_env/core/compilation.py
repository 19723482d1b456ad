"""The decorators `kernel` and `inlined` of all compiled functions: numba's `njit` with a safer cache.

- Kernels release the GIL. They start no threads, because numba's threading layers break forked workers.
- A fork waits until all running compilations are finished. Otherwise the child would inherit a locked compiler.
- Kernels are cached on disk, in one folder for all Python environments of the user. The name of a file contains a
  digest of everything that becomes part of the compiled code: the sources of the kernel's module and of its imports,
  the functions that it calls, the values that it reads, and the versions of NumPy, numba and llvmlite.
- A damaged cache file is detected by its checksum and replaced. If the cache folder is not writable or the disk is
  full, every process compiles again.
- Compiling takes seconds, so each process logs one warning before its first compilation.
  `wotd_env.compile_kernels()` compiles all kernels in advance.

Importing numba is slow, so import this module and modules with kernels only where a kernel is needed.
"""

import contextlib
import functools
import hashlib
import inspect
import logging
import os
import pickle
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, TypeVar

import numba
import numpy as np
from llvmlite.binding import ffi
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps
from numba.extending import is_jitted
from numba.misc.appdirs import AppDirs

from wotd_env import files, sources

Numba = Any  # an object of numba's compiler, which has no types

_Function = TypeVar("_Function", bound=Callable[..., Any])

MOST_BYTES = 300_000_000
"""The largest size of the cache. All kernels of one version take about 25 MB."""

_CONFIG: Any = numba.config

KERNELS: list[Any] = []
"""The compiled functions of all modules that have been imported."""


def kernel(function: _Function) -> _Function:
    """Compile `function` at its first call, in nopython mode, with `nogil` and with the cache.

    Module-level values that `function` reads become constants of the compiled code.
    """
    return _compiled(function, forceinline=False)


def inlined(function: _Function) -> _Function:
    """Compile `function` into every kernel that calls it.

    Use this decorator for short functions. An inlined call with array arguments needs no atomic reference counting, but
    every copy of the function costs compilation time.
    """
    return _compiled(function, forceinline=True)


def _compiled(function: _Function, forceinline: bool) -> _Function:
    if _CONFIG.DISABLE_JIT:
        raise RuntimeError("wotd_env needs compiled code, but NUMBA_DISABLE_JIT is set: unset this variable")
    # Kernels need no C wrappers, because no C code calls kernels.
    options: dict[str, Any] = {"nogil": True, "forceinline": forceinline, "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(**options)(function)
    dispatcher._cache = _Cache(function)
    KERNELS.append(dispatcher)
    return dispatcher  # type: ignore[no-any-return]  # callers see the type of the function


class _Cache(NullCache):
    """The cache files of a kernel, one for each signature.

    The key of numba's own cache contains neither the imported sources nor the values of constants. Its files lack
    checksums, and parallel processes overwrite each other's entries.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def load_overload(self, signature: Numba, target: Numba) -> Any:
        """Return the cached code for a signature, or None after announcing the compilation."""
        target.refresh()
        try:
            file = self._file(signature, target.codegen())
        except OSError as error:
            return self._announce(f"in every process, because {error}")
        try:
            code = CompileResult._rebuild(target, *pickle.loads(_read(file)))  # type: ignore[no-untyped-call]
        except FileNotFoundError:
            return self._announce(
                f"once for these sources and versions of NumPy and numba (kept in {file.parent})"
            )
        except Exception as error:  # unpickling a damaged file can raise anything
            _warn(
                "damage",
                f"the cache of compiled kernels: a damaged file in {file.parent} is replaced: {error}",
            )
            return None
        with contextlib.suppress(OSError):  # the folder may be read-only
            os.utime(file)  # files that are not used for a long time are removed
        return code

    def save_overload(self, signature: Numba, result: Numba) -> None:
        """Save compiled code, unless it contains addresses of this process or cannot be written."""
        try:
            file = self._file(signature, result.library.codegen)
        except OSError:
            return  # announced by `load_overload`
        if result.library.has_dynamic_globals:
            return
        content = dumps(result._reduce())  # type: ignore[no-untyped-call]
        try:
            _write(file, content)
            _shorten(file.parent)
        except OSError as error:
            _warn(
                "unwritable",
                f"the cache of compiled kernels: cannot write to {file.parent}, so every process compiles: "
                f"{error.strerror or error}",
            )

    def _file(self, signature: Numba, codegen: Numba) -> Path:
        """Return the file for a signature and a processor. Raise OSError if the kernel cannot have a file."""
        function = self._function
        key = repr((signature, codegen.magic_tuple(), self._stamp))
        name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}".replace(
            "<locals>", "locals"
        )
        digest = hashlib.sha256(key.encode()).hexdigest()[:24]
        return _folder() / f"{name}-{function.__code__.co_firstlineno}.{digest}.nbc"

    @functools.cached_property
    def _stamp(self) -> str:
        """A digest of all that becomes part of the compiled function, except the types of its arguments."""
        function = self._function
        source = Path(function.__code__.co_filename)
        if not source.is_file():
            raise OSError("its source is not in a file")
        digest = hashlib.sha256(_digest_of_sources(function.__module__, source).encode())
        settings = [getattr(_CONFIG, name) for name in _SETTINGS]
        digest.update(repr((sys.version_info[:2], settings)).encode())
        for part in _parts(function):
            digest.update(part)
        return digest.hexdigest()

    def _announce(self, how_often: str) -> None:
        name = f"{self._function.__module__}.{self._function.__qualname__}"
        hint = ". `wotd_env.compile_kernels()` compiles all kernels of the package, in about 75 s"
        _warn(
            "compiling",
            f"compiling {name} and other kernels, {how_often}: this takes up to 20 s of one core"
            + hint * name.startswith("wotd_env."),
        )


@functools.cache
def _digest_of_sources(module: str, file: Path) -> str:
    return sources.digest(sources.reached(module, file))


_SETTINGS = "OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE"
"""The settings of numba that change compiled code."""

_CONSTANTS = np.ndarray, np.generic, np.dtype, int, float, complex, str, bytes


def _parts(function: Numba) -> Iterator[bytes]:
    """Yield the code of a function and of the compiled functions that it calls, and the constants that they read.

    A name that is only an attribute in the code can add a value that is not read. This does no harm.
    """
    functions = [function]
    for each in functions:  # the list grows during the loop
        codes = [each.__code__]
        for code in codes:
            codes += [const for const in code.co_consts if isinstance(const, CodeType)]
            consts = [const for const in code.co_consts if not isinstance(const, CodeType)]
            yield repr((code.co_code, code.co_names, consts, each.__defaults__)).encode()
        names = {name for code in codes for name in code.co_names + code.co_freevars}
        scopes = [each.__globals__, inspect.getclosurevars(each).nonlocals]
        for scope in scopes:
            for name in sorted(names & scope.keys()):
                for value in _elements(scope[name]):
                    if isinstance(value, ModuleType) and all(vars(value) is not known for known in scopes):
                        scopes.append(vars(value))
                    elif is_jitted(value) and value.py_func not in functions:
                        functions.append(value.py_func)
                    elif isinstance(value, _CONSTANTS):
                        yield name.encode() + dumps(value)  # type: ignore[no-untyped-call]


def _elements(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for element in value:
            yield from _elements(element)
    else:
        yield value


@functools.cache
def _folder() -> Path:
    """Return the folder of all cache files. Raise OSError if there is no folder, or if other users can write to it."""
    base = _CONFIG.CACHE_DIR or AppDirs("numba", appauthor=False).user_cache_dir  # type: ignore[no-untyped-call]
    how = "set NUMBA_CACHE_DIR to another folder"
    try:
        folder = Path(base).expanduser().absolute() / "wotd-env"
    except RuntimeError:
        raise OSError(f"the user has no home folder; {how}") from None
    try:
        folder.mkdir(0o755, parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(f"{folder} cannot be made ({error.strerror}); {how}") from error
    if not _is_private(folder):
        raise OSError(f"other users can write to {folder}; {how}")
    return folder


def _write(file: Path, content: bytes) -> None:
    # `sync` is not needed: if a power failure destroys the file, the kernel is compiled again.
    files.write(file, hashlib.sha256(content).digest() + content, sync=False)


def _read(file: Path) -> bytes:
    """Return the content of a file of `_write`. Raise ValueError if the file is damaged or not private."""
    content = file.read_bytes()
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        raise ValueError(f"{file.name} does not match its checksum")
    if not _is_private(file):
        raise ValueError(f"other users can write to {file.name}")
    return content[32:]


def _is_private(path: Path) -> bool:
    """Return whether only this user and root can write to a file or folder. Cached code runs without further checks."""
    about = path.stat()
    if not hasattr(os, "geteuid"):
        return True
    return about.st_uid in (0, os.geteuid()) and not about.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _shorten(folder: Path) -> None:
    """Remove the files with the oldest times, including those of killed processes, until MOST_BYTES are left."""
    found = []
    for file in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another process may remove it
            about = file.stat()
            found.append((about.st_mtime, about.st_size, file))
    total = 0
    for _, size, file in sorted(found, reverse=True):
        total += size
        if total > MOST_BYTES:
            with contextlib.suppress(OSError):
                file.unlink()


_WARNED: set[str] = set()


def _warn(event: str, message: str) -> None:
    """Log a message. Each process logs only its first message about an event."""
    if event not in _WARNED:
        _WARNED.add(event)
        logging.getLogger("wotd_env").warning(message)  # by default Python hides lower levels


def _before_fork() -> None:
    global_compiler_lock.acquire()  # type: ignore[no-untyped-call]
    ffi.lib._lock._lock.acquire()


def _after_fork() -> None:
    ffi.lib._lock._lock.release()
    global_compiler_lock.release()  # type: ignore[no-untyped-call]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
