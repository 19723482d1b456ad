"""The regret of each decision as its reward, in all interfaces."""

import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode

from wotd_env import Game, Rules, analysis, make_policy, way_of_the_dragon_v0
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.policies import oracle
from wotd_env.solver import Table
from wotd_env.wrappers import Judge, RegretReward, aec, vector
from wotd_env.wrappers.judge import standard_normal

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # these modules import deprecated ones
    from pettingzoo.test import api_test

LEARNERS_FIRST: dict[str, Any] = {"seat": 0, "start": 0}


def played(env: Any, policy: str, steps: int, seed: int = 3) -> list[tuple[Any, ...]]:
    """Play steps of a wrapped vector environment with a policy; return what each step returned."""
    player, game, rng = make_policy(policy), env.unwrapped.game, np.random.default_rng(seed)
    env.reset(seed=seed)
    return [env.step(player.act(game, env.unwrapped.record, rng)) for _ in range(steps)]


@pytest.mark.parametrize("opponents", ["greedy", "random"])
def test_perfect_play_loses_nothing_on_any_seed(table: Table, opponents: str):
    env = vector.RegretReward(WayOfTheDragonVectorEnv(500, opponents=opponents, spaces=0), table)
    for _, reward, *_ in played(env, f"oracle:{table.file}", 60):
        assert (reward == 0).all()


@pytest.mark.parametrize("policy", ["random", "greedy", "planner"])
def test_regrets_explain_the_mean_result(table: Table, policy: str):
    """Against perfect play: mean result = value of the start - mean sum of the regrets."""
    games = 4000
    base = WayOfTheDragonVectorEnv(games, opponents=f"oracle:{table.file}", spaces=0, **LEARNERS_FIRST)
    env, player, rng = vector.RegretReward(base, table), make_policy(policy), np.random.default_rng(0)
    env.reset(seed=1)
    given_away, result = np.zeros((2, games))
    running = np.ones(games, np.bool_)  # the first game of each environment
    while running.any():
        _, reward, terminated, _, infos = env.step(player.act(base.game, base.record, rng))
        given_away -= np.where(running, reward, 0)
        result += np.where(running, infos["result"], 0)
        running &= ~terminated
    difference = result - (table.start - given_away)
    assert abs(difference.mean()) < 4 * difference.std() / games**0.5
    assert given_away.mean() > 0.01


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_vector_wrapper_equals_single_wrappers(table: Table, mode: AutoresetMode):
    games = 6
    settings: dict[str, Any] = {"spaces": 0, "opponents": "greedy"}
    base = WayOfTheDragonVectorEnv(games, autoreset_mode=mode, **settings)
    env = vector.RegretReward(base, table, clip=0.5)
    single = [RegretReward(WayOfTheDragonEnv(**settings), table, clip=0.5) for _ in range(games)]
    _, infos = env.reset(seed=5)
    for i, one in enumerate(single):
        one.reset(seed=5 + i)
    resets, rng = np.zeros(games, np.bool_), np.random.default_rng(0)
    for _ in range(60):
        if mode == AutoresetMode.DISABLED and resets.any():
            env.reset(options={"reset_mask": resets})
            for one in (single[i] for i in np.flatnonzero(resets)):
                one.reset()
            resets[:] = False
        actions = np.array([rng.choice(np.flatnonzero(mask)) for mask in base.action_masks()])
        _, reward, terminated, _, infos = env.step(actions)
        for i, one in enumerate(single):
            if resets[i]:  # NEXT_STEP
                one.reset()
                assert (reward[i], infos["regret"][i], infos["equity"][i]) == (0, 0, 0)
                continue
            _, own, ended, _, info = one.step(actions[i])
            assert (own, ended) == (reward[i], terminated[i])
            for name in ("regret", "equity", "result"):
                assert info[name] == infos[name][i]
            if ended and mode == AutoresetMode.SAME_STEP:
                one.reset()
        resets = terminated if mode != AutoresetMode.SAME_STEP else resets


def test_an_illegal_action_costs_a_certain_loss(table: Table):
    base = WayOfTheDragonEnv(spaces=0)
    env = RegretReward(base, table)
    env.reset(seed=0)
    illegal = int(base.action_masks().argmin())
    with pytest.warns(UserWarning, match="illegal action"):
        _, reward, terminated, _, info = env.step(illegal)
    assert terminated
    assert info["regret"] == -reward
    assert info["regret"] == pytest.approx(info["equity"] + 1)
    assert info["result"] == -1


def test_infos_keep_their_keys(table: Table):
    base = WayOfTheDragonEnv(spaces=0)
    env = RegretReward(base, table)
    _, first = env.reset(seed=0)
    keys, ended = {name: type(value) for name, value in first.items()}, False
    while not ended:
        *_, ended, _, info = env.step(int(base.action_masks().argmax()))
        assert {name: type(value) for name, value in info.items()} == keys


def test_scale_and_clip_change_only_the_reward(table: Table):
    changes: list[dict[str, Any]] = [{}, {"scale": 3.0, "clip": 0.2}]
    steps = [
        played(vector.RegretReward(WayOfTheDragonVectorEnv(50, spaces=0), table, **options), "random", 20)
        for options in changes
    ]
    for (_, plain, _, _, infos), (_, changed, _, _, others) in zip(*steps, strict=True):
        np.testing.assert_array_equal(infos["regret"], others["regret"])
        np.testing.assert_array_equal(changed, np.maximum(3 * plain, -0.2))


