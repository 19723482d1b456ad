"""Infos have the same keys, dtypes and shapes in every reset and step, and contain the result at the end."""

from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode

from tests.helpers.vectors import random_actions
from wotd_env import Game, way_of_the_dragon_v0
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv

pytestmark = pytest.mark.filterwarnings("ignore:.*lost by an illegal action")

VARIANTS: list[dict[str, Any]] = [
    {"spaces": 0},
    {"players": 3, "spaces": 1, "start": "loser", "mask_in": "obs"},
    {"players": 5, "spaces": 1, "max_turns": 4, "mask_dtype": "bool", "mask_in": "info"},
]
variants = pytest.mark.parametrize("arguments", VARIANTS)
RESULT = ("scores", "places", "winners")


def structure(info: dict[str, Any]) -> dict[str, Any]:
    """Return the type, dtype and shape of every entry. All entries must be NumPy scalars or arrays."""
    return {name: (type(value), value.dtype, value.shape) for name, value in info.items()}


def expected_result(game: Game, state: np.ndarray, loser: int | None = None) -> dict[str, list[Any]]:
    """Return the result of a finished game by the rewards; `loser` has lost by an illegal action."""
    n = game.rules.players
    numbered = (state["pieces"][0, :n] > game.rules.spaces).sum(1)
    standing = [(score, count) for score, count in zip(game.scores(state)[0], numbered, strict=True)]
    if loser is not None:
        standing = [(int(seat != loser), 0) for seat in range(n)]
    elif state["expired"][0]:
        standing = [(0, 0)] * n
    winners = [one == max(standing) and (loser is not None or not state["expired"][0]) for one in standing]
    if loser is None:
        assert winners == (game.rewards(state)[0] > 0).tolist()
    return {
        "scores": game.scores(state)[0].tolist(),
        "places": [1 + sum(other > one for other in standing) for one in standing],
        "winners": winners,
    }


@variants
def test_the_single_environment(arguments):
    env, rng = WayOfTheDragonEnv(**arguments), np.random.default_rng(0)
    first, ends, illegal = None, 0, 0
    for seed in range(30):
        _, info = env.reset(seed=seed)
        terminated = False
        while not terminated:
            first = first or structure(info)
            assert structure(info) == first
            assert info["seat"] == env.seat
            assert not any(info[name].any() for name in RESULT)
            assert info["illegal_action"] == -1
            action = int(random_actions(env.action_masks()[None], rng, illegal=0.05)[0])
            lost = not env.action_masks()[action]
            _, _, terminated, _, info = env.step(action)
        assert structure(info) == first
        assert info["illegal_action"] == (action if lost else -1)
        result = expected_result(env.game, env.record, env.seat if lost else None)
        assert {name: info[name].tolist() for name in RESULT} == result
        ends, illegal = ends + 1, illegal + lost
    assert 0 < illegal < ends


@pytest.mark.parametrize("action", [10**30, -(10**30), 2**63, np.int64(-5)])
def test_any_integer_can_be_the_illegal_action(action):
    env = WayOfTheDragonEnv()
    _, info = env.reset(seed=0)
    after = env.step(action)[-1]
    assert structure(after) == structure(info)


@variants
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_vector_environment(arguments, mode):
    env, rng = WayOfTheDragonVectorEnv(6, autoreset_mode=mode, **arguments), np.random.default_rng(0)
    finals = {"final_obs", "_final_obs", "final_info", "_final_info"}
    _, infos = env.reset(seed=0)
    first, ends = structure(infos), 0
    for _ in range(300):
        masks = env.action_masks()
        _, _, terminated, _, infos = env.step(random_actions(masks, rng, illegal=0.02))
        assert structure({name: infos[name] for name in infos if name not in finals}) == first
        assert (infos["seat"] == env.seat).all()
        assert all(infos[name].all() for name in infos if name[0] == "_" and name not in finals)
        shown = infos
        if mode == AutoresetMode.SAME_STEP:
            assert not any(infos[name].any() for name in RESULT)
            assert ("final_info" in infos) == terminated.any()
            shown = infos.get("final_info", infos)
        for name in RESULT:
            assert (shown[name].any(1) <= terminated).all()
        assert (shown["places"].any(1) == terminated).all()
        if mode != AutoresetMode.SAME_STEP:
            for i in np.flatnonzero(terminated):
                loser = None if infos["illegal_action"][i] == -1 else int(infos["seat"][i])
                result = expected_result(env.game, env.record[i : i + 1], loser)
                assert {name: infos[name][i].tolist() for name in RESULT} == result
        ends += terminated.sum()
        if mode == AutoresetMode.DISABLED and terminated.any():
            _, infos = env.reset(options={"reset_mask": terminated})
            assert structure(infos) == first
            assert not any(infos[name].any() for name in RESULT)
    assert ends > 20


@variants
@pytest.mark.parametrize("make", [way_of_the_dragon_v0.env, way_of_the_dragon_v0.raw_env])
def test_every_agent(arguments, make):
    env, rng, first, ends = make(**arguments), np.random.default_rng(0), None, 0
    raw = make is way_of_the_dragon_v0.raw_env
    for seed in range(30):
        env.reset(seed=seed)
        loser = None
        while not any(env.terminations.values()):
            for info in env.infos.values():
                first = first or structure(info)
                assert structure(info) == first
                assert not any(info[name].any() for name in RESULT)
            seat = env.agents.index(env.agent_selection)
            mask = env.unwrapped.action_masks()
            action = int(random_actions(mask[None], rng, illegal=0 if raw else 0.05)[0])
            loser = None if mask[action] else seat
            env.step(action)
        result = expected_result(Game(env.unwrapped.game.rules), env.unwrapped.record, loser)
        for info in env.infos.values():
            assert structure(info) == first
            assert {name: info[name].tolist() for name in RESULT} == result
        ends += 1
    assert ends == 30
