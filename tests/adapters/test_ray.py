"""A Ray cluster gives the same results as local processes, also when a node dies."""

import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from agents import command, loop
from tests.helpers import ROOT
from tests.helpers.tournaments import OWN, QUICK, same
from tests.helpers.training import TINY_TD, arguments, settings_in, started, trained
from tests.helpers.training import same as same_run
from wotd_env.arena import BrokenPolicyError, Tournament, run

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("default"),  # Ray's own warnings are not errors
]


@contextmanager
def two_nodes() -> Iterator[Callable[[], None]]:
    """Connect to a cluster of two nodes with one CPU each; yield a function that kills one of them."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster as LocalCluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": 200_000_000}
    nodes = LocalCluster(initialize_head=True, head_node_args=head)
    doomed, _ = (nodes.add_node(num_cpus=1, object_store_memory=200_000_000) for _ in range(2))
    ray.init(address=nodes.address, log_to_driver=False)
    try:
        yield lambda: nodes.remove_node(doomed, allow_graceful=False)
    finally:
        ray.shutdown()
        nodes.shutdown()


def test_results_do_not_change_when_a_node_dies(tmp_path):
    pytest.importorskip("ray")
    from wotd_env.adapters.ray import Cluster

    tournament = Tournament(("random", "greedy", "first"), QUICK, games=512 * 12, seed=9)
    killed = False
    with two_nodes() as kill_one:

        def kill(done: int, total: int) -> None:
            nonlocal killed
            if not killed and done > total / 6:
                killed = True
                kill_one()

        pool = Cluster(tournament)
        assert pool.size == 2
        results = run(tournament, tmp_path / "games.sqlite", pool=pool, progress=kill)
    assert killed
    assert same(results, run(tournament))
    assert same(results, run(tournament, tmp_path / "games.sqlite"))


def test_td_learns_the_same_on_a_cluster_that_loses_slices(tmp_path, monkeypatch):
    pytest.importorskip("ray")
    first = tmp_path / "first"

    def play_or_die(*arguments):
        from agents import td  # the node imports the unpatched module

        try:
            first.touch(exist_ok=False)
        except FileExistsError:
            return td._play_slice(*arguments)
        os._exit(1)

    monkeypatch.setattr("agents.td._play_slice", play_or_die)
    local, remote = tmp_path / "local", tmp_path / "remote"
    settings = dataclasses.replace(TINY_TD, games=600, updates=5)
    trained(settings, local)

    with two_nodes() as kill_one, started(settings, remote, ray="auto") as training:
        loop.train(training, lambda run: kill_one() if run.updates == 2 else None)
    assert first.exists()
    assert same_run(local, remote)
    assert settings_in(remote) == dataclasses.replace(settings_in(local), resume=remote, folder=remote)


def test_a_policy_that_raises_stops_the_tournament(tmp_path):
    pytest.importorskip("ray")
    from wotd_env.adapters.ray import Cluster

    tournament = Tournament(("random", OWN + "Broken"), QUICK, games=2000)
    with pytest.raises(
        BrokenPolicyError, match=r"^policy .* first decision: raised ZeroDivisionError"
    ) as stopped:
        run(tournament, tmp_path / "games.sqlite", pool=Cluster(tournament, address="local"))
    assert re.search(r"in _helper$", str(stopped.value), re.MULTILINE)


def test_model_files_need_trust_on_the_cluster(tmp_path):
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
def test_a_missing_cluster_is_reported_quickly(address, message):
    pytest.importorskip("ray")
    code = "import wotd_env.adapters.ray as r; r._CONNECT = 5; from wotd_env.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "arena", "random", "first", "--ray", address],
        cwd=ROOT,
        text=True,
        capture_output=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 2
    assert f"Error: {message}" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_training_run_reports_a_missing_cluster(tmp_path, capsys):
    pytest.importorskip("ray")
    assert command.main([*arguments(TINY_TD, tmp_path), "--ray", "nowhere"]) == 2
    assert "error: no Ray cluster can be reached at nowhere" in capsys.readouterr().err
