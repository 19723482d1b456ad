"""Tournaments on a Ray cluster give what a local run gives, also when a node dies."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_arena import OWN, QUICK, same
from wotd_env.arena import BrokenPolicyError, Tournament, run

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


def test_a_policy_that_fails_in_its_first_decision_stops_the_tournament(tmp_path):
    pytest.importorskip("ray")
    from wotd_env.adapters.ray import Cluster

    tournament = Tournament(("random", OWN + "Broken"), QUICK, games=2000)
    with pytest.raises(
        BrokenPolicyError, match=r"^policy .* first decision: raised ZeroDivisionError"
    ) as stopped:
        run(tournament, tmp_path / "games.sqlite", pool=Cluster(tournament, address="local"))
    assert re.search(r"in _helper$", str(stopped.value), re.MULTILINE)


def test_files_are_read_with_consent_alone(tmp_path):
    pytest.importorskip("ray")
    contrib = pytest.importorskip("sb3_contrib")
    from gymnasium import make

    from wotd_env.adapters.ray import Cluster

    file = tmp_path / "model.zip"
    environment = make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=0)
    contrib.MaskablePPO("MlpPolicy", environment, seed=0, device="cpu").save(file)
    tournament = Tournament((f"sb3:{file}", "first"), QUICK, games=100)
    with pytest.raises(ValueError, match="can run code that it contains"):
        run(tournament, trust=True, pool=Cluster(tournament, address="local"))
    results = run(tournament, trust=True, pool=Cluster(tournament, address="local", trust=True))
    assert same(results, run(tournament, trust=True))


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("nowhere:1", "no Ray cluster answers at nowhere:1 within 5 s"),
        ("nowhere", "no Ray cluster can be reached"),
    ],
)
def test_a_cluster_that_is_not_there_is_missed_soon(address, message):
    pytest.importorskip("ray")
    code = "import wotd_env.adapters.ray as r; r._CONNECT = 5; from wotd_env.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "arena", "random", "first", "--ray", address],
        cwd=Path(__file__).parents[1],
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 2
    assert f"Error: {message}" in done.stderr
    assert "Traceback" not in done.stderr
