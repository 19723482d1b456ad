"""A pool of opponents: one policy is drawn for each game."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from tests.helpers.vectors import assert_same, random_actions
from wotd_env.envs.opponents import Pool
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.policies.first import First
from wotd_env.policies.function import FunctionPolicy

SCRIPTS = Pool(["random", "greedy"], [1, 3])
MIXED = Pool({"one": "greedy", "two": First(), "never": "random", "three": "random"}, [2, 1, 0, 1])
RULES: dict[str, Any] = {"players": 3, "spaces": 0}


class Counting:
    """A policy that plays the first legal action, and counts the games that it plays."""

    def __init__(self):
        self.asked = 0

    def act(self, game, state, rng):
        self.asked += len(state)
        return First().act(game, state, rng)


def steps(env, count, seed=0):
    """Yield the infos of a reset and of random steps; the infos of ended games in their own steps."""
    rng = np.random.default_rng(seed)
    yield env.reset(seed=seed)[1]
    for _ in range(count):
        yield env.step(random_actions(env.action_masks(), rng))[-1]


@pytest.mark.parametrize("pool", [SCRIPTS, MIXED], ids=["scripts", "mixed"])
@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_the_vector_env_equals_the_stock_vector_env(pool, mode):
    games, rng = 6, np.random.default_rng(0)
    native = WayOfTheDragonVectorEnv(games, opponents=pool, autoreset_mode=mode, **RULES)
    stock = SyncVectorEnv([lambda: WayOfTheDragonEnv(opponents=pool, **RULES)] * games, autoreset_mode=mode)
    assert_same(native.reset(seed=3), stock.reset(seed=3))
    seen = set()
    for _ in range(100):
        actions = random_actions(native.action_masks(), rng)
        result = native.step(actions)
        assert_same(result, stock.step(actions))
        seen |= set(result[-1]["opponent"])
        if mode == AutoresetMode.DISABLED and (done := result[2] | result[3]).any():
            assert_same(
                native.reset(options={"reset_mask": done})[1]["opponent"][done],
                stock.reset(options={"reset_mask": done})[1]["opponent"][done],
            )
    assert seen == set(pool.names) - {"never"}


def test_the_share_of_each_policy_is_its_weight():
    env = WayOfTheDragonVectorEnv(20_000, opponents=MIXED)
    _, infos = env.reset(seed=0)
    names, counts = np.unique(infos["opponent"], return_counts=True)
    assert names.tolist() == ["one", "three", "two"]
    assert counts / 20_000 == pytest.approx([0.5, 0.25, 0.25], abs=0.015)  # 4 standard errors
    # the draws of the seat and of the opponent are independent
    both = np.unique([infos["seat"], infos["opponent"] == "one"], axis=1, return_counts=True)[1]
    assert both / 20_000 == pytest.approx([0.25] * 4, abs=0.015)


def test_games_do_not_depend_on_the_number_of_environments_or_threads():
    many, few = WayOfTheDragonVectorEnv(40, opponents=MIXED), WayOfTheDragonVectorEnv(7, opponents=MIXED)
    two = WayOfTheDragonVectorEnv(40, opponents=MIXED, num_threads=2)
    infos = [env.reset(seed=5)[1] for env in (many, few, two)]
    rng = np.random.default_rng(0)
    for _ in range(100):
        assert infos[0]["opponent"][:7].tolist() == infos[1]["opponent"].tolist()
        assert infos[0]["opponent"].tolist() == infos[2]["opponent"].tolist()
        assert (many.record[:7] == few.record).all()
        assert (many.record == two.record).all()
        actions = random_actions(many.action_masks(), rng)
        infos = [env.step(actions[: env.num_envs])[-1] for env in (many, few, two)]


def test_the_drawn_policy_plays_the_whole_game_in_all_other_seats():
    one, other = Counting(), Counting()
    env = WayOfTheDragonEnv(opponents=Pool({"one": one, "other": other}), **RULES)
    for seed in range(20):
        one.asked = other.asked = 0
        _, info = env.reset(seed=seed)
        name, terminated = info["opponent"], False
        while not terminated:
            *_, terminated, _, info = env.step(int(env.action_masks().argmax()))
            assert info["opponent"] == name
        assert (one.asked > 0) == (name == "one")
        assert (other.asked > 0) == (name == "other")


@pytest.mark.parametrize("mode", list(AutoresetMode))
def test_another_pool_plays_the_games_that_start_after_its_assignment(mode):
    old, new = Counting(), Counting()
    env = WayOfTheDragonVectorEnv(8, opponents=Pool({"old": old}), autoreset_mode=mode, **RULES)
    env.reset(seed=0)
    env.opponents = Pool({"new": new, "greedy": "greedy"}, [1, 0])
    assert env.opponents.names == ("new", "greedy")
    rng, started = np.random.default_rng(0), np.zeros(8, bool)
    ended = started
    while not started.all():
        _, _, terminated, _, infos = env.step(random_actions(env.action_masks(), rng))
        if mode == AutoresetMode.SAME_STEP:
            if terminated.any():
                names = infos["final_info"]["opponent"]
                assert set(names[terminated & ~started]) <= {"old"}
            started |= terminated
        elif mode == AutoresetMode.NEXT_STEP:
            started |= ended
            ended = terminated
        elif terminated.any():
            started |= terminated
            _, infos = env.reset(options={"reset_mask": terminated})
        assert infos["opponent"].tolist() == np.where(started, "new", "old").tolist()
    before = old.asked
    env.step(random_actions(env.action_masks(), rng))
    assert old.asked == before
    assert new.asked > 0


def test_the_pool_of_a_running_single_game_can_be_replaced():
    env = WayOfTheDragonEnv(opponents=Pool(["greedy"]))
    env.reset(seed=0)
    for name in ("a", "b"):
        env.opponents = Pool({name: First()})
        assert env.step(int(env.action_masks().argmax()))[-1]["opponent"] == "greedy"
    assert env.reset()[1]["opponent"] == "b"


def test_opponents_without_a_pool_can_be_replaced():
    env = WayOfTheDragonEnv(opponents="greedy")
    env.reset(seed=0)
    env.opponents = policy = Counting()
    assert env.opponents is policy
    env.reset(seed=0, options={"starting_player": 1 - env.seat})
    assert policy.asked > 0


@pytest.mark.parametrize("make", [WayOfTheDragonEnv, WayOfTheDragonVectorEnv])
def test_infos_keep_their_keys_when_opponents_are_replaced(make):
    env = make(opponents="greedy")
    with pytest.raises(ValueError, match="opponents must not be a Pool"):
        env.opponents = SCRIPTS
    assert env.opponents == "greedy"
    env = make(opponents=SCRIPTS)
    with pytest.raises(ValueError, match="opponents must be a Pool"):
        env.opponents = "greedy"
    assert env.opponents is SCRIPTS


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_copies_continue_with_the_same_opponents(clone):
    env = WayOfTheDragonVectorEnv(9, opponents=MIXED, autoreset_mode="SameStep", **RULES)
    *_, _ = steps(env, 5)
    env.opponents = Pool({"new": "greedy", "other": First()})
    twin, rng = clone(env), np.random.default_rng(3)
    for _ in range(60):
        actions = random_actions(env.action_masks(), rng)
        assert_same(env.step(actions), twin.step(actions))


def test_a_pool_of_scripts_never_leaves_compiled_code(monkeypatch):
    env = WayOfTheDragonVectorEnv(9, opponents=SCRIPTS)
    monkeypatch.setattr(env._opponents, "decide", None)
    *_, _ = steps(env, 50)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([],), "at least one policy"),
        (("greedy",), "must be a list or a dict"),
        ((["greedy"], [0]), "weights must be 1 finite numbers"),
        ((["greedy", "random"], [1, -1]), "weights must be 2 finite"),
        ((["greedy", "random"], [1]), "weights must be 2 finite"),
        ((["greedy"], [float("nan")]), "weights must be 1 finite"),
        ((["greedy"], ["x"]), "weights must be 1 finite"),
        ((["greedy"], {"greedy": 1}), "weights must be 1 finite"),
        ((["gredy"],), "did you mean greedy"),
    ],
)
def test_an_invalid_pool_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Pool(*arguments)


def test_a_function_is_refused_with_the_class_that_wraps_it():
    function: Any = lambda observation, mask: 0  # noqa: E731
    name: Any = First
    for opponents in (function, ["greedy", function]):
        with pytest.raises(ValueError, match=r"wotd_env\.policies\.function\.FunctionPolicy\("):
            WayOfTheDragonEnv(opponents=opponents, players=2 + isinstance(opponents, list))
    with pytest.raises(ValueError, match="FunctionPolicy"):
        Pool([function])
    with pytest.raises(ValueError, match="got the class") as caught:
        WayOfTheDragonEnv(opponents=name)
    assert "First()" in str(caught.value)
    WayOfTheDragonEnv(opponents=FunctionPolicy(lambda observation, mask: mask.argmax()))
