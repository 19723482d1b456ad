"""Calls of kernels in several threads: the batch of games is split into one slice for each thread."""

from __future__ import annotations

import functools
import itertools
import os
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.state import States

MIN_GAMES = 256  # smallest number of games for which starting a thread pays off


class _Thread(threading.local):
    is_worker = False


_THREAD = _Thread()


def slices(games: int, threads: int) -> list[slice]:
    """Split a batch into at most one slice per thread. If the batch is split, each slice has at least MIN_GAMES games.

    A worker thread does not split its batch, because workers that wait for other workers could deadlock.
    """
    count = 1 if threads == 1 or _THREAD.is_worker else max(1, min(threads, games // MIN_GAMES))
    edges = [games * i // count for i in range(count + 1)]
    return [slice(*edge) for edge in itertools.pairwise(edges)]


def call(
    kernel: Callable[..., Any],
    states: States,
    config: NDArray[np.void],
    arguments: tuple[Any, ...],
    threads: int,
) -> list[Any]:
    """Call `kernel(states, config, *arguments)` for each slice of a batch, and return the list of the results.

    `states` is the batch, STATE (N,), and must be contiguous. Each of `arguments` has one of these kinds:

    - an array with N rows, or a NamedTuple of such arrays: sliced like the batch;
    - a function without parameters, such as `scratch`: called in each thread, and the kernel gets its result;
    - any other value: passed unchanged.
    """
    parts = slices(len(states), threads)
    if len(parts) == 1:
        return [_call(kernel, states, config, arguments)]
    pool = _pool(threads - 1, os.getpid())
    sliced = [tuple(_slice(each, part) for each in arguments) for part in parts]
    calls: list[Future[Any]] = []
    try:
        for part, own in zip(parts[1:], sliced[1:], strict=True):
            calls.append(pool.submit(_call, kernel, states[part], config, own))
        # Waking an idle core takes time, so the caller's thread processes a slice itself.
        first = _call(kernel, states[parts[0]], config, sliced[0])
        return [first, *(each.result() for each in calls)]
    except BaseException:
        # After a failed call or Ctrl-C, wait for the other calls, so that no game changes later.
        wait([each for each in calls if not each.cancel()])
        raise


def _call(
    kernel: Callable[..., Any], states: States, config: NDArray[np.void], arguments: tuple[Any, ...]
) -> Any:
    return kernel(states, config, *[each() if callable(each) else each for each in arguments])


def _slice(argument: Any, part: slice) -> Any:
    if isinstance(argument, np.ndarray):
        return argument[part]
    if isinstance(argument, tuple):
        return argument._make(_slice(each, part) for each in argument)  # type: ignore[attr-defined]
    return argument


@functools.lru_cache(maxsize=8)
def _pool(workers: int, process: int) -> ThreadPoolExecutor:
    # The cache key includes `process`, the process ID, because a forked process needs a new pool.
    return ThreadPoolExecutor(workers, "wotd_env", initializer=setattr, initargs=(_THREAD, "is_worker", True))
