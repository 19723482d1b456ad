"""Permuting paths and rotating seats does not change how games are played."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.strategies import any_rules, decisions, seeds
from wotd_env import Game, Phase, Rules, symmetry
from wotd_env.core.observation import ENCODINGS

BATCH = 32
STEPS = 50


def symmetries(rules: Rules, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return a random permutation for each game that the rules allow, int (N, 5)."""
    permutations = rng.permuted(np.tile(np.arange(5), (len(state), 1)), axis=1)
    if rules.immunity and rules.powers == "own":
        permutations[:] = np.arange(5)
        for permutation, colors in zip(permutations, state["color"], strict=True):
            unused = colors[rules.players :]
            permutation[unused] = rng.permutation(unused)
    return permutations


def faces(state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return dice for each game that include the kept ones, int (N, 5); five of a kind are common."""
    favorite = np.broadcast_to(rng.integers(6, size=(len(state), 1)), (len(state), 5))
    rolled = np.where(rng.random((len(state), 5)) < 0.6, favorite, rng.integers(6, size=(len(state), 5)))
    return np.where(state["dice"] < 0, rolled, state["dice"])


@given(any_rules(), seeds, st.sampled_from(ENCODINGS))
def test_permuted_observations_equal_observations_of_permuted_states(
    rules: Rules, seed: int, encoding: str
) -> None:
    rng = np.random.default_rng(seed)
    game = Game(rules, encoding=encoding)
    for _, state, _, after in itertools.islice(decisions(rules, seed), 0, None, 6):
        states = np.concatenate([state, after])
        permutation = symmetries(rules, states, rng)
        twin = symmetry.permute_states(rules, states, permutation)
        for seat in range(rules.players):
            seen = game.observe(states, seat).astype(rng.choice(["int8", "float32"]))
            permuted = symmetry.permute_observations(rules, seen, permutation, encoding)
            assert permuted.dtype == seen.dtype
            np.testing.assert_array_equal(permuted, game.observe(twin, seat))


@given(any_rules(), seeds, st.booleans())
def test_permuted_games_are_played_identically(rules: Rules, seed: int, skip_forced: bool) -> None:
    rng = np.random.default_rng(seed)
    game = Game(rules, skip_forced)
    state = game.reset(BATCH, seed)
    permutation = symmetries(rules, state, rng)
    twin = symmetry.permute_states(rules, state, permutation)
    for _ in range(STEPS):
        game.check(twin)
        mask = game.legal_actions(state)
        permuted_mask = symmetry.permute_masks(rules, state, mask, permutation)
        np.testing.assert_array_equal(permuted_mask, game.legal_actions(twin))
        seen = symmetry.permute_observations(rules, game.observe(state), permutation)
        np.testing.assert_array_equal(seen, game.observe(twin))
        np.testing.assert_array_equal(game.rewards(state), game.rewards(twin))

        actions = (mask * rng.random(mask.shape)).argmax(1)
        permuted_actions = symmetry.permute_actions(rules, state, actions, permutation)
        game.decide(state, actions)
        game.decide(twin, permuted_actions)
        np.testing.assert_array_equal(twin, symmetry.permute_states(rules, state, permutation))
        while (state["phase"] == Phase.CHANCE).any():
            dice = faces(state, rng)
            game.roll(state, dice)
            game.roll(twin, symmetry.permute_dice(dice, permutation))
            np.testing.assert_array_equal(twin, symmetry.permute_states(rules, state, permutation))


@given(any_rules(), seeds)
def test_the_inverse_permutation_restores_states_actions_and_masks(rules: Rules, seed: int) -> None:
    rng = np.random.default_rng(seed)
    game = Game(rules)
    state = game.reset(BATCH, seed)
    permutation = symmetries(rules, state, rng)
    inverse = np.argsort(permutation, 1)
    twin = symmetry.permute_states(rules, state, permutation)
    np.testing.assert_array_equal(symmetry.permute_states(rules, twin, inverse), state)
    actions = rng.integers(game.num_actions, size=BATCH)
    there = symmetry.permute_actions(rules, state, actions, permutation)
    np.testing.assert_array_equal(symmetry.permute_actions(rules, twin, there, inverse), actions)
    values = rng.random((BATCH, game.num_actions))
    there = symmetry.permute_masks(rules, state, values, permutation)
    np.testing.assert_array_equal(symmetry.permute_masks(rules, twin, there, inverse), values)


@given(any_rules(), seeds, st.integers(-6, 6))
def test_rotated_games_are_played_identically(rules: Rules, seed: int, by: int) -> None:
    rng = np.random.default_rng(seed)
    game = Game(rules)
    state = game.reset(BATCH, seed)
    twin = symmetry.rotate_seats(rules, state, by)
    for _ in range(STEPS):
        mask = game.legal_actions(state)
        np.testing.assert_array_equal(mask, game.legal_actions(twin))
        np.testing.assert_array_equal(game.observe(state), game.observe(twin))
        for seat in range(rules.players):
            moved = game.observe(twin, (seat + by) % rules.players)
            np.testing.assert_array_equal(game.observe(state, seat), moved)
        np.testing.assert_array_equal(np.roll(game.rewards(state), by, 1), game.rewards(twin))
        np.testing.assert_array_equal(np.roll(game.scores(state), by, 1), game.scores(twin))
        actions = (mask * rng.random(mask.shape)).argmax(1)
        game.step(state, actions)
        game.step(twin, actions)
        np.testing.assert_array_equal(twin, symmetry.rotate_seats(rules, state, by))


def test_one_permutation_applies_to_all_games_without_changing_them() -> None:
    rules = Rules(players=3, immunity=True)
    state = Game(rules).reset(4, seed=1)
    state["pieces"][:, 0, 2] = 6
    before = state.copy()
    twin = symmetry.permute_states(rules, state, [1, 2, 3, 4, 0])
    assert (twin["pieces"][:, 0, 3] == 6).all()
    np.testing.assert_array_equal(twin["color"][:, 0], 1)
    np.testing.assert_array_equal(state, before)
    assert (symmetry.permute_states(Rules(players=3), state, [1, 2, 3, 4, 0])["color"][:, 0] == 0).all()


@pytest.mark.parametrize("permutation", [[0, 1, 2, 3], [0, 1, 2, 3, 3], [1, 2, 3, 4, 5], [0.0, 1, 2, 3, 4]])
def test_invalid_permutations_are_rejected(permutation: list[float]) -> None:
    state = Game().reset(2, seed=0)
    with pytest.raises(ValueError, match="permutation must"):
        symmetry.permute_states(Rules(), state, permutation)


def test_powers_and_immunity_together_fix_the_paths_of_the_colors() -> None:
    rules = Rules(powers="own", immunity=True)
    state = Game(rules).reset(2, seed=0)
    symmetry.permute_states(rules, state, [0, 1, 3, 4, 2])
    with pytest.raises(ValueError, match=r"game 0: .*\(water, fire\)"):
        symmetry.permute_states(rules, state, [1, 0, 2, 3, 4])


def test_arguments_of_wrong_size_or_range_are_rejected() -> None:
    rules, game = Rules(), Game()
    state = game.reset(2, seed=0)
    order = [1, 0, 2, 3, 4]
    with pytest.raises(ValueError, match=r"masks must be an array \(2, 60\)"):
        symmetry.permute_masks(rules, state, np.ones((2, 61)), order)
    with pytest.raises(ValueError, match=r"observations must be an array \(2, 233\)"):
        symmetry.permute_observations(rules, np.ones((2, 61)), order)
    with pytest.raises(ValueError, match=r"encoding must be one of 'one_hot', .*, got 'pixels'"):
        symmetry.permute_observations(rules, game.observe(state), order, "pixels")
    with pytest.raises(ValueError, match="actions must be from 0 to 59, got 0 to 60"):
        symmetry.permute_actions(rules, state, [0, 60], order)
    with pytest.raises(ValueError, match="dice must be from -1 to 5, got 0 to 6"):
        symmetry.permute_dice([[0, 1, 2, 3, 6]], order)
    with pytest.raises(ValueError, match="by must be an integer"):
        symmetry.rotate_seats(rules, state, 0.5)  # type: ignore[arg-type]


def test_empty_batches_and_boards_without_plain_spaces_are_supported() -> None:
    rules = Rules(spaces=0)
    game = Game(rules)
    order = [1, 0, 2, 3, 4]
    none = game.reset(0)
    assert symmetry.permute_states(rules, none, order).shape == (0,)
    assert symmetry.rotate_seats(rules, none, 1).shape == (0,)
    assert symmetry.permute_actions(rules, none, np.empty(0, int), order).shape == (0,)
    assert symmetry.permute_masks(rules, none, game.legal_actions(none), order).shape == (0, 60)
    for encoding in ENCODINGS:
        seen = Game(rules, encoding=encoding).observe(none)
        assert symmetry.permute_observations(rules, seen, order, encoding).shape == seen.shape
