"""Planning two turns ahead: the value `Deeper` and the policy `deep`."""

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.helpers.exact import before_roll, random_positions
from tests.helpers.games import VARIANTS, positions
from tests.helpers.learned import some_value
from wotd_env import Game, Phase, Rules, make_policy, models, policy, solver
from wotd_env.cli import app
from wotd_env.core.rules import options_of
from wotd_env.planning import learned
from wotd_env.planning.deeper import Deeper
from wotd_env.planning.planner import plan
from wotd_env.planning.playing import play_turns
from wotd_env.planning.values import hand_made
from wotd_env.policies import deep, strongest
from wotd_env.policies.planner import Planner


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> solver.Table:
    """Return the solution of the board without plain spaces."""
    return solver.solve(0, tmp_path_factory.mktemp("table") / "0.wotd")


def test_planning_deeper_does_not_change_a_perfect_value(table: solver.Table):
    game = Game(Rules(spaces=0))
    for player in (0, 1):
        state = before_roll(*random_positions(0, 300, seed=2), player)
        expected = table.for_seats(game, state)
        np.testing.assert_allclose(Deeper(table.for_seats)(game, state), expected, atol=2e-6)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_deeper_value_equals_the_planned_value_of_the_turn(rules: Rules):
    game, value = Game(rules), some_value(rules)
    state = game.reset(40, seed=2, roll=False)
    for _ in range(2 * rules.players):
        running = state[~game.is_over(state)]
        play_turns(game, running, value)
        state[~game.is_over(state)] = running
    before, over = state.copy(), game.is_over(state)
    values = Deeper(value)(game, state)
    assert (state == before).all()
    assert (values[over] == 0).all()
    mover = state["player"][~over]
    np.testing.assert_array_equal(
        values[~over][np.arange(len(mover)), mover], plan(game, state[~over], value)[1]
    )
    np.testing.assert_allclose(values.sum(1), 0, atol=1e-5)
    state["rng"] = 0  # the value depends only on the position
    np.testing.assert_array_equal(Deeper(value)(game, state), values)


def test_the_second_turn_is_planned_only_for_close_decisions(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(deep, "CLOSE", 0.002)
    game, rng = Game(skip_forced=False), np.random.default_rng(0)
    state = positions(Rules(), games=20)
    values = plan(game, state, hand_made)[0]
    ranked = np.sort(values, 1)
    close = ranked[:, -1] - ranked[:, -2] < 0.002
    one, two = (Planner(value).act(game, state, rng) for value in (hand_made, Deeper(hand_made)))
    assert (one != two)[close].sum() > 10
    assert (one != two)[~close].any()
    actions = make_policy("deep:planner").act(game, state, rng)
    np.testing.assert_array_equal(actions, np.where(close, two, one))


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_deep_plays_every_variant(rules: Rules):
    game, player, rng = Game(rules, skip_forced=False), make_policy("deep:planner"), np.random.default_rng(0)
    state = positions(rules, games=4, decisions=20)
    actions = player.act(game, state, rng)
    assert game.legal_actions(state)[np.arange(len(state)), actions].all()
    parts = [player.act(game, part, rng) for part in np.array_split(state, 5)]
    np.testing.assert_array_equal(np.concatenate(parts), actions)
    state["phase"] = Phase.OVER
    assert player.act(game, state, rng).shape == actions.shape


def test_deep_plans_with_a_learned_value(tmp_path: Path):
    rules = Rules(spaces=1)
    value = some_value(rules)
    (tmp_path / "value.npz").write_bytes(learned.save(value))
    game, state, rng = Game(rules), positions(rules, games=5), np.random.default_rng(0)
    player = make_policy(f"deep:{tmp_path}")
    np.testing.assert_array_equal(
        player.act(game, state, rng), make_policy(f"deep:{tmp_path / 'value.npz'}").act(game, state, rng)
    )
    expected = plan(game, state, Deeper(value))[1]
    assert isinstance(player, Planner)
    np.testing.assert_array_equal(player.equity(game, state), expected)
    with pytest.raises(ValueError, match="made for spaces=1, not for spaces=2"):
        policy.check_plays(player, Rules(spaces=2))
    policy.check_plays(make_policy("deep:planner"), Rules(spaces=2))
    with pytest.raises(FileNotFoundError, match="no file"):
        make_policy(f"deep:{tmp_path / 'nowhere'}")


def test_deep_uses_the_bundled_value_by_default():
    game, rng = Game(Rules(players=3, powers="any")), np.random.default_rng(0)
    state = positions(game.rules, games=3)
    expected = make_policy(f"deep:{models.find('td', game.rules)}").act(game, state, rng)
    for name in ("deep", "deep:td"):
        np.testing.assert_array_equal(make_policy(name).act(game, state, rng), expected)
        with pytest.raises(ValueError, match="no trained model of td comes with the package"):
            policy.check_plays(make_policy(name), Rules(spaces=4))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("greedy", "deep:NAME needs a policy with a value of positions, .* got 'greedy'"),
        ("deep", "got 'deep'"),
        ("td:nowhere.npz", "no file nowhere.npz"),
        ("tdd", "no file tdd"),
    ],
)
def test_a_policy_without_a_value_is_refused(name: str, message: str):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        make_policy(f"deep:{name}")


def test_deep_accepts_an_import_path():
    assert isinstance(make_policy("deep:wotd_env.policies.planner:Planner"), deep.Deep)


@pytest.mark.parametrize(
    ("rules", "best"),
    [
        (Rules(), "deep"),
        (Rules(players=5, powers="own"), "deep"),
        (Rules(spaces=3), "deep"),
        (Rules(spaces=4), "deep:planner"),
        (Rules(players=3, immunity=True), "deep:planner"),
    ],
    ids=str,
)
def test_strongest_names_the_best_policy(rules: Rules, best: str):
    assert strongest(rules) == best
    shown = " ".join(CliRunner().invoke(app, ["policies", *options_of(rules)]).output.split())
    assert f"The strongest policy for these rules is {best}." in shown


def test_oracle_is_the_strongest_if_its_table_exists(table: solver.Table, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(solver, "cache_file", lambda rules: table.file)
    assert strongest(Rules(spaces=0)) == "oracle"
    assert strongest(Rules(players=3)) == "deep"
