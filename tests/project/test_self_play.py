"""What docs/self-play.md says of rewards holds; its code is run by test_docs.py."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.helpers import ROOT
from wotd_env import Game, Phase, Rules

PAGE = ROOT / "docs" / "self-play.md"


def stated_rewards(players):
    """The cells of the table's row: by number of winners, what winners and others get."""
    row = next(line for line in PAGE.read_text().splitlines() if line.startswith(f"| {players} |"))
    cells = [cell.strip() for cell in row.strip("|").split("|")][1:]
    return [[float(Fraction(number)) for number in cell.split(",")] for cell in cells if cell]


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_the_table_of_rewards_is_that_of_the_game(players):
    game, stated = Game(Rules(players=players)), stated_rewards(players)
    assert len(stated) == players
    for winners in range(1, players + 1):
        over = game.reset(1)  # made up: it ends before anyone has moved
        over["phase"] = Phase.OVER
        for path in range(winners):
            over["pieces"][0, path, path] = game.rules.spaces + 3
        expected = [stated[winners - 1][0]] * winners + [stated[winners - 1][-1]] * (players - winners)
        np.testing.assert_allclose(game.rewards(over)[0], expected)
    truncated = np.array(over)
    truncated["truncated"] = 1
    assert not game.rewards(truncated).any()


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_advance_is_step_and_reset(players):
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
