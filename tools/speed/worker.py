"""The functions that run in the process of a case of tools/speed/cases.py."""

import functools
import os
from typing import Any


@functools.cache
def loop(name: str, threads: int) -> Any:
    """Limit the process to `threads` cores, and return the `wotd_env.speed.Chunk` of the case `name`."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
    from tools.speed.cases import CASES  # imports NumPy, which reads the variables above

    return next(case for case in CASES if case.name == name).make()


def measure(name: str, threads: int, seconds: float) -> tuple[float, float]:
    """Measure the case `name` for `seconds`, and return the two rates of `wotd_env.speed.rate`."""
    chunk = loop(name, threads)
    from wotd_env.speed import rate

    return rate(chunk, seconds)
