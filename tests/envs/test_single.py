"""The Gymnasium environment: the checkers of Gymnasium and SB3, and further guarantees."""

import copy
import pickle
import re
import warnings

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env

from tests.helpers.positions import numbers
from tests.helpers.single import play
from wotd_env import Game, IllegalActionError, Phase, Rules, describe_action, make_policy, notation
from wotd_env.envs.single import WayOfTheDragonEnv

ID = "wotd_env/WayOfTheDragon-v0"
VARIANTS = [
    {},
    {"players": 3, "spaces": 2, "start": "loser", "opponents": ["random", "greedy"]},
    {"players": 4, "spaces": 3, "powers": "own", "colors": "random", "dead_pieces": 5, "opponents": "random"},
    {"players": 5, "spaces": 1, "powers": "any", "immunity": True, "seat": 3},
    {"players": 2, "spaces": 0, "powers": "any", "max_turns": 5, "opponents": "first", "mask_in": "obs"},
]
COPIES = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]

variants = pytest.mark.parametrize("arguments", VARIANTS, ids=str)
copies = pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])


pytestmark = pytest.mark.filterwarnings("ignore:.*lost by an illegal action")


class SeededRandom:
    """Policy that draws random legal actions from the given generator."""

    def act(self, game, state, rng):
        return np.array([rng.choice(np.flatnonzero(mask)) for mask in game.legal_actions(state)])


class StateRecorder:
    """Policy that records the states it receives, plays like `first` and overwrites the states."""

    def __init__(self):
        self.shown = []

    def act(self, game, state, rng):
        self.shown.append(state.copy())
        actions = game.legal_actions(state).argmax(1)
        state["pieces"] = 0
        return actions


class KeepAll:
    """Policy that keeps all dice."""

    def act(self, game, state, rng):
        return np.full(len(state), 31)


def rules_of(arguments):
    return Rules(
        **{name: value for name, value in arguments.items() if name not in ("opponents", "seat", "mask_in")}
    )


# ------------------------------------------------------------------------------------------------ the checkers


@variants
@pytest.mark.parametrize("mask_in", ["info", "obs"])
def test_passes_gymnasiums_checker_without_a_warning(arguments, mask_in, capsys):
    env = gymnasium.make(ID, **{**arguments, "mask_in": mask_in})
    check_env(env.unwrapped)
    assert "WARN" not in "".join(capsys.readouterr())


@variants
@pytest.mark.parametrize("mask_in", ["info", "obs"])
def test_passes_sb3s_checker_without_a_warning(arguments, mask_in):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(gymnasium.make(ID, **{**arguments, "mask_in": mask_in}).unwrapped)


@pytest.mark.parametrize(("mask_in", "network"), [("info", "MlpPolicy"), ("obs", "MultiInputPolicy")])
def test_maskable_ppo_trains_on_it(mask_in, network):
    sb3 = pytest.importorskip("sb3_contrib")
    model = sb3.MaskablePPO(
        network, gymnasium.make(ID, mask_in=mask_in, illegal="raise"), n_steps=32, batch_size=32
    )
    model.learn(64)
    assert model.num_timesteps == 64


def test_make_imports_the_package_from_the_id():
    env = gymnasium.make(f"wotd_env:{ID}", opponents="greedy", seat="random", players=3)
    assert isinstance(env.unwrapped, WayOfTheDragonEnv)
    assert gymnasium.spec(ID).to_json()
    env.reset(seed=0)
    assert env.action_space == gymnasium.spaces.Discrete(70)


# ------------------------------------------------------------------------------------------------ the games


@variants
def test_games_equal_those_of_the_batch_interface(arguments):
    """The same actions give the same states, masks and rewards as in `Game`."""
    env = WayOfTheDragonEnv(**{**arguments, "opponents": "greedy", "mask_in": "info"})
    game, greedy = Game(rules_of(arguments)), make_policy("greedy")
    for seed in range(5):
        rng = np.random.default_rng(seed)
        observation, info = env.reset(seed=seed)
        state = game.reset(1, seed=seed)
        reward, terminated, truncated = 0.0, False, False
        while True:
            while state["phase"] != Phase.OVER and state["player"] != env.seat:
                game.step(state, greedy.act(game, state, rng))
            over = state["phase"][0] == Phase.OVER
            assert env.record == state
            np.testing.assert_array_equal(observation, game.observe(state, env.seat)[0])
            np.testing.assert_array_equal(info["action_mask"], game.legal_actions(state)[0])
            np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
            assert info["action_mask"].dtype == np.int8
            assert reward == game.rewards(state)[0, env.seat]
            assert (terminated, truncated) == (over, False)
            if over:
                break
            action = rng.choice(np.flatnonzero(info["action_mask"]))
            game.step(state, [action])
            observation, reward, terminated, truncated, info = env.step(action)


