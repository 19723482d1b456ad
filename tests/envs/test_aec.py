"""The PettingZoo environment: PettingZoo's own tests, and further guarantees."""

import copy
import pickle
import warnings
from itertools import pairwise

import gymnasium
import numpy as np
import pettingzoo
import pytest
from gymnasium.error import ResetNeeded
from pettingzoo.utils import average_total_reward

from tests.helpers.positions import board, numbers
from wotd_env import STATE, Game, IllegalActionError, Phase, Rules, way_of_the_dragon_v0

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # with pygame installed, they import a game in a deprecated way
    from pettingzoo.test import api_test, render_test, seed_test
    from pettingzoo.test.state_test import test_state as check_state
    from pettingzoo.test.state_test import test_state_space as check_state_space

VARIANTS = [
    {},
    {"players": 3, "spaces": 2, "start": "loser"},
    {"players": 4, "spaces": 3, "powers": "own", "colors": "random", "dead_pieces": 5},
    {"players": 5, "spaces": 1, "powers": "any", "immunity": True},
    {"players": 2, "spaces": 0, "powers": "any", "max_turns": 5},
]
MAKERS = [way_of_the_dragon_v0.env, way_of_the_dragon_v0.raw_env]
COPIES = [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))]

variants = pytest.mark.parametrize("rules", VARIANTS, ids=str)
makers = pytest.mark.parametrize("make", MAKERS, ids=["env", "raw_env"])
copies = pytest.mark.parametrize("copied", COPIES, ids=["deepcopy", "pickle"])


def play(env, rng, decisions=2**63):
    """Play random legal actions, to the end by default; yield the results of `last` and the action of each decision."""
    for agent in env.agent_iter(decisions):
        observation, reward, terminated, truncated, info = env.last()
        action = None
        if not (terminated or truncated):
            mask = info["action_mask"] if "action_mask" in info else observation["action_mask"]
            action = int(rng.choice(np.flatnonzero(mask)))
        yield agent, observation, reward, terminated, truncated, action
        env.step(action)


def assert_same(one, other):
    """Compare the results of two calls of `play`."""
    assert len(one) == len(other)
    for a, b in zip(one, other, strict=True):
        np.testing.assert_equal(a, b)


# ------------------------------------------------------------------------------------------- PettingZoo's tests


@makers
@variants
@pytest.mark.parametrize("mask_in", ["obs", "info"])
def test_passes_the_api_test(make, rules, mask_in):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(make(mask_in=mask_in, **rules), num_cycles=100)
    messages = {
        str(warning.message) for warning in caught if "options['options']" not in str(warning.message)
    }
    assert len(messages) < len(caught)  # the test passes an unknown option, which causes a warning
    # PettingZoo warns twice about dict observations.
    expected = {
        "Observation is not a NumPy array",
        "Observation space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete",
    }
    assert messages == (expected if mask_in == "obs" else set())


@makers
@variants
@pytest.mark.parametrize("mask_in", ["obs", "info"])
def test_passes_the_seed_test(make, rules, mask_in):
    seed_test(lambda: make(mask_in=mask_in, **rules), num_cycles=200)


@makers
@variants
def test_passes_the_render_test(make, rules, hidden_window):
    render_test(lambda render_mode: make(render_mode=render_mode, **rules))


@variants
def test_passes_the_state_test(rules):
    env = way_of_the_dragon_v0.env(**rules)
    check_state_space(env)
    check_state(env, 20)


def test_play_without_masks_raises_no_error(capsys):
    """Some tools sample illegal actions. In `env`, they end the game."""
    average_total_reward(way_of_the_dragon_v0.env(), max_episodes=5, max_steps=1000)
    assert "Average total reward" in capsys.readouterr().out


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo has a registry from 1.27")
def test_pettingzoo_registers_the_environment():
    env = pettingzoo.make("aec", "wotd_env/way_of_the_dragon_v0", players=4)
    env.reset(seed=0)
    assert env.num_agents == 4
    assert str(env) == "way_of_the_dragon_v0"


