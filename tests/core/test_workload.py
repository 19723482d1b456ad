"""All kernels give the same bytes for any uninitialized memory and any threads, and can be compiled in advance."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.helpers import run_python


def digest(fill: int, threads: int) -> str:
    """Return the digest of the workload in a process whose freed memory is filled with a byte."""
    settings = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0", "PYTHONMALLOC": "malloc"}
    settings["MALLOC_PERTURB_"] = str(fill)  # allocated memory is filled with the complement
    done = run_python("-m", "tests.helpers.workload", str(threads), **settings)
    found, called = done.stdout.splitlines()
    assert called == "never called: none"
    return found


@pytest.mark.parametrize(
    ("fills", "threads"),
    [((85, 170), (1, 2)), pytest.param(range(1, 255, 12), [1] * 22, marks=pytest.mark.slow)],
)
def test_every_kernel_and_policy_gives_equal_bytes_under_any_allocator(fills, threads):
    with ThreadPoolExecutor(2) as pool:
        assert len(set(pool.map(digest, fills, threads))) == 1


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
