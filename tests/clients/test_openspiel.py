"""The game passes OpenSpiel's own tests, and OpenSpiel's algorithms find the solver's values.

`python -m tests.clients.test_openspiel` regenerates the playthroughs; check the diff.
"""

import copy
import pickle
import random
import subprocess
import sys
import types
import unittest
from pathlib import Path

import numpy as np
import pytest

pyspiel = pytest.importorskip(
    "pyspiel", reason="OpenSpiel is not installed: pip install 'wotd-env[openspiel]'"
)

from absl import flags
from open_spiel.integration_tests import api_test
from open_spiel.python import policy, rl_environment
from open_spiel.python.algorithms import best_response, exploitability, generate_playthrough, minimax
from open_spiel.python.tests import games_sim_test

from tests.helpers.exact import before_roll, random_positions
from wotd_env import Game, IllegalActionError, Phase, Rules, notation
from wotd_env.adapters.openspiel import NAME, position
from wotd_env.core.dice import KEEPS, NUM_ROLLS
from wotd_env.core.engine import impassable
from wotd_env.core.observation import ENCODINGS
from wotd_env.planning.planner import plan
from wotd_env.policies.oracle import Oracle

PLAYTHROUGHS = Path(__file__).parent / "openspiel"
SMALLEST = Rules(spaces=0)

VARIANTS = {
    "2 players": "players=2,spaces=2",
    "3 players, own powers": "players=3,spaces=1,powers=own,immunity=True",
    "4 players, all chance nodes": "players=4,spaces=2,powers=any,dead_pieces=3,colors=random",
    "5 players": "players=5,spaces=0,powers=own,colors=wood-fire-water-metal-earth,start=3",
    "expired": "players=2,spaces=1,max_turns=4",
}


def load(parameters: str):
    return pyspiel.load_game(f"{NAME}({parameters})")


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=[*VARIANTS])
def game(request):
    return load(request.param)


def sample(state, rng: np.random.Generator) -> int:
    """Return a random outcome of a chance node, or a random legal action."""
    if not state.is_chance_node():
        return int(rng.choice(state.legal_actions()))
    outcomes, chances = zip(*state.chance_outcomes(), strict=True)
    return int(rng.choice(outcomes, p=chances))


def states_of(game, seed: int):
    """Yield every state of a random game, always as the same object."""
    rng = np.random.default_rng(seed)
    state = game.new_initial_state()
    yield state
    while not state.is_terminal():
        state.apply_action(sample(state, rng))
        yield state


def before_first_roll(game, seed: int):
    """Return the state before the first roll, and its probability."""
    rng = np.random.default_rng(seed)
    state, chance = game.new_initial_state(), 1.0
    while "before the first turn" in str(state):
        outcomes = dict(state.chance_outcomes())
        assert sum(outcomes.values()) == pytest.approx(1, rel=1e-12)
        assert list(outcomes) == sorted(outcomes)
        outcome = int(rng.choice(list(outcomes)))
        chance *= outcomes[outcome]
        state.apply_action(outcome)
    state.game.check(state.record)
    return state, chance


def state_after(game, nodes: int, seed: int = 0):
    """Return the state of a random game after some nodes; -1 is its end."""
    return [state.clone() for state in states_of(game, seed)][nodes]


# ------------------------------------------------------------------------------------------- OpenSpiel's own tests


def test_passes_random_sim_test(game):
    pyspiel.random_sim_test(game, num_sims=1, serialize=True, verbose=False, mask_test=True)


@pytest.mark.client("OpenSpiel", "open_spiel", 'pyspiel.load_game("way_of_the_dragon")')
def test_passes_games_sim_test(game):
    games_sim_test.GamesSimTest().sim_game(game)


def test_passes_the_api_test(game, capfd):  # OpenSpiel prints the errors that it provokes
    random.seed(0)
    case = type("Api", (api_test.EnforceAPIOnPartialTreeBase,), {"game": game, "game_name": NAME})
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun >= 5
    assert not result.errors + result.failures, (result.errors + result.failures)[0][1]


