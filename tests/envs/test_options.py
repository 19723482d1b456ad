"""The options that the three environments share, and the rewards after an illegal action."""

import builtins
from itertools import product
from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo.utils import wrappers

from tests.helpers.positions import foreign_records
from wotd_env import Game, Phase, way_of_the_dragon_v0
from wotd_env.envs.aec import raw_env
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv

MAKERS = [raw_env, WayOfTheDragonEnv, WayOfTheDragonVectorEnv]
pytestmark = pytest.mark.filterwarnings("ignore:.*lost by an illegal action")

makers = pytest.mark.parametrize("make", MAKERS)


def space_of(env):
    return env.observation_space("player_0") if isinstance(env, raw_env) else env.observation_space


@makers
@pytest.mark.parametrize("spelling", ["float32", np.float32, np.dtype("float32"), "f4", "single"])
def test_observation_dtype_accepts_every_spelling(make, spelling):
    env = make(observation_dtype=spelling)
    env.reset(seed=0)
    space = space_of(env)
    assert (space["observation"] if isinstance(env, raw_env) else space).dtype == np.float32


@makers
@pytest.mark.parametrize("spelling", ["bool", bool, np.bool_, np.dtype(bool), "?"])
@pytest.mark.parametrize("mask_in", ["obs", "info"])
def test_mask_dtype_accepts_every_spelling(make, spelling, mask_in):
    env = make(mask_dtype=spelling, mask_in=mask_in)
    env.reset(seed=0)
    assert env.action_masks().dtype == bool
    if mask_in == "obs":
        assert space_of(env)["action_mask"].dtype == bool


@makers
@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("observation_dtype", "float64"),
        ("observation_dtype", float),
        ("observation_dtype", "flaot32"),
        ("mask_dtype", "float32"),
        ("mask_dtype", None),
    ],
)
def test_unsupported_dtypes_are_rejected(make, option, value):
    with pytest.raises(ValueError, match=f"{option} must be one of 'int8', .*, got "):
        make(**{option: value})


@pytest.mark.parametrize("mask_in", ["obs", "info"])
def test_agents_get_the_requested_dtypes(mask_in):
    env = raw_env(players=3, observation_dtype="float32", mask_dtype="bool", mask_in=mask_in)
    env.reset(seed=0)
    for _ in range(40):
        for agent in env.possible_agents:
            seen = env.observe(agent)
            assert env.observation_space(agent).contains(seen)
            assert (env.infos[agent] if mask_in == "info" else seen)["action_mask"].dtype == bool
        assert env.state_space.contains(env.state())
        assert env.state().dtype == np.float32
        env.step(int(env.action_masks().argmax()))


@makers
@pytest.mark.parametrize(
    ("name", "hint"),
    [("player", "'players'"), ("observation_type", "'observation_dtype'"), ("frameskip", None)],
)
def test_an_unknown_argument_raises_pythons_type_error(make, name, hint):
    with pytest.raises(TypeError) as caught:
        make(**{name: 3})
    expected = f"{make.__name__}.__init__() got an unexpected keyword argument {name!r}"
    assert str(caught.value).startswith(
        expected + (f". Did you mean {hint}?" if hint else ". Known arguments: players, ")
    )


@pytest.mark.parametrize(
    ("make", "name", "hint"),
    [
        (WayOfTheDragonEnv, "opponent", "opponents"),
        (WayOfTheDragonVectorEnv, "opponent", "opponents"),
        (WayOfTheDragonVectorEnv, "num_thread", "num_threads"),
        (WayOfTheDragonVectorEnv, "num_env", "num_envs"),
    ],
)
def test_a_misspelled_option_suggests_the_nearest_one(make, name, hint):
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'. Did you mean '{hint}'"):
        make(**{name: 2})


SHARED = [
    ({"players": 6}, "players must be an integer from 2 to 5"),
    ({"mask_in": "both"}, "mask_in must be one of 'obs', 'info', got 'both'"),
    ({"render_mode": "window"}, "must be one of None, 'human', 'rgb_array', 'svg', 'ansi', 'ansi_color'"),
]
OF_LEARNERS = [
    *(
        ({"seat": seat}, f"seat must be an integer from 0 to 1 or 'random', got {seat}")
        for seat in (2, True, 1.0)
    ),
    ({"seat": "first"}, "seat must be an integer from 0 to 1 or 'random', got 'first'"),
    ({"seat": np.zeros(1, int)}, "seat must be an integer from 0 to 1 or 'random', got array"),
    ({"illegal": "ignore"}, "illegal must be one of 'lose', 'raise', got 'ignore'"),
    ({"opponents": "greedily"}, "policy must be one of .*greedy.*, got 'greedily'"),
    (
        {"opponents": ["greedy", "random"]},
        "must be one policy, or a list of 1, one for each other seat, got 2",
    ),
    ({"opponents": 3}, "policy 3 must have a method act"),
]


