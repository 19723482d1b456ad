"""The examples in JAX: masks, advantages, equal seeds, and a search that finds the winning move."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.helpers.jax_compiling import few_optimizations as few_optimizations
from tests.helpers.positions import board
from wotd_env import Game
from wotd_env.core.actions import Action

jax = pytest.importorskip("jax")
jnp = jax.numpy

from examples import jax_ppo  # noqa: E402
from wotd_env.jax import WayOfTheDragon  # noqa: E402

TINY = jax_ppo.Settings(
    total_timesteps=1280, num_envs=16, num_steps=40, minibatch_size=64, update_epochs=1, width=8
)


def test_ppo_trains_all_weights_and_reports(no_measuring: Any, capsys: pytest.CaptureFixture[str]):
    no_measuring(jax_ppo)
    trained = jax_ppo.train(TINY)
    for name, weights in jax_ppo.new_learner(WayOfTheDragon(), TINY).params.items():
        assert not (trained[name] == weights).all(), name
        assert np.isfinite(trained[name]).all(), name
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(",")[0] for line in lines] == ["update 1", "update 2"]
    assert lines[1].endswith("25.0% against greedy, 25.0% against random")


@pytest.mark.parametrize("count", [1, 5])
def test_ppo_plays_the_most_likely_legal_actions_in_batches_of_any_size(count: int):
    env = WayOfTheDragon(players=3)
    params = jax_ppo.new_params(env, jax.random.key(0), 8)
    game = Game(env.rules)
    state = game.reset(count, seed=0)
    mask = game.legal_actions(state)
    actions = jax_ppo.policy(env, params).act(game, state, np.random.default_rng(0))
    log_probs, _ = jax_ppo.network(env, params, jnp.asarray(game.observe(state)), jnp.asarray(mask != 0))
    assert (actions == np.asarray(log_probs).argmax(1)).all()
    assert mask[np.arange(count), actions].all()


def test_ppo_advantages_are_returns_with_trace_one_and_zero_values():
    """With trace 1 and values 0, the advantage of a decision is the return of its seat."""
    settings = replace(TINY, players=3, total_timesteps=1920, num_steps=120, gae_lambda=1.0)
    env = WayOfTheDragon(players=3, spaces=0)
    learner = jax_ppo.new_learner(env, settings)
    learner.params["whole_out"] = learner.params["whole_out"].at[:, 14].set(0)
    _, decisions = jax.jit(lambda learner: jax_ppo.rollout(env, learner, settings))(learner)
    advantage = np.asarray(decisions.advantage).reshape(120, 16)
    assert set(np.unique(advantage)) <= {-0.5, 0.0, 0.25, 1.0}
    early = advantage[:5]
    assert (early < 0).sum() > (early > 0).sum() > 0  # two of three seats lose
    legal = np.asarray(decisions.mask)[np.arange(120 * 16), np.asarray(decisions.action)]
    assert legal.all()


def test_search_takes_the_winning_move():
    pytest.importorskip("mctx")
    from examples import jax_search

    numbered = ".......|....a"
    records = board(
        jax_search.env.rules,
        water=numbered, fire=numbered, metal=numbered, earth=numbered, wood="......a|.....",
        dice="wood water water fire fire",
    )  # fmt: skip
    state = jax_search.env.from_records(records)
    assert jax_search.search(state, jax.random.key(0), 16).tolist() == [Action.MOVE_ON + 4]


def test_search_is_a_policy_for_batches_of_any_size(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("mctx")
    from examples import jax_search

    monkeypatch.setattr(jax_search, "BATCH", 2)
    game = Game()
    state = game.reset(5, seed=0)
    actions = jax_search.Search(2).act(game, state, np.random.default_rng(0))
    assert game.legal_actions(state)[np.arange(5), actions].all()
    with pytest.raises(ValueError, match="simulations must be an integer of at least 1, got 0"):
        jax_search.Search(0)
