"""Policies play legal actions, depend only on positions and their own randomness, and play well."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.arena_policies import Cheat, Seer
from tests.helpers.games import VARIANTS, positions
from tests.helpers.positions import board, legal
from wotd_env import Game, Phase, Rules, evaluate, make_policy
from wotd_env.policies.mcts import Mcts
from wotd_env.policy import ask, check_plays, play_policies, seen_in

NAMES = ["random", "first", "greedy", "planner", "mcts:20"]


def test_policies_cannot_see_future_dice():
    game, seer, rng = Game(Rules(spaces=0)), Seer(), np.random.default_rng(0)

    def play(state: np.ndarray) -> None:
        for _ in play_policies(game, state, np.zeros((1, 2), np.int64), [seer], rng):
            pass

    for seed in range(100):
        play(game.new(1, seed=seed))
    assert len(seer.right) > 1000
    assert np.mean(seer.right) < 0.05


def test_ask_replaces_streams_by_64_random_bits():
    game, cheat = Game(), Cheat()
    state = game.new(4000, seed=1)
    before = state.copy()
    ask(cheat, game, state, np.random.default_rng(0))
    (shown,) = cheat.shown
    streams = shown["rng"].copy()
    bits = streams[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert (abs(bits.mean(0) - 0.5) < 0.05).all()
    assert not set(streams.tolist()) & set(before["rng"].tolist())
    shown["rng"] = before["rng"]
    assert shown.tobytes() == before.tobytes() == state.tobytes()


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        ([31.0, 31.0], r"\[31.0, 31.0\]"),
        (np.full(1, 31), r"int64 \(1,\)"),
        ([True, 31], r"\[True, 31\]"),
        (31, "31"),
    ],
)
def test_ask_refuses_actions_of_wrong_type_or_shape(answer, got):
    class Wrong:
        def act(self, game, state, rng):
            return answer

    game = Game()
    with pytest.raises(ValueError, match=rf"act must return integers \(2,\), got {got}"):
        ask(Wrong(), game, game.new(2), np.random.default_rng(0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_policies_play_legal_actions_and_do_not_change_states(name, rules):
    game = Game(rules, skip_forced=False)
    state = positions(rules)
    before = state.copy()
    state.flags.writeable = False
    actions = make_policy(name).act(game, state, np.random.default_rng(0))
    assert actions.dtype == np.int64
    assert actions.shape == state.shape
    assert (game.legal_actions(state)[np.arange(len(state)), actions] == 1).all()
    assert (state == before).all()


@pytest.mark.parametrize("name", NAMES)
def test_actions_do_not_depend_on_batch_or_threads(name):
    rules = VARIANTS[5]
    state = positions(rules)
    policy = make_policy(name)
    whole = policy.act(Game(rules), state, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    parts = [policy.act(Game(rules), part, rng) for part in np.array_split(state, 9)]
    threads = policy.act(Game(rules, num_threads=3), state, np.random.default_rng(7))
    assert (np.concatenate(parts) == whole).all()
    assert (threads == whole).all()


@pytest.mark.parametrize("name", NAMES)
def test_actions_do_not_depend_on_future_dice(name):
    rules = VARIANTS[5]
    state = positions(rules)
    other = state.copy()
    other["rng"] += np.uint64(12345)
    policy = make_policy(name)
    actions = [policy.act(Game(rules), s, np.random.default_rng(7)) for s in (state, other)]
    assert (actions[0] == actions[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_policies_accept_finished_games_and_empty_batches(name):
    game = Game()
    state = game.reset(2)
    state["phase"] = Phase.OVER
    policy, rng = make_policy(name), np.random.default_rng(0)
    assert game.legal_actions(state)[[0, 1], policy.act(game, state, rng)].all()
    assert policy.act(game, state[:0], rng).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_policies_return_zero_before_a_roll(name):
    game = Game()
    state = game.reset(2, roll=False)
    assert not game.legal_actions(state).any()
    actions = make_policy(name).act(game, state, np.random.default_rng(0))
    assert actions.tolist() == [0, 0]


def test_random_plays_every_legal_action_equally_often():
    game = Game(Rules(players=5))
    boards: dict[str, Any] = dict.fromkeys(("water", "fire", "wood"), ".abcde.|.....")
    state = np.repeat(board(game.rules, dice="dragon dragon dragon dragon dragon", **boards), 31_000)
    actions = make_policy("random").act(game, state, np.random.default_rng(3))
    allowed = legal(game, state[:1])
    assert len(allowed) == 31  # 10 swaps on each of three paths, and passing
    counts = np.bincount(actions, minlength=game.num_actions)[allowed]
    assert counts.sum() == len(state)
    chi_square = ((counts - 1000) ** 2 / 1000).sum()
    assert chi_square < 59.7  # the 0.1 % critical value for 30 degrees of freedom


def test_greedy_stops_for_an_equilibrium():
    game, greedy = Game(), make_policy("greedy")
    state = board(game.rules, dice="water fire metal earth wood", phase=Phase.KEEP)
    many = np.repeat(state, 1000)
    many["rolls_left"] = np.arange(1000) % 2 + 1
    assert (
        greedy.act(game, many, np.random.default_rng(0)) == 31
    ).all()  # five advances are worth more than a turn


def test_first_plays_the_lowest_legal_action():
    game = Game(VARIANTS[3], skip_forced=False)
    state = positions(game.rules)
    actions = make_policy("first").act(game, state, np.random.default_rng())
    for i in range(0, len(state), 50):
        assert actions[i] == legal(game, state[i : i + 1])[0]


def test_greedy_beats_random_and_first_by_a_wide_margin():
    powers = Rules(powers="any", spaces=4, dead_pieces=5)
    for name in ("random", "first"):
        assert evaluate("greedy", name, 500, seed=1).share > 0.975
        assert evaluate("greedy", name, 500, powers, seed=1).share > 0.95


def greedy(state: np.ndarray, rules: Rules) -> int:
    return int(make_policy("greedy").act(Game(rules, skip_forced=False), state, np.random.default_rng())[0])


def test_greedy_holds_the_dice_of_its_best_path():
    rules = Rules()
    keep: dict[str, Any] = {"phase": Phase.KEEP, "rolls_left": 2}
    assert greedy(board(rules, dice="water water fire metal dragon", **keep), rules) == 0b00011
    # ties go to the foremost piece, and a piece that has arrived keeps no dice
    state = board(rules, dice="water water fire fire dragon", fire="..a....|.....", **keep)
    assert greedy(state, rules) == 0b01100
    state = board(rules, dice="water fire fire fire dragon", fire=".......|..a..", **keep)
    assert greedy(state, rules) == 0b00001


def test_greedy_moves_furthest_and_prefers_high_numbers():
    rules = Rules()
    assert greedy(board(rules, dice="water fire fire fire dragon"), rules) == 33
    state = board(rules, dice="water water fire fire dragon", fire=".....a.|.....")
    assert greedy(state, rules) == 32  # number 1 is worth no more than the space before it
    state = board(rules, dice="water water fire fire dragon", fire="......a|.....")
    assert greedy(state, rules) == 32
    state = board(rules, dice="water water water fire fire", fire="......a|.....", water=".a.....|.....")
    assert greedy(state, rules) == 32


def test_greedy_swaps_when_that_raises_its_lead():
    rules = Rules()
    state = board(rules, dice="fire dragon dragon dragon dragon", fire="a......|...b.")
    assert greedy(state, rules) == 56
    state["phase"], state["rolls_left"] = Phase.KEEP, 2
    assert greedy(state, rules) == 31
    state = board(rules, dice="fire dragon dragon dragon dragon", fire="b......|...a.")
    assert greedy(state, rules) == 50


def test_greedy_ends_the_game_when_ahead_and_not_when_behind():
    rules = Rules(powers="own", colors=("water", "fire"))
    near: dict[str, Any] = dict.fromkeys(("water", "metal", "earth"), ".......|.ab..")
    mine: dict[str, Any] = {"fire": "......a|.....", "wood": ".......|.a..."}
    state = board(rules, dice="fire fire wood dragon dragon", **mine, **near)
    assert greedy(state, rules) == 33
    far: dict[str, Any] = dict.fromkeys(("water", "metal", "earth"), ".......|.a..b")
    state = board(rules, dice="fire fire wood dragon dragon", **mine, **far)
    assert greedy(state, rules) == 51  # fear: it would lose


def test_planner_beats_greedy():
    powers = Rules(players=2, powers="own", colors="random", spaces=4, dead_pieces=5)
    assert evaluate("planner", "greedy", 600, seed=1).share > 0.575
    assert evaluate("planner", "greedy", 600, powers, seed=1).share > 0.55


def test_mcts_beats_random():
    assert evaluate("mcts:40", "random", 40, Rules(spaces=2), seed=1).share > 0.9


def test_mcts_with_learned_values_beats_random_and_needs_a_network():
    search = Mcts(40, learned=True)
    assert evaluate(search, "random", 40, Rules(spaces=2), seed=1).share > 0.9
    game, state = Game(Rules(spaces=2)), Game(Rules(spaces=2)).new(30, seed=1)
    one, other = (ask(each, game, state, np.random.default_rng(0)) for each in (search, Mcts(40)))
    assert not np.array_equal(one, other)
    with pytest.raises(ValueError, match="no trained model of td"):
        check_plays(search, Rules(spaces=5))


@pytest.mark.parametrize("playouts", ["0", "-3", "many", "1.5", "100001"])
def test_mcts_checks_the_number_of_playouts(playouts):
    with pytest.raises(ValueError, match="playouts must be an integer from 1 to 100000, got "):
        make_policy(f"mcts:{playouts}")


def test_a_game_in_another_encoding_is_made_once_for_equal_rules():
    given: dict[str, Any] = {"players": 3, "skip_forced": False, "num_threads": 2}
    seen = seen_in("features", Game(**given))
    assert (seen.rules, seen.skip_forced, seen.num_threads, seen.encoding) == (
        Rules(players=3), False, 2, "features",
    )  # fmt: skip
    assert seen_in("features", Game(**given)) is seen
    assert seen_in("features", Game(players=4)).rules.players == 4