def test_noise_is_normal_and_fixed_by_the_position(table: Table):
    game = Game(Rules(spaces=0))
    state = game.reset(3000, seed=0)
    errors = standard_normal(state, game.num_actions, seed=1)
    assert abs(errors.mean()) < 0.01
    assert abs(errors.std() - 1) < 0.01
    later = state.copy()
    later["rng"], later["turn"] = 7, 3
    np.testing.assert_array_equal(standard_normal(later, game.num_actions, seed=1), errors)
    assert (standard_normal(state, game.num_actions, seed=2) != errors).all()
    assert standard_normal(state[:0], 3, seed=1).shape == (0, 3)
    best = make_policy(f"oracle:{table.file}").act(game, state, np.random.default_rng(0))
    exact, noisy = (Judge(game, table, noise=noise)(state, best) for noise in (0.0, 0.1))
    assert (exact.regret == 0).all()
    assert 0.005 < noisy.regret.mean() < 0.3


def test_other_judges_estimate_where_no_table_exists():
    base = WayOfTheDragonEnv(players=3)
    env = RegretReward(base, source="td")
    env.reset(seed=0)
    rng = np.random.default_rng(0)
    actions = make_policy("td").act(base.game, base.record, rng)
    assert env.step(actions)[1] == 0
    planner = Judge(Game(Rules()), "planner")
    state = Game(Rules()).reset(200, seed=0)
    chosen = make_policy("planner").act(planner.game, state, rng)
    assert (planner(state, chosen).regret == 0).all()


def test_the_aec_wrapper_rewards_the_agent_that_acted(table: Table):
    env = aec.RegretReward(way_of_the_dragon_v0.env(spaces=0), table)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Dict spaces and unknown options
        api_test(env, num_cycles=100)
    env.reset(seed=2)
    game, rng, total = env.unwrapped.game, np.random.default_rng(0), dict.fromkeys(env.agents, 0.0)
    for agent in env.agent_iter():
        observation, reward, terminated, _, info = env.last()
        total[agent] += reward
        if terminated:
            assert info["result"] in (-1, 0, 1)
            env.step(None)
            continue
        record = env.unwrapped.record
        action = int(rng.choice(np.flatnonzero(observation["action_mask"])))
        expected = analysis.regret(game, record, [action], table)[0]
        env.step(action)
        assert env.rewards[agent] == pytest.approx(-expected)
        assert sum(map(abs, env.rewards.values())) == abs(env.rewards[agent])
    assert all(each < 0 for each in total.values())


def test_the_wrapper_is_a_gymnasium_environment(table: Table):
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message=".*(is different from the unwrapped version|illegal action)"
        )
        check_env(RegretReward(WayOfTheDragonEnv(spaces=0), table), skip_render_check=True)


@pytest.mark.parametrize(
    ("rules", "arguments", "words"),
    [
        ({"players": 3}, {}, "players must be 2, got 3.* set source='td'"),
        ({"spaces": 4}, {}, "wotd solve --spaces 4"),
        ({}, {"source": "greedy"}, "source must be 'table' or a policy that plans"),
        ({}, {"source": "td", "clip": -1}, "clip must be a finite number of at least 0, got -1"),
        ({}, {"source": "td", "scale": "2"}, "scale must be a finite number of at least 0, got '2'"),
        ({}, {"source": "td", "noise": float("nan")}, "noise must be a finite number of at least 0, got nan"),
        (
            {},
            {"source": "td", "noise_seed": -1},
            r"noise_seed must be an integer from 0 to 2\*\*64 - 1, got -1",
        ),
        ({}, {"source": "td", "noise_seed": 1.5}, "noise_seed must be an integer .*, got 1.5"),
    ],
)
def test_wrong_arguments_are_named(
    rules: dict[str, Any],
    arguments: dict[str, Any],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(oracle, "cache_file", lambda rules: tmp_path / "missing")
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        RegretReward(WayOfTheDragonEnv(**rules), **arguments)


def test_other_environments_are_refused(table: Table):
    with pytest.raises(TypeError, match="env must be an environment of Way of the Dragon"):
        RegretReward(gymnasium.make("CartPole-v1"), table)
    with pytest.raises(TypeError, match="env must be a vector environment of Way of the Dragon"):
        vector.RegretReward(gymnasium.make_vec("CartPole-v1"), table)


def test_the_wrapper_of_another_interface_is_named(table: Table):
    one, many = WayOfTheDragonEnv(spaces=0), WayOfTheDragonVectorEnv(2, spaces=0)
    with pytest.raises(TypeError, match=r"use wotd_env\.wrappers\.vector\.RegretReward"):
        RegretReward(many, table)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"use wotd_env\.wrappers\.RegretReward"):
        vector.RegretReward(one, table)  # type: ignore[arg-type]


def test_games_that_draw_their_layouts_are_refused(table: Table):
    drawn: dict[str, Any] = {"spaces": 1, "layouts": ["#/./././.", "././././."]}
    with pytest.raises(ValueError, match="layouts cannot be judged together"):
        RegretReward(WayOfTheDragonEnv(**drawn), table)
    with pytest.raises(ValueError, match="layouts cannot be judged together"):
        vector.RegretReward(WayOfTheDragonVectorEnv(2, **drawn), table)
