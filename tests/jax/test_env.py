"""The interface of the JAX version, and the distributions of its random draws."""

import pickle
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests.helpers.positions import board
from wotd_env import Game, Phase, Rules
from wotd_env.core.actions import Action
from wotd_env.core.dice import KEEP_DICE, KEEPS, NUM_KEEPS

jax = pytest.importorskip("jax")
jnp = jax.numpy

from wotd_env.jax import State, WayOfTheDragon, auto_reset  # noqa: E402
from wotd_env.jax import rules as play  # noqa: E402

GAMES = 20_000


def keys(count: int, seed: int = 0) -> Any:
    return jax.random.split(jax.random.key(seed), count)


def new_games(env: WayOfTheDragon, count: int = GAMES) -> State:
    state: State = jax.jit(jax.vmap(env.init))(keys(count))
    return state


def test_an_environment_can_be_pickled() -> None:
    env = WayOfTheDragon(players=3, powers="own")
    assert pickle.loads(pickle.dumps(env)).rules == env.rules


def test_the_interface_is_that_of_pgx() -> None:
    env = WayOfTheDragon(players=3)
    game = Game(players=3)
    assert (env.id, env.num_players, env.num_actions) == ("way_of_the_dragon", 3, game.num_actions)
    assert env.observation_shape == (game.observation_size,)
    assert env.observation_layout == game.observation_layout
    state = env.init(jax.random.key(0))
    assert state.observation.shape == env.observation_shape
    assert state.observation.dtype == jnp.int8
    assert state.legal_action_mask.shape == (env.num_actions,)
    assert state.legal_action_mask.dtype == bool
    assert state.rewards.shape == (3,)
    assert state.rewards.dtype == jnp.float32
    assert not state.terminated
    assert not state.truncated
    state = env.step(state, jnp.int32(Action.STOP_ROLLING), jax.random.key(1))
    assert state._step_count == 1


@pytest.mark.parametrize(
    ("fields", "error", "words"),
    [
        ({"start": "loser"}, ValueError, "start"),
        ({"players": 9}, ValueError, "players"),
        ({"player": 2}, TypeError, "Did you mean 'players'"),
        ({"rules": Rules(), "players": 2}, TypeError, "not both"),
    ],
)
def test_unsupported_arguments_are_refused_by_name(fields: Any, error: type, words: str) -> None:
    with pytest.raises(error, match=words):
        WayOfTheDragon(**fields)


def test_an_invalid_record_is_refused() -> None:
    records = Game().reset(1, seed=0)
    records["pieces"][0, 0, 0] = 99
    with pytest.raises(ValueError, match="pieces"):
        WayOfTheDragon().from_records(records)


@pytest.mark.parametrize("action", [Action.PASS, -1, 60, 10**6])
def test_an_illegal_action_ends_the_game_with_a_loss(action: int) -> None:
    env = WayOfTheDragon(players=3, start=1)
    state = env.init(jax.random.key(0))
    before = env.to_records(state)
    for after in (
        env.step(state, jnp.int32(action), jax.random.key(1)),
        env.decide(state, jnp.int32(action)),
    ):
        assert after.terminated
        assert after.rewards.tolist() == [0.5, -1, 0.5]
        assert after.legal_action_mask.all()
        assert (env.to_records(after) == before).all()


def test_a_game_that_is_over_stays_as_it_is() -> None:
    env = WayOfTheDragon()
    state = env.step(env.init(jax.random.key(0)), jnp.int32(Action.PASS), jax.random.key(1))
    again = env.step(state, jnp.int32(3), jax.random.key(2))
    assert again.terminated
    assert again.rewards.tolist() == [0, 0]
    assert again._step_count == state._step_count
    assert (env.to_records(again) == env.to_records(state)).all()


def test_auto_reset_starts_a_new_game_and_keeps_the_result() -> None:
    env = WayOfTheDragon(start=0)
    step = auto_reset(env.step, env.init)
    ended = step(env.init(jax.random.key(0)), jnp.int32(Action.PASS), jax.random.key(1))
    assert ended.terminated
    assert ended.rewards.tolist() == [-1, 1]
    fresh = env.to_records(ended)
    assert fresh["phase"] == Phase.KEEP
    assert fresh["turn"] == 0
    assert ended.legal_action_mask.sum() == Game().legal_actions(fresh).sum()
    following = step(ended, jnp.int32(Action.STOP_ROLLING), jax.random.key(2))
    assert not following.terminated
    assert following.rewards.tolist() == [0, 0]


def test_auto_reset_of_pgx_does_the_same() -> None:
    wrappers = pytest.importorskip("pgx.experimental.wrappers")
    env = WayOfTheDragon()
    state = env.init(jax.random.key(0))
    for action in (Action.STOP_ROLLING, Action.PASS):
        ours = auto_reset(env.step, env.init)(state, jnp.int32(action), jax.random.key(1))
        theirs = wrappers.auto_reset(env.step, env.init)(state, jnp.int32(action), jax.random.key(1))
        assert ours.terminated == theirs.terminated
        assert (ours.rewards == theirs.rewards).all()


