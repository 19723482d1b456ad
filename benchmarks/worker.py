"""The process that measures a case.

It makes the loop of the case. Each line of standard input is a number of seconds, for which the process runs the loop.
Every answer is one line of JSON.
"""

import json
import os
import sys
from time import perf_counter, process_time


def main(name: str, threads: str) -> None:
    """Measure the case `name`, on as many cores as it has threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(threads)])
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[variable] = threads
    from benchmarks.cases import CASES  # this starts NumPy's threads, with the settings above

    case = next(case for case in CASES if case.name == name)
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
        spent = {"seconds": perf_counter() - start, "inside": inside, "cpu": process_time() - cpu}
        answer({"decisions": decisions} | spent)


def answer(values: dict[str, float]) -> None:
    """Write one line of JSON."""
    print(json.dumps(values), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