@variants
def test_the_mask_in_obs_equals_the_mask_in_info(arguments):
    one, other = (WayOfTheDragonEnv(**{**arguments, "mask_in": place}) for place in ("info", "obs"))
    observation, info = one.reset(seed=1)
    seen, nothing = other.reset(seed=1)
    rng = np.random.default_rng(0)
    ended = False
    while True:
        assert "action_mask" not in nothing
        assert list(seen) == ["observation", "action_mask"]
        np.testing.assert_array_equal(seen["observation"], observation)
        np.testing.assert_array_equal(seen["action_mask"], info["action_mask"])
        if ended:
            break
        action = rng.choice(np.flatnonzero(info["action_mask"]))
        observation, *result, info = one.step(action)
        seen, *same, nothing = other.step(action)
        assert same == result
        ended = any(result[1:])


@pytest.mark.parametrize("opponents", ["random", "first", SeededRandom()], ids=["random", "first", "drawing"])
def test_the_seed_determines_the_game(opponents):
    """It determines dice, seat and opponents. Earlier games have no influence."""
    env = WayOfTheDragonEnv(opponents=opponents, players=3, spaces=2)
    first = env.reset(seed=8), env.seat, play(env, np.random.default_rng(0))
    env.reset()
    play(env, np.random.default_rng(5))
    again = env.reset(seed=8), env.seat, play(env, np.random.default_rng(0))
    np.testing.assert_equal(again, first)


def test_random_opponents_use_the_generator_of_the_environment():
    ends = []
    for stream in range(3):
        env = WayOfTheDragonEnv(opponents=SeededRandom(), seat=0)
        env.reset(seed=8)
        env.np_random = np.random.default_rng(stream)
        play(env, np.random.default_rng(0))
        ends.append(env.record.tobytes())
    assert len(set(ends)) == 3


def test_opponents_cannot_see_future_dice_or_change_the_game():
    policy = StateRecorder()
    env, twin = WayOfTheDragonEnv(opponents=policy, seat=0), WayOfTheDragonEnv(opponents="first", seat=0)
    env.reset(seed=3)
    twin.reset(seed=3)
    np.testing.assert_equal(
        play(env, np.random.default_rng(0), 100), play(twin, np.random.default_rng(0), 100)
    )
    streams = {int(state["rng"][0]) for state in policy.shown}
    assert len(streams) == len(policy.shown) > 10
    game, state = Game(), Game().reset(1, seed=3)
    game_streams = set()
    while state["phase"] != Phase.OVER:
        game_streams.add(int(state["rng"][0]))
        game.step(state, game.legal_actions(state).argmax(1))
    assert not streams & game_streams


def test_a_list_of_opponents_follows_the_learner_in_turn_order():
    for seat in range(3):
        one, two = StateRecorder(), StateRecorder()
        env = WayOfTheDragonEnv(opponents=[one, two], players=3, seat=seat)
        env.reset(seed=0)
        play(env, np.random.default_rng(0), 60)
        assert {int(state["player"][0]) for state in one.shown} == {(seat + 1) % 3}
        assert {int(state["player"][0]) for state in two.shown} == {(seat + 2) % 3}


def test_a_random_seat_is_uniformly_distributed():
    env = WayOfTheDragonEnv(players=3, max_turns=3)
    seats = [env.seat for seed in range(600) if env.reset(seed=seed)]
    assert np.bincount(seats).min() > 150
    seats = [env.seat for _ in range(600) if env.reset()]
    assert np.bincount(seats).min() > 150


def test_the_dice_do_not_depend_on_the_seat():
    env = WayOfTheDragonEnv(start=0)
    starts = set()
    for seed in range(20):
        env.reset(seed=seed)
        if env.seat == 0:
            assert env.record == Game(Rules(start=0)).reset(1, seed=seed)
        starts.add(env.seat)
    assert starts == {0, 1}


