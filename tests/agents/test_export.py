"""The export of networks as ONNX files. An export takes seconds, so the tests of a run share one."""

import shlex
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch as th
from typer.testing import CliRunner

from agents import command, ppo
from agents.checkpoint import CheckpointError
from agents.export import load, to_onnx
from agents.network import Network
from tests.helpers import ROOT
from tests.helpers.training import TINY_PPO, TINY_TD, started
from wotd_env import Game, Rules, make_policy
from wotd_env.cli import app as wotd
from wotd_env.policy import check_plays

RANDOM = make_policy("random")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a run folder with an exported network. Tests must not modify it."""
    folder = tmp_path_factory.mktemp("exported") / "a run"
    rules = Rules(spaces=3, immunity=True, colors=("fire", "wood"))
    with started(TINY_PPO, folder, rules=rules) as run:
        pass
    with pytest.raises(ValueError, match=r"contains no policy.* train\.py --resume"):
        make_policy(str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ppo, "to_onnx", to_onnx)  # conftest.py replaces it with a stand-in
        run.learner.export(folder)
    return folder


def check_onnx(model: bytes, network: Network, overhead: int) -> None:
    """Check that an ONNX file has at most `overhead` bytes more than its weights, and computes the same scores."""
    assert len(model) < sum(4 * tensor.numel() for tensor in network.parameters()) + overhead
    game, rng = Game(network.rules), np.random.default_rng(0)
    session, state = onnxruntime.InferenceSession(model), game.reset(200, seed=9)
    for _ in range(12):
        observation, mask = game.observe(state), game.legal_actions(state)
        (logits,) = session.run(["logits"], {"observation": observation, "action_mask": mask})
        with th.no_grad():
            expected = network(th.from_numpy(observation).float())[0].numpy()
        np.testing.assert_allclose(logits[mask == 1], expected[mask == 1], atol=1e-4)
        game.step(state, RANDOM.act(game, state, rng))


def test_exported_networks_are_small_and_contain_no_local_paths(exported: Path):
    model, network = (exported / "model.onnx").read_bytes(), load(exported).network
    check_onnx(model, network, overhead=100_000)
    assert b"forward" not in model
    assert str(ROOT).encode() not in model


@pytest.mark.parametrize(
    "rules", [Rules(spaces=2, powers="any"), Rules(spaces=0)], ids=["powers", "shortest board"]
)
def test_an_exported_network_computes_the_same_scores(rules: Rules):
    network = Network(rules, 16)
    check_onnx(to_onnx(network), network, overhead=130_000)


def test_a_finished_run_plays_with_the_printed_commands(
    exported: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(exported.parent)
    play_it, grade_it = map(
        shlex.split, command.next_commands(Path(exported.name), load(exported).network.rules)
    )
    assert Path(play_it[0]).name == "wotd"
    assert grade_it[1:] == ["analyze", exported.name, "--spaces", "3", "--immunity", "--colors", "fire,wood"]
    few = ["--games", "4", "--workers", "0", "--file", str(tmp_path / "arena.sqlite"), "--quiet"]
    result = CliRunner().invoke(wotd, [*play_it[1:], *few])
    assert result.exit_code == 0, result.output
    for policy in (make_policy(str(exported)), load(exported)):
        with pytest.raises(ValueError, match=r"made for .*spaces=3.*, not for .*spaces=7"):
            check_plays(policy, Rules(immunity=True, colors=("fire", "wood")))


def test_load_reports_missing_checkpoints_and_other_learners(tmp_path: Path):
    with started(TINY_TD, tmp_path / "td"):
        pass
    with pytest.raises(CheckpointError, match="there is no checkpoint"):
        load(tmp_path / "nowhere")
    with pytest.raises(CheckpointError, match="it is not a run of ppo or sb3"):
        load(tmp_path / "td")
