"""Learners on training layouts of dead pieces."""

from dataclasses import replace
from typing import Any

import pytest

from agents import ppo, sb3, td
from agents.settings import SettingError
from tests.helpers.training import TINY_PPO, TINY_SB3, TINY_TD
from wotd_env import Rules, benchmark
from wotd_env.core.layouts import dead_of

RULES = Rules(spaces=2, dead_pieces=5)
DEAD = {tuple(dead_of(layout).tolist()) for layout in benchmark.layouts("train", 2)}
LEARNERS = [(td, TINY_TD), (ppo, TINY_PPO), (sb3, TINY_SB3)]


def met(learner: Any) -> set[tuple[int, ...]]:
    """Return the layouts of the games that a learner is playing."""
    state = learner.env.env.record if hasattr(learner, "env") else learner.state
    return {*map(tuple, state["dead"].tolist())}


@pytest.mark.parametrize(("module", "tiny"), LEARNERS)
def test_all_games_of_a_training_have_training_layouts(module: Any, tiny: Any, tmp_path):
    learner = module.Learner(replace(tiny, rules=RULES, layouts="train", folder=tmp_path))
    seen = set()
    for number in range(2):
        learner.update(number)
        seen |= met(learner)
        if module is ppo:
            seen |= met(learner.critic)
    assert seen <= DEAD
    assert len(seen) > 3
    learner.policy().check_rules(replace(RULES, dead_pieces=benchmark.layouts("test", 2)[0]))


@pytest.mark.parametrize(("module", "tiny"), LEARNERS)
def test_training_layouts_need_the_rules_of_the_track(module: Any, tiny: Any):
    with pytest.raises(
        SettingError, match=r"layouts needs the rules .*spaces=2.* or .*spaces=3.*, got 'train'"
    ):
        module.Learner(replace(tiny, rules=Rules(spaces=2), layouts="train"))
