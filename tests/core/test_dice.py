"""Dice, random streams and copies: rolls are fair, and the same seed gives the same game in any batch."""

import copy
import io
import pickle
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy import stats

from wotd_env import STATE, Game, Phase, Rules
from wotd_env.core.compilation import KERNELS
from wotd_env.core.parallel import MIN_GAMES, slices

POWERFUL = Rules(players=3, spaces=5, powers="any", immunity=True, dead_pieces=7, colors="random")

# Seeds are fixed, so a test always passes or always fails. A fair stream fails for one seed in a thousand.
SIGNIFICANCE = 1e-3


def play(game: Game, state: np.ndarray, steps: int) -> np.ndarray:
    """Play in place with actions that depend only on each game's state; return the batch."""
    for _ in range(steps):
        mask = game.legal_actions(state)
        choice = (state["turn"] * 7 + state["dice"].sum(1) + state["rolls_left"]) % mask.sum(1)
        actions = (mask.cumsum(1) > choice[:, None]).argmax(1)
        game.step(state, actions)
    return state


# ------------------------------------------------------------------------------------------ distributions


@pytest.mark.parametrize("dice", range(6))
def test_chance_outcomes_equal_brute_force(dice: int) -> None:
    outcomes, probabilities = Game(Rules()).chance_outcomes(dice)
    ways = Counter(tuple(sorted(throw)) for throw in product(range(6), repeat=dice))
    assert [tuple(row) for row in outcomes.tolist()] == sorted(ways)
    expected = [float(Fraction(ways[row], 6**dice)) for row in sorted(ways)]
    np.testing.assert_allclose(probabilities, expected, rtol=1e-12)
    assert probabilities.sum() == pytest.approx(1)


@pytest.mark.parametrize("dice", [-1, 6, 2.0, True, "2", None, np.array([2])])
def test_chance_outcomes_rejects_other_numbers_of_dice(dice: Any) -> None:
    with pytest.raises(ValueError, match="dice must be an integer from 0 to 5, got "):
        Game.chance_outcomes(dice)
    assert len(Game.chance_outcomes(np.int64(2))[0]) == 21  # type: ignore[arg-type]


@pytest.mark.parametrize("kept", [[], [3], [0, 5], [1, 1, 4], [2, 2, 2, 5]])
def test_random_streams_roll_fair_dice(kept: list[int]) -> None:
    n = 200_000
    game = Game(Rules(), skip_forced=False)
    state = game.reset(n, seed=11, roll=False)
    state["dice"][:, : len(kept)] = kept
    game.roll(state)
    assert (state["phase"] == Phase.KEEP).all()
    outcomes, probabilities = game.chance_outcomes(5 - len(kept))
    expected = {
        tuple(sorted(kept + row)): p * n for row, p in zip(outcomes.tolist(), probabilities, strict=True)
    }
    seen = Counter(map(tuple, state["dice"].tolist()))
    assert set(seen) <= set(expected)
    observed = [seen[dice] for dice in expected]
    assert stats.chisquare(observed, list(expected.values())).pvalue > SIGNIFICANCE


def test_consecutive_rolls_of_a_game_are_independent() -> None:
    game = Game(Rules(), skip_forced=False)
    state = game.reset(100_000, seed=12)
    first = (state["dice"] == 5).sum(1)
    game.step(state, np.zeros(len(state), int))
    second = (state["dice"] == 5).sum(1)
    table = np.zeros((4, 4))
    np.add.at(table, (np.minimum(first, 3), np.minimum(second, 3)), 1)
    assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE


def test_neighboring_seeds_are_independent() -> None:
    """The seed of game i + 1 is the seed of game i plus one."""
    state = Game(Rules()).reset(200_000, seed=13)
    dragons = np.minimum((state["dice"] == 5).sum(1), 3)
    table = np.zeros((4, 4))
    np.add.at(table, (dragons[::2], dragons[1::2]), 1)
    assert stats.chi2_contingency(table).pvalue > SIGNIFICANCE


def test_one_long_stream_is_fair() -> None:
    """Count the faces of a single game over many rolls."""
    game = Game(Rules(max_turns=65535), skip_forced=False)
    state = game.reset(1, seed=14)
    seen: Counter[int] = Counter()
    rolls = 20_000
    for _ in range(rolls):
        state["rolls_left"] = 2
        game.step(state, np.array([0]))
        seen.update(state["dice"][0].tolist())
    assert sum(seen.values()) == 5 * rolls
    assert stats.chisquare([seen[face] for face in range(6)]).pvalue > SIGNIFICANCE


# ------------------------------------------------------------------------------------- same seed, same game


@pytest.mark.parametrize("rules", [Rules(), POWERFUL])
def test_game_i_equals_game_0_with_the_seed_plus_i(rules: Rules) -> None:
    game = Game(rules)
    batch = play(game, game.reset(65, seed=100), 80)
    for i in (0, 1, 31, 63, 64):
        single = play(game, game.reset(1, seed=100 + i), 80)
        assert single.tobytes() == batch[i : i + 1].tobytes()
    assert len({record.tobytes() for record in batch}) == 65, "different seeds give different games"


