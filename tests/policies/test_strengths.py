"""Strengths: each wins more games against the one before it, and plays legally."""

import itertools

import numpy as np
import pytest

from wotd_env import Game, Rules, evaluate, make_policy
from wotd_env.policies import STRENGTHS
from wotd_env.policies.sampled import Sampled


@pytest.mark.parametrize(("weaker", "stronger"), list(itertools.pairwise(STRENGTHS)))
def test_each_strength_beats_the_one_before_it(weaker: str, stronger: str) -> None:
    won = evaluate(stronger, weaker, games=400, seed=1).share
    assert (0.5 if stronger in ("strong", "near perfect") else 0.7) < won < 0.9


def test_sampling_prefers_actions_with_more_equity() -> None:
    game, rng = Game(Rules()), np.random.default_rng(0)
    state = np.repeat(game.new(1, seed=4), 2000)
    best = Sampled(1e-6).act(game, state, rng)
    assert len(set(best.tolist())) == 1
    often = [(Sampled(heat).act(game, state, rng) == best[0]).mean() for heat in (0.02, 0.1, 10)]
    assert often[0] > often[1] > often[2] > 0
    game.check(state, Sampled(10).act(game, state, rng))


@pytest.mark.parametrize("temperature", ["warm", "0", "-1", "inf", "nan"])
def test_temperature_must_be_a_positive_number(temperature: str) -> None:
    with pytest.raises(ValueError, match="must be a positive number"):
        make_policy(f"sampled:{temperature}")