def test_a_game_over_after_reset_ends_in_the_first_step():
    env = WayOfTheDragonEnv(seat=0, opponents="first", max_turns=1, start=1)
    _, info = env.reset(seed=0)
    assert info["action_mask"].all()
    assert env.record["phase"] == Phase.OVER
    _, reward, terminated, truncated, _ = env.step(0)
    assert (reward, terminated, truncated) == (0, True, False)
    with pytest.raises(ResetNeeded):
        env.step(0)


@pytest.mark.parametrize(("seat", "expected"), [(0, -0.5), (1, 0.25), (2, 0.25)])
def test_tied_winners_share_the_reward(seat, expected):
    """R10: seat 0 ends the game by keeping all dice; the other two have more points, and are tied."""
    state = numbers(Rules(players=3), "1 1 1 1 0", "2 3 2 3 0", "3 2 3 2 0")
    state["pieces"][0, 0, 4] = 7
    state["dice"], state["phase"], state["rolls_left"] = [4, 4, 5, 5, 5], Phase.KEEP, 1
    env = WayOfTheDragonEnv(players=3, seat=seat, opponents=KeepAll())
    env.reset(options={"state": state})
    _, reward, terminated, truncated, info = env.step(31)
    assert (reward, terminated, truncated) == (expected, True, False)
    assert info["scores"].tolist() == [6, 10, 10]
    assert info["places"].tolist() == [3, 1, 1]
    assert info["winners"].tolist() == [False, True, True]


@variants
@copies
def test_a_copy_continues_the_game(arguments, copied):
    env = gymnasium.make(ID, **arguments)
    env.reset(seed=4)
    play(env, np.random.default_rng(0), 1)
    twin = copied(env)
    ours = play(env, np.random.default_rng(1)), env.reset()
    np.testing.assert_equal((play(twin, np.random.default_rng(1)), twin.reset()), ours)


def test_returned_arrays_never_change():
    env = WayOfTheDragonEnv(spaces=1)
    env.reset(seed=0)
    results = play(env, np.random.default_rng(0), 5)
    original = copy.deepcopy(results)
    play(env, np.random.default_rng(1))
    np.testing.assert_equal(results, original)


# ------------------------------------------------------------------------------------------------ reset


def test_options_choose_the_starting_seat_or_the_state():
    env = WayOfTheDragonEnv(seat=2, players=3)
    env.reset(seed=1, options={"starting_player": 2})
    assert env.record["turn"] == 0
    assert env.record["player"] == 2
    play(env, np.random.default_rng(0), 5)
    record = env.record
    rest = play(env, np.random.default_rng(1))
    env.reset(options={"state": record})
    np.testing.assert_equal(play(env, np.random.default_rng(1)), rest)
    env.reset(seed=9, options={"state": record})
    assert (env.record["pieces"] == record["pieces"]).all()
    assert env.record["rng"] != record["rng"]


# ------------------------------------------------------------------------------------------------ invalid input


@pytest.mark.parametrize("action", [50, -1, 60, 10**6])
def test_an_illegal_action_loses_the_game(action):
    env = WayOfTheDragonEnv(players=3)
    env.reset(seed=0)
    before = env.record
    _, reward, terminated, truncated, info = env.step(action)
    assert (reward, terminated, truncated) == (-0.5, True, False)
    assert info["action_mask"].all()
    assert env.action_masks().all()
    assert env.record == before
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(31)
    env.reset()
    env.step(31)


@pytest.mark.parametrize("action", [50, -1, 60, 10**6])
def test_an_illegal_action_raises_with_illegal_raise(action):
    env = WayOfTheDragonEnv(players=3, illegal="raise")
    _, info = env.reset(seed=0)
    before = env.record
    with pytest.raises(IllegalActionError, match=rf"action {action} .*legal: .*stop rolling"):
        env.step(action)
    assert env.record == before
    np.testing.assert_array_equal(env.action_masks(), info["action_mask"])
    env.step(31)


