"""Tournaments on a Ray cluster (extra `ray`).

    from wotd_env.adapters.ray import Cluster
    run(tournament, "games.sqlite", pool=Cluster(tournament, address="auto"))

The results are the same as on one machine. If a node dies, another node plays its block again. Each node creates the
policies from their names. The files and modules of the policies must therefore have the same names on all nodes.
"""

from __future__ import annotations

import functools
import subprocess
import sys
from concurrent.futures import Future
from typing import Any

from wotd_env.arena.tournament import Block, PlayedBlock, Tournament
from wotd_env.arena.workers import Worker
from wotd_env.extras import needed_for

with needed_for("work on a cluster", "ray"):
    import ray

__all__ = ["Cluster", "connect", "num_cpus"]

_CONNECT = 30.0  # time limit in seconds


class Cluster:
    """A pool that plays blocks of games on all CPUs of a Ray cluster; an argument of `wotd_env.arena.run`.

    Args:
        time_limit: maximum duration of one call of a policy, in seconds.
        address: address of the cluster, see `connect`. If this process is already connected to a cluster, that cluster
            is used. A cluster started by this object is stopped after the tournament.
        trust: True allows policy files that can run code, see `make_policy`.

    Raises:
        ConnectionError: if there is no cluster at the address.
    """

    def __init__(
        self,
        tournament: Tournament,
        time_limit: float = 60.0,
        address: str | None = None,
        trust: bool = False,
    ) -> None:
        self._ours = connect(address)
        self._task = ray.remote(num_cpus=1, max_retries=-1)(_play_block)
        self._options = tournament, time_limit, trust
        self._pending: dict[Future[PlayedBlock], Any] = {}

    @property
    def size(self) -> int:
        """The current number of CPUs in the cluster."""
        return num_cpus()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: Any) -> None:
        for reference in list(self._pending.values()):  # a copy, because the callback `finish` removes items
            ray.cancel(reference, force=True)
        if self._ours:
            ray.shutdown()

    def submit(self, block: Block, untried: frozenset[str]) -> Future[PlayedBlock]:
        """Queue a block on the cluster and return its future."""
        reference = self._task.remote(*self._options, block, untried)
        future: Future[PlayedBlock] = Future()
        self._pending[future] = reference

        def finish(done: Future[PlayedBlock]) -> None:
            self._pending.pop(future, None)
            error = done.exception()
            if error is None:
                future.set_result(done.result())
            else:  # pass on the node's error without Ray's wrapper
                future.set_exception(getattr(error, "cause", None) or error)

        reference.future().add_done_callback(finish)
        return future


def connect(address: str | None) -> bool:
    """Connect this process to a Ray cluster. Return False if it was already connected.

    The address `"auto"` means the running cluster on this machine; None or `"local"` starts a cluster on this machine.
    Raise ConnectionError if there is no cluster at the address.
    """
    if ray.is_initialized():
        return False
    address = address or "local"  # with None, `ray.init` would connect to any running cluster
    if address != "local":
        _find(address)
    ray.init(address=address, log_to_driver=False)
    return True


def num_cpus() -> int:
    """Return the current number of CPUs in the connected cluster, at least 1."""
    resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(resources.get("CPU", 1)))


def _find(address: str) -> None:
    """Raise ConnectionError if no cluster answers at the address.

    A separate process tries to connect, because `ray.init` has no time limit.
    """
    code = "import sys, ray; ray.init(address=sys.argv[1], log_to_driver=False)"
    command = [sys.executable, "-P", "-c", code, address]  # -P: ignore modules in the current folder
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_CONNECT, check=False)
    except subprocess.TimeoutExpired:
        raise ConnectionError(f"no Ray cluster answers at {address} within {_CONNECT:g} s") from None
    if done.returncode:
        why = (done.stderr.strip().splitlines() or ["Ray printed no error"])[-1]
        raise ConnectionError(f"no Ray cluster can be reached at {address}: {why}")


def _play_block(
    tournament: Tournament, time_limit: float, trust: bool, block: Block, untried: frozenset[str]
) -> PlayedBlock:
    return _worker(tournament, time_limit, trust).play_block(block, untried)


@functools.lru_cache(1)
def _worker(tournament: Tournament, time_limit: float, trust: bool) -> Worker:
    """Return a separate process, which can be stopped when a policy hangs."""
    return Worker(tournament, time_limit, trust=trust)
