"""`Game`: arguments, spec, descriptions of actions, and kernels from outside the package."""

import dataclasses
import json
import subprocess
import sys
import threading
from typing import Any

import numpy as np
import pytest

from wotd_env import (
    STATE,
    Action,
    Game,
    IllegalActionError,
    Phase,
    Power,
    Rules,
    describe_action,
    make_policy,
)
from wotd_env.policy import play_policies

VARIANTS = [
    Rules(),
    Rules(players=3, powers="own", colors="random"),
    Rules(players=4, powers="any", dead_pieces=4, immunity=True),
    Rules(players=5, spaces=2, powers="any", max_turns=30),
]


FEAR = "stay put although a move is possible (fear, water)"
SWAP = "swap on water the pieces of me and the next seat"


def at(game: Game, pieces: dict[tuple[int, int], int], dice: str, phase: Phase = Phase.MOVE) -> np.ndarray:
    """Return a position from (seat, path) -> space and the letters of the dice (w f m e o d; o is wood)."""
    state = game.new(1, starting_player=0)
    state["phase"], state["rolls_left"] = phase, 2 if phase == Phase.KEEP else 0
    state["dice"] = sorted("wfmeod".index(letter) for letter in dice)
    for (seat, path), space in pieces.items():
        state["pieces"][0, seat, path] = space
    return state


def test_actions_and_powers_have_stable_numbers():
    assert [int(action) for action in Action] == [31, 32, 37, 42, 47, 48, 49, 50, 51, 52, 53, 54, 55]
    assert [power.name for power in Power] == ["FEAR", "REBIRTH", "TIGER", "ANXIETY", "DRAGON"]


def test_stop_rolling_is_described_without_the_forced_move():
    game = Game()
    state = at(game, {}, "wwwww", Phase.KEEP)  # the forced move that follows is skipped
    assert game.describe_action(state, Action.STOP_ROLLING) == "keep all dice and stop rolling"


@pytest.mark.parametrize("rules", [*VARIANTS, Rules(colors=("wood", "fire"), start=1)], ids=str)
def test_rules_survive_a_round_trip_through_json(rules):
    values = json.loads(json.dumps(dataclasses.asdict(rules)))
    assert Rules.from_dict(values) == Rules.from_dict(dataclasses.asdict(rules)) == rules


@pytest.mark.parametrize("values", [None, [], "players", {"dice": 5}, {3: 5}])
def test_from_dict_rejects_anything_but_rules(values):
    with pytest.raises(ValueError, match=r"rules must be a dict with keys among players, spaces, .*, got "):
        Rules.from_dict(values)


def test_a_game_takes_the_fields_of_rules():
    assert Game(players=3, powers="own").rules == Rules(players=3, powers="own")
    assert Game(encoding="compact", spaces=3).rules == Rules(spaces=3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"player": 3},
            r"Game.__init__\(\) got an unexpected keyword argument 'player'. Did you mean 'players'\?",
        ),
        ({"num_thread": 2}, r"unexpected keyword argument 'num_thread'. Did you mean 'num_threads'\?"),
        ({"rules": Rules(), "players": 3}, "rules or fields, not both: got rules and players"),
    ],
)
def test_game_rejects_unknown_or_contradictory_arguments(arguments: dict[str, Any], message: str):
    with pytest.raises(TypeError, match=message):
        Game(**arguments)


def test_new_equals_reset():
    for roll in (True, False):
        game = Game(Rules(players=3))
        assert np.array_equal(game.new(5, seed=3, roll=roll), game.reset(5, seed=3, roll=roll))
    assert (game.new(4, starting_player=2, roll=False)["player"] == 2).all()
    assert game.new(0).shape == (0,)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_spec_bounds_hold_in_play(rules):
    game = Game(rules, skip_forced=False)
    spec, rng, random = game.spec, np.random.default_rng(1), make_policy("random")
    games = 300
    state = game.new(games, seed=1)
    decisions, in_turn = np.zeros(games, np.int64), np.zeros(games, np.int64)
    turn = state["turn"].copy()
    seats = np.zeros((games, rules.players), np.int64)
    for actions in play_policies(game, state, seats, [random], rng):
        in_turn[state["turn"] != turn] = 0
        turn = state["turn"].copy()
        decisions += actions >= 0
        in_turn += actions >= 0
        assert in_turn.max() <= spec.max_decisions_per_turn
    assert game.is_over(state).all()
    rewards = game.rewards(state)
    assert np.allclose(rewards.sum(1), 0, atol=1e-6) == spec.zero_sum
    assert spec.min_reward <= rewards.min() + 1e-6
    assert rewards.max() <= spec.max_reward
    assert state["turn"].max() <= spec.max_turns
    assert decisions.max() <= spec.max_decisions == spec.max_turns * spec.max_decisions_per_turn
    assert spec.players == rules.players