def test_info_and_first_warning_name_the_illegal_action():
    env = WayOfTheDragonEnv()
    _, info = env.reset(seed=0)
    assert info["illegal_action"] == -1
    legal = [describe_action(int(action)) for action in np.flatnonzero(info["action_mask"])]
    with pytest.warns(UserWarning, match="choose actions by the action mask") as caught:
        env.step(50)
    message = str(caught[0].message)
    assert "action 50 (pass) is illegal for seat " in message
    assert all(words in message for words in legal)
    rules, position = notation.parse_position(re.findall(r'; position: "(.*?)"', message)[0])
    before = env.record
    before["rng"] = 0  # the notation does not contain the random stream
    assert (rules, position) == (env.game.rules, before)
    env.reset(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        info = env.step(50)[-1]
    assert info["illegal_action"] == 50
    assert env.game.explain_illegal(env.record, info["illegal_action"]) in message
    env.reset(seed=0)
    assert env.step(np.flatnonzero(env.action_masks())[0])[-1]["illegal_action"] == -1


@pytest.mark.parametrize("mask_in", ["info", "obs"])
def test_masks_can_be_booleans(mask_in):
    env, plain = (WayOfTheDragonEnv(mask_in=mask_in, mask_dtype=dtype) for dtype in ("bool", "int8"))
    holder = 0 if mask_in == "obs" else 1
    seen, expected = env.reset(seed=0), plain.reset(seed=0)
    for _ in range(40):
        assert env.observation_space.contains(seen[0])
        mask, integers = seen[holder]["action_mask"], expected[holder]["action_mask"]
        assert mask.dtype == env.action_masks().dtype == bool
        np.testing.assert_array_equal(mask, integers)
        np.testing.assert_array_equal(env.action_masks(), integers)
        observation, _, terminated, truncated, info = env.step(int(integers.argmax()))
        other, *_, other_info = plain.step(int(integers.argmax()))
        seen, expected = (observation, info), (other, other_info)
        if terminated or truncated:
            seen, expected = env.reset(), plain.reset()


@pytest.mark.parametrize("action", [np.array([31]), np.array(31), np.int32(31), np.array([[31]])])
def test_an_action_can_be_an_array_with_one_element(action):
    one, other = WayOfTheDragonEnv(), WayOfTheDragonEnv()
    one.reset(seed=0)
    other.reset(seed=0)
    one.step(31)
    other.step(action)
    assert one.record == other.record


@pytest.mark.parametrize("mask_in", ["info", "obs"])
def test_observations_can_be_floats(mask_in):
    env, plain = (
        WayOfTheDragonEnv(mask_in=mask_in, observation_dtype=dtype) for dtype in ("float32", "int8")
    )
    for _ in range(2):
        observation, integers = env.reset(seed=3)[0], plain.reset(seed=3)[0]
        assert env.observation_space.contains(observation)
        if mask_in == "obs":
            assert observation["action_mask"].dtype == np.int8
            observation, integers = observation["observation"], integers["observation"]
        assert observation.dtype == np.float32
        np.testing.assert_array_equal(observation, integers)


@pytest.mark.parametrize("seat", [1, np.int64(1)])
def test_a_seat_can_be_a_numpy_integer(seat):
    env = WayOfTheDragonEnv(seat=seat)
    env.reset(seed=0)
    assert env.seat == 1


@pytest.mark.parametrize("seed", [np.int64(7), np.uint8(7), np.array(7)])
def test_a_seed_can_be_a_numpy_integer(seed):
    one, other = WayOfTheDragonEnv(), WayOfTheDragonEnv()
    one.reset(seed=seed)
    other.reset(seed=7)
    assert one.record == other.record
    assert one.np_random.bit_generator.state == other.np_random.bit_generator.state


def test_every_call_needs_a_reset():
    env = WayOfTheDragonEnv(render_mode="ansi")
    for call in (lambda: env.step(31), env.action_masks, lambda: env.record, env.render, lambda: env.seat):
        with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
            call()


def test_a_step_after_the_end_is_rejected():
    env = WayOfTheDragonEnv(max_turns=2)
    env.reset(seed=0)
    play(env, np.random.default_rng(0))
    with pytest.raises(ResetNeeded, match=r"call reset\(\)"):
        env.step(31)


def test_an_exception_in_an_opponent_ends_the_game():
    class Failing:
        def act(self, game, state, rng):
            raise RuntimeError("no idea")

    env = WayOfTheDragonEnv(opponents=Failing(), start=0, seat=0)
    env.reset(seed=0)
    with pytest.raises(RuntimeError, match="no idea"):
        play(env, np.random.default_rng(0))
    with pytest.raises(ResetNeeded):
        env.step(31)


def test_an_opponents_illegal_action_raises_an_error_that_names_it():
    class Wrong:
        def act(self, game, state, rng):
            return np.full(len(state), 50)

    env = WayOfTheDragonEnv(opponents=Wrong(), start=1, seat=0)
    with pytest.raises(ValueError, match=r"Wrong object.* plays an illegal action: game 0: action 50"):
        env.reset(seed=0)
