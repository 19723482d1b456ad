"""One case in a process of its own: it makes its loop, then runs it for as long as a line on standard input says.

Every answer is one line of JSON.
"""

from __future__ import annotations

import json
import os
import sys
from time import perf_counter, process_time

from benchmarks.cases import CASES


def main(name: str) -> None:
    """Serve a case by its name."""
    case = next(case for case in CASES if case.name == name)
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))[: case.threads]
        os.sched_setaffinity(0, cores)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = str(case.threads)
    start = perf_counter()
    chunk = case.make()
    chunk()
    answer({"ready": perf_counter() - start})
    for line in sys.stdin:
        until = perf_counter() + float(line)
        start, cpu = perf_counter(), process_time()
        decisions, inside = 0, 0.0
        while perf_counter() < until:
            done, seconds = chunk()
            decisions += done
            inside += seconds
        answer(
            {
                "decisions": decisions,
                "seconds": perf_counter() - start,
                "inside": inside,
                "cpu": process_time() - cpu,
            }
        )


def answer(values: dict[str, float]) -> None:
    """Write one line of JSON."""
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