@pytest.mark.parametrize("name", ["2_players", "3_players", "4_players", "5_players"])
def test_playthroughs_are_unchanged(name):
    flags.FLAGS.mark_as_parsed()
    before, now = generate_playthrough.replay(PLAYTHROUGHS / f"{name}.txt")
    assert now == before, "if the change is intended: python -m tests.clients.test_openspiel"


# ---------------------------------------------------------------------------------- equality with the native game


def test_games_equal_the_native_games(game):
    rng = np.random.default_rng(1)
    state, _ = before_first_roll(game, seed=1)
    native, record = state.game, state.record.copy()
    while not state.is_terminal():
        action = sample(state, rng)
        if state.is_chance_node():
            native.roll(record, KEEPS[action : action + 1])
        else:
            assert state.current_player() == record["player"][0]
            assert state.legal_actions() == np.flatnonzero(native.legal_actions(record)[0]).tolist()
            assert state.legal_actions((state.current_player() + 1) % native.rules.players) == []
            assert state.action_to_string(action) == native.describe_action(record, action)
            native.decide(record, [action])
        state.apply_action(action)
        assert state.record.tobytes() == record.tobytes()
        for seat in range(native.rules.players):
            expected = native.observe(record, seat)[0].tolist()
            assert state.observation_tensor(seat) == state.information_state_tensor(seat) == expected
    assert native.is_over(record).all()
    assert state.returns() == pytest.approx(native.rewards(record)[0].tolist())
    assert sum(state.returns()) == pytest.approx(0, abs=1e-15)


def test_state_strings_are_equal_exactly_if_observations_are(game):
    observations: dict[str, bytes] = {}
    for seed in range(2):
        for state in states_of(game, seed):
            if "before the first turn" in str(state):
                continue  # only the string shows that chance nodes remain
            observation = state.game.observe(state.record, 0).tobytes()
            assert observations.setdefault(str(state), observation) == observation
            assert state.observation_string(1) == state.information_state_string(0) == str(state)
    assert len(set(observations.values())) == len(observations) > 10


def test_chance_outcomes_have_the_probabilities_of_the_dice():
    seen = set()
    for state in states_of(load("start=0"), seed=2):
        if not state.is_chance_node():
            continue
        kept = [face for face in state.record["dice"][0].tolist() if face >= 0]
        throws, chances = Game.chance_outcomes(5 - len(kept))
        rolls = {tuple(sorted([*kept, *throw])): p for throw, p in zip(throws.tolist(), chances, strict=True)}
        outcomes = {tuple(KEEPS[roll].tolist()): p for roll, p in state.chance_outcomes()}
        assert outcomes == pytest.approx(rolls, rel=1e-12)
        assert [roll for roll, _ in state.chance_outcomes()] == sorted(
            roll for roll, _ in state.chance_outcomes()
        )
        seen.add(len(kept))
    assert seen == {0, 1, 2, 3, 4}


# ------------------------------------------------------------------------------ chance nodes before the first turn


def test_dead_pieces_are_uniform_and_never_block_a_path():
    game = load("spaces=5,dead_pieces=5,start=0")
    for seed in range(60):
        state, chance = before_first_roll(game, seed)
        dead = state.record["dead"][0]
        assert chance == pytest.approx(1 / (53130 - 5), rel=1e-12)  # 5 of 25 spaces, except 5 whole paths
        assert sum(bits.bit_count() for bits in dead.tolist()) == 5
        assert not any(impassable(bits) for bits in dead)


def test_the_maximum_number_of_dead_pieces_is_drawn():
    state, _ = before_first_roll(load("spaces=10,dead_pieces=15,start=0"), seed=3)
    assert sum(bits.bit_count() for bits in state.record["dead"][0].tolist()) == 15


def test_all_colors_are_equally_probable():
    game = load("players=3,colors=random,powers=own,start=0")
    state = game.new_initial_state()
    outcomes = dict(state.chance_outcomes())
    assert set(outcomes.values()) == {1 / 60}
    colors = [tuple(state.child(outcome).record["color"][0].tolist()) for outcome in outcomes]
    assert len({chosen[:3] for chosen in colors}) == 60
    assert all(sorted(chosen) == [0, 1, 2, 3, 4] for chosen in colors)


