"""Measure the speed of this environment and of other environments (`make speed`)."""

import os


def limit(threads: int) -> None:
    """Limit the process to `threads` cores. Call it before importing NumPy, which reads the environment variables."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(threads)
