"""The ends of a turn, compared with the number of dice that show each face."""

import numpy as np
import pytest

from wotd_env import Action
from wotd_env.core.dice import EQUILIBRIUM, KEEPS, MISSING, NUM_ROLLS
from wotd_env.planning.ends import best_end, ends_of, open_ends
from wotd_env.planning.turn import TIE
from wotd_env.solver.turns import End


@pytest.mark.parametrize("players", [2, 3, 5])
@pytest.mark.parametrize("powers", [False, True])
def test_rolls_offer_ends_by_the_dice_that_show_an_element(players, powers):
    ends, pairs = ends_of(players, powers), players * (players - 1) // 2
    for roll, faces in enumerate(KEEPS[:NUM_ROLLS].tolist()):
        shown, dragons = [faces.count(face) for face in range(5)], faces.count(5)
        expected = {(int(Action.PASS), 0, False), (int(Action.NO_MOVE_BY_FEAR), 0, False)}
        moves = {(path, dice) for path, dice in enumerate(shown) if dice and roll != EQUILIBRIUM}
        expected |= {(Action.MOVE_ON + path, dice, dice == 5) for path, dice in moves}
        expected |= {(int(Action.EQUILIBRIUM), 1, False)} if roll == EQUILIBRIUM else set()
        swaps = [path for path in range(5) if dragons == 5 or (dragons == 4 and shown[path])]
        expected |= {(Action.FIRST_SWAP + pairs * path + k, 0, False) for path in swaps for k in range(pairs)}
        if powers:
            wood = [path for path in range(5) if dragons and path != MISSING[roll]]
            expected |= {
                (Action.WOOD_ON + path, shown[path] + dragons, shown[path] + dragons == 5) for path in wood
            }
            expected |= {(Action.JUMP_ON + path, dice, dice == 5) for path, dice in moves}
            expected |= {(int(Action.WOOD_EQUILIBRIUM), 1, False)} if MISSING[roll] < 5 else set()
            expected |= {(int(Action.EARTH_EQUILIBRIUM), 1, False)} if roll == EQUILIBRIUM else set()
        offered = ends.offered(roll)
        facts = zip(ends.action[offered], ends.dice[offered], ends.perfection[offered], strict=True)
        assert {(int(action), int(dice), bool(extra)) for action, dice, extra in facts} == expected
        assert len(offered) == len(expected)


@pytest.mark.parametrize("players", [2, 3])
def test_the_solver_numbers_the_ends_like_the_table(players):
    ends = ends_of(players, powers=False)
    names = (Action.EQUILIBRIUM, Action.PASS, Action.NO_MOVE_BY_FEAR, Action.FIRST_SWAP)
    assert tuple(ends.action[list(End)]) == names
    assert ends.passing == End.PASS
    moves = [(Action.MOVE_ON + path, dice) for path in range(5) for dice in range(1, 6)]
    found = zip(ends.action[: len(moves)].tolist(), ends.dice[: len(moves)].tolist(), strict=True)
    assert list(found) == moves
    assert not ends.perfection[End.PASS :].any()


def test_passing_is_open_only_if_no_move_is_and_fear_only_if_one_is():
    ends = ends_of(2, powers=True)
    out = np.empty(len(ends.action), np.int64)
    values = np.full(len(ends.action), -np.inf)
    values[[ends.passing, ends.passing + 1]] = 0
    assert out[: open_ends(ends, values, 0, out)].tolist() == [ends.passing]
    move = int(ends.offers[0, 2])
    values[move] = -0.5
    assert out[: open_ends(ends, values, 0, out)].tolist() == [move, ends.passing + 1]


def test_the_lowest_of_the_best_ends_is_played():
    values = np.array([0.5, 0.7 - 2 * float(TIE), 0.7, 0.7 + float(TIE) / 2, 0.9])
    assert best_end(values, np.array([3, 2, 1, 0])) == 2
    assert best_end(values, np.array([0])) == 0
