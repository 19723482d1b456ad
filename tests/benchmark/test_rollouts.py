"""Rollouts: equal to exact equities where the game is solved, and the positions of three players that they make."""

import numpy as np
import pytest

from tests.helpers.rollouts import precise
from wotd_env import Game, Rules, benchmark
from wotd_env.benchmark import measuring
from wotd_env.benchmark.drawing import roll_out
from wotd_env.planning import learned
from wotd_env.policies.planner import Planner
from wotd_env.policies.td import Td

KEYS = np.arange(100, dtype=np.uint64) << np.uint64(32)


@pytest.fixture(scope="module")
def rolled(tmp_path_factory):
    """Return a file with positions of three players on the shortest board, and its positions."""
    file = tmp_path_factory.mktemp("rollouts") / "test.parquet"
    return file, benchmark.draw(Td().learned(Rules(players=3, spaces=0)), file, size=1)


@pytest.mark.parametrize("spaces", [0, 2])
def test_rollouts_agree_with_exact_equities(spaces):
    """The bundled network plays almost perfectly on these boards, so its games have the exact expectation."""
    positions = benchmark.load(rules=Rules(spaces=spaces)).first(2)
    value = Td().learned(positions.rules)
    equity, error = roll_out(positions.state, KEYS[: len(positions.state)], value)
    legal = positions.mask == 1
    assert np.array_equal(legal, np.isfinite(equity))
    assert precise(equity, error)
    difference, noise = (equity - positions.equity)[legal], error[legal]
    assert np.abs(difference[noise == 0]).max(initial=0) < 1e-5  # the last turn is planned exactly
    scores = difference[noise > 1e-5] / noise[noise > 1e-5]
    assert np.sqrt((scores**2).mean()) == pytest.approx(1, abs=0.4)  # actions of one position are dependent


def test_the_luck_of_a_bad_value_is_removed_without_bias():
    """A network that knows nothing has the right expectation for its own play, with larger errors."""
    rules, rng = Rules(spaces=0), np.random.default_rng(0)
    shapes = learned.shapes(rules, 32)
    weights = {name: rng.normal(0, 0.1, shape).astype(np.float32) for name, shape in shapes.items()}
    value = learned.LearnedValue(rules, learned.Weights(**weights))
    game = Game(rules)
    state = game.reset(1, seed=4)
    action = game.legal_actions(state)[0].argmax()
    equity, error = roll_out(state, KEYS[1:2], value, error=0.01)
    policy = Planner(value)
    games = np.repeat(state, 20_000)
    games["rng"] = rng.integers(0, 2**63, len(games))
    game.step(games, np.full(len(games), action))
    while (live := np.flatnonzero(~game.is_over(games))).size:
        playing = games[live]
        game.step(playing, policy.act(game, playing, rng))
        games[live] = playing
    results = game.rewards(games)[:, state["player"][0]]
    noise = np.hypot(error[0, action], results.std() / len(results) ** 0.5)
    assert abs(equity[0, action] - results.mean()) < 4 * noise


def test_rollouts_change_nothing_and_do_not_depend_on_other_positions(rolled):
    positions = rolled[1]
    value, before = Td().learned(positions.rules), positions.state.copy()
    both = roll_out(positions.state[:2], KEYS[:2], value)
    alone = roll_out(positions.state[1:2], KEYS[1:2], value)
    assert np.array_equal(positions.state, before)
    assert np.array_equal(both[0][1], alone[0][0])
    assert np.array_equal(both[1][1], alone[1][0])
    assert not np.array_equal(roll_out(positions.state[1:2], KEYS[2:3], value)[0], alone[0])


def test_rollouts_need_a_decision():
    value = Td().learned(Rules(spaces=0))
    state = Game(value.rules).reset(2, seed=1)
    state[1] = Game(value.rules).reset(1, roll=False)[0]
    with pytest.raises(ValueError, match="game 1 has none"):
        roll_out(state, KEYS[:2], value)


def test_positions_of_three_players_round_trip_with_their_errors(rolled):
    file, positions = rolled
    read = benchmark.load(file=file)
    assert read.digest() == positions.digest()
    assert np.array_equal(read.error, positions.error, equal_nan=True)
    assert np.array_equal(np.isnan(read.error), read.mask == 0)
    assert np.nanmax(read.error) > 0
    assert precise(read.equity, read.error)
    assert read._replace(error=2 * read.error).digest() != read.digest()


def test_a_policy_of_three_players_is_graded_without_perfect_play(rolled, monkeypatch):
    monkeypatch.setattr(measuring, "load", lambda rules: rolled[1])
    result = benchmark.measure("greedy", rolled[1].rules, games=4)
    assert result.against_perfect is None
    assert set(result.win_shares) == {2, 3, 4, 5}
    best = np.nanargmax(rolled[1].equity, 1)
    assert not rolled[1].regret(best).any()


def test_two_players_have_exact_equities_only(tmp_path):
    value = Td().learned(Rules(spaces=0))
    with pytest.raises(ValueError, match="source must be a table with two players"):
        benchmark.draw(value, tmp_path / "a.parquet", size=1)


@pytest.mark.slow
def test_the_command_repeats_published_positions(tmp_path):
    published = benchmark.load(rules=Rules(players=3))
    drawn = benchmark.draw(Td().learned(published.rules), tmp_path / "again.parquet", size=1)
    keys = [list(zip(each.game, each.kind, each.stage, strict=True)) for each in (published, drawn)]
    again = published.take(np.array([keys[0].index(key) for key in keys[1]]))
    state = drawn.state.copy()
    state["players"] = 0  # the published records were written before this field
    assert np.array_equal(again.state, state)
    # The published rollouts were played without a tolerance for ties, so the games of some actions differ.
    known = np.isfinite(again.equity)
    assert np.array_equal(known, np.isfinite(drawn.equity))
    error = np.hypot(again.error, drawn.error)
    assert (np.abs(again.equity - drawn.equity) <= 5 * error + 1e-5)[known].all()