# ------------------------------------------------------------------------------------------------ the games


@makers
@variants
def test_games_equal_those_of_the_batch_interface(make, rules):
    env = make(**rules)
    game = Game(Rules(**rules))
    for seed in range(5):
        env.reset(seed=seed)
        state = game.reset(1, seed=seed)
        for agent, observation, _, terminated, truncated, action in play(env, np.random.default_rng(seed)):
            assert env.record == state
            assert observation["action_mask"].dtype == np.int8
            np.testing.assert_array_equal(env.state(), game.observe(state, 0)[0])
            for seat, other in enumerate(env.possible_agents):
                seen = env.observe(other)
                assert list(seen) == ["observation", "action_mask"]
                assert env.observation_space(other).contains(seen)
                np.testing.assert_array_equal(seen["observation"], game.observe(state, seat)[0])
            assert (terminated or truncated) == (state["phase"][0] == Phase.OVER)
            assert not truncated
            if action is not None:
                assert agent == f"player_{state['player'][0]}"
                np.testing.assert_array_equal(observation["action_mask"], game.legal_actions(state)[0])
                game.step(state, [action])
        assert env.agents == []


@variants
def test_the_mask_in_info_equals_the_mask_in_obs(rules):
    one, other = way_of_the_dragon_v0.env(**rules), way_of_the_dragon_v0.env(mask_in="info", **rules)
    one.reset(seed=3)
    other.reset(seed=3)
    for agent, observation, _, _, _, action in play(one, np.random.default_rng(0)):
        assert agent == other.agent_selection
        for seat in one.agents:
            seen = one.observe(seat)
            np.testing.assert_array_equal(other.observe(seat), seen["observation"])
            np.testing.assert_array_equal(other.infos[seat]["action_mask"], seen["action_mask"])
        np.testing.assert_array_equal(other.action_masks(), observation["action_mask"])
        other.step(action)


@makers
def test_masks_are_zeros_for_waiting_seats_and_ones_after_the_end(make):
    env = make(players=3, spaces=1)
    env.reset(seed=1)
    for _, _, _, terminated, _, action in play(env, np.random.default_rng(1)):
        for agent in env.possible_agents:
            mask = env.observe(agent)["action_mask"]
            assert mask.all() if terminated else mask.any() == (agent == env.agent_selection)
        assert terminated or env.action_masks()[action]
    assert all(env.observe(agent)["action_mask"].all() for agent in env.possible_agents)


@variants
def test_all_seats_get_their_reward_once_and_end_together(rules):
    env = way_of_the_dragon_v0.raw_env(**rules)
    for seed in range(5):
        env.reset(seed=seed)
        received = dict.fromkeys(env.agents, 0.0)
        given = dict.fromkeys(env.agents, 0.0)
        for agent in env.agent_iter():
            observation, reward, terminated, truncated, _ = env.last()
            assert isinstance(terminated, bool)
            assert isinstance(truncated, bool)
            assert set(env.terminations.values()) == {terminated}
            assert set(env.truncations.values()) == {truncated}
            received[agent] += reward
            if terminated or truncated:
                env.step(None)
                continue
            env.step(int(observation["action_mask"].argmax()))
            for seat, amount in env.rewards.items():
                given[seat] += amount
        assert (
            received == given == dict(zip(received, Game(Rules(**rules)).rewards(env.record)[0], strict=True))
        )
        assert sum(received.values()) == pytest.approx(0, abs=1e-6)
        assert any(received.values()) == (not env.record["expired"][0])


@makers
def test_tied_winners_share_the_reward(make):
    """R10: the other two seats have equal points, more than the seat that ends the game."""
    rules = Rules(players=3)
    state = numbers(rules, "1 1 1 1 0", "2 3 2 3 0", "3 2 3 2 0")
    state["pieces"][0, 0, 4] = rules.spaces
    state["dice"], state["phase"], state["rolls_left"] = [4, 4, 5, 5, 5], Phase.KEEP, 1
    env = make(players=3)
    env.reset(options={"state": state})
    env.step(31)  # the only move is forced
    assert all(env.terminations.values())
    assert env.rewards == {"player_0": -0.5, "player_1": 0.25, "player_2": 0.25}


