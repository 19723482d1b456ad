"""Exact results of policies, compared with simulated games and with properties of perfect play."""

import numpy as np
import pytest

from tests.helpers.exact import before_roll, play
from wotd_env import Game, IllegalActionError, Rules, make_policy, solver
from wotd_env.symmetry import permute_actions, permute_states, rotate_seats

SPACES = 0
LATE = ([1, 2, 0, 1, 0], [2, 1, 3, 0, 0])


@pytest.fixture(scope="module")
def oracle(whole):
    return make_policy(f"oracle:{whole.file}")


class Canonical:
    """Show every game to the policy as seat 0, with the paths in ascending order of their codes."""

    def __init__(self, policy, table) -> None:
        self.policy, self.code = policy, table.board.code[0]

    def act(self, game, state, rng):
        shown, second = state.copy(), state["player"] == 1
        shown[second] = rotate_seats(game.rules, state[second], 1)
        paths = np.argsort(self.code[shown["pieces"][:, 0], shown["pieces"][:, 1]], axis=1, kind="stable")
        shown = permute_states(game.rules, shown, np.argsort(paths, axis=1))  # path -> new path
        return permute_actions(game.rules, shown, self.policy.act(game, shown, rng), paths)


def simulated(policies, games: int) -> np.ndarray:
    """Return the rewards of seat 0, which acts first, (games,)."""
    game = Game(Rules(spaces=SPACES))
    state = np.repeat(before_roll([LATE[0]], [LATE[1]]), games)
    state["rng"] = np.random.default_rng(1).integers(2**63, size=games, dtype=np.uint64)
    game.roll(state)
    return play(game, state, policies)


@pytest.mark.parametrize("name", ["greedy", "first"])
def test_exact_results_agree_with_simulated_games(whole, oracle, name):
    exact = solver.evaluate(make_policy(name), whole, LATE)
    policy = Canonical(make_policy(name), whole)
    for result, seats in (
        (exact.begins, [policy, oracle]),
        (exact.itself, [policy, policy]),
        (-exact.follows, [oracle, policy]),
    ):
        results = simulated(seats, 8000)
        assert result == pytest.approx(results.mean(), abs=float(4.5 * results.std() / len(results) ** 0.5))


@pytest.mark.parametrize("name", ["greedy", "first"])
def test_best_response_is_at_least_as_good_as_perfect_play(whole, name):
    exact = solver.evaluate(make_policy(name), whole, LATE)
    assert exact.enemy_begins >= -exact.follows - 1e-9
    assert exact.enemy_follows >= -exact.begins - 1e-9
    assert exact.begins <= exact.perfect + 1e-6
    assert exact.exploitability > 0.05


def test_perfect_play_cannot_be_exploited(whole, oracle):
    exact = solver.evaluate(oracle, whole, LATE)
    assert exact.begins == pytest.approx(exact.perfect, abs=1e-6)
    assert exact.itself == pytest.approx(exact.perfect, abs=1e-6)
    assert exact.enemy_begins == pytest.approx(exact.perfect, abs=1e-6)
    assert exact.exploitability == pytest.approx(0, abs=1e-6)
    assert exact.win_share == pytest.approx(0.5, abs=1e-6)


def test_progress_is_reported(whole):
    calls = []
    solver.evaluate(
        make_policy("first"), whole, LATE, progress=lambda done, total: calls.append((done, total))
    )
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]


def test_illegal_actions_are_rejected(whole):
    class Wrong:
        def act(self, game, state, rng):
            return np.full(len(state), 54)

    with pytest.raises(IllegalActionError):
        solver.evaluate(Wrong(), whole, LATE)


def test_impossible_positions_are_rejected(whole):
    with pytest.raises(ValueError, match="theirs"):
        solver.evaluate(make_policy("first"), whole, ([0] * 5, [0, 0, 0, 0, 9]))
