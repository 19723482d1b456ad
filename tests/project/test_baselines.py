"""The learners that several entries share: they keep their budgets, and stored weights play as before."""

import importlib
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("stable_baselines3", reason="needs the extra train")

from entries import learners, offline, sb3
from wotd_env import Game, Rules
from wotd_env.policy import check_plays

SB3 = ("sb3_a2c", "sb3_dqn", "sb3_maskable_ppo", "sb3_path_network", "sb3_ppo")


@pytest.fixture(autouse=True)
def weights(tmp_path, monkeypatch):
    """Keep the weights in a temporary folder."""
    monkeypatch.setattr(learners, "WEIGHTS", tmp_path)
    monkeypatch.setattr(sb3, "WEIGHTS", tmp_path)
    monkeypatch.setattr(offline, "WEIGHTS", tmp_path)
    return tmp_path


def decide(agent):
    game = Game()
    state = game.reset(64, seed=0)
    return agent.act(game, state, np.random.default_rng(0)).tolist()


@pytest.mark.parametrize("name", SB3)
def test_models_of_sb3_train_within_the_budget_and_load(name, monkeypatch, weights):
    baseline = importlib.import_module(f"entries.{name}.run").baseline
    monkeypatch.setattr(baseline, "weights", weights / name)
    if name == "sb3_dqn":
        monkeypatch.setitem(baseline.options, "learning_starts", 100)
    budgets = []

    class Noted(sb3.Budget):
        def __init__(self, *given):
            super().__init__(*given)
            budgets.append(self)

    monkeypatch.setattr(sb3, "Budget", Noted)
    baseline.train(20_000, 0)
    (budget,) = budgets
    used = budget.num_timesteps + budget.opponent.decisions
    assert sb3.SPARE * 20_000 <= used <= 20_000
    assert budget.opponent.decisions > 0
    one, other = (baseline.load(20_000, 0) for _ in range(2))
    assert decide(one) == decide(other)
    with pytest.raises(ValueError, match="the network is made for"):
        check_plays(one, Rules(players=3))
    assert baseline.load(20_000, 1) is None


def test_equal_seeds_give_equal_models(weights):
    import torch as th
    from sb3_contrib import MaskablePPO

    found = []
    for _ in range(2):
        baseline = sb3.Baseline("twice", MaskablePPO, n_steps=16, batch_size=64)
        baseline.train(6_000, 3)
        found.append(th.load(weights / "twice" / "6000-3.pt", weights_only=True))
    assert all(th.equal(found[0][key], found[1][key]) for key in found[0])


def test_imitation_learns_from_the_logged_games(monkeypatch, weights):
    monkeypatch.setattr(offline, "LOGGED", 40)
    bc = offline.Learner("bc", beta=0.0)
    assert bc.load() is None
    bc.train(12_000, 0)
    files = sorted(file.name for file in weights.glob("*.parquet"))
    assert files == ["greedy-planner.parquet", "planner-random.parquet", "random-greedy.parquet"]
    assert decide(bc.load()) == decide(bc.load())


def test_larger_weights_of_advantages_prefer_actions_that_won(monkeypatch, weights):
    """With advantages, the actions of winners become more likely than those of losers, compared with cloning."""
    import torch as th

    monkeypatch.setattr(offline, "LOGGED", 40)
    monkeypatch.setattr(offline, "EPOCHS", 8)
    preferred = {}
    for beta in (0.0, 2.0):
        learner = offline.Learner(f"beta-{beta}", beta=beta)
        learner.train(12_000, 0)
        agent, game = learner.load(), Game()
        assert agent is not None
        network = agent.network
        (file, *_) = offline.logged(weights)
        logits = network(th.from_numpy(game.observe(file.state)).float())[0]
        logits = logits.masked_fill(th.from_numpy(file.mask) == 0, -1e9).log_softmax(1)
        chosen = logits.gather(1, th.from_numpy(file.action)[:, None])[:, 0].detach().numpy()
        won = file.reward > 0
        preferred[beta] = chosen[won].mean() - chosen[~won].mean()
    assert preferred[2.0] > preferred[0.0]


def test_learners_of_train_leave_a_policy(monkeypatch, weights):
    td = importlib.import_module("agents.td")
    tiny = replace(td.PRESETS["quick"], games=16, turns=4, batches=2, batch_size=32)
    monkeypatch.setitem(td.PRESETS, "quick", tiny)
    learner = learners.Learner("td", updates={1: 2})
    assert learner.load(1, 0) is None
    learner.train(1, 0)
    first = decide(learner.load(1, 0))
    learner.train(1, 0)  # again, from the start
    assert decide(learner.load(1, 0)) == first
