"""The examples in JAX: masks, advantages, equal seeds, and a search that finds the winning move."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.jax_compiling import few_optimizations as few_optimizations
from tests.helpers.positions import board
from wotd_env.core.actions import Action

jax = pytest.importorskip("jax")
jnp = jax.numpy

from examples import jax_ppo  # noqa: E402
from wotd_env.jax import WayOfTheDragon  # noqa: E402

TINY = jax_ppo.Settings(updates=2, games=16, steps=40, minibatch=64, epochs=1, width=8, evaluation_games=4)


def test_ppo_trains_all_weights_and_reports(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(
        jax_ppo, "win_rate", lambda *_: 0.25
    )  # the measurements take longer than the learning
    trained = jax_ppo.train(TINY)
    for name, weights in jax_ppo.new_learner(WayOfTheDragon(), TINY).params.items():
        assert not (trained[name] == weights).all(), name
        assert np.isfinite(trained[name]).all(), name
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["640", "1,280"]
    assert lines[1].endswith("25.0% against greedy, 25.0% against random")


def test_ppo_plays_legal_actions_and_measures_its_win_rate():
    env = WayOfTheDragon()
    params = jax_ppo.new_params(env, jax.random.key(0), 8)
    assert 0 <= jax_ppo.win_rate(env, params, "random", 8) <= 1


def test_ppo_advantages_are_returns_with_trace_one_and_zero_values():
    """With trace 1 and values 0, the advantage of a decision is the return of its seat."""
    settings = TINY._replace(players=3, steps=120, trace=1.0)
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
    search = jax.jit(jax_search.search, static_argnums=2)
    assert search(state, jax.random.key(0), 16).tolist() == [Action.MOVE_ON + 4]
