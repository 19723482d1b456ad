"""What three players can guarantee, compared with the rules engine."""

from collections.abc import Iterator
from math import comb
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests import reference
from tests.helpers.exact import one_turn
from tests.helpers.iterated import iterate
from tests.helpers.tables import short_paths
from wotd_env import STATE, Action, Game, Phase, Rules, analysis, make_policy, solver
from wotd_env.cli import app
from wotd_env.core.dice import KEEPS
from wotd_env.planning.ends import ends_of
from wotd_env.planning.turn import LANES, NOTHING
from wotd_env.solver import backward, guarantees, positions
from wotd_env.solver.families import Chunk
from wotd_env.solver.guarantees import SEATS, Guarantees, new_family
from wotd_env.solver.positions import board_of

BOARD = board_of(0, players=3)
LATE = 48  # the first of the layers that are solved here
RULES = Rules(players=3, spaces=0)


class Values:
    """Guarantees of the three seats in some layers, for the kernels and for `one_turn`."""

    def __init__(self, base: np.ndarray, size: int) -> None:
        self.values = np.full((SEATS, size), np.nan, np.float32)
        first, second, third = self.values
        self.layers = Guarantees(BOARD, ends_of(3, powers=False), base, (first, second, third))
        self.family = new_family()
        self.game = Game(RULES, skip_forced=False)

    def of_seats(self, state: np.ndarray) -> np.ndarray:
        """Return the guarantees, (N, 3), or the rewards of ended games."""
        out = np.empty((len(state), SEATS), np.float32)
        for i, s in enumerate(state):
            seats = (s["player"] + np.arange(SEATS)) % SEATS
            out[i, seats] = self.values[:, self.index(s["pieces"][seats])]
        return np.where(state["phase"][:, None] == Phase.OVER, self.game.rewards(state), out)

    def index(self, pieces: np.ndarray) -> int:
        """Return the index of a position, with the pieces (3, 5) from the player to move on."""
        codes = np.array([BOARD.code[(0, *pieces[:, path])] for path in range(5)], np.uint64)
        total = positions.sort_codes(BOARD, codes)
        return int(positions.index_of(BOARD, self.layers.base, total, codes))

    def keep_rewards(self, state: np.ndarray) -> None:
        """Set the values of all games that an equilibrium or a move ends after this state."""
        after = np.repeat(state, 252)
        self.game.roll(after, KEEPS[:252])
        self.game.decide(after, np.full(252, Action.STOP_ROLLING))
        roll, action = np.nonzero(self.game.legal_actions(after))
        after = after[roll]
        self.game.decide(after, action)
        for s in after[after["phase"] == Phase.OVER]:
            for player in range(SEATS):
                seats = (player + np.arange(SEATS)) % SEATS
                rewards = self.game.rewards(s.reshape(1))[0]
                self.values[:, self.index(s["pieces"][seats])] = rewards[seats]

    def backed_up(self, state: np.ndarray, seat: int) -> float:
        """Return the guarantee of a seat by one turn of the engine."""
        sign = 1 if seat == state["player"][0] else -1
        return sign * one_turn(
            self.game,
            None,
            state[0],
            lambda _game, _table, after, _mover: sign * self.of_seats(after)[:, seat],
        )


def a_state(codes: np.ndarray, player: int, rng: np.random.Generator) -> np.ndarray:
    """Return the position of five codes before a turn of a player, STATE (1,), with the paths in random order."""
    state = np.zeros(1, STATE)
    state["color"], state["player"], state["rolls_left"], state["dice"] = np.arange(5), player, 2, -1
    for path, code in enumerate(rng.permutation(codes).tolist()):
        for seat in range(SEATS):
            state["pieces"][0, (player + seat) % SEATS, path] = BOARD.pieces[code, seat]
    return state


def test_every_position_has_one_place():
    assert comb(136 + 4, 5) == BOARD.positions == 416_965_528
    family = new_family()
    for total in (0, 3, 54):
        ranks: list[int] = []
        for number in range(BOARD.families[total]):
            members = guarantees.write_members(BOARD, total, number, family)
            ranks += family.ranks[:members].tolist()
        assert sorted(ranks) == list(range(BOARD.sizes[total]))


@pytest.fixture(scope="module")
def late() -> Values:
    """Return the solved last layers."""
    base = np.zeros(len(BOARD.sizes), np.int64)
    base[LATE:] = np.cumsum([0, *BOARD.sizes[LATE:-1]])
    solved = Values(base, int(BOARD.sizes[LATE:].sum()))
    for total in reversed(range(LATE, len(BOARD.sizes))):
        chunk = Chunk(total, 0, int(BOARD.families[total]))
        guarantees.solve_guarantees(solved.layers, solved.family, chunk, np.float32(backward.TOLERANCE))
    return solved


def test_late_values_solve_the_equations(late):
    chunks = [Chunk(total, 0, int(BOARD.families[total])) for total in range(LATE, len(BOARD.sizes))]
    assert max(guarantees.check_guarantees(late.layers, late.family, chunk) for chunk in chunks) < 1e-6


def test_late_values_are_rewards_that_sum_to_at_most_zero(late):
    assert late.values.min() >= -0.5 - 1e-6
    assert late.values.max() <= 1
    assert late.values.sum(0).max() < 1e-6
    assert late.values.sum(0).min() < -0.1  # the others play together against each seat