def test_every_seat_starts_equally_often_as_in_the_native_game():
    game = load("players=3")
    assert game.new_initial_state().chance_outcomes() == [(seat, pytest.approx(1 / 3)) for seat in range(3)]
    assert [game.new_initial_state().child(seat).record["player"][0] for seat in range(3)] == [0, 1, 2]
    starts = np.bincount(Game(Rules(players=3)).new(30_000, seed=0)["player"], minlength=3)
    assert abs(starts - 10_000).max() < 5 * (30_000 * 2 / 9) ** 0.5


def test_a_given_start_needs_no_chance_node():
    state = load("players=4,start=2").new_initial_state()
    assert state.record["player"][0] == 2
    assert len(state.chance_outcomes()) == NUM_ROLLS


# ------------------------------------------------------------------------------------ copies, files, parameters


def test_copies_are_independent_and_equal(game):
    state = state_after(game, 12)
    before = state.record.tobytes()
    for other in (state.clone(), copy.deepcopy(state), pickle.loads(pickle.dumps(state))):
        assert (str(other), other.history(), other.current_player()) == (
            str(state),
            state.history(),
            state.current_player(),
        )
        other.apply_action(other.legal_actions()[0])
        assert state.record.tobytes() == before != other.record.tobytes()


def test_deserialization_restores_game_and_state(game):
    state = state_after(game, 10)
    same_game, same_state = pyspiel.deserialize_game_and_state(pyspiel.serialize_game_and_state(game, state))
    assert str(same_game) == str(game)
    assert same_state.record.tobytes() == state.record.tobytes()
    assert same_state.legal_actions() == state.legal_actions()


def test_dicts_and_json_restore_every_state_of_a_game(game):
    state, rng = game.new_initial_state(), np.random.default_rng(1)
    for _ in range(60):
        for saved in (state.to_dict(), state.to_json()):
            twin = game.new_initial_state(saved)
            assert twin.to_dict() == state.to_dict()
            assert (twin.record == state.record).all()
            if not state.is_terminal():
                assert twin.legal_actions() == state.legal_actions()
        if state.is_terminal():
            return
        state.apply_action(int(rng.choice(state.legal_actions())))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"position": 3}, "position must be one line"),
        ({"draws": ["start", "start"]}, "draws must be the last ones of"),
        ({"position": None}, "position must be one line"),
    ],
)
def test_a_malformed_saved_state_raises_an_error(changes, message):
    game = pyspiel.load_game(NAME)
    with pytest.raises(ValueError, match=message):
        game.new_initial_state(game.new_initial_state().to_dict() | changes)


def test_a_saved_state_of_other_rules_raises_an_error():
    saved = pyspiel.load_game(f"{NAME}(spaces=2,start=0)").new_initial_state().to_dict()
    with pytest.raises(ValueError, match="position must have the rules of the game"):
        pyspiel.load_game(f"{NAME}(start=0)").new_initial_state(saved)
    with pytest.raises(ValueError, match="a state must be a dict from to_dict"):
        pyspiel.load_game(NAME).new_initial_state({})


def test_a_new_process_can_load_a_pickled_state(tmp_path):
    state = state_after(load("players=3"), 9)
    (tmp_path / "state").write_bytes(pickle.dumps(state))
    read = f"import pickle; print(pickle.load(open({str(tmp_path / 'state')!r}, 'rb')))"
    output = subprocess.run([sys.executable, "-c", read], check=True, capture_output=True, text=True).stdout
    assert output.strip() == str(state)