def test_longest_turn_has_max_decisions_per_turn():
    for powers, most in (("none", 4), ("any", 5)):
        game = Game(Rules(powers=powers), skip_forced=False)
        assert game.spec.max_decisions_per_turn == most
        state = at(game, {}, "wwwww", Phase.KEEP)
        taken = 0
        turn = state["turn"][0]
        while state["turn"][0] == turn and state["phase"][0] != Phase.OVER:
            holds = state["phase"][0] == Phase.KEEP
            game.decide(state, [0 if holds else 32 + int(game.legal_actions(state)[0, 32:].argmax())])
            if holds:  # roll five waters again, which earns perfection
                game.roll(state, np.zeros((1, 5), np.int8))
            taken += 1
        assert taken == most


@pytest.mark.parametrize(
    ("pieces", "dice", "phase", "action", "words"),
    [
        ({}, "wwwwd", Phase.MOVE, Action.MOVE_ON, "move on water, to space 4"),
        ({(0, 1): 6}, "fffwe", Phase.MOVE, Action.MOVE_ON + 1, "move on fire, to number 2"),
        ({}, "wwwde", Phase.MOVE, Action.WOOD_ON, "move on water, dragons counted as water (wood), to space 4"),
        ({(1, 0): 1, (0, 1): 1}, "wffff", Phase.MOVE, Action.JUMP_ON, "jump on water (earth), to space 2"),
        (
            {(0, 0): 7, (1, 1): 1},
            "wfmeo",
            Phase.MOVE,
            Action.EQUILIBRIUM,
            "equilibrium: advance every piece that can, "
            "water to number 1, metal to space 1, earth to space 1, wood to space 1",
        ),
        ({(1, 0): 1}, "wdddf", Phase.MOVE, Action.NO_MOVE_BY_FEAR, FEAR),
        ({(0, 0): 1, (1, 0): 5}, "wdddd", Phase.MOVE, Action.FIRST_SWAP, SWAP),
        ({}, "wwfdd", Phase.KEEP, 3, "keep water, water and re-roll the rest"),
        ({}, "wwfdd", Phase.KEEP, 0, "re-roll all dice"),
        ({}, "wwfdd", Phase.KEEP, Action.STOP_ROLLING, "keep all dice and stop rolling"),
    ],
)  # fmt: skip
def test_descriptions_of_actions_name_destinations_and_kept_dice(pieces, dice, phase, action, words):
    game = Game(Rules(powers="any"))
    state = at(game, pieces, dice, phase)
    before = state.copy()
    assert game.describe_action(state, action) == words
    assert np.array_equal(state, before)


def test_descriptions_of_holds_name_a_used_tiger():
    game = Game(Rules(powers="any"))
    state = at(game, {}, "wwfdd", Phase.KEEP)
    state["rolls_left"] = 0
    assert (
        game.describe_action(state, 3) == "keep water, water and re-roll the rest (eye of the tiger, metal)"
    )
    assert game.describe_action(state, 0) == "re-roll all dice (eye of the tiger, metal)"
    assert game.describe_action(state, Action.STOP_ROLLING) == "keep all dice and stop rolling"


def test_describe_action_rejects_illegal_actions_and_batches():
    game = Game()
    with pytest.raises(IllegalActionError, match="action 50"):
        game.describe_action(game.new(1), Action.PASS)
    with pytest.raises(ValueError, match=r"one game, STATE \(1,\), got 2"):
        game.describe_action(game.new(2), 0)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_legal_actions_have_different_descriptions(rules):
    game, rng = Game(rules), np.random.default_rng(0)
    state = game.new(40, seed=5)
    for _ in range(30):
        state = state[~game.is_over(state)]
        for one in np.split(state, len(state)) if len(state) else []:
            legal = np.flatnonzero(game.legal_actions(one)[0])
            assert len({game.describe_action(one, int(action)) for action in legal}) == len(legal)
        game.step(state, make_policy("random").act(game, state, rng))