@pytest.mark.parametrize(
    "rules", [Rules(), Rules(players=5, powers="any", colors="random"), Rules(players=4, dead_pieces=3)]
)
def test_records_make_the_round_trip(rules: Rules) -> None:
    env, game = WayOfTheDragon(rules), Game(rules)
    records = game.reset(64, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(30):
        game.step_autoreset(
            records, (game.legal_actions(records) * rng.random((64, game.num_actions))).argmax(1)
        )
    state = env.from_records(records)
    back = env.to_records(state, seed=0)
    streams = back["rng"].copy()
    back["rng"] = records["rng"]
    assert back.tobytes() == records.tobytes()
    assert len(set(streams.tolist())) == 64, "every game has a stream of its own"
    for seat in range(rules.players):
        seen = jax.vmap(env.observe, (0, None))(state, seat)
        np.testing.assert_array_equal(seen, game.observe(records, seat))
    one = env.to_records(jax.tree.map(lambda leaf: leaf[3], state))
    assert one.shape == (1,)
    assert one["player"] == records["player"][3]


def test_chance_logits_are_the_probabilities_of_the_rolls() -> None:
    env = WayOfTheDragon()
    records = np.repeat(board(env.rules), NUM_KEEPS)
    records["dice"] = KEEP_DICE
    records["phase"] = np.where((KEEP_DICE < 0).any(1), Phase.CHANCE, Phase.MOVE)
    records["rolls_left"] = 0
    logits = np.asarray(jax.vmap(env.chance_logits)(env.from_records(records)), np.float64)
    np.testing.assert_allclose(np.exp(logits).sum(1), 1, rtol=1e-6)
    for keep in (0, 251, 252, 300, 400, NUM_KEEPS - 1):
        kept = sorted(KEEPS[keep][KEEPS[keep] < 6].tolist())
        faces, chances = Game().chance_outcomes(5 - len(kept))
        expected = {
            tuple(sorted([*kept, *row])): float(chance)
            for row, chance in zip(faces.tolist(), chances, strict=True)
        }
        possible = np.flatnonzero(np.isfinite(logits[keep]))
        found = {tuple(KEEP_DICE[roll].tolist()): float(np.exp(logits[keep, roll])) for roll in possible}
        assert found == pytest.approx(expected, rel=1e-5)


def test_step_rolls_as_chance_logits_say() -> None:
    keep = 300
    rolls = np.asarray(jax.vmap(play.thrown, (None, 0))(keep, jax.vmap(jax.random.bits)(keys(GAMES))))
    env = WayOfTheDragon()
    state = env.init(jax.random.key(0)).replace(_keep=jnp.int32(keep))
    chances = np.exp(np.asarray(env.chance_logits(state), np.float64))
    possible = np.flatnonzero(chances)
    counts = np.bincount(rolls, minlength=252)
    assert counts[possible].sum() == GAMES
    assert stats.chisquare(counts[possible], GAMES * chances[possible] / chances.sum()).pvalue > 1e-4


def test_every_seat_starts_equally_often() -> None:
    state = new_games(WayOfTheDragon(players=5))
    counts = np.bincount(np.asarray(state.current_player), minlength=5)
    assert stats.chisquare(counts).pvalue > 1e-4


def test_a_given_seat_starts() -> None:
    assert (new_games(WayOfTheDragon(players=5, start=3), 100).current_player == 3).all()


def test_every_order_of_the_colors_is_equally_likely() -> None:
    env = WayOfTheDragon(players=3, colors="random")
    colors = env.to_records(new_games(env))["color"].tolist()
    counts = [colors.count(list(order)) for order in permutations(range(5))]
    assert sum(counts) == GAMES
    assert stats.chisquare(counts).pvalue > 1e-4


def test_named_colors_are_kept() -> None:
    rules = Rules(players=2, colors=("wood", "fire"))
    env = WayOfTheDragon(rules)
    assert (
        env.to_records(new_games(env, 1))["color"].tolist() == Game(rules).reset(1, seed=0)["color"].tolist()
    )


def test_dead_pieces_of_a_layout_are_on_its_spaces() -> None:
    env = WayOfTheDragon(players=3, spaces=2, dead_pieces="#./../.#/../##")
    assert (env.to_records(new_games(env, 3))["dead"] == [2, 0, 4, 0, 6]).all()


def test_dead_pieces_are_on_distinct_plain_spaces() -> None:
    env = WayOfTheDragon(players=3, spaces=5, dead_pieces=10)
    dead = env.to_records(new_games(env))["dead"]
    spaces = dead[:, :, None] >> np.arange(16) & 1
    assert (spaces.sum((1, 2)) == 10).all()
    assert not spaces[:, :, 0].any()
    assert not spaces[:, :, 6:].any()
    assert (spaces.sum(2) < 5).all(), "five in a row are never drawn (R15)"
    counts = spaces[:, :, 1:6].sum(0)
    assert counts.sum() == 10 * GAMES
    np.testing.assert_allclose(counts, counts.mean(0)[None].repeat(5, 0), rtol=0.06)  # the paths are equal


def test_one_compiled_step_serves_all_games() -> None:
    env = WayOfTheDragon()
    step = jax.jit(jax.vmap(auto_reset(env.step, env.init)))
    state = new_games(env, 64)
    rng = np.random.default_rng(0)
    ended = 0
    for i in range(400):
        mask = np.asarray(state.legal_action_mask)
        actions = (mask * rng.random(mask.shape)).argmax(1)
        state = step(state, jnp.asarray(actions, jnp.int32), keys(64, i))
        ended += int(state.terminated.sum())
        np.testing.assert_allclose(state.rewards.sum(1), 0, atol=1e-6)
    assert ended > 20
    assert step._cache_size() == 1
