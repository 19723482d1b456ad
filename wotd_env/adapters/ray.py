"""Tournaments on a Ray cluster (extra `ray`): the same blocks, played by whatever nodes there are.

    from wotd_env.adapters.ray import Cluster
    run(tournament, "games.sqlite", pool=Cluster(tournament, address="auto"))

Results are those of a local run. A block whose node dies is played again on another one. Policies are made on the nodes
from their names: their files and modules must be found there under the same names.
"""

from __future__ import annotations

import functools
from concurrent.futures import Future
from typing import Any

from wotd_env.arena.play import Played
from wotd_env.arena.tournament import Block, Tournament
from wotd_env.arena.workers import Worker

try:
    import ray
except ModuleNotFoundError as missing:
    raise ModuleNotFoundError("tournaments on a cluster need Ray: pip install 'wotd-env[ray]'") from missing

__all__ = ["Cluster"]


class Cluster:
    """Plays blocks on all CPUs of a Ray cluster, see `wotd_env.arena.run`.

    Args:
        tournament: the tournament.
        time_limit: seconds that a policy may take for one call.
        address: of the cluster; "auto" for the one that this machine is a node of, None for one made for the occasion.
            If Ray has been started in this process already, that cluster is used.

    Raises:
        ConnectionError: if there is no cluster at the address.
    """

    def __init__(self, tournament: Tournament, time_limit: float = 60.0, address: str | None = None) -> None:
        self._ours = not ray.is_initialized()
        if self._ours:
            ray.init(address=address, log_to_driver=False)
        self._task = ray.remote(num_cpus=1, max_retries=-1)(_play)
        self._tournament, self._time_limit = tournament, time_limit
        self._pending: dict[Future[Played], Any] = {}

    @property
    def size(self) -> int:
        """CPUs of the cluster, as it is now."""
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(1, int(resources.get("CPU", 1)))

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *error: Any) -> None:
        for reference in self._pending.values():
            ray.cancel(reference, force=True)
        if self._ours:
            ray.shutdown()

    def submit(self, block: Block) -> Future[Played]:
        """Have a block played."""
        reference = self._task.remote(self._tournament, self._time_limit, block)
        future: Future[Played] = reference.future()
        self._pending[future] = reference
        future.add_done_callback(lambda done: self._pending.pop(done, None))
        return future


def _play(tournament: Tournament, time_limit: float, block: Block) -> Played:
    return _worker(tournament, time_limit).play(block)


@functools.lru_cache(1)
def _worker(tournament: Tournament, time_limit: float) -> Worker:
    """Return the process that a Ray worker keeps: one that can be stopped when a policy hangs."""
    return Worker(tournament, time_limit)
