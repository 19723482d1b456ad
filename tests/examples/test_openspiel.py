"""The example with a bot of OpenSpiel is a policy."""

import numpy as np
import pytest

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed: pip install 'wotd-env[openspiel]'")

from examples.openspiel_bot import Search
from wotd_env import Game, Rules, benchmark
from wotd_env.policy import ask, check_plays


def test_the_bot_decides_legally_and_repeats_its_decisions():
    positions = benchmark.load(rules=Rules(spaces=0)).first(2)
    first, second = (
        ask(Search(), Game(positions.rules), positions.state, np.random.default_rng(0)) for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    assert np.isfinite(positions.regret(first)).all()


def test_the_bot_plays_two_players_only():
    with pytest.raises(ValueError, match="players must be 2, got 3"):
        check_plays(Search(), Rules(players=3))
