"""The example td0.py: its value function and the strength that it learns."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'wotd-env[train]'")

import torch as th

from examples import td0
from wotd_env import Rules, evaluate
from wotd_env.policies.planner import Planner
from wotd_env.policy import check_plays


def test_the_value_gives_the_seat_to_act_its_win_probability():
    value = td0.Value()
    state = td0.game.reset(50, seed=0)
    seats, (first, second) = state["player"], value(td0.game, state).T
    np.testing.assert_array_equal(first, -second)
    chance = value.logits(state).sigmoid().detach().numpy()
    np.testing.assert_allclose(np.where(seats == 0, first, second), 2 * chance - 1, atol=1e-6)
    assert set(seats.tolist()) == {0, 1}


def test_the_policy_plays_only_the_rules_of_its_training():
    with pytest.raises(ValueError, match=r"the network of td0\.py is made for players=2"):
        check_plays(Planner(td0.Value()), Rules(players=3))


def test_a_saved_network_plays_like_the_trained_one(tmp_path: Path):
    value, file = td0.Value(), str(tmp_path / "network")  # NumPy would append .npz to a name
    td0.save(value, file)
    state, rng = td0.game.reset(200, seed=0), np.random.default_rng(0)
    loaded = td0.load(file).act(td0.game, state, rng)
    np.testing.assert_array_equal(loaded, Planner(value).act(td0.game, state, rng))


def test_td_learns_to_beat_random_play(no_measuring: Any):
    no_measuring(td0)
    value = td0.train(td0.Settings(total_timesteps=3200, num_envs=16))
    th.manual_seed(0)
    before, after = (evaluate(Planner(each), "random", 100).share for each in (td0.Value(), value))
    assert after > before + 0.15
