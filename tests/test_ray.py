"""Tournaments on a Ray cluster give what a local run gives, also when a node dies."""

from __future__ import annotations

import pytest

from tests.test_arena import QUICK, same
from wotd_env.arena import Tournament, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # Ray's own
]


def test_a_node_that_dies_changes_nothing(tmp_path):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as LocalCluster

    from wotd_env.adapters.ray import Cluster

    tournament = Tournament(("random", "greedy", "first"), QUICK, games=512 * 12, seed=9)
    nodes = LocalCluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    doomed = [nodes.add_node(num_cpus=1)]
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    try:
        pool = Cluster(tournament)
        assert pool.size == 2

        def kill_one(done: int, total: int) -> None:
            if doomed and done > total / 6:
                nodes.remove_node(doomed.pop(), allow_graceful=False)

        results = run(tournament, tmp_path / "games.sqlite", pool=pool, progress=kill_one)
        assert not doomed
    finally:
        ray.shutdown()
        nodes.shutdown()
    assert same(results, run(tournament))
    assert same(results, run(tournament, tmp_path / "games.sqlite"))
