"""The private parts of other libraries that this project uses. A new release can change them without notice."""

import ast
from pathlib import Path

from tests.helpers import ROOT

FOLDERS = "wotd_env", "agents", "entries", "examples", "tools"

PRIVATE = {
    ("numba 0.68.1", "replaces its cache of compiled functions"): "_cache _rebuild _reduce",
    ("llvmlite 0.50.0", "a fork must not copy the locked compiler"): "_lock",
    ("PettingZoo 1.27.0", "methods that every AECEnv has to call"): "_accumulate_rewards _was_dead_step",
    ("Stable-Baselines3 2.9.2", "methods that every VecEnv has to call"): """
        _get_indices _options _reset_options _reset_seeds _seeds
    """,
}
"""The release in which the names were read, and the reason to use them -> private names."""

INTERNAL = {
    ("numba 0.68.1", "the cache, the lock of the compiler, times of compilation, and code for vectors"): """
        numba.core.caching numba.core.cgutils numba.core.compiler numba.core.compiler_lock numba.core.event
        numba.core.serialize numba.cpython.unsafe numba.misc.appdirs
    """,
    ("numba-cuda 0.30.4", "places constants in global memory"): "numba.cuda.core.base numba.cuda.target",
    ("uvicorn 0.54.0", "has no setting for a deadline of requests"): "uvicorn.protocols.http.h11_impl",
}
"""The same for modules that are not part of the public interface."""


def foreign(file: Path) -> tuple[set[str], set[str], set[str]]:
    """Return the private names that a file uses of libraries, all private names that it uses, and those it defines."""
    tree = ast.parse(file.read_text())
    libraries: set[str] = set()
    used: set[str] = set()
    own = {"_asdict", "_exit", "_fields", "_make", "_replace"}  # documented in spite of their names
    imported = {
        (name.asname or name.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        and not str(getattr(node, "module", None) or node.names[0].name).startswith(FOLDERS)
        for name in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__"):
            root = node.value
            while isinstance(root, ast.Attribute | ast.Call):
                root = root.value if isinstance(root, ast.Attribute) else root.func
            name = root.id if isinstance(root, ast.Name) else ""
            if name == "self" and isinstance(node.ctx, ast.Store):
                own.add(node.attr)
            else:
                (libraries if name in imported else used).add(node.attr)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
    return libraries, used, own


def test_private_names_of_libraries_are_listed():
    files = [foreign(file) for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")]
    found, maybe, own = (set().union(*names) for names in zip(*files, strict=True))
    listed = {name for names in PRIVATE.values() for name in names.split()}
    assert found - {"_exit"} | maybe - own <= listed
    assert listed <= found | maybe


def test_internal_modules_of_libraries_are_listed():
    used: set[str] = set()
    parts = "numba.core. numba.cpython. numba.misc. numba.cuda.core. numba.cuda.target. uvicorn.protocols."
    for file in (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith(tuple(parts.split())):
                nested = (
                    f"{node.module}.{node.names[0].name}"  # `from numba.core import event` names a module
                )
                used.add(nested if node.module == "numba.core" else str(node.module))
    assert used == {name for names in INTERNAL.values() for name in names.split()}