@pytest.mark.parametrize("rules", [Rules(), POWERFUL])
@pytest.mark.parametrize("batch_size", [2 * MIN_GAMES, 3 * MIN_GAMES + 1])  # two threads, three threads
def test_results_do_not_depend_on_the_threads(rules: Rules, batch_size: int) -> None:
    def result(num_threads: int) -> tuple[bytes, bytes, bytes]:
        game = Game(rules, num_threads=num_threads)
        state = play(game, game.reset(batch_size, seed=7), 60)
        done = state["phase"] == Phase.OVER
        done[::3] = True
        game.reset(state, where=done)
        play(game, state, 10)
        return state.tobytes(), game.legal_actions(state).tobytes(), game.observe(state).tobytes()

    assert len(slices(batch_size, 3)) == batch_size // MIN_GAMES
    one = result(1)
    assert result(2) == one
    assert result(3) == one


@pytest.mark.parametrize("start", ["dragons", "loser", 1])
def test_a_restarted_batch_equals_a_new_batch_with_the_same_seed(start: str | int) -> None:
    game = Game(Rules(players=3, spaces=1, start=start))
    fresh, other = game.reset(40, seed=9), game.reset(40, seed=77)
    state = play(game, game.reset(40, seed=2), 120)
    where = np.arange(40) % 3 > 0
    before = state.copy()
    game.reset(state, seed=9, where=where)
    assert state[where].tobytes() == fresh[where].tobytes()
    assert state[~where].tobytes() == before[~where].tobytes()
    game.reset(state, seed=77)
    assert state.tobytes() == other.tobytes()


def test_a_restarted_game_continues_its_stream() -> None:
    """The next game differs from the first and does not depend on other restarted games."""
    game = Game(Rules())
    first = game.reset(16, seed=3)
    some = play(game, first.copy(), 30)
    all_of_them = some.copy()
    where = np.arange(16) % 2 == 0
    untouched = some[~where].copy()
    game.reset(some, where=where)
    game.reset(all_of_them, where=np.ones(16, bool))
    assert some[where].tobytes() == all_of_them[where].tobytes()
    assert some[~where].tobytes() == untouched.tobytes()
    assert not (some["dice"] == first["dice"])[where].all()
    assert (some["turn"] == 0)[where].all()
    assert (some["pieces"] == 0)[where].all()


# ------------------------------------------------------------------------------------------- round trips


def through_numpy_file(state: np.ndarray) -> np.ndarray:
    file = io.BytesIO()
    np.save(file, state)
    file.seek(0)
    return np.asarray(np.load(file))


ROUND_TRIPS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "copy": np.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda state: pickle.loads(pickle.dumps(state)),
    "bytes": lambda state: np.frombuffer(bytearray(state.tobytes()), STATE),
    "file": through_numpy_file,
    "concatenation": lambda state: np.concatenate([state[:5], state[5:]]),
}


@pytest.mark.parametrize("way", ROUND_TRIPS)
@pytest.mark.parametrize("rules", [Rules(), POWERFUL])
def test_copied_states_are_played_in_place_by_the_same_kernels(way: str, rules: Rules) -> None:
    """Calls neither copy the states nor compile a kernel again, and the original does not change."""
    game = Game(rules)
    state = play(game, game.reset(12, seed=21), 33)
    twin = ROUND_TRIPS[way](state)
    assert twin.dtype == STATE
    before, signatures = state.tobytes(), [len(kernel.signatures) for kernel in KERNELS]
    addresses: set[int] = set()

    def look(states: np.ndarray, config: np.ndarray) -> None:
        addresses.add(states.ctypes.data)

    game.apply(look, twin)
    play(game, twin, 50)
    assert state.tobytes() == before
    assert play(game, state, 50).tobytes() == twin.tobytes()
    if way != "bytes":  # their memory may be unaligned
        assert addresses == {twin.ctypes.data}
        assert [len(kernel.signatures) for kernel in KERNELS[: len(signatures)]] == signatures


def test_pickled_output_arrays_are_filled() -> None:
    game = Game(POWERFUL)
    state = game.reset(3, seed=1)
    out = pickle.loads(pickle.dumps(np.zeros((3, game.num_actions), np.int8)))
    assert game.legal_actions(state, out=out) is out
    assert out.any()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, lambda game: pickle.loads(pickle.dumps(game))])
def test_game_objects_survive_copies_and_pickles(way: Callable[[Game], Game]) -> None:
    game = Game(POWERFUL, num_threads=2)
    state = play(game, game.reset(70, seed=22), 20)
    twin = way(game)
    assert twin.rules == game.rules
    assert play(twin, state.copy(), 30).tobytes() == play(game, state, 30).tobytes()


def test_a_state_is_one_cache_line() -> None:
    assert STATE.itemsize == 64
