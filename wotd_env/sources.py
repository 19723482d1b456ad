"""Digests of source code, which decide whether compiled kernels and stored games can be reused."""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from itertools import accumulate
from pathlib import Path

import llvmlite
import numba
import numpy as np

_PACKAGE = __name__.partition(".")[0]
_INSTALLED = {"site-packages", "dist-packages"}


def digest(files: Iterable[Path]) -> str:
    """Return a digest of source files, and of the libraries that take part in compiled code and in random draws."""
    contents = sorted(_content_digest(file.read_bytes()) for file in files)
    versions = np.__version__, numba.__version__, llvmlite.__version__
    return hashlib.sha256(repr((contents, versions)).encode()).hexdigest()


def reached(module: str, file: Path | None = None) -> set[Path]:
    """Return the source files of a module and of all modules that it imports, directly or indirectly.

    The standard library and installed packages are left out, except this package and the package of `module`. Nothing
    is imported. `file` is the source of `module`, if it is known.
    """
    files: set[Path] = set()
    names = {module: file}  # each module, with its source if this is known; it grows during the loop
    own = {_PACKAGE, module.partition(".")[0]}
    pending = [module]
    for name in pending:
        spec = _spec(name)
        source = names[name] or _source(name, spec, name.partition(".")[0] in own)
        if source is None:
            continue
        files.add(source)
        package = name if spec and spec.submodule_search_locations is not None else name.rpartition(".")[0]
        for imported in _imports(source.read_bytes(), package):
            for part in accumulate(imported.split("."), "{}.{}".format):
                if part not in names:
                    names[part] = None
                    pending.append(part)
    return files


def main_file() -> Path | None:
    """Return the file of the running program, or None if the program has no file, as in a notebook."""
    file = getattr(sys.modules["__main__"], "__file__", None)
    return Path(file) if file else None


def _source(module: str, spec: ModuleSpec | None, own: bool) -> Path | None:
    if module == "__main__":
        source = main_file()
    else:
        source = Path(spec.origin) if spec is not None and spec.origin and spec.has_location else None
    if source is None or not os.path.isfile(source):  # Path.is_file raises errors in unreadable folders
        return None
    installed = not _INSTALLED.isdisjoint(source.parts)
    left_out = not own if installed else source.is_relative_to(sysconfig.get_path("stdlib"))
    return None if left_out else source


def _spec(module: str) -> ModuleSpec | None:
    """Return the spec of a module without importing its parent packages."""
    package, _, _ = module.rpartition(".")
    if not package:
        try:
            return importlib.util.find_spec(module)
        except ValueError:  # __main__ may have no spec
            return None
    parent = _spec(package)
    if parent is None or parent.submodule_search_locations is None:
        return None
    return PathFinder.find_spec(module, parent.submodule_search_locations)


@functools.cache
def _content_digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@functools.cache
def _imports(source: bytes, package: str) -> frozenset[str]:
    """Return the dotted names that a module in `package` imports; `from m import x` yields `m.x`.

    A compiled module, or a module with a syntax error, has no known imports.
    """
    try:
        return frozenset(_imported(ast.parse(source), package))
    except (SyntaxError, ValueError):
        return frozenset()


def _imported(tree: ast.Module, package: str) -> Iterator[str]:
    nodes: list[ast.AST] = [tree]
    for node in nodes:  # the list grows during the loop
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            nodes += node.orelse
            continue
        nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level <= package.count(".") + 1:
            base = package.rsplit(".", node.level - 1)[0] if node.level else ""
            yield from (".".join(filter(None, (base, node.module, alias.name))) for alias in node.names)
