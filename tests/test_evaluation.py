"""`wotd_env.evaluate`: the share of wins of a policy against an opponent."""

import subprocess
import sys

import numpy as np
import pytest

from wotd_env import Game, IllegalActionError, Rules, evaluate
from wotd_env.evaluation import BLOCK, match
from wotd_env.policies.function import FunctionPolicy
from wotd_env.policies.greedy import Greedy

SMALL = Rules(spaces=0)
PASSING = FunctionPolicy(lambda observation, mask: 50)


def test_the_result_counts_all_games():
    found = evaluate("greedy", "random", 101, SMALL)
    assert found.games == 102
    assert found.wins + found.ties + found.losses == 102
    assert found.share == pytest.approx((found.wins + found.ties / 2) / 102)
    assert found.low < found.share < found.high
    assert (
        str(found) == f"{100 * found.share:.1f} % ({100 * found.low:.1f}-{100 * found.high:.1f}) of 102 games"
    )


@pytest.mark.parametrize("players", [2, 3, 5])
def test_equal_policies_share_the_wins_equally(players):
    found = evaluate("first", "first", 4000, Rules(players=players, spaces=0), seed=1)
    assert found.low - 0.01 < 1 / players < found.high + 0.01


def test_games_at_the_turn_limit_are_shared_by_all_seats():
    found = evaluate("greedy", "random", 30, Rules(players=3, max_turns=1))
    assert (found.wins, found.ties, found.losses) == (0, 30, 0)
    assert found.share == pytest.approx(1 / 3)


def test_the_policy_plays_every_seat_equally_often_with_the_seeds_of_the_games():
    seen = []

    class Watching(Greedy):
        def act(self, game, state, rng):
            seen.extend(state["player"].tolist())
            return super().act(game, state, rng)

    rules = Rules(players=3, spaces=0, start=0)
    again = evaluate(Watching(), "greedy", 300, rules, seed=5)
    assert set(seen) == {0, 1, 2}
    assert again == evaluate("greedy", "greedy", 300, rules, seed=5)


def test_the_result_does_not_depend_on_threads_or_on_earlier_games():
    games = BLOCK + 100
    one = match(Game(SMALL), Greedy(), Greedy(), games, 3)
    assert one == match(Game(SMALL, num_threads=2), Greedy(), Greedy(), games, 3)
    parts = [match(Game(SMALL), Greedy(), Greedy(), n, seed) for n, seed in ((BLOCK, 3), (100, 3 + BLOCK))]
    assert one[:4] == tuple(sum(counts) for counts in zip(*(part[:4] for part in parts), strict=True))


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        (("GREEDY", "random"), {}, ValueError, "did you mean greedy"),
        (("greedy", "random", 0), {}, ValueError, "games must be an integer from 1"),
        (("greedy", "random", 10.0), {}, ValueError, "games must be an integer from 1 .* got 10.0"),
        (("greedy", "random", 10), {"seed": -1}, ValueError, "seed must be an integer from 0"),
        (("greedy", "random", 10, 3), {}, TypeError, "rules must be a Rules, got 3"),
        (("td", "random", 10, Rules(spaces=4)), {}, ValueError, "no trained model of td"),
        (("greedy", None), {}, ValueError, "policy None must have a method act"),
        (("random", PASSING, 10), {}, IllegalActionError, "FunctionPolicy.* plays an illegal action: game "),
        (
            (FunctionPolicy(lambda observation, mask: 0, rules=Rules(players=3)), "random"),
            {},
            ValueError,
            "the function is made for players=3, not for players=2",
        ),
    ],
)
def test_wrong_arguments_are_named(arguments, options, error, message):
    with pytest.raises(error, match=message):
        evaluate(*arguments, **options)


def test_evaluate_needs_no_extra_and_is_imported_when_it_is_used():
    program = """
import sys
for name in ("scipy", "choix", "pyarrow", "onnxruntime", "typer", "rich", "torch", "matplotlib", "platformdirs"):
    sys.modules[name] = None
import wotd_env
assert "numba" not in sys.modules and "wotd_env.evaluation" not in sys.modules
assert "evaluate" in dir(wotd_env)
print(wotd_env.evaluate("greedy", "random", games=20).games)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "20\n", done.stderr


@pytest.mark.slow
def test_intervals_of_the_share_contain_the_true_share_in_about_95_percent():
    found = [evaluate("greedy", "random", 100, Rules(players=3, spaces=0), seed=1000 * i) for i in range(300)]
    truth = np.mean([each.share for each in found])
    assert sum(not each.low <= truth <= each.high for each in found) <= 25  # at most 5 % and three deviations
