"""The turn planner against brute force: expectimax through `Game.decide`, `Game.roll` and `chance_outcomes`."""

from typing import Any

import numpy as np
import pytest

from tests.helpers.games import positions
from tests.helpers.learned import some_value
from tests.helpers.planned import VARIANTS, arbitrary
from tests.helpers.positions import board
from wotd_env import STATE, Game, Phase, Rules
from wotd_env.planning.learned import LearnedValue
from wotd_env.planning.planner import TIE, Value, plan
from wotd_env.planning.playing import play_turns
from wotd_env.planning.values import hand_made
from wotd_env.policies.planner import Planner


def brute_force(game: Game, state: np.ndarray, turn: int, seat: int) -> np.ndarray:
    """Return the values of states within one turn of a seat, for this seat, by full expectimax."""
    _, where, back = np.unique(state.view(f"V{STATE.itemsize}"), return_index=True, return_inverse=True)
    state = state[where]
    value = np.full(len(state), np.nan)
    over = state["phase"] == Phase.OVER
    value[over] = game.rewards(state[over])[:, seat]
    ended = ~over & (state["turn"] != turn)
    value[ended] = arbitrary(game, state[ended])[:, seat]

    families, chances = [], {}
    running = np.flatnonzero(~over & ~ended)
    for i in running:
        one = state[i : i + 1]
        if one["phase"][0] == Phase.CHANCE:
            kept = one["dice"][0][one["dice"][0] >= 0]
            outcomes, chances[i] = game.chance_outcomes(5 - len(kept))
            children = np.repeat(one, len(outcomes))
            game.roll(children, np.concatenate([np.tile(kept, (len(outcomes), 1)), outcomes], 1))
        else:
            actions = np.flatnonzero(game.legal_actions(one)[0])
            children = np.repeat(one, len(actions))
            game.decide(children, actions)
        families.append(children)
    if families:
        later = brute_force(game, np.concatenate(families), turn, seat)
        borders = np.cumsum([len(children) for children in families])[:-1]
        for i, values in zip(running, np.split(later, borders), strict=True):
            value[i] = values @ chances[i] if i in chances else values.max()
    return value[back]


def samples(rules: Rules) -> np.ndarray:
    """Return positions of random play in all phases, including positions before the roll after a hold."""
    game = Game(rules, skip_forced=False)
    met = positions(rules, games=40, decisions=80)
    rng = np.random.default_rng(3)
    phases = [(Phase.KEEP, 2), (Phase.KEEP, 1), (Phase.KEEP, 0), (Phase.MOVE, 0), (Phase.EXTRA, 0)]
    kinds = [met[(met["phase"] == phase) & (met["rolls_left"] == rolls)] for phase, rolls in phases]
    chosen = np.concatenate([rng.choice(kind, 3) for kind in kinds if len(kind)])
    rolling = chosen[chosen["phase"] == Phase.KEEP]
    game.decide(rolling, rng.integers(2, size=len(rolling)))
    return np.concatenate([chosen, rolling])


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_action_values_equal_brute_force(rules):
    game = Game(rules, skip_forced=False)
    state = samples(rules)
    action_values, values = plan(game, state, arbitrary)
    legal = game.legal_actions(state) == 1
    assert (np.isfinite(action_values) == legal).all()
    for i in range(len(state)):
        one, turn, seat = state[i : i + 1], int(state["turn"][i]), int(state["player"][i])
        assert values[i] == pytest.approx(brute_force(game, one, turn, seat)[0], abs=1e-5)
        actions = np.flatnonzero(legal[i])
        children = np.repeat(one, len(actions))
        game.decide(children, actions)
        if len(actions):
            assert action_values[i, actions] == pytest.approx(
                brute_force(game, children, turn, seat), abs=1e-5
            )


def test_the_planner_plays_the_best_action():
    game = Game(VARIANTS[3])
    state = positions(game.rules)
    values = plan(game, state, arbitrary)[0]
    actions = Planner(arbitrary).act(game, state, np.random.default_rng())
    assert (values[np.arange(len(state)), actions] >= values.max(1) - TIE).all()


