"""The same seed gives the same bytes, for any content of uninitialized memory and any number of threads."""

from concurrent.futures import ThreadPoolExecutor

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
