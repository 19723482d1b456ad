"""Policies made from a function."""

import numpy as np
import pytest

from tests.helpers.games import VARIANTS, positions
from wotd_env import Game, make_policy
from wotd_env.core.observation import ENCODINGS
from wotd_env.policies.function import FunctionPolicy
from wotd_env.policy import ask


def highest(observation, mask):
    """Return the legal action with the highest number, for one game or a batch."""
    return mask.shape[-1] - 1 - mask[..., ::-1].argmax(-1)


HIGHEST = FunctionPolicy(highest)


@pytest.mark.parametrize("rules", VARIANTS[:3], ids=str)
def test_batched_and_single_game_functions_play_the_same(rules):
    game, state, rng = Game(rules), positions(rules), np.random.default_rng(0)
    mask = game.legal_actions(state)
    expected = [int(np.flatnonzero(row)[-1]) for row in mask]
    for policy in (
        FunctionPolicy(highest),
        FunctionPolicy(highest, batched=True),
        FunctionPolicy(lambda observation, mask: np.array([highest(observation, mask)])),
    ):
        assert ask(policy, game, state, rng).tolist() == expected
        assert ask(policy, game, state[:1], rng).tolist() == expected[:1]
        assert ask(policy, game, state[:0], rng).tolist() == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_function_gets_the_observation_of_the_seat_to_act(encoding):
    rules = VARIANTS[1]
    state = positions(rules)
    seen: list[np.ndarray] = []

    def look(observation, mask):
        seen.append(observation)
        return 0

    expected = Game(rules, encoding=encoding).observe(state)
    for shown in ENCODINGS:
        seen.clear()
        game = Game(rules, encoding=shown)
        FunctionPolicy(look, encoding=encoding).act(game, state, np.random.default_rng(0))
        np.testing.assert_array_equal(seen, expected)
    with pytest.raises(ValueError, match="encoding must be one of 'one_hot'"):
        FunctionPolicy(look, encoding="pixels")


def test_functions_play_in_environments_and_by_import_path():
    import gymnasium

    env = gymnasium.make("wotd_env/WayOfTheDragon-v0", spaces=0, opponents=FunctionPolicy(highest))
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
        over = terminated or truncated
    assert isinstance(make_policy(f"{__name__}:HIGHEST"), FunctionPolicy)