def test_late_values_equal_one_turn_of_the_engine(late):
    rng = np.random.default_rng(0)
    tried = 0
    while tried < 12:
        total = int(rng.integers(LATE, 52))
        members = guarantees.write_members(
            BOARD, total, int(rng.integers(BOARD.families[total])), late.family
        )
        running = np.flatnonzero(~late.family.over[:members])
        if not len(running):
            continue
        state = a_state(late.family.codes[rng.choice(running)], tried % 3, rng)
        for seat, value in enumerate(late.of_seats(state)[0]):
            assert late.backed_up(state, seat) == pytest.approx(value, abs=2e-6)
        tried += 1


@pytest.mark.slow  # a minute
@pytest.mark.parametrize("seat", range(SEATS))
def test_late_values_equal_plain_value_iteration(late, seat):
    pieces = ((5, 4, 3, 5, 0), (3, 5, 4, 4, 0), (4, 3, 5, 3, 0), *[(0,) * 5] * 2)
    values = iterate(reference.Rules(players=3, spaces=0), reference.State(pieces=pieces), seat)
    indices = [late.index(np.roll(state.pieces[:SEATS], -state.player, 0)) for state in values]
    relative = [(seat - state.player) % SEATS for state in values]
    assert late.values[relative, indices] == pytest.approx(list(values.values()), abs=1e-5)


def test_a_turn_equals_one_of_the_engine_in_all_layers():
    """Later values are random numbers, so every kind of position can be compared."""
    rng = np.random.default_rng(1)
    totals = [0, 1, 4, 7, 10, 46, 49]
    # All layers share one array, from its start.
    some = Values(
        np.zeros(len(BOARD.sizes), np.int64), max(int(BOARD.sizes[t : t + 6].max()) for t in totals)
    )
    some.values[:] = rng.uniform(-1, 1, some.values.shape)
    family = some.family
    for total in totals:
        for number in rng.integers(BOARD.families[total], size=3).tolist():
            members = guarantees.write_members(BOARD, total, number, family)
            running = np.flatnonzero(~family.over[:members])
            if not len(running):
                continue
            member = int(rng.choice(running))
            state = a_state(family.codes[member], total % 3, rng)
            some.keep_rewards(state)
            guarantees.fill_family(some.layers, total, family, members)
            family.value[:, :members] = some.values[:, family.ranks[:members]]
            for seat in range(SEATS):
                guarantees.value_block(some.layers.ends.offers, family, seat, member // LANES * LANES)
                value = family.rows[NOTHING, member % LANES] * (-1 if seat else 1)
                expected = some.backed_up(state, (total + seat) % 3)
                assert value == pytest.approx(expected, abs=1e-5)


@pytest.fixture
def mini() -> Iterator[positions.Board]:
    with short_paths(0, players=3) as board:
        yield board


def test_interrupted_table_continues_and_is_verified(mini, tmp_path):
    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(RULES, tmp_path / "a.wotd", threads=1, progress=interrupt)
    assert (tmp_path / "a.wotd.part").is_file()
    table = solver.solve(RULES, tmp_path / "a.wotd", threads=2)
    whole = solver.solve(RULES, tmp_path / "b.wotd", threads=1)
    assert np.array_equal(table.values, whole.values)
    assert table.values.shape == (SEATS, mini.positions)
    assert solver.verify(table.file) < 1e-6
    assert list(table.starts) == ["first seat", "second seat", "third seat"]
    assert sum(table.starts.values()) < 0
    compact = solver.compact(table.file, tmp_path / "c.wotd")
    assert list(compact.starts.values()) == pytest.approx(list(table.starts.values()), abs=1e-4)


def test_table_has_the_guarantee_of_every_seat(mini, tmp_path):
    table = solver.solve(RULES, tmp_path / "a.wotd")
    game = Game(RULES)
    state = np.concatenate(
        [a_state(np.zeros(5, np.int64), player, np.random.default_rng(0)) for player in (0, 2)]
    )
    first, second, third = table.starts.values()
    assert table.for_seats(game, state) == pytest.approx(
        np.array([[first, second, third], [second, third, first]])
    )
    state["pieces"][1, 2, 4] = 7
    with pytest.raises(
        ValueError, match="game 1: player must be 0, 1 or 2, and pieces on different spaces from 0 to 2"
    ):
        table.for_seats(game, state)
    with pytest.raises(ValueError, match="the game has 3 players, 1 plain spaces"):
        table.for_seats(Game(players=3, spaces=1), state)


def test_guarantees_are_not_called_perfect_play(mini, tmp_path):
    table = solver.solve(RULES, tmp_path / "a.wotd")
    for judge in (
        lambda: analysis.grade("greedy", table, 10),
        lambda: solver.evaluate(make_policy("greedy"), table),
    ):
        with pytest.raises(ValueError, match="players must be 2, got 3"):
            judge()
    advisor = analysis.Advisor(Game(RULES), table)
    assert (advisor.source, advisor.exact) == ("the guarantee of each seat, a.wotd", False)
    with pytest.raises(ValueError, match="players must be 2, got 3"):
        make_policy(f"oracle:{table.file}").act(
            Game(RULES), Game(RULES).reset(1, seed=0), np.random.default_rng()
        )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--players", "4", "--spaces", "0"], "only games of two players"),
        (["--players", "3", "--spaces", "0", "--powers", "any"], "only the basic game of three players"),
    ],
)
def test_solve_names_the_rules_that_it_solves(arguments: list[str], message: str, tmp_path: Any):
    result = CliRunner().invoke(app, ["solve", *arguments, "--out", str(tmp_path / "t.wotd")])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