def test_plans_do_not_depend_on_the_batch():
    game = Game(VARIANTS[5], skip_forced=False)
    state = positions(game.rules, games=30, decisions=30)
    whole = plan(game, state, hand_made)
    parts = [plan(game, part, hand_made) for part in np.array_split(state, 7)]
    for i in range(2):
        assert (np.concatenate([part[i] for part in parts]) == whole[i]).all()


def test_values_of_a_wrong_shape_are_rejected():
    game = Game()
    with pytest.raises(ValueError, match=r"value must return an array \(\d+, 2\), got \(\d+,\)"):
        plan(game, game.reset(3), lambda game, afterstates: np.zeros(len(afterstates)))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("roll", [True, False])
def test_non_finite_values_are_rejected(wrong, roll):
    game = Game()
    state = game.reset(3, roll=roll)
    before = state.copy()

    def value(game, afterstates):
        values = np.zeros((len(afterstates), 2))
        values[5, 1] = wrong
        return values

    words = r"value must return finite numbers for running games, got \[0.0, .*\] for afterstate 5"
    with pytest.raises(ValueError, match=words):
        plan(game, state, value)
    if not roll:
        with pytest.raises(ValueError, match=words):
            play_turns(game, state, value)
    assert (state == before).all()


def test_learned_values_with_overflows_are_rejected():
    network = some_value(Rules()).network
    value = LearnedValue(Rules(), network._replace(rows=np.full_like(network.rows, 3e38)))
    game = Game()
    for state in (game.reset(3), game.reset(3, roll=False)):
        with pytest.raises(ValueError, match="value must return finite numbers"):
            Planner(value).act(game, state, np.random.default_rng(0))


def test_values_of_finished_games_are_ignored():
    game = Game(Rules(spaces=0))
    state = positions(game.rules)[-40:]
    started = game.reset(40, seed=1, roll=False)
    started["pieces"] = state["pieces"]

    def value(ended: float) -> Value:
        def of(game: Game, afterstates: np.ndarray) -> np.ndarray:
            values = hand_made(game, afterstates)
            values[afterstates["phase"] == Phase.OVER] = ended
            return values

        return of

    results = []
    for ended in (0, np.nan):
        after = started.copy()
        turns = play_turns(game, after, value(ended))
        results.append((*plan(game, state, value(ended)), after, *turns))
    assert (results[0][2]["phase"] == Phase.OVER).any()
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", ">f4"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_values_may_have_any_numeric_dtype(dtype, order):
    game = Game()
    state = game.reset(4, seed=2)

    def signs(game, afterstates):
        return np.sign(arbitrary(game, afterstates))

    expected = plan(game, state, signs)
    values = plan(game, state, lambda game, after: signs(game, after).astype(dtype, order=order))
    for one, other in zip(values, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_the_hand_made_value_is_an_expected_reward(rules):
    game = Game(rules)
    state = positions(rules)
    value = hand_made(game, state)
    assert value.shape == (len(state), rules.players)
    assert value.sum(1) == pytest.approx(0, abs=1e-5)
    assert (value < 1).all()
    assert (value > -1).all()


def value_of(**paths: Any) -> float:
    """Return the hand-made value of a two-player position for seat 0, which is to act."""
    return float(hand_made(Game(), board(Rules(), **paths))[0, 0])


def test_the_hand_made_value_rewards_progress_points_tempo_and_lead():
    assert value_of() > 0  # tempo
    assert value_of(fire="..a....|.....") > value_of(fire=".a.....|.....") > value_of()
    assert value_of(fire=".......|....a") > value_of(fire=".......|..a..")
    three, four = value_of(fire="..a..#.|....."), value_of(fire="..a...#|.....")
    assert three < four < value_of(fire="..a....|.....")  # blocked dice
    near: dict[str, Any] = dict.fromkeys(("water", "metal", "earth"), ".......|.a.b.")
    far: dict[str, Any] = dict.fromkeys(("water", "metal", "earth"), ".......|.b.a.")
    lead = value_of(fire=".......|.a.b.", **far) - value_of(fire=".......|.b.a.", **near)
    early = value_of(fire=".......|.a.b.") - value_of(fire=".......|.b.a.")
    assert lead > 3 * abs(early)
