"""`wotd compile` compiles every kernel in advance."""

from pathlib import Path

import pytest

from tests.helpers import run_python


def run(cache: Path, *command: str) -> str:
    """Run a module with this cache folder and return its stderr."""
    return run_python("-m", *command, NUMBA_CACHE_DIR=str(cache)).stderr


@pytest.mark.slow
def test_nothing_is_compiled_after_wotd_compile(tmp_path):
    run(tmp_path, "wotd_env.cli", "compile")
    made = {file: file.stat().st_ino for file in tmp_path.rglob("*.nbc")}  # a use of a file renews its time
    assert len(made) > 100
    assert "compiling" not in run(tmp_path, "tests.helpers.workload")
    run(tmp_path, "wotd_env.cli", "compile")
    assert {file: file.stat().st_ino for file in tmp_path.rglob("*.nbc")} == made
