"""Strengths: each wins more games against the one before it, and plays legally."""

from __future__ import annotations

import itertools

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from tests.helpers.server import HERE, make, play
from wotd_env import Game, Rules
from wotd_env.policy import Policy, play_policies
from wotd_env.web.agents import STRENGTHS, Sampled

GAMES = 400


def share(stronger: Policy, weaker: Policy) -> float:
    """Return the share of games of two players that the first policy wins."""
    game, rng = Game(Rules()), np.random.default_rng(3)
    state, seats = game.reset(GAMES, seed=1), np.resize([[0, 1], [1, 0]], (GAMES, 2))
    for _ in play_policies(game, state, seats, (stronger, weaker), rng):
        pass
    rewards = game.rewards(state)[np.arange(GAMES), seats.argmin(1)]
    return float((rewards + 1).mean() / 2)


@pytest.mark.parametrize(("weaker", "stronger"), list(itertools.pairwise(STRENGTHS)))
def test_each_strength_beats_the_one_before_it(weaker: str, stronger: str) -> None:
    won = share(STRENGTHS[stronger].make(), STRENGTHS[weaker].make())
    assert (0.5 if stronger in ("strong", "near perfect") else 0.7) < won < 0.9


def test_sampling_prefers_actions_with_more_equity() -> None:
    game, rng = Game(Rules()), np.random.default_rng(0)
    state = np.repeat(game.new(1, seed=4), 2000)
    best = Sampled(1e-6).act(game, state, rng)
    assert len(set(best.tolist())) == 1
    often = [(Sampled(heat).act(game, state, rng) == best[0]).mean() for heat in (0.02, 0.1, 10)]
    assert often[0] > often[1] > often[2] > 0
    game.check(state, Sampled(10).act(game, state, rng))


def test_strengths_are_listed_and_play(client: httpx.Client) -> None:
    listed = client.post("/api/agents", json={"rules": {"players": 2, "spaces": 4}}).json()["agents"]
    levels = {agent["name"]: agent["level"] for agent in listed if agent["level"]}
    assert levels == {name: level for level, name in enumerate(STRENGTHS, 1)}
    assert [agent["why"] for agent in listed if agent["name"] == "near perfect"] == [
        "near perfect is not made for spaces=4"
    ]
    agents = [{"kind": "agent", "agent": name} for name in ("beginner", "very easy")]
    at, _ = make(client, HERE, *agents, rules={"players": 3, "spaces": 1})
    assert {step["note"] for step in play(at)["log"]} == {None}
