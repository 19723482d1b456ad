"""`wotd_env._compile.kernel`: what is cached and for how long, what a user is told, and what if nothing is writable.

Each case runs in processes of its own, on a small stand-in package around a copy of the real `_compile.py`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from wotd_env import _compile

ANNOUNCEMENT = "compiling kernels, once on this machine"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with the decorator, a kernel, a table two imports away from it, and a bystander."""
    package = tmp_path / "wotd_env"
    package.mkdir()
    shutil.copy(_compile.__file__, package / "_compile.py")
    (package / "__init__.py").touch()
    (package / "tables.py").write_text("STEP = 1\n")
    (package / "rules.py").write_text("from .tables import STEP\n")
    (package / "engine.py").write_text(
        "from wotd_env import rules\n"
        "from wotd_env._compile import kernel\n"
        "STEP = rules.STEP\n"
        "@kernel\n"
        "def inner(x): return x + STEP\n"
        "@kernel\n"
        "def advance(x): return inner(x)\n"
    )
    (package / "bystander.py").write_text("from wotd_env.engine import advance\n")
    return package


def advance(package: Path, **environment: str) -> tuple[int, str]:
    """Return what the kernel makes of 0 in a new process, and what that process wrote to stderr."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    run = subprocess.run(
        [sys.executable, "-c", "from wotd_env.engine import advance; print(advance(0))"],
        cwd=package.parent,
        env=inherited | {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1"} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(run.stdout), run.stderr


def test_compiling_is_announced_once_and_cached(package: Path) -> None:
    value, stderr = advance(package)
    assert value == 1
    assert stderr.count("compiling") == 1
    assert ANNOUNCEMENT in stderr
    assert advance(package) == (1, "")


def test_a_change_in_any_source_in_reach_drops_the_cache_and_no_other_does(package: Path) -> None:
    advance(package)
    (package / "bystander.py").write_text("# not imported by the engine\n")
    assert advance(package) == (1, "")
    (package / "tables.py").write_text("STEP = 5\n")
    value, stderr = advance(package)
    assert value == 5
    assert ANNOUNCEMENT in stderr
    assert advance(package) == (5, "")


def test_kernels_work_where_nothing_can_be_written(package: Path) -> None:
    (package / "__pycache__").touch()  # a file, so that no folder can be made there, even by root
    nowhere = {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull}
    for _ in range(2):
        value, stderr = advance(package, **nowhere)
        assert value == 1
        assert stderr.count("compiling") == 1
        assert "no cache folder is writable" in stderr


def test_the_cache_folder_that_numba_is_told_is_used(package: Path, tmp_path: Path) -> None:
    advance(package, NUMBA_CACHE_DIR=str(tmp_path / "cache"))
    assert list((tmp_path / "cache").rglob("engine.advance-*.nbc"))
    assert not list(package.rglob("*.nbc"))


def test_kernels_release_the_gil_and_start_no_threads() -> None:
    @_compile.kernel
    def identity(x: int) -> int:
        return x

    options = identity.targetoptions  # type: ignore[attr-defined]  # `kernel` keeps the type of the plain function
    assert options["nogil"] is True
    assert not options.get("parallel", False)
