"""The examples of the rulebooks and the rulings R1 to R10; test names contain the number of the ruling."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from tests import reference as ref
from tests.helpers.positions import board, decided, faces, legal, numbers, rolled
from tests.helpers.rulings import (
    BASIC,
    EQUILIBRIUM_ROLL,
    FIVE_DRAGONS,
    OWN,
    THREE,
    game_of,
    on_all_paths,
    pieces,
)
from tests.reference import EARTH, ELEMENTS, FIRE, METAL, WATER, WOOD
from wotd_env import Game, Phase, Rules
from wotd_env.core.starting import roll_off_of

# ---------------------------------------------------------------------------------- the rulebooks' examples


def test_the_example_turn_ends_on_space_4() -> None:
    """Keep two waters, then three; the fourth moves the piece to space 4 of water."""
    game = game_of(BASIC)
    state = rolled(game, board(BASIC), "dragon water water metal earth")
    assert state["dice"][0].tolist() == faces("water water metal earth dragon")
    state = decided(game, state, 0b00011)
    assert state["dice"][0].tolist() == [WATER, WATER, -1, -1, -1]
    assert state["rolls_left"][0] == 1
    state = rolled(game, state, "water water water fire fire")
    state = decided(game, state, 0b00111)
    state = rolled(game, state, "water water water water dragon")
    assert state["phase"][0] == Phase.MOVE
    assert legal(game, state) == [ref.MOVE_ON + WATER]
    state = decided(game, state, ref.MOVE_ON + WATER)
    assert pieces(state, 0) == [4, 0, 0, 0, 0]
    assert state["player"][0] == 1
    assert state["phase"][0] == Phase.CHANCE


def test_the_scoring_example_with_five_players_is_reproduced() -> None:
    rules = Rules(players=5)
    game = game_of(rules)
    black, red, white = "3 3 5 0 1", "4 1 0 2 3", "2 0 1 4 4"
    yellow, blue = "1 4 3 1 2", "5 5 2 3 0"
    state = numbers(rules, black, red, white, yellow, blue, player=3, dice="water fire wood wood dragon")
    # yellow's last piece is two spaces before its number
    state["pieces"][0, 3, WOOD] = rules.spaces
    assert game.scores(state)[0].tolist() == [12, 10, 11, 9, 15]
    assert game.rewards(state)[0].tolist() == [0, 0, 0, 0, 0]
    state = decided(game, state, ref.MOVE_ON + WOOD)
    assert state["phase"][0] == Phase.OVER
    assert game.scores(state)[0].tolist() == [12, 10, 11, 11, 15]
    assert game.rewards(state)[0].tolist() == [-0.25, -0.25, -0.25, -0.25, 1]


def test_the_scoring_example_with_two_players_is_reproduced() -> None:
    game = game_of(BASIC)
    state = numbers(BASIC, "2 1 2 2 3", "1 2 0 4 0", phase=Phase.OVER)
    assert game.scores(state)[0].tolist() == [10, 7]
    assert game.rewards(state)[0].tolist() == [1, -1]


# ------------------------------------------------------------------------------------------ R1 to R4


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_R01_every_seat_starts_equally_often(players: int) -> None:
    """Every seat has the same chance, so every seat starts equally often."""
    game = Game(Rules(players=players))
    starters = np.bincount(game.reset(20_000, seed=1)["player"], minlength=5)
    assert starters[players:].sum() == 0
    assert stats.chisquare(starters[:players]).pvalue > 1e-3


@pytest.mark.parametrize(
    "rules",
    [
        *(Rules(players=players) for players in range(2, 6)),
        Rules(players=4, colors="random", dead_pieces=5),
        Rules(players=3, start="loser"),
    ],
    ids=str,
)
def test_R01_roll_off_determines_the_starting_player(rules: Rules) -> None:
    game, n = Game(rules), rules.players
    starters = game.reset(1000, seed=7)["player"]
    ties = 0
    for i, starter in enumerate(starters.tolist()):
        rounds = roll_off_of(game, 7 + i)
        assert rounds.dtype == np.int8
        assert rounds.shape[1:] == (n, 5)
        rolling = set(range(n))
        for dice in rounds:
            assert len(rolling) > 1
            assert {seat for seat in range(n) if (dice[seat] >= 0).all()} == rolling
            assert all((dice[seat] == -1).all() for seat in set(range(n)) - rolling)
            dragons = (dice == 5).sum(1)
            rolling = {seat for seat in rolling if dragons[seat] == max(dragons[list(rolling)])}
        assert rolling == {starter}
        ties += len(rounds) > 1
    assert ties > 100


def test_R01_the_roll_off_uses_fair_dice() -> None:
    game = Game(THREE)
    first = np.concatenate([roll_off_of(game, seed)[0] for seed in range(2000)])
    assert stats.chisquare(np.bincount(first.ravel(), minlength=6)).pvalue > 1e-3


def test_R01_rules_with_a_starting_player_have_no_roll_off() -> None:
    assert roll_off_of(Game(Rules(players=3, start=2)), 0).shape == (0, 3, 5)
    with pytest.raises(ValueError, match="seed must be"):
        roll_off_of(Game(), -1)


@pytest.mark.parametrize("seat", [0, 1, 2])
def test_R01_a_given_seat_starts(seat: int) -> None:
    game = Game(Rules(players=3, start=seat))
    state = game.reset(50, seed=2)
    assert (state["player"] == seat).all()
    again = game.reset(state, where=np.ones(50, bool))
    assert (again["player"] == seat).all()
    assert (Game(THREE).reset(50, seed=2, starting_player=seat)["player"] == seat).all()


def test_R01_the_loser_starts_the_next_game() -> None:
    """The loser has the fewest points, then the fewest numbered pieces; a roll-off breaks ties."""
    rules = Rules(players=3, start="loser")
    game = Game(rules)

    def next_starters(*seats: str, expired: int = 0) -> set[int]:
        ended = np.repeat(numbers(rules, *seats, phase=Phase.OVER, expired=expired), 200)
        ended["rng"] = np.arange(200)
        return set(game.reset(ended, where=np.ones(200, bool))["player"].tolist())

    assert next_starters("1 1 1 1 1", "2 2 2 0 0", "3 3 0 0 0") == {0}
    assert next_starters("1 1 1 1 1", "5 0 0 0 0", "3 2 0 0 0") == {1}
    assert next_starters("1 1 1 1 1", "5 0 0 0 0", "0 5 0 0 0") == {1, 2}
    assert next_starters("2 2 2 2 2", "5 0 0 0 0", "1 0 0 3 0", expired=1) == {2}
    assert set(game.reset(500, seed=3)["player"].tolist()) == {0, 1, 2}


def test_R02_any_subset_can_be_kept_at_most_twice() -> None:
    game = game_of(BASIC)
    state = rolled(game, board(BASIC), "water fire metal earth dragon")
    assert state["phase"][0] == Phase.KEEP
    assert state["rolls_left"][0] == 2
    assert legal(game, state) == list(range(32))
    state = rolled(game, decided(game, state, 0), "fire fire fire fire fire")
    assert state["rolls_left"][0] == 1
    state = rolled(game, decided(game, state, 0b1), "fire wood wood wood dragon")
    assert state["rolls_left"][0] == 0
    assert state["phase"][0] == Phase.MOVE


def test_R02_only_the_smallest_of_equal_masks_is_legal() -> None:
    game = game_of(BASIC)
    state = rolled(game, board(BASIC), "fire fire fire fire fire")
    assert legal(game, state) == [0b0, 0b1, 0b11, 0b111, 0b1111, 0b11111]
    state = rolled(game, board(BASIC), "water water water fire fire")
    assert legal(game, state) == sorted(
        {0, 0b1, 0b11, 0b111} | {0b01000 + k for k in (0, 1, 3, 7)} | {0b11000 + k for k in (0, 1, 3, 7)}
    )


def test_R02_keeping_all_five_ends_the_rolling() -> None:
    game = game_of(BASIC)
    state = rolled(game, board(BASIC), "water water fire fire wood")
    state = decided(game, state, ref.STOP_ROLLING)
    assert state["phase"][0] == Phase.MOVE
    assert state["rolls_left"][0] == 0
    assert state["dice"][0].tolist() == faces("water water fire fire wood")


def test_R03_a_piece_moves_one_space_per_matching_die() -> None:
    game = game_of(BASIC)
    state = board(BASIC, metal="..a....|.....", dice="water metal metal dragon dragon")
    assert legal(game, state) == [ref.MOVE_ON + WATER, ref.MOVE_ON + METAL]
    assert pieces(decided(game, state, ref.MOVE_ON + WATER), 0) == [1, 0, 3, 0, 0]
    assert pieces(decided(game, state, ref.MOVE_ON + METAL), 0) == [0, 0, 5, 0, 0]


def test_R03_only_the_destination_matters() -> None:
    game = game_of(THREE)
    state = board(THREE, water="abc....|.....", dice="water water water dragon dragon")
    assert pieces(decided(game, state, ref.MOVE_ON + WATER), 0)[WATER] == 4
    for drawn in ("ac.b...|.....", "#a..#..|....."):
        state = board(THREE, water=drawn, dice="water water water fire dragon")
        assert legal(game, state) == [ref.MOVE_ON + FIRE]


def test_R03_dice_never_move_a_piece_on_a_numbered_space() -> None:
    game = game_of(BASIC)
    state = board(BASIC, water=".......|a....", dice="water water fire dragon dragon")
    assert legal(game, state) == [ref.MOVE_ON + FIRE]


@pytest.mark.parametrize("spaces", [0, 1, 7, 10])
def test_R04_five_dice_reach_number_5_from_the_last_plain_space(spaces: int) -> None:
    rules = Rules(spaces=spaces)
    game = game_of(rules)
    state = board(rules, dice="wood wood wood wood wood")
    state["pieces"][0, 0, WOOD] = spaces
    assert pieces(decided(game, state, ref.MOVE_ON + WOOD), 0)[WOOD] == spaces + 5


# ------------------------------------------------------------------------------------------ R5 to R10


def test_R05_a_pass_is_legal_only_without_a_power_free_move() -> None:
    game = game_of(BASIC)
    free = board(BASIC, dice="water water dragon dragon dragon")
    assert legal(game, free) == [ref.MOVE_ON + WATER]
    blocked = board(BASIC, water="ab.....|.....", dice="water dragon dragon dragon dragon")
    swap = ref.FIRST_SWAP + WATER
    assert legal(game, blocked) == [ref.PASS, swap]
    after = decided(game, blocked, ref.PASS)
    assert (after["pieces"] == blocked["pieces"]).all()
    assert after["player"][0] == 1


def test_R05_powers_are_never_obligatory() -> None:
    game = game_of(OWN)
    jump = board(OWN, player=EARTH, water="..de...|.....", dice="water dragon dragon dragon fire")
    jump["pieces"][0, EARTH, FIRE] = OWN.spaces + 1
    assert legal(game, jump) == [ref.JUMP_ON + WATER, ref.PASS]
    wild = board(OWN, player=WOOD, water="ea.....|.....", dice="water dragon dragon dragon dragon")
    assert ref.PASS in legal(game, wild)


def test_R06_four_dragons_allow_swaps_on_the_path_of_the_fifth_die() -> None:
    game = game_of(THREE)
    everywhere = "abc....|....."
    state = board(
        THREE,
        player=1,
        water=everywhere,
        fire="..a.b..|c....",
        wood=everywhere,
        dice="fire dragon dragon dragon dragon",
    )
    # relative to seat 1, the pairs (0, 1), (0, 2), (1, 2) are the seats (1, 2), (1, 0), (2, 0)
    first = ref.FIRST_SWAP + FIRE * 3
    assert legal(game, state) == [ref.MOVE_ON + FIRE, first, first + 1, first + 2]
    for k, fire in enumerate([[3, 8, 5], [5, 3, 8], [8, 5, 3]]):
        after = decided(game, state, first + k)
        assert after["pieces"][0, :3, FIRE].tolist() == fire
        after["pieces"][0, :, FIRE] = state["pieces"][0, :, FIRE]
        assert (after["pieces"] == state["pieces"]).all()
        assert after["player"][0] == 2


def test_R06_five_dragons_allow_swaps_on_any_path() -> None:
    game = game_of(BASIC)
    state = board(BASIC, water="ab.....|.....", fire="a......|.....", wood="...b...|a....", dice=FIVE_DRAGONS)
    assert legal(game, state) == [ref.PASS, ref.FIRST_SWAP + WATER, ref.FIRST_SWAP + WOOD]
    after = decided(game, state, ref.FIRST_SWAP + WOOD)
    assert after["pieces"][0, :2, WOOD].tolist() == [4, 8]


def test_R06_three_dragons_allow_no_swap() -> None:
    state = board(BASIC, water="ab.....|.....", dice="water water dragon dragon dragon")
    assert legal(game_of(BASIC), state) == [ref.MOVE_ON + WATER]


def test_R06_dead_pieces_and_pieces_off_the_board_cannot_be_swapped() -> None:
    state = board(BASIC, water="a.#....|.....", fire="##.....|.....", dice=FIVE_DRAGONS)
    assert legal(game_of(BASIC), state) == [ref.PASS]


def test_R07_equilibrium_advances_every_piece_that_can() -> None:
    game = game_of(BASIC)
    state = board(
        BASIC,
        water="..a....|.....",  # advances
        fire="..ab...|.....",  # blocked by a piece
        metal="..a#...|.....",  # blocked by a dead piece
        earth=".......|a....",  # stays on its number
        wood="b......|.....",  # blocked off the board
        dice=EQUILIBRIUM_ROLL,
    )
    assert legal(game, state) == [ref.EQUILIBRIUM]
    after = decided(game, state, ref.EQUILIBRIUM)
    assert pieces(after, 0) == [4, 3, 3, 8, 0]
    assert pieces(after, 1) == pieces(state, 1)
    entering = decided(game, board(BASIC, dice=EQUILIBRIUM_ROLL), ref.EQUILIBRIUM)
    assert pieces(entering, 0) == [1, 1, 1, 1, 1]


def test_R07_equilibrium_without_an_advance_is_a_pass() -> None:
    game = game_of(BASIC)
    state = board(BASIC, dice=EQUILIBRIUM_ROLL, **on_all_paths("b......|....."))
    assert legal(game, state) == [ref.PASS]


@pytest.mark.parametrize(("choice", "next_player"), [(ref.PERFECTION_TURN, 0), (ref.END_TURN, 1)])
def test_R08_perfection_offers_an_extra_turn(choice: int, next_player: int) -> None:
    game = game_of(BASIC)
    state = decided(game, board(BASIC, dice="wood wood wood wood wood"), ref.MOVE_ON + WOOD)
    assert state["phase"][0] == Phase.EXTRA
    assert state["perfection"][0] == 1
    assert state["turn"][0] == 0
    assert legal(game, state) == [ref.END_TURN, ref.PERFECTION_TURN]
    state = decided(game, state, choice)
    assert state["player"][0] == next_player
    assert state["phase"][0] == Phase.CHANCE
    assert state["perfection"][0] == 0
    assert state["turn"][0] == 1
    assert state["rolls_left"][0] == 2
    assert state["dice"][0].tolist() == [-1] * 5


@pytest.mark.parametrize("metal", [".......|a....", "a....b.|....."])
def test_R08_a_pass_earns_no_extra_turn(metal: str) -> None:
    game = game_of(BASIC)
    state = board(BASIC, metal=metal, dice="metal metal metal metal metal")
    assert legal(game, state) == [ref.PASS]
    after = decided(game, state, ref.PASS)
    assert (after["phase"][0], after["player"][0], after["perfection"][0]) == (Phase.CHANCE, 1, 0)


def test_R08_a_pass_earns_no_perfection_turn_with_a_power() -> None:
    game = game_of(OWN)
    state = board(OWN, player=FIRE, metal=".......|.b...", dice="metal metal metal metal metal")
    assert legal(game, decided(game, state, ref.PASS)) == [ref.END_TURN, ref.REBIRTH_TURN]


def test_R08_fear_earns_no_extra_turn() -> None:
    game = game_of(OWN)
    state = board(OWN, player=WATER, dice="fire fire fire fire fire")
    after = decided(game, state, ref.NO_MOVE_BY_FEAR)
    assert (after["phase"][0], after["player"][0], after["perfection"][0]) == (Phase.CHANCE, FIRE, 0)


def test_R08_a_jump_earns_an_extra_turn() -> None:
    game = game_of(OWN)
    state = board(OWN, player=EARTH, fire="....a..|.....", dice="fire fire fire fire fire")
    assert legal(game, decided(game, state, ref.JUMP_ON + FIRE)) == [ref.END_TURN, ref.PERFECTION_TURN]


def test_R08_five_dragons_are_not_a_perfection() -> None:
    game = game_of(BASIC)
    state = decided(game, board(BASIC, dice=FIVE_DRAGONS), ref.PASS)
    assert state["phase"][0] == Phase.CHANCE


def test_R09_the_fifth_numbered_piece_ends_the_game() -> None:
    """Perfection adds no turn."""
    game = game_of(BASIC)
    state = numbers(BASIC, "0 1 1 1 1", "5 5 0 0 0", turn=40, dice="water water water water water")
    state["pieces"][0, 0, WATER] = 3
    state = decided(game, state, ref.MOVE_ON + WATER)
    assert state["phase"][0] == Phase.OVER
    assert state["player"][0] == 0
    assert state["expired"][0] == 0
    assert state["turn"][0] == 40
    assert game.legal_actions(state).all()
    assert game.scores(state)[0].tolist() == [5, 10]
    assert game.rewards(state)[0].tolist() == [-1, 1]


def test_R09_a_swap_can_end_the_game_for_another_player() -> None:
    game = game_of(THREE)
    dice = "water dragon dragon dragon dragon"
    state = numbers(THREE, "0 0 0 0 0", "0 1 1 1 1", "5 5 5 0 0", dice=dice)
    state["pieces"][0, 1, WATER] = 3
    swap = ref.FIRST_SWAP + 2  # the pair (1, 2) on water
    assert legal(game, state) == [ref.MOVE_ON + WATER, swap]
    state = decided(game, state, swap)
    assert state["phase"][0] == Phase.OVER
    assert game.scores(state)[0].tolist() == [0, 9, 10]
    assert game.rewards(state)[0].tolist() == [-0.5, -0.5, 1]


@pytest.mark.parametrize(
    ("rules", "seat", "on_water", "dice", "action", "points"),
    [
        (BASIC, 0, "......a|.....", EQUILIBRIUM_ROLL, ref.EQUILIBRIUM, 1),
        (OWN, WOOD, "......e|.....", "water fire metal wood dragon", ref.WOOD_EQUILIBRIUM, 1),
        (OWN, EARTH, "......d|abc..", "water water dragon dragon fire", ref.JUMP_ON + WATER, 4),
        (OWN, EARTH, "......d|abc..", EQUILIBRIUM_ROLL, ref.EARTH_EQUILIBRIUM, 4),
        (OWN, WOOD, "......e|.....", "water dragon dragon fire fire", ref.WOOD_ON + WATER, 3),
        (OWN, WOOD, "......e|.....", "water water dragon dragon dragon", ref.WOOD_ON + WATER, 5),
    ],
)
def test_R09_every_kind_of_move_can_end_the_game(
    rules: Rules, seat: int, on_water: str, dice: str, action: int, points: int
) -> None:
    """The seat has number 1 on four paths. Its piece on water reaches a number; perfection adds no turn."""
    game = game_of(rules)
    state = board(rules, player=seat, water=on_water, dice=dice)
    state["pieces"][0, seat, 1:] = rules.spaces + 1
    state["pieces"][0, (seat + 1) % rules.players, FIRE] = rules.spaces + 5
    state = decided(game, state, action)
    assert (state["phase"][0], state["player"][0], state["expired"][0]) == (Phase.OVER, seat, 0)
    assert game.scores(state)[0, seat] == points + 4
    assert game.rewards(state)[0, seat] == 1
    assert game.legal_actions(state).all()


def random_boards(rules: Rules, games: int, rng: np.random.Generator) -> np.ndarray:
    """Return random positions before a move, with at most four numbered pieces per seat and rare rolls."""
    state = np.repeat(board(rules, phase=Phase.MOVE), games)
    for record in state:
        for path in ELEMENTS:
            spaces = rng.permutation(np.arange(1, rules.spaces + 6))[: rules.players]
            record["pieces"][: rules.players, path] = spaces * (rng.random(rules.players) < 0.95)
        for seat in record["pieces"][: rules.players]:
            if (seat > rules.spaces).all():
                seat[rng.integers(5)] = 0
        face, free = rng.integers(6), rng.integers(3)
        dice = [face] * (5 - free) + rng.integers(0, 6, free).tolist()
        record["dice"] = [*ELEMENTS] if rng.random() < 0.2 else sorted(dice)
    return state


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_R10_at_most_one_seat_has_all_pieces_on_numbered_spaces(players: int) -> None:
    """A swap keeps the sum of both seats' numbered pieces, and a move changes only one seat."""
    rules = Rules(players=players, spaces=1, powers="any")
    game, rng = game_of(rules), np.random.default_rng(players)
    before = random_boards(rules, 3000, rng)
    ends = 0
    for action in range(32, game.num_actions):
        state = before[game.legal_actions(before)[:, action] == 1].copy()
        if not state.size:
            continue
        game.decide(state, np.full(len(state), action))
        complete = (state["pieces"][:, :players] > rules.spaces).all(2)
        over = state["phase"] == Phase.OVER
        assert (complete.sum(1) == over).all()
        rewards = game.rewards(state)[over]
        assert ((rewards[complete[over]] == 1) | (rewards[complete[over]] < 0)).all()
        assert (rewards > 0).any(1).all(), "some seat has a positive reward"
        ends += over.sum()
    assert ends > 300


