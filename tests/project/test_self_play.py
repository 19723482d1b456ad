"""The reward table of docs/reference/environment.md and the loop of docs/how-to/self-play.md match the engine."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers import ROOT
from wotd_env import Game, Phase, Rules

PAGE = ROOT / "docs" / "reference" / "environment.md"


def stated_rewards(players):
    """Return the reward of each winner, by number of winners, and that of every other seat, as stated on the page."""
    table = PAGE.read_text().split("<!-- table: reward -->")[1]
    row = next(line for line in table.splitlines() if line.startswith(f"| {players} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
    *winners, other = (float(cell) for cell in cells if cell)
    return winners, other


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_the_reward_table_matches_the_game(players):
    game, (stated, other) = Game(Rules(players=players)), stated_rewards(players)
    assert len(stated) == players - 1  # all seats never win together
    for winners in range(1, players):
        over = game.reset(1)  # an artificial end before anyone has moved
        over["phase"] = Phase.OVER
        for path in range(winners):
            over["pieces"][0, path, path] = game.rules.spaces + 3
        expected = [stated[winners - 1]] * winners + [other] * (players - winners)
        np.testing.assert_allclose(game.rewards(over)[0], expected, atol=5e-5)
    expired = np.array(over)
    expired["expired"] = 1
    assert not game.rewards(expired).any()


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_step_autoreset_equals_step_and_reset(players):
    game, rng = (
        Game(Rules(players=players, spaces=1, start="loser", powers="own")),
        np.random.default_rng(players),
    )
    state = game.reset(65, seed=1)
    plain = state.copy()
    rewards, done = np.empty((65, players), np.float32), np.empty(65, np.bool_)
    observation, mask = game.observe(state), game.legal_actions(state)
    ends = 0
    for _ in range(300):
        actions = (mask * rng.random(mask.shape)).argmax(1)
        game.step_autoreset(state, actions, observation, mask, rewards, done)
        game.step(plain, actions)
        over = plain["phase"] == Phase.OVER
        np.testing.assert_array_equal(done, over)
        np.testing.assert_array_equal(rewards, game.rewards(plain))
        assert np.abs(rewards.sum(1)).max() < 1e-6
        game.reset(plain, where=over)
        assert (state == plain).all()
        np.testing.assert_array_equal(observation, game.observe(plain))
        np.testing.assert_array_equal(mask, game.legal_actions(plain))
        ends += done.sum()
    assert ends > 10
