"""Random games and checks for the tests of pictures."""

import json
import re
from itertools import combinations

import numpy as np
import pytest

from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.core.starting import roll_off_of
from wotd_env.rendering.scene import HEIGHT, WIDTH, Mark

VARIANTS = [
    Rules(),
    Rules(players=2, spaces=3, dead_pieces=15, powers="own"),
    Rules(players=3, spaces=0, powers="any", immunity=True),
    Rules(players=4, spaces=10, powers="own", dead_pieces=5, colors="random", immunity=True),
    Rules(players=5, spaces=10, powers="any", colors="random"),
    Rules(players=5, spaces=1, powers="own"),
]
variants = pytest.mark.parametrize("rules", VARIANTS, ids=str)


def played(rules: Rules, seed: int = 0, most: int = 10_000) -> tuple[Game, np.ndarray, list[int]]:
    """Play a game between random players; return it with its positions and actions."""
    game, policy, rng = Game(rules), make_policy("random"), np.random.default_rng(seed)
    state = game.reset(1, seed=seed)
    states = [state.copy()]
    actions: list[int] = []
    while state["phase"] != Phase.OVER and len(actions) < most:
        actions.append(int(policy.act(game, state, rng)[0]))
        game.step(state, actions[-1:])
        states.append(state.copy())
    return game, np.concatenate(states), actions


def ties(rules: Rules, rounds: int) -> tuple[Game, int, np.ndarray]:
    """Return a game, a seed whose roll-off takes `rounds` rounds, and this roll-off."""
    game = Game(rules)
    seed = next(seed for seed in range(10_000) if len(roll_off_of(game, seed)) == rounds)
    return game, seed, roll_off_of(game, seed)


def check_inside(marks: list[Mark]) -> None:
    for mark in marks:
        assert mark.x >= 0
        assert mark.y >= 0
        assert mark.x + mark.width * mark.scale <= WIDTH
        assert mark.y + mark.height * mark.scale <= HEIGHT


def check_apart(marks: list[Mark]) -> None:
    above = [mark for mark in marks[1:] if mark.y + mark.height * mark.scale < 156]  # the board starts there
    assert len(above) > 7
    for one, other in combinations(above, 2):
        apart = (
            one.x + one.width * one.scale <= other.x + 1
            or other.x + other.width * other.scale <= one.x + 1
            or one.y + one.height * one.scale <= other.y + 6  # text boxes include room below the line
            or other.y + other.height * other.scale <= one.y + 6
        )
        assert apart, (one, other)


def content(page: str) -> dict:
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    whole: dict = json.loads(data)
    return whole