def test_game_parameters_set_the_rules():
    game = load(
        "players=4,spaces=3,powers=any,immunity=True,dead_pieces=2,colors=wood-fire-metal-earth,start=1"
    )
    expected = Rules(4, 3, "any", True, 2, ("wood", "fire", "metal", "earth"), 1)
    assert game.game.rules == expected
    assert pyspiel.load_game(str(game)).game.rules == expected
    assert pyspiel.load_game(NAME, {"players": 3}).game.rules == Rules(players=3)
    assert pyspiel.load_game(NAME).game.rules == Rules()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ("players=6", "players must be an integer from 2 to 5, got 6"),
        ("start=2", "start must be an integer from 0 to 1 as a seat, got 2"),
        ("powers=all", "powers must be one of"),
        ("colors=red-blue", "2 different names among water"),
        ("encoding=pixels", "encoding must be one of 'one_hot', 'compact'"),
        ("position=middle", "a position must begin with board, colors"),
    ],
)
def test_an_invalid_parameter_raises_an_error_that_names_it(parameters, message):
    with pytest.raises(ValueError, match=message):
        load(parameters)


def test_parameters_that_contradict_the_position_raise_an_error():
    line = position(Rules(players=3), Game(Rules(players=3)).new(1))
    with pytest.raises(ValueError, match="players must be 3, as in the position, or be omitted, got 4"):
        load(f"players=4,position={line}")
    assert load(f"players=3,position={line}").game.rules == Rules(players=3)


@pytest.mark.parametrize("seed", range(4))
def test_a_game_can_start_from_a_position(game, seed):
    state = state_after(game, 20, seed)
    rules, record = state.game.rules, state.record
    again = load(f"position={position(rules, record)}")
    for spiel in (
        again,
        pyspiel.load_game(str(again)),
        pyspiel.load_game(NAME, {"position": notation.position(rules, record)}),
    ):
        start = spiel.new_initial_state()
        assert str(start) == str(state)
        assert start.record.tobytes() == record.tobytes()
        assert start.current_player() == state.current_player()
        assert start.history() == []
        assert spiel.game.rules == rules


def test_state_strings_are_valid_notation(game):
    read = 0
    for state in states_of(game, seed=3):
        if "before the first turn" not in str(state):
            rules, record = notation.parse_position(str(state))
            assert rules == state.game.rules
            if rules.max_turns > 900:  # the string omits the turn
                record["turn"] = state.record["turn"]
            assert record.tobytes() == state.record.tobytes()
            read += 1
    assert read > 1


def test_state_strings_contain_the_turn_only_near_the_limit():
    state = state_after(load("start=0"), 60)
    assert state.record["turn"][0] > 3
    assert notation.parse_position(str(state))[1]["turn"][0] == 0
    near = state.record.copy()
    near["turn"] = 1000 - 126
    restored = load(f"position={position(state.game.rules, near)}").new_initial_state()
    assert notation.parse_position(str(restored))[1]["turn"][0] == 1000 - 126


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tensors_have_the_requested_encoding(encoding):
    spiel = load(f"players=3,powers=own,encoding={encoding}")
    native = Game(Rules(players=3, powers="own"), encoding=encoding)
    assert spiel.observation_tensor_shape() == [native.observation_size]
    state = state_after(spiel, 30)
    for seat in range(3):
        seen = native.observe(state.record, seat)[0]
        assert state.observation_tensor(seat) == seen.tolist()
        observer = spiel.make_py_observer()
        observer.set_from(state, seat)
        for name, part in native.observation_layout.items():
            assert observer.dict[name].tolist() == seen[part].tolist()
    assert pyspiel.load_game(str(spiel)).game.encoding == encoding


def test_illegal_calls_raise_and_change_nothing():
    state = state_after(load("start=0"), 1)
    before = state.record.tobytes()
    with pytest.raises(IllegalActionError, match=r"action 50 \(pass\) is illegal"):
        state.apply_action(50)
    with pytest.raises(ValueError, match="not a chance node"):
        state.chance_outcomes()
    assert state.record.tobytes() == before
    assert len(state.history()) == 1
    with pytest.raises(ValueError, match="the game is over"):
        state_after(load("spaces=1,max_turns=1,start=0"), -1).apply_action(50)
    state.apply_action(16)
    with pytest.raises(ValueError, match="0 is not an outcome"):
        state.apply_action(0 if 0 not in dict(state.chance_outcomes()) else NUM_ROLLS)


# ------------------------------------------------------------------------- its algorithms agree with the solver


