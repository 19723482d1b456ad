"""The same seed gives the same bytes, for any content of uninitialized memory and any number of threads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.helpers import ROOT

FRESH = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0", "PYTHONMALLOC": "malloc"}
SETTINGS: list[tuple[dict[str, str], int]] = [
    # freed memory is filled with the byte, allocated memory with its complement
    (FRESH | {"MALLOC_PERTURB_": "85"}, 1),
    (FRESH | {"MALLOC_PERTURB_": "170"}, 2),
]


def started(environment: dict[str, str], threads: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.helpers.workload", str(threads)],
        cwd=ROOT,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_every_kernel_and_policy_gives_equal_bytes_under_any_allocator():
    digests = set()
    for process in [started(*setting) for setting in SETTINGS]:
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        digest, called = stdout.splitlines()
        assert called == "never called: none"
        digests.add(digest)
    assert len(digests) == 1


@pytest.mark.slow
def test_results_do_not_depend_on_the_content_of_freed_memory():
    digests = set()
    for value in range(1, 255, 12):
        process = started(FRESH | {"MALLOC_PERTURB_": str(value)}, 1)
        stdout, stderr = process.communicate()
        assert process.returncode == 0, stderr
        digests.add(stdout)
    assert len(digests) == 1
