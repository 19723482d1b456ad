"""The native vector environment is Gymnasium's SyncVectorEnv over the single environment, only faster."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from tests.helpers.vectors import assert_same, play, random_actions
from wotd_env import Game, IllegalActionError, Rules, make_policy
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.policies.first import First

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
pytestmark = pytest.mark.filterwarnings("ignore:.*lost by an illegal action")

MODES = list(AutoresetMode)


class Last:
    """Policy that plays the last legal action: deterministic, outside the compiled loop."""

    def act(self, game, state, rng):
        return game.num_actions - 1 - game.legal_actions(state)[:, ::-1].argmax(1)


def sync_env(num_envs, mode, max_episode_steps=None, **arguments):
    def make():
        env = WayOfTheDragonEnv(**arguments)
        return env if max_episode_steps is None else TimeLimit(env, max_episode_steps)

    return SyncVectorEnv([make] * num_envs, autoreset_mode=mode)


def assert_same_reset(one, other, where=slice(None)):
    """Compare two resets. The stock environment returns no infos about games that are not reset."""
    assert_same(one[0], other[0])
    assert one[1].keys() == other[1].keys()
    for name in one[1]:
        assert_same(one[1][name][where], other[1][name][where])
        assert one[1][f"_{name.removeprefix('_')}"].all()


def assert_same_games(native, stock):
    """Compare positions, random streams and the seats of the learners."""
    assert_same(native.record, np.concatenate(stock.call("record")))
    assert_same(native.seat, np.array(stock.call("seat"), np.int8))


CASES: dict[str, dict[str, Any]] = {
    "default": {"spaces": 2},
    "masks in observations": {"spaces": 2, "mask_in": "obs"},
    "random opponents": {"spaces": 2, "opponents": "random"},
    "three, powers, mixed": {
        "players": 3,
        "spaces": 2,
        "powers": "any",
        "opponents": ["random", "greedy"],
        "seat": 1,
    },
    "Python policies": {"players": 3, "spaces": 1, "opponents": [First(), Last()], "start": "loser"},
    "five, own powers": {
        "players": 5,
        "spaces": 1,
        "powers": "own",
        "colors": "random",
        "opponents": "random",
    },
    "over before the first decision": {"players": 4, "spaces": 0, "seat": 3, "start": 0, "dead_pieces": 0},
    "the loser starts": {"players": 3, "spaces": 1, "start": "loser", "opponents": ["random", "greedy"]},
    "the loser starts, truncated by steps": {"spaces": 1, "start": "loser", "max_episode_steps": 6},
    "floats": {"spaces": 1, "observation_dtype": "float32"},
    "boolean masks": {"spaces": 1, "mask_dtype": "bool"},
    "boolean masks in observations": {"spaces": 1, "mask_dtype": "bool", "mask_in": "obs"},
    "ended by the turn limit": {"spaces": 7, "max_turns": 5, "immunity": True},
    "layouts": {"spaces": 2, "layouts": ["##/#./../../..", "../../../../.."]},
    "random dead pieces": {"spaces": 2, "dead_pieces": 6, "opponents": Last()},
    "truncated by steps": {"spaces": 3, "max_episode_steps": 9},
    "Python policy, turn limit": {"opponents": Last(), "max_turns": 3, "start": 1, "seat": 0},
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("case", CASES)
def test_equals_the_stock_vector_env_step_by_step(case, mode):
    arguments, games, rng = CASES[case], 7, np.random.default_rng(5)
    native = WayOfTheDragonVectorEnv(games, autoreset_mode=mode, **arguments)
    stock = sync_env(games, mode, **arguments)
    assert native.single_observation_space == stock.single_observation_space
    assert native.observation_space == stock.observation_space
    assert native.action_space == stock.action_space
    assert_same(native.reset(seed=11), stock.reset(seed=11))
    ends = 0
    for _ in range(250):
        assert_same(native.action_masks(), np.array(stock.call("action_masks")))
        actions = random_actions(native.action_masks(), rng, illegal=0.01)
        result = native.step(actions)
        assert_same(result, stock.step(actions))
        assert_same_games(native, stock)
        assert native.observation_space.contains(result[0])
        done = result[2] | result[3]
        ends += done.sum()
        if mode == AutoresetMode.DISABLED and done.any():
            options = {"reset_mask": done}
            assert_same_reset(native.reset(options=options), stock.reset(options=dict(options)), done)
            assert options == {"reset_mask": done}
    assert ends > 20


@pytest.mark.parametrize("mode", MODES)
def test_equals_the_stock_vector_env_when_reset_in_the_middle(mode):
    arguments: dict[str, Any] = {"players": 3, "spaces": 1, "start": "loser", "opponents": "random"}
    games, rng = 5, np.random.default_rng(6)
    native = WayOfTheDragonVectorEnv(games, autoreset_mode=mode, **arguments)
    stock = sync_env(games, mode, **arguments)
    record = Game(Rules(players=3, spaces=1, start="loser")).reset(3, seed=77)[2]
    some = np.array([False, True, False, True, True])
    calls: list[dict[str, Any]] = [
        {"seed": [4, 4, 9, 2**63, 0]},
        {},
        {"options": {"reset_mask": some}},
        {"seed": 3, "options": {"reset_mask": some, "starting_player": 2}},
        {"seed": [None, 5, 6, None, 8], "options": {"reset_mask": some}},
        {"options": {"state": record}},
        {"seed": 21, "options": {"state": record, "reset_mask": some}},
        {"options": {"starting_player": 1}},
    ]
    done, lost = np.zeros(games, bool), 0
    for call in [*calls, *[{}, {"options": {"reset_mask": some}}] * 10]:
        done &= ~call.get("options", {}).get("reset_mask", np.ones(games, bool))
        stock_call = {**call, "options": dict(call["options"])} if "options" in call else call
        where = call.get("options", {}).get("reset_mask", slice(None))
        assert_same_reset(native.reset(**call), stock.reset(**stock_call), where)
        assert_same_games(native, stock)
        for _ in range(3):
            if mode == AutoresetMode.DISABLED and done.any():
                break
            actions = random_actions(native.action_masks(), rng, illegal=0.1)
            result = native.step(actions)
            assert_same(result, stock.step(actions))
            assert_same_games(native, stock)
            done = result[2] | result[3]
            lost += (result[2] & (result[1] == -0.5)).sum()
    assert lost > 5


@pytest.mark.parametrize("mode", MODES)
def test_R01_the_loser_starts_in_its_new_seat(mode):
    """The learner loses by an illegal action. Every autoreset mode and `reset` remember the loser."""
    games = 40
    env = WayOfTheDragonVectorEnv(games, players=3, start="loser", opponents=First(), autoreset_mode=mode)
    env.reset(seed=0)
    before = env.seat
    env.step(np.full(games, 50))
    if mode == AutoresetMode.NEXT_STEP:
        env.step(np.full(games, 31))
    elif mode == AutoresetMode.DISABLED:
        env.reset()
    assert (env.seat != before).any()
    assert (env.record["player"] == env.seat).all()
    assert (env.record["turn"] == 0).all()


@pytest.mark.parametrize("opponents", ["greedy", "random", First()])
def test_results_do_not_depend_on_num_threads(opponents):
    one = WayOfTheDragonVectorEnv(1000, opponents=opponents, spaces=1, start="loser")
    two = WayOfTheDragonVectorEnv(1000, opponents=opponents, spaces=1, start="loser", num_threads=2)
    for a, b in zip(play(one, 3, 30), play(two, 3, 30), strict=True):
        assert_same(a, b)


def test_threads_can_share_a_game_and_policies():
    """docs/how-to/troubleshooting.md states this. Each thread has its own states."""
    game, policies = Game(Rules(players=3, spaces=1)), [make_policy(n) for n in ("greedy", "random", "first")]

    def run(seed):
        state, rng = game.reset(300, seed=seed), np.random.default_rng(seed)
        for step in range(60):
            game.step(state, policies[step % 3].act(game, state, rng))
        return state.tobytes()

    expected = [run(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(run, range(8))) == expected


@pytest.mark.parametrize("games", [1, 7, 63, 65])
def test_games_do_not_depend_on_the_number_of_environments(games):
    many = WayOfTheDragonVectorEnv(65, opponents="random", spaces=1, autoreset_mode="SameStep")
    few = WayOfTheDragonVectorEnv(games, opponents="random", spaces=1, autoreset_mode="SameStep")
    observations, infos = many.reset(seed=9)
    first = few.reset(seed=9)
    np.testing.assert_array_equal(first[0], observations[:games])
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = random_actions(infos["action_mask"], rng)
        observations, rewards, _, _, infos = many.step(actions)
        seen = few.step(actions[:games])
        np.testing.assert_array_equal(seen[0], observations[:games])
        np.testing.assert_array_equal(seen[1], rewards[:games])


def test_all_writable_arrays_are_new_in_every_call():
    env = WayOfTheDragonVectorEnv(6, spaces=0, autoreset_mode="SameStep")

    def arrays(result):
        flat = [*result[:-1], *result[-1].values(), *result[-1].get("final_info", {}).values()]
        flat += [row for row in result[-1].get("final_obs", []) if row is not None]
        arrays = [array for array in flat if isinstance(array, np.ndarray) and array.dtype != object]
        return [array for array in arrays if array.flags.writeable]

    before = arrays(env.reset(seed=1))
    for _ in range(20):
        assert len(before) > 1
        kept = [array.copy() for array in before]
        result = env.step(random_actions(env.action_masks(), np.random.default_rng(2)))
        for array, old in zip(before, kept, strict=True):
            assert not any(np.may_share_memory(array, new) for new in arrays(result))
            assert (array == old).all()
        for name in ("scores", "places", "winners", "illegal_action", "_scores", "_action_mask"):
            assert not result[-1][name].flags.writeable
        before = arrays(result)


def test_reset_does_not_keep_the_reset_mask():
    env = WayOfTheDragonVectorEnv(3)
    env.reset(seed=0)
    mask = np.array([True, False, True])
    infos = env.reset(options={"reset_mask": mask})[1]
    assert mask.tolist() == [True, False, True]
    assert not np.may_share_memory(infos["_action_mask"], mask)


@pytest.mark.parametrize(
    ("seed", "plain"),
    [
        (np.int64(7), 7),
        (np.array(7), 7),
        (list(np.arange(3)), [0, 1, 2]),
        (np.arange(3, dtype=np.uint8), [0, 1, 2]),
        ((0, np.int32(4), None), [0, 4, None]),
    ],
)
def test_seeds_can_be_numpy_integers(seed, plain):
    one, other = (WayOfTheDragonVectorEnv(3, opponents=First()) for _ in range(2))
    for env in (one, other):
        env.reset(seed=3)
    one.reset(seed=seed)
    other.reset(seed=plain)
    assert (one.record == other.record).all()
    assert one.np_random.bit_generator.state == other.np_random.bit_generator.state


# ----------------------------------------------------------------------------------------- Gymnasium's wrappers


@pytest.mark.parametrize("mode", [*MODES, *(mode.value for mode in MODES)])
def test_make_vec_returns_the_native_environment(mode):
    env = gymnasium.make_vec(ID, num_envs=3, autoreset_mode=mode, players=3, opponents="random")
    assert isinstance(env, WayOfTheDragonVectorEnv)
    assert env.autoreset_mode is AutoresetMode(mode)
    assert env.metadata["autoreset_mode"] is AutoresetMode(mode)
    assert env.game.rules.players == 3
    assert env.num_envs == 3
    env.close()


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_record_episode_statistics_counts_rewards_and_lengths(mode):
    if mode == AutoresetMode.SAME_STEP and gymnasium.__version__ < "1.4":
        pytest.skip("this Gymnasium counts one step too few")
    env = WayOfTheDragonVectorEnv(4, autoreset_mode=mode, spaces=1)
    wrapped = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    wrapped.reset(seed=0)
    rng, length, restarts, ends = np.random.default_rng(3), np.zeros(4, int), np.zeros(4, bool), 0
    for _ in range(200):
        _, rewards, terminated, truncated, infos = wrapped.step(random_actions(env.action_masks(), rng))
        length += ~restarts
        done = terminated | truncated
        restarts = done & (mode == AutoresetMode.NEXT_STEP)
        if done.any():
            np.testing.assert_array_equal(infos["episode"]["r"][done], rewards[done])
            np.testing.assert_array_equal(infos["episode"]["l"][done], length[done])
            length[done], ends = 0, ends + done.sum()
    assert ends > 5


def test_render_returns_one_text_per_game():
    env = gymnasium.make_vec(ID, num_envs=3, render_mode="ansi")
    env.reset(seed=4)
    single = gymnasium.make(ID, render_mode="ansi")
    single.reset(seed=5)
    texts = env.render()
    assert isinstance(texts, tuple)
    assert len(texts) == 3
    assert texts[1] == single.render()
    silent = gymnasium.make_vec(ID, num_envs=1)
    silent.reset(seed=0)
    with pytest.warns(UserWarning, match="render_mode"):
        assert silent.render() is None


# ------------------------------------------------------------------------------------------------ invalid input


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_envs": 0}, "num_envs must be"),
        ({"num_envs": 2.0}, "num_envs must be"),
        ({"max_episode_steps": 0}, "max_episode_steps must be"),
        ({"autoreset_mode": "Sometimes"}, "autoreset_mode must be one of 'NextStep'"),
        ({"num_threads": 0}, "num_threads must be"),
    ],
)
def test_invalid_arguments_raise_an_error_that_names_them(arguments, message):
    with pytest.raises(ValueError, match=message):
        WayOfTheDragonVectorEnv(**arguments)


def test_every_call_needs_a_reset():
    env = WayOfTheDragonVectorEnv(2, render_mode="ansi")
    for call in (lambda: env.step([0, 0]), env.action_masks, env.render, lambda: env.record):
        with pytest.raises(ResetNeeded):
            call()
    with pytest.raises(ResetNeeded, match="without a reset_mask"):
        env.reset(options={"reset_mask": np.array([True, False])})


@pytest.mark.parametrize(
    ("call", "error"),
    [
        ({"seed": [1, 2]}, ValueError),
        ({"seed": [1, -2, 3]}, ValueError),
        ({"seed": {1, 2, 3}}, ValueError),
        ({"seed": np.zeros(3)}, ValueError),
        ({"seed": np.zeros((3, 1), int)}, ValueError),
        ({"seed": [0, 1.0, 2]}, ValueError),
        ({"options": {"reset_mask": [True, True, True]}}, TypeError),
        ({"options": {"reset_mask": np.ones(3)}}, TypeError),
        ({"options": {"reset_mask": np.ones(2, bool)}}, ValueError),
        ({"options": {"reset_mask": np.zeros(3, bool)}}, ValueError),
    ],
)
def test_an_invalid_reset_changes_nothing(call, error):
    env = WayOfTheDragonVectorEnv(3)
    env.reset(seed=0)
    before = env.record
    with pytest.raises(error):
        env.reset(**call)
    assert (env.record == before).all()


@pytest.mark.parametrize("mode", MODES)
def test_illegal_actions_change_nothing_with_illegal_raise(mode):
    env = WayOfTheDragonVectorEnv(3, illegal="raise", autoreset_mode=mode)
    env.reset(seed=0)
    before = env.record
    with pytest.raises(IllegalActionError, match="game 1: action 47") as caught:
        env.step([31, 47, -1])
    assert caught.value.game == 1
    assert (env.record == before).all()


def test_actions_of_ended_games_are_ignored():
    env = WayOfTheDragonVectorEnv(1, illegal="raise", max_episode_steps=1)
    env.reset(seed=0)
    assert env.step([31])[3]
    assert not env.step([-5])[3]


@pytest.mark.parametrize("mode", MODES)
def test_only_the_first_illegal_action_is_explained(mode, monkeypatch):
    """Explanations take much longer than steps."""
    explained, explain = [], Game.explain_illegal

    def recording_explain(game, state, action):
        explained.append(action)
        return explain(game, state, action)

    monkeypatch.setattr(Game, "explain_illegal", recording_explain)
    env = WayOfTheDragonVectorEnv(50, autoreset_mode=mode)
    env.reset(seed=0)
    with pytest.warns(UserWarning, match=r'action 47 .*legal: .*position: "') as caught:
        infos = env.step(np.where(np.arange(50) % 2, 47, 31))[-1]
    env.reset()
    env.step(np.full(50, 47))
    assert explained == [47]
    assert len(caught) == 1
    illegal, same_step = np.arange(50) % 2, mode == AutoresetMode.SAME_STEP
    last_infos = infos["final_info"] if same_step else infos
    assert last_infos["illegal_action"].dtype == np.int64
    assert (last_infos["illegal_action"] == np.where(illegal, 47, 0 if same_step else -1)).all()
    assert (last_infos["_illegal_action"] == (illegal if same_step else 1)).all()


def test_a_partial_reset_returns_the_masks_of_all_games():
    env = WayOfTheDragonVectorEnv(4, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step([31, 47, 31, 31])
    after = env.action_masks()
    infos = env.reset(options={"reset_mask": np.array([False, True, False, False])})[1]
    assert infos["_action_mask"].all()
    assert (infos["action_mask"][[0, 2, 3]] == after[[0, 2, 3]]).all()
    assert (infos["action_mask"] == env.action_masks()).all()
    assert not infos["action_mask"].all(1).any()


@pytest.mark.parametrize("players", [2, 3, 5])
@pytest.mark.parametrize("action", [47, -1, 10**6])
def test_an_illegal_action_loses_the_game(players, action):
    env = WayOfTheDragonVectorEnv(2, players=players)
    env.reset(seed=0)
    _, rewards, terminated, truncated, infos = env.step([action, 31])
    assert rewards.tolist() == [-1 / (players - 1), 0]
    assert terminated.tolist() == [True, False]
    assert not truncated.any()
    assert infos["action_mask"][0].all()


def test_an_ended_game_rejects_steps_without_autoreset():
    env = WayOfTheDragonVectorEnv(3, autoreset_mode="Disabled")
    env.reset(seed=0)
    env.step([31, 47, 31])
    with pytest.raises(ResetNeeded, match=r"environments \[1\] have ended"):
        env.step([31, 31, 31])


class IllegalPolicy:
    """Policy that plays only illegal actions."""

    def act(self, game, state, rng):
        return np.full(len(state), -1)


def test_an_opponents_illegal_action_raises_an_error_that_names_it():
    env = WayOfTheDragonVectorEnv(50, opponents=IllegalPolicy())
    with pytest.raises(ValueError, match=r"opponent .*IllegalPolicy.* plays an illegal action"):
        env.reset(seed=0)
    with pytest.raises(ResetNeeded):
        env.step(np.full(50, 31))