ENDS = before_roll(*random_positions(0, 12, seed=5, late=True))
"""Late positions of the smallest board, before the first roll of a turn."""


@pytest.fixture(scope="module")
def oracle(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("tables")))
        solved = Oracle()
        solved.table(Game(SMALLEST))
    return solved


def mid_turn(index: int) -> np.ndarray:
    """Return one of the ENDS with random dice and a re-roll left, STATE (1,)."""
    state = ENDS[index : index + 1].copy()
    state["dice"] = np.sort(np.random.default_rng(index).integers(0, 6, 5))
    state["phase"], state["rolls_left"] = Phase.KEEP, 1
    return state


@pytest.mark.parametrize("index", range(4))
def test_expectiminimax_keeps_the_dice_of_the_exact_solution(oracle, index):
    def exact(state) -> float:
        equity = float(oracle.equity(state.game, state.record)[0])
        return equity if state.record["player"][0] == 0 else -equity

    start = mid_turn(index)
    state = load(f"position={position(SMALLEST, start)}").new_initial_state()
    values, expected = plan(state.game, start, oracle.table(state.game).for_seats)
    value, action = minimax.expectiminimax(state, 1, exact, 0)
    assert value == pytest.approx(expected[0], abs=1e-6)
    assert values[0, action] == pytest.approx(values[0].max(), abs=1e-6)


def last_turn(index: int):
    """Return a game in its last turn, with a re-roll left, and its value. Reaching the turn limit is a draw."""
    start = mid_turn(index)
    start["turn"] = 6
    game = load(f"position={position(Rules(spaces=0, max_turns=7), start)}")
    _, best = plan(game.game, start, lambda game, after: np.zeros((len(after), 2)))
    return game, float(best[0])


@pytest.mark.parametrize("index", range(4))
def test_value_iteration_finds_the_planners_value(index, monkeypatch):
    # Only simultaneous games need the linear programs, and those need another package.
    name = "open_spiel.python.algorithms.lp_solver"
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    from open_spiel.python.algorithms import value_iteration

    game, best = last_turn(index)
    values = value_iteration.value_iteration(game, -1, 1e-9, cyclic_game=True)
    assert values[str(game.new_initial_state())] == pytest.approx(best, abs=1e-6)


class Best(policy.Policy):  # type: ignore[misc]  # OpenSpiel is untyped
    """Policy that plays one of the planner's best actions."""

    def action_probabilities(self, state, player_id=None):
        values, _ = plan(state.game, state.record, lambda game, after: np.zeros((len(after), 2)))
        return {int(values[0].argmax()): 1.0}


def test_the_planner_is_not_exploitable_and_equals_the_best_response():
    worst = 0.0
    for index in range(4):
        game, best = last_turn(index)
        assert exploitability.nash_conv(game, Best(game, [0, 1])) == pytest.approx(0, abs=1e-6)
        uniform = policy.UniformRandomPolicy(game)
        response = best_response.BestResponsePolicy(game, 0, uniform)
        assert response.value(game.new_initial_state()) == pytest.approx(best, abs=1e-6)
        worst = max(worst, exploitability.nash_conv(game, uniform))
    assert worst > 0.1


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_rl_environment_plays_a_game(players):
    env = rl_environment.Environment(NAME, players=players, spaces=0)
    env.seed(0)
    native = Game(Rules(players=players, spaces=0))
    rng = np.random.default_rng(0)
    step = env.reset()
    assert env.observation_spec()["info_state"] == (native.observation_size,)
    assert env.action_spec()["num_actions"] == native.num_actions
    while not step.last():
        player = step.observations["current_player"]
        legal = step.observations["legal_actions"]
        assert [bool(actions) for actions in legal] == [seat == player for seat in range(players)]
        assert step.observations["info_state"][player] == native.observe(env.get_state.record)[0].tolist()
        step = env.step([int(rng.choice(legal[player]))])
    assert sum(step.rewards) == pytest.approx(0, abs=1e-12)
    assert max(step.rewards) > 0


if __name__ == "__main__":
    flags.FLAGS.mark_as_parsed()
    generate_playthrough.update_path(PLAYTHROUGHS)
