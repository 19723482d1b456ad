"""Exact results of policies, compared with simulated games and with properties of perfect play."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.exact import before_roll
from wotd_env import Game, IllegalActionError, Phase, Rules, make_policy, solver
from wotd_env.analysis import regret
from wotd_env.core.dice import HOLD_KEEP, LEGAL_HOLDS, keep_index

SPACES = 0
LATE = ([1, 2, 0, 1, 0], [2, 1, 3, 0, 0])


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return solver.solve(SPACES, tmp_path_factory.mktemp("tables") / "0.wotd")


@pytest.fixture(scope="module")
def oracle(table):
    return make_policy(f"oracle:{table.file}")


class Canonical:
    """Show every game to the policy as seat 0, with the paths in ascending order of their codes."""

    def __init__(self, policy, table) -> None:
        self.policy, self.code = policy, table.board.code[0]

    def act(self, game, state, rng):
        rows = np.arange(len(state))
        mine = state["pieces"][rows, state["player"]]
        theirs = state["pieces"][rows, 1 - state["player"]]
        paths = np.argsort(self.code[mine, theirs], axis=1, kind="stable")  # new path -> path
        shown = state.copy()
        shown["player"] = 0
        shown["pieces"][:, 0] = np.take_along_axis(mine, paths, 1)
        shown["pieces"][:, 1] = np.take_along_axis(theirs, paths, 1)
        faces = np.concatenate([np.argsort(paths, axis=1), np.full((len(state), 1), 5)], 1)
        shown["dice"] = np.sort(np.take_along_axis(faces, state["dice"].astype(int), 1), axis=1)
        actions = self.policy.act(game, shown, rng)
        return np.array([self.own_action(*one) for one in zip(actions, state, shown, paths, strict=True)])

    @staticmethod
    def own_action(action, state, shown, paths):
        """Return the corresponding action for the original order of paths."""
        if 32 <= action < 37:
            return 32 + paths[action - 32]
        if action >= 55:
            return 55 + paths[action - 55]
        if action >= 31:
            return action
        kept = [die for i, die in enumerate(shown["dice"]) if action >> i & 1]
        kept = sorted(5 if die == 5 else int(paths[die]) for die in kept)
        keep = keep_index(kept + [6] * (5 - len(kept)))
        roll = keep_index(state["dice"].tolist())
        return next(h for h in range(32) if HOLD_KEEP[roll, h] == keep and int(LEGAL_HOLDS[roll]) >> h & 1)


def simulated(policies, games: int) -> np.ndarray:
    """Return the rewards of seat 0, which acts first, (games,)."""
    game = Game(Rules(spaces=SPACES))
    state = np.repeat(before_roll([LATE[0]], [LATE[1]]), games)
    state["rng"] = np.random.default_rng(1).integers(2**63, size=games, dtype=np.uint64)
    game.roll(state)
    rng = np.random.default_rng(2)
    while (state["phase"] != Phase.OVER).any():
        actions = np.zeros(games, np.int64)
        for seat, policy in enumerate(policies):
            due = (state["phase"] != Phase.OVER) & (state["player"] == seat)
            actions[due] = policy.act(game, state[due], rng)
        game.step(state, actions)
    return game.rewards(state)[:, 0]


@pytest.mark.parametrize("name", ["greedy", "first"])
def test_exact_results_agree_with_simulated_games(table, oracle, name):
    exact = solver.evaluate(make_policy(name), table, LATE)
    policy = Canonical(make_policy(name), table)
    for result, seats in (
        (exact.begins, [policy, oracle]),
        (exact.itself, [policy, policy]),
        (-exact.follows, [oracle, policy]),
    ):
        results = simulated(seats, 8000)
        assert result == pytest.approx(results.mean(), abs=float(4.5 * results.std() / len(results) ** 0.5))


@pytest.mark.parametrize("name", ["greedy", "first"])
def test_best_response_is_at_least_as_good_as_perfect_play(table, name):
    exact = solver.evaluate(make_policy(name), table, LATE)
    assert exact.enemy_begins >= -exact.follows - 1e-9
    assert exact.enemy_follows >= -exact.begins - 1e-9
    assert exact.begins <= exact.perfect + 1e-6
    assert exact.exploitability > 0.05


def test_perfect_play_cannot_be_exploited(table, oracle):
    exact = solver.evaluate(oracle, table, LATE)
    assert exact.begins == pytest.approx(exact.perfect, abs=1e-6)
    assert exact.itself == pytest.approx(exact.perfect, abs=1e-6)
    assert exact.enemy_begins == pytest.approx(exact.perfect, abs=1e-6)
    assert exact.exploitability == pytest.approx(0, abs=1e-6)
    assert exact.win_share == pytest.approx(0.5, abs=1e-6)


def test_progress_is_reported(table):
    calls = []
    solver.evaluate(
        make_policy("first"), table, LATE, progress=lambda done, total: calls.append((done, total))
    )
    assert len(calls) > 1
    assert calls == sorted(calls)
    assert calls[-1][0] == calls[-1][1]


def test_illegal_actions_are_rejected(table):
    class Wrong:
        def act(self, game, state, rng):
            return np.full(len(state), 54)

    with pytest.raises(IllegalActionError):
        solver.evaluate(Wrong(), table, LATE)


def test_impossible_positions_are_rejected(table):
    with pytest.raises(ValueError, match="theirs"):
        solver.evaluate(make_policy("first"), table, ([0] * 5, [0, 0, 0, 0, 9]))


def test_canonical_oracle_plays_without_regret(table, oracle):
    game = Game(Rules(spaces=SPACES))
    state = game.reset(300, seed=4)
    rng = np.random.default_rng(0)
    for _ in range(6):
        live = state["phase"] != Phase.OVER
        canonical = Canonical(oracle, table).act(game, state, rng)
        assert regret(game, state[live], canonical[live], table).max(initial=0) < 1e-5
        game.step(state, canonical)