def test_R10_two_players_never_tie() -> None:
    game, rng = Game(Rules(spaces=0, powers="any")), np.random.default_rng(0)
    state = game.reset(2000, seed=0)
    while (state["phase"] != Phase.OVER).any():
        mask = game.legal_actions(state)
        game.step(state, (rng.random(mask.shape) * mask).argmax(1))
    points = game.scores(state)
    assert not state["expired"].any()
    assert (points[:, 0] == points[:, 1]).sum() > 20, "ties in points occur; more numbered pieces break them"
    assert set(game.rewards(state).ravel().tolist()) == {1, -1}


def test_R10_more_numbered_pieces_break_ties_before_they_are_shared() -> None:
    def result(players: int, *seats: str) -> list[Fraction]:
        rules = Rules(players=players)
        state = numbers(rules, *seats, phase=Phase.OVER)
        return [Fraction(float(x)).limit_denominator(100) for x in Game(rules).rewards(state)[0]]

    assert result(2, "1 1 1 1 1", "5 0 0 0 0") == [1, -1]
    assert result(2, "1 1 1 1 1", "2 2 0 0 0") == [1, -1]
    assert result(2, "1 2 1 1 1", "2 1 0 0 3") == [1, -1]
    quarter, third, ninth = Fraction(1, 4), Fraction(1, 3), Fraction(1, 9)
    assert result(3, "1 2 1 1 1", "5 0 0 0 3", "0 5 3 0 0") == [-2 * quarter, quarter, quarter]
    assert result(4, "1 2 1 1 1", "5 0 0 0 3", "0 5 3 0 0", "0 0 5 0 0") == [-third, third, third, -third]
    four = result(4, "1 2 1 1 1", "5 0 0 0 3", "0 5 3 0 0", "0 0 5 3 0")
    assert four == [-third, ninth, ninth, ninth]
    five = result(5, "1 2 1 1 1", "5 0 0 0 3", "0 5 3 0 0", "0 0 5 0 0", "0 0 0 5 0")
    assert five == [-quarter, Fraction(3, 8), Fraction(3, 8), -quarter, -quarter]

    # Unreachable: two complete seats, and games that end without a complete seat.
    assert result(2, "1 2 1 2 1", "2 1 2 1 2") == [-1, 1]
    assert result(2, "1 2 3 4 5", "2 3 4 5 1") == [0, 0]
    assert result(3, "5 0 0 0 1", "0 5 1 0 0", "0 1 5 0 0") == [0, 0, 0]