OWN = """
import numpy as np
from wotd_env.core import engine
from wotd_env.core.compilation import kernel

@kernel
def leads(states, config, out):
    for i in range(states.shape[0]):
        own = engine.score(states[i], config[0], np.int64(states[i].player))
        best = 0
        for seat in range(config[0].players):
            if seat != states[i].player:
                best = max(best, engine.score(states[i], config[0], seat))
        out[i] = own - best
"""


def test_apply_runs_a_kernel_from_outside_the_package(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.syspath_prepend(tmp_path)
    import own  # type: ignore[import-not-found]

    results = []
    for threads in (1, 3):
        game = Game(Rules(players=3, spaces=1), num_threads=threads)
        state = game.new(2000, seed=4)
        for _ in range(25):
            game.step(state, make_policy("random").act(game, state, np.random.default_rng(0)))
        out = np.zeros(len(state), np.int64)
        assert game.apply(own.leads, state, out) == [None] * threads
        scores = game.scores(state)
        mine = scores[np.arange(len(state)), state["player"]]
        scores[np.arange(len(state)), state["player"]] = -1
        assert np.array_equal(out, mine - scores.max(1))
        results.append(out)
    assert np.array_equal(results[0], results[1])
    assert results[0].any()


def test_apply_checks_records_and_writes_changes_back():
    game = Game()

    def count_turn(states, config, by):
        states["turn"] += by

    state = game.new(6)
    game.apply(count_turn, state[::2], np.array([1, 2, 3], np.uint16))
    assert state["turn"].tolist() == [1, 0, 2, 0, 3, 0]
    state["player"][4] = 9
    with pytest.raises(ValueError, match="game 4: player must be"):
        game.apply(count_turn, state, np.uint16(1))
    assert state["turn"].tolist() == [1, 0, 2, 0, 3, 0]
    with pytest.raises(ValueError, match="state must be a one-dimensional array"):
        game.apply(count_turn, np.zeros((2, 2), STATE), 1)


def test_functions_in_apply_can_use_the_game_without_deadlock():
    program = (
        "import numpy as np\n"
        "from wotd_env import Game\n"
        "game = Game(num_threads=2)\n"
        "state = game.new(2000)\n"
        "def observe(states, config, out):\n"
        "    out[:] = game.observe(states)\n"
        "out = np.zeros((2000, game.observation_size), np.int8)\n"
        "game.apply(observe, state, out)\n"
        "assert np.array_equal(out, game.observe(state))\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)


def test_user_threads_named_like_workers_use_all_threads():
    game = Game(num_threads=2)
    state = game.new(2000)
    calls: list[Any] = []
    thread = threading.Thread(
        target=lambda: calls.extend(game.apply(lambda states, config: len(states), state)), name="wotd_env_0"
    )
    thread.start()
    thread.join()
    assert calls == [1000, 1000]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failed_call_waits_for_the_other_threads(error):
    game = Game(num_threads=2)
    state = game.new(2000)
    both_running = threading.Barrier(2)

    def fail_or_count(states, config, number):
        both_running.wait()
        if number[0] == 0:
            raise error("the first part fails")
        for _ in range(20_000):
            states["turn"] += 1

    before = state["turn"].copy()
    with pytest.raises(error, match="the first part fails"):
        game.apply(fail_or_count, state, np.arange(2000))
    assert (state["turn"][:1000] == before[:1000]).all()
    assert (state["turn"][1000:] == before[1000:] + 20_000).all()


@pytest.mark.parametrize("action", [32.5, 32.0, True, "32", None, np.array([32]), -1, 60])
def test_describe_action_rejects_anything_but_actions(action):
    with pytest.raises(ValueError, match="action must be an integer from 0 to 59 for 2 players, got "):
        describe_action(action)
    number: Any = np.int8(32)
    assert describe_action(number) == "move on water"