@pytest.mark.parametrize(
    ("make", "case"), [*product(MAKERS, SHARED), *product(MAKERS[1:], OF_LEARNERS)], ids=str
)
def test_invalid_arguments_raise_an_error_that_names_them(make, case):
    arguments, message = case
    with pytest.raises(ValueError, match=message):
        make(**arguments)


FINISHED = Game().reset(1, seed=0)
FINISHED["phase"] = Phase.OVER


@makers
@pytest.mark.parametrize(
    ("seed", "options", "message"),
    [
        *((seed, None, "seed must be an integer from 0") for seed in (-1, 1.5, True, "one", int)),
        (None, {"starting_player": 2}, "starting_player must be an integer from 0 to 1"),
        (None, {"starting_player": 0, "state": Game().reset(1)}, "not have both"),
        (None, {"state": 3}, "must be one record of wotd_env.STATE"),
        (None, {"state": Game().reset(2)}, "must be one record of wotd_env.STATE"),
        (None, {"state": FINISHED}, "got a finished one"),
        *((None, {"state": other}, r"options\['state'\]: ") for other in foreign_records().values()),
    ],
    ids=str,
)
def test_an_invalid_reset_changes_nothing(make, seed, options, message):
    env = make()
    env.reset(seed=0)

    def situation():
        return env.record.tobytes(), make is raw_env or env.np_random.bit_generator.state

    before = situation()
    with pytest.raises(ValueError, match=message):
        env.reset(seed=seed, options=options)
    assert situation() == before
    env.step([31] if make is WayOfTheDragonVectorEnv else 31)


@makers
def test_an_unknown_option_is_ignored_with_a_warning(make):
    env, options = make(), {"starting_playr %": 1}
    known = "'starting_player', 'state'"
    with pytest.warns(UserWarning, match=rf"ignores options\['starting_playr %'\]; .*{known}"):
        env.reset(seed=0, options=options)
    assert options == {"starting_playr %": 1}
    assert env.record["turn"] == 0


@pytest.mark.parametrize("make", MAKERS[1:])
def test_an_oracle_without_a_table_is_rejected_at_construction(make, tmp_path, monkeypatch):
    monkeypatch.setattr(
        "wotd_env.policies.oracle.cache_file", lambda rules: tmp_path / f"{rules.spaces}.wotd"
    )
    with pytest.raises(FileNotFoundError, match="wotd solve"):
        make(opponents="oracle")


@pytest.mark.parametrize("mask_in", ["obs", "info"])
@pytest.mark.parametrize("players", [2, 3])
def test_an_illegal_action_gives_the_rewards_of_pettingzoos_wrapper(mask_in, players):
    """-1 for the agent and 0 for the others, for any number of players."""
    arguments: dict[str, Any] = {"players": players, "mask_in": mask_in}
    ours = way_of_the_dragon_v0.env(**arguments)
    theirs = wrappers.OrderEnforcingWrapper(
        wrappers.AssertOutOfBoundsWrapper(
            wrappers.TerminateIllegalWrapper(way_of_the_dragon_v0.raw_env(**arguments), illegal_reward=-1)
        )
    )
    rewards = []
    for env in (ours, theirs):
        env.reset(seed=3)
        agent = env.agent_selection
        env.step(51)
        assert env.rewards == {seat: -1.0 if seat == agent else 0.0 for seat in env.possible_agents}
        seen = {}
        for seat in env.agent_iter():
            observation, *seen[seat], info = env.last()
            shown = info if mask_in == "info" else observation
            assert env is theirs or shown["action_mask"].all()
            env.step(None)
        rewards.append(seen)
        env.reset()
        assert env.num_agents == players
    assert rewards[0] == rewards[1]


def test_a_missing_pygame_raises_dependency_not_installed(monkeypatch):
    def missing(name, *given):
        if name == "pygame":
            raise ModuleNotFoundError("No module named 'pygame'", name="pygame")
        return real(name, *given)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", missing)
    env = WayOfTheDragonEnv(render_mode="human")
    with pytest.raises(
        gymnasium.error.DependencyNotInstalled, match="a window needs pygame, part of the extra"
    ):
        env.reset(seed=0)
    for mode in ("svg", "ansi"):
        headless = WayOfTheDragonEnv(render_mode=mode)
        headless.reset(seed=0)
        assert headless.render()


def test_sb3_infos_contain_episode_statistics():
    pytest.importorskip("stable_baselines3")
    from wotd_env.adapters.sb3 import SB3VecEnv

    envs = SB3VecEnv(8, spaces=0, opponents="random")
    envs.seed(0)
    envs.reset()
    rng, lengths, ends = np.random.default_rng(0), np.zeros(8, int), 0
    for _ in range(150):
        mask = envs.action_masks()
        _, rewards, dones, infos = envs.step((rng.random(mask.shape) * mask).argmax(1))
        lengths += 1
        for i, info in enumerate(infos):
            assert ("episode" in info) == dones[i]
            if dones[i]:
                assert info["episode"]["r"] == rewards[i]
                assert info["episode"]["l"] == lengths[i]
                assert info["episode"]["t"] > 0
                lengths[i], ends = 0, ends + 1
    assert ends > 20
