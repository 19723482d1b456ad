"""The check of kernels in `make check`."""

from __future__ import annotations

import pytest

from tools.kernels import faults, main

KERNEL = """
from wotd_env.core import compilation

@compilation.kernel
def choose(games, rules):
    memory = {}
    return memory[0]
"""


@pytest.mark.parametrize(
    "code",
    [
        "np.empty(1, STATE)",
        "np.zeros((2, 3), dtype=games.dtype)",
        "np.full(4, games[0], STATE)",
        "np.empty_like(games)",
        "games.copy()",
        "games[:2].repeat(3)",
    ],
)
def test_kernel_check_reports_record_allocations(code):
    assert list(faults(KERNEL.format(code))) == [(6, code)]
    assert not list(faults(KERNEL.format(code).replace("@compilation.kernel\n", "")))


@pytest.mark.parametrize(
    "code", ["np.empty(3)", "np.zeros((2, 3), np.uint64)", "np.full(4, 1, dtype=np.int8)"]
)
def test_kernel_check_allows_arrays_of_numbers(code):
    assert not list(faults(KERNEL.format(code)))


def test_the_kernels_of_the_project_allocate_no_records():
    assert main() == 0