def test_an_agent_can_act_several_times_in_a_row():
    env = way_of_the_dragon_v0.env()
    env.reset(seed=0)
    agents = [agent for agent, *_, action in play(env, np.random.default_rng(0)) if action is not None]
    assert any(one == other for one, other in pairwise(agents))
    assert set(agents) == set(env.possible_agents)


@makers
@variants
@copies
def test_a_copy_continues_the_game(make, rules, copied):
    env = make(**rules)
    env.reset(seed=4)
    for _ in play(env, np.random.default_rng(0), decisions=7):
        pass
    twin = copied(env)
    ours = list(play(env, np.random.default_rng(1)))
    assert_same(list(play(twin, np.random.default_rng(1))), ours)
    env.reset()
    twin.reset()
    assert env.record == twin.record


@makers
def test_returned_arrays_never_change(make):
    env = make(spaces=1)
    env.reset(seed=0)
    seen = [
        (observation, copy.deepcopy(observation))
        for _, observation, *_ in play(env, np.random.default_rng(0))
    ]
    assert len(seen) > 10
    for observation, original in seen:
        np.testing.assert_equal(observation, original)


# ------------------------------------------------------------------------------------------------ reset


@makers
def test_dice_continue_without_a_seed(make):
    env = make()
    env.reset(seed=5)
    for _ in play(env, np.random.default_rng(0)):
        pass
    before = env.record
    env.reset()
    np.testing.assert_array_equal(env.record, Game().reset(before))
    env.reset(seed=5)
    np.testing.assert_array_equal(env.record, Game().reset(1, seed=5))


def test_first_games_without_a_seed_differ():
    streams = set()
    for _ in range(5):
        env = way_of_the_dragon_v0.raw_env()
        env.reset()
        streams.add(int(env.record["rng"][0]))
    assert len(streams) == 5


@pytest.mark.parametrize("seat", range(3))
def test_the_starting_player_option_sets_the_first_agent(seat):
    env = way_of_the_dragon_v0.env(players=3)
    env.reset(seed=1, options={"starting_player": seat})
    assert env.agent_selection == f"player_{seat}"


def test_the_loser_of_the_last_game_starts():
    """R1."""
    env = way_of_the_dragon_v0.env(players=3, spaces=1, start="loser")
    env.reset(seed=0)
    starters = set()
    for game in range(12):
        for _ in play(env, np.random.default_rng(game)):
            pass
        scores = Game(Rules(players=3, spaces=1)).scores(env.record)[0]
        last = scores == scores.min()
        env.reset()
        seat = env.possible_agents.index(env.agent_selection)
        starters.add(seat)
        assert last[seat]
    assert len(starters) > 1


