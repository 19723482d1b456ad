"""The decorators `kernel` and `inlined` of all compiled functions: numba's `njit` with a safer cache.

- Kernels release the GIL. They start no threads, because numba's threading layers break forked workers.
- A fork waits until all running compilations are finished. Otherwise the child would inherit a locked compiler.
- Kernels are cached on disk. A kernel is compiled again after a change of its source file, or of a file of this package
  that the source file imports. Kernels contain functions and tables of imported files, but numba's own cache ignores
  changes of imported files.
- A damaged cache file is detected by its checksum and replaced. If the cache folder is not writable or the disk is
  full, every process compiles again.
- Compiling takes seconds, so each process logs one warning before its first compilation. `wotd compile` compiles all
  kernels in advance.

Importing numba is slow, so import this module and modules with kernels only where a kernel is needed.
"""

import ast
import functools
import hashlib
import logging
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from llvmlite.binding import ffi
from numba.core.caching import FunctionCache, NullCache
from numba.core.compiler_lock import global_compiler_lock
from numba.core.serialize import dumps

from wotd_env import files

_Function = TypeVar("_Function", bound=Callable[..., Any])

_PACKAGE = Path(__file__).parents[1]

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
    # Kernels need no C wrappers, because no C code calls kernels.
    options: dict[str, Any] = {"nogil": True, "forceinline": forceinline, "no_cfunc_wrapper": True}
    dispatcher: Any = numba.njit(**options)(function)
    try:
        dispatcher._cache = _Cache(function)
    except (OSError, RuntimeError):  # no writable cache folder, or no source file
        dispatcher._cache = _NoCache()
    KERNELS.append(dispatcher)
    return dispatcher  # type: ignore[no-any-return]  # callers see the type of the function


class _Cache(FunctionCache):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        source = Path(function.__code__.co_filename)
        stamp, self._in_package = source_digest(source), source.is_relative_to(_PACKAGE)
        self._cache_file: Any = _Files(Path(self._cache_path), self._impl.filename_base, stamp)

    def load_overload(self, *args: Any) -> Any:
        try:
            cached = super().load_overload(*args)  # type: ignore[no-untyped-call]
        except Exception as error:  # unpickling a damaged file can raise anything
            _warn(f"the cache of compiled kernels: a damaged file in {self._cache_path} is replaced: {error}")
            cached = None
        if cached is None:
            _announce("once on this machine", self._in_package)
        return cached

    def save_overload(self, *args: Any) -> None:
        try:
            super().save_overload(*args)  # type: ignore[no-untyped-call]
        except OSError as error:
            _warn(
                f"the cache of compiled kernels: cannot write to {self._cache_path}, so every process compiles: "
                f"{error.strerror or error}"
            )


class _Files:
    """The cache files of a kernel, one for each signature.

    This class replaces numba's own cache files, which lack checksums. In numba's index file, parallel processes also
    overwrite each other's entries.
    """

    def __init__(self, folder: Path, kernel: str, stamp: str) -> None:
        versions = f"{numba.__version__} {llvmlite.__version__}"
        self._folder, self._kernel = folder, kernel
        self._stamp = hashlib.sha256(f"{stamp} {versions}".encode()).hexdigest()[:16]

    def load(self, key: Any) -> Any:
        file = self._file(key)
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        digest, data = content[:32], content[32:]
        if hashlib.sha256(data).digest() != digest:
            raise ValueError(f"{file.name} does not match its checksum")
        return pickle.loads(data)

    def save(self, key: Any, data: Any) -> None:
        """Save data, and remove the kernel's files from other versions of numba or of the source."""
        file, content = self._file(key), dumps(data)  # type: ignore[no-untyped-call]
        # `sync` is not needed: if a power failure destroys the file, the kernel is compiled again.
        files.write(file, hashlib.sha256(content).digest() + content, sync=False)
        for other in self._folder.glob(f"{self._kernel}.*.nbc*"):
            if not other.name.startswith(f"{self._kernel}.{self._stamp}."):
                other.unlink(missing_ok=True)

    def _file(self, key: Any) -> Path:
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._folder / f"{self._kernel}.{self._stamp}.{digest}.nbc"


class _NoCache(NullCache):
    def load_overload(self, *args: Any) -> None:
        _announce("in every process, because no cache folder is writable (NUMBA_CACHE_DIR names another one)")


def _announce(how_often: str, in_package: bool = True) -> None:
    hint = (
        "; `wotd compile` compiles all kernels of the package, in about 75 s of processor time" * in_package
    )
    _warn(f"compiling kernels, {how_often}: this takes up to 20 s of one core{hint}")


@functools.cache  # log each message once per process
def _warn(message: str) -> None:
    # By default Python hides messages below WARNING.
    logging.getLogger("wotd_env").warning(message)


def _before_fork() -> None:
    global_compiler_lock.acquire()  # type: ignore[no-untyped-call]
    ffi.lib._lock._lock.acquire()


def _after_fork() -> None:
    ffi.lib._lock._lock.release()
    global_compiler_lock.release()  # type: ignore[no-untyped-call]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


@functools.cache
def source_digest(file: Path) -> str:
    """Return a digest of `file` and of all files of this package that `file` imports, directly or indirectly."""
    found = [file]
    for source in found:  # the list grows during the loop
        found += _imported(source).difference(found)
    return hashlib.sha256(b"".join(source.read_bytes() for source in sorted(found))).hexdigest()


@functools.cache
def _imported(file: Path) -> set[Path]:
    inside = file.is_relative_to(_PACKAGE)
    package = ".".join(file.parent.relative_to(_PACKAGE.parent).parts) if inside else ""
    names = imports(file.read_bytes(), package)
    return {source for name in names if (source := _source(name) or _source(name.rpartition(".")[0]))}


def imports(source: bytes, package: str) -> Iterator[str]:
    """Yield the dotted names that a module in `package` imports; `from m import x` yields `m.x`.

    Invalid source raises SyntaxError or ValueError.
    """
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= package.count(".") + 1:
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            yield from (".".join(filter(None, (base, node.module, alias.name))) for alias in node.names)


def _source(module: str) -> Path | None:
    path = _PACKAGE.parent.joinpath(*module.split("."))
    sources = path.with_suffix(".py"), path / "__init__.py"
    return next((file for file in sources if path.is_relative_to(_PACKAGE) and file.is_file()), None)
