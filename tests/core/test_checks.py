"""Rules, records and actions are validated before use."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import run_python
from tests.helpers.hostile import CALLS
from tests.helpers.strategies import any_rules, decisions
from wotd_env import STATE, Game, IllegalActionError, Phase, Rules, notation, symmetry, way_of_the_dragon_v0
from wotd_env.core.checks import check_states

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
RULES = Rules(players=3, spaces=4, powers="own", dead_pieces=5)


@given(any_rules(), st.integers(0, 2**32))
def test_reachable_states_are_accepted(rules, seed):
    for game, state, _, after in decisions(rules, seed):
        check_states(rules, state)
        check_states(rules, after)
        rolled = after.copy()
        game.roll(rolled)
        check_states(rules, rolled)


def one(**fields: Any) -> np.ndarray:
    """Return a game in phase KEEP with some fields changed."""
    state = Game(RULES).reset(1, seed=1)
    assert state["phase"][0] == Phase.KEEP
    for name, value in fields.items():
        state[name] = value
    return state


def placed(seat: int, path: int, space: int) -> np.ndarray:
    pieces = np.zeros((5, 5), np.int8)
    pieces[seat, path] = space
    return pieces


WRONG = [
    ({"phase": -1}, "phase must be from 0 to 4, got -1"),
    ({"phase": 5}, "phase must be"),
    ({"player": 3}, "player must be from 0 to 2, got 3"),
    ({"player": -128}, "player must be"),
    ({"turn": 1000}, "turn must be below max_turns = 1000"),
    ({"dice": [1, 0, 2, 3, 4]}, "dice must be five faces from 0 to 5 in ascending order"),
    ({"dice": [0, 1, 2, 3, 6]}, "dice must be"),
    ({"dice": [0, 1, 2, -1, -1]}, "dice must be"),
    ({"phase": Phase.CHANCE}, "dice must be"),
    ({"phase": Phase.CHANCE, "dice": [0, -1, 1, -1, -1]}, "dice must be"),
    ({"phase": Phase.CHANCE, "dice": [-2, -1, -1, -1, -1]}, "dice must be"),
    ({"phase": Phase.CHANCE, "dice": [1, 0, -1, -1, -1]}, "dice must be"),
    ({"rolls_left": 3}, "rolls_left must be from 0 to 2, got 3"),
    ({"rolls_left": -1}, "rolls_left must be"),
    ({"player": 0, "rolls_left": 0}, "rolls_left must be 1 or 2 in phase KEEP, unless"),
    ({"pieces": placed(0, 0, 10)}, "pieces must be spaces from 0 to 9, and 0 for seats that do not play"),
    ({"pieces": placed(2, 4, -1)}, "pieces must be"),
    ({"pieces": placed(1, 2, -128)}, "pieces must be"),
    ({"pieces": placed(3, 0, 1)}, "pieces must be"),
    ({"pieces": placed(0, 3, 6) + placed(2, 3, 6)}, "pieces must be on spaces of their own"),
    ({"pieces": placed(0, 3, 2), "dead": 4}, "pieces must be on spaces of their own"),
    ({"dead": 1}, "dead must be bits of the spaces 1 to 4"),
    ({"dead": 1 << 5}, "dead must be"),
    ({"color": [0, 1, 2, 3, 3]}, "color must be the five colors in some order"),
    ({"color": [0, 1, 2, 3, 36]}, "color must be"),
    ({"color": [-128, 1, 2, 3, 4]}, "color must be"),
    ({"used": 8}, "used must be from 0 to 7, a bit for each seat, got 8"),
    ({"perfection": 2}, "perfection must be 0 or 1"),
    ({"expired": 1}, "expired must be 0 or, in a game that is over, 1"),
    ({"_reserved": [0, 1]}, "_reserved must be 0"),
    ({"players": 2}, "players must be 3 as in the rules, or 0 if unknown, got 2"),
]


@pytest.mark.parametrize(("fields", "words"), WRONG, ids=str)
def test_invalid_records_raise_errors_that_name_the_field(fields, words):
    with pytest.raises(ValueError, match=f"game 0: {words}"):
        check_states(RULES, one(**fields))
    check_states(RULES, one())


@pytest.mark.parametrize("fields", [{"player": 2, "rolls_left": 0}, {"dead": 2 + 16}, {"phase": Phase.MOVE}])
def test_unusual_valid_records_are_accepted(fields):
    check_states(RULES, one(**fields))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("call", CALLS)
def test_every_call_rejects_invalid_records_and_changes_nothing(call, threads):
    game = Game(RULES, num_threads=threads)
    state = np.repeat(one(), 600)
    state["player"][411], state["phase"][501] = 77, 9
    before = state.copy()
    with pytest.raises(ValueError, match="game 411: player must be from 0 to 2, got 77"):
        CALLS[call](game, state)
    assert state.tobytes() == before.tobytes()


BATCHES: dict[str, Callable[[Game, Any], object]] = {
    **CALLS,
    "check_states": lambda game, state: check_states(game.rules, state),
    "permute_states": lambda game, state: symmetry.permute_states(game.rules, state, [0, 1, 2, 3, 4]),
    "rotate_seats": lambda game, state: symmetry.rotate_seats(game.rules, state, 1),
    "position": lambda game, state: notation.position(game.rules, state),
}


@pytest.mark.parametrize(
    ("state", "got"),
    [
        (np.zeros(1), r"float64 \(1,\)"),
        (np.zeros(1, [("rng", "u8")]), r".* \(1,\)"),
        (np.zeros((1, 1), STATE), r".* \(1, 1\)"),
        ([7], r"\[7\]"),
    ],
    ids=["numbers", "other fields", "a table", "a list"],
)
@pytest.mark.parametrize("call", BATCHES)
def test_every_call_rejects_arrays_other_than_batches_of_states(call, state, got):
    with pytest.raises(
        ValueError, match=f"state must be a one-dimensional array of wotd_env.STATE, got {got}"
    ):
        BATCHES[call](Game(RULES), state)


def test_reset_overwrites_arbitrary_bytes():
    arbitrary = np.frombuffer(np.random.default_rng(0).bytes(64 * 50), STATE).copy()
    for rules in (RULES, Rules(start="loser"), Rules(players=5, colors="random")):
        state = arbitrary.copy()
        Game(rules).reset(state, seed=3)
        check_states(rules, state)
        assert state.tobytes() == Game(rules).reset(50, seed=3).tobytes()


def test_without_validation_records_are_trusted():
    state = one(perfection=2)
    assert Game(RULES).legal_actions(state, validate=False).any()


@pytest.mark.parametrize(
    "actions", [[2**63], [2**64 - 1], [-(2**63) - 1], [10**30], np.array([2**63], np.uint64)], ids=repr
)
@pytest.mark.parametrize("method", ["step", "decide", "step_autoreset"])
def test_actions_beyond_64_bits_are_illegal(method, actions):
    game = Game()
    state = game.reset(1, seed=0)
    before = state.copy()
    with pytest.raises(
        IllegalActionError, match=rf"action {actions[0]} \(no such action\) is illegal"
    ) as caught:
        getattr(game, method)(state, actions)
    assert caught.value.action == actions[0]
    assert (state == before).all()


@pytest.mark.parametrize("action", [2**63, -(2**64), 10**30])
def test_actions_beyond_64_bits_are_illegal_in_environments_too(action):
    raw = way_of_the_dragon_v0.raw_env()
    raw.reset(seed=0)
    with pytest.raises(IllegalActionError, match=f"action {action} "):
        raw.step(action)
    single = gymnasium.make(ID, illegal="raise", disable_env_checker=True)
    single.reset(seed=0)
    with pytest.raises(IllegalActionError, match=f"action {action} "):
        single.step(action)
    vector: Any = gymnasium.make_vec(ID, num_envs=2, illegal="raise")
    vector.reset(seed=0)
    with pytest.raises(IllegalActionError, match=f"game 1: action {action} "):
        vector.step([vector.action_masks()[0].argmax(), action])


@pytest.mark.parametrize(
    "fields",
    [
        {"players": np.array([2])},
        {"players": int},
        {"players": 2.0},
        {"powers": np.array("own")},
        {"powers": ["own"]},
        {"powers": str},
        {"immunity": np.array([True, False])},
        {"immunity": "yes"},
        {"start": None},
        {"start": int},
        {"colors": (np.array(["water", "fire"]), "fire")},
        {"colors": 5},
        {"max_turns": float("nan")},
        {"dead_pieces": "3"},
        {"spaces": -1},
    ],
    ids=str,
)
def test_invalid_rules_raise_errors_that_name_the_field(fields):
    (name,) = fields
    with pytest.raises(ValueError, match=f"^{name} must be"):
        Rules(**fields)


# ---------------------------------------------------------------------------------------- millions of invalid records


def test_invalid_records_cause_no_crash_and_no_stray_write():
    run_python("-m", "tests.helpers.hostile", "20000", "20000")


@pytest.mark.slow
def test_millions_of_invalid_records_cause_no_crash():
    run_python("-m", "tests.helpers.hostile", "10000000", "1000000")