@pytest.mark.parametrize("mask_in", ["obs", "info"])
def test_R01_the_loser_by_an_illegal_action_starts(mask_in):
    env = way_of_the_dragon_v0.env(players=3, spaces=1, start="loser", mask_in=mask_in)
    env.reset(seed=0)
    starters = set()
    for game in range(30):
        for _ in play(env, np.random.default_rng(game), decisions=1 + game % 7):
            pass
        if not env.terminations[env.agent_selection]:
            loser = env.agent_selection
            env.step(51)  # fear, without powers
            if game % 2:  # the final steps of all agents change nothing
                while env.agents:
                    env.step(None)
            twin = COPIES[game // 2 % 2](env)
            env.reset()
            twin.reset()
            assert env.agent_selection == twin.agent_selection == loser
            starters.add(loser)
        else:
            env.reset()
        env.reset(seed=game)  # a reset with a seed ignores the last game
        assert env.record == Game(Rules(players=3, spaces=1, start="loser")).reset(1, seed=game)
    assert len(starters) == 3


def test_R01_truncation_by_a_wrapper_is_not_an_illegal_action():
    """The last-placed seat starts, as after every unfinished game."""
    rules = Rules(players=3, spaces=1, start="loser")
    state = numbers(rules, "1 0 0 0 0", "0 1 0 0 0", "0 0 0 0 0")
    state["dice"], state["phase"], state["rolls_left"] = [4, 4, 5, 5, 5], Phase.KEEP, 1
    env = way_of_the_dragon_v0.raw_env(players=3, spaces=1, start="loser")
    env.reset(options={"state": state})
    env.truncations = dict.fromkeys(env.agents, True)
    env._deads_step_first()
    env.reset()
    assert env.agent_selection == "player_2"


@makers
def test_the_state_option_continues_a_game(make):
    env = make(players=4, powers="any")
    env.reset(seed=2)
    for _ in play(env, np.random.default_rng(0), decisions=9):
        pass
    record = env.record
    rest = list(play(env, np.random.default_rng(1)))
    for given in (record, record[0]):
        env.reset(options={"state": given})
        assert_same(list(play(env, np.random.default_rng(1))), rest)
    env.reset(seed=3, options={"state": record})
    other = env.record
    assert other["rng"] != record["rng"]
    other["rng"] = record["rng"]
    assert other == record
    assert record.dtype == STATE


@makers
def test_forced_moves_can_end_a_game_during_reset(make):
    state = board(Rules(), dice="dragon dragon dragon dragon dragon")  # no legal move: a pass
    env = make(max_turns=1)
    env.reset(options={"state": state})
    assert env.record["phase"] == Phase.OVER
    ends = [(terminated, truncated) for *_, terminated, truncated, _ in play(env, np.random.default_rng(0))]
    assert ends == [(True, False)] * 2


# ------------------------------------------------------------------------------------------------ invalid input


def test_raw_env_rejects_an_illegal_action_and_stays_unchanged():
    env = way_of_the_dragon_v0.raw_env()
    env.reset(seed=0)
    before, agent = env.record, env.agent_selection
    for action in (50, -1, 60, 10**6):
        with pytest.raises(
            IllegalActionError, match=rf"action {action} .* seat {agent[-1]}.*legal: .*stop rolling"
        ):
            env.step(action)
        assert env.record == before
        assert env.agent_selection == agent
        assert not any(env.terminations.values())


def test_raw_env_needs_a_reset():
    env = way_of_the_dragon_v0.raw_env(render_mode="ansi")
    for call in (
        lambda: env.step(31),
        lambda: env.observe("player_0"),
        lambda: env.record,
        env.state,
        env.render,
    ):
        with pytest.raises(ResetNeeded):
            call()
    with pytest.raises((ResetNeeded, AttributeError)):
        env.action_masks()


def test_env_needs_a_reset():
    env = way_of_the_dragon_v0.env()
    for name in ("agents", "agent_selection", "rewards", "terminations", "truncations", "infos"):
        with pytest.raises(AttributeError, match=f"{name} cannot be accessed before reset"):
            getattr(env, name)
    with pytest.raises(AssertionError, match="reset"):
        env.step(31)


def test_raw_env_rejects_a_step_after_the_end():
    env = way_of_the_dragon_v0.raw_env(max_turns=1)
    env.reset(seed=0)
    for _ in play(env, np.random.default_rng(0)):
        pass
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(31)
    env.reset()
    assert env.agents


def test_render_without_a_mode_warns():
    env = way_of_the_dragon_v0.env()
    env.reset(seed=0)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None
    assert gymnasium.spaces.Discrete(60) == env.action_space("player_0")


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_rewards_sum_to_zero_in_double_precision(players):
    env = way_of_the_dragon_v0.raw_env(players=players, spaces=0)
    for seed in range(20):
        env.reset(seed=seed)
        rng = np.random.default_rng(seed)
        while not env.terminations[env.agent_selection] and not env.truncations[env.agent_selection]:
            env.step(rng.choice(np.flatnonzero(env.action_masks())))
        assert abs(sum(env.rewards.values())) < 1e-15
        if not env.record["expired"][0]:
            assert min(env.rewards.values()) == env.game.spec.min_reward
