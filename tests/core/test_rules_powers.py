"""The rulings R11 to R16 and the choice of colors; test names contain the number of the ruling."""

import re
from collections import Counter
from itertools import product
from math import comb
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tests import reference as ref
from tests.helpers.positions import NAMES, board, decided, legal, numbers, rolled
from tests.helpers.rulings import (
    ANY,
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
from wotd_env import Game, IllegalActionError, Phase, Rules
from wotd_env.core import layouts

# A position with a move (on water), fear, dragons as any element, and a jump (on fire).
FOR_ALL_POWERS: dict[str, Any] = {"fire": "a.b....|.....", "dice": "water fire fire dragon dragon"}
POWER_ACTIONS = {
    WATER: [ref.NO_MOVE_BY_FEAR],
    EARTH: [ref.JUMP_ON + FIRE],
    WOOD: [ref.WOOD_ON + e for e in ELEMENTS],
}


def test_R11_the_basic_game_has_no_powers() -> None:
    assert legal(game_of(BASIC), board(BASIC, **FOR_ALL_POWERS)) == [ref.MOVE_ON + WATER]


@pytest.mark.parametrize("element", ELEMENTS)
def test_R11_own_powers_follow_the_color(element: int) -> None:
    rules = Rules(powers="own")
    game = game_of(rules)
    color = [element] + [e for e in ELEMENTS if e != element]
    state = board(rules, color=color, **FOR_ALL_POWERS)
    assert legal(game, state) == [ref.MOVE_ON + WATER, *POWER_ACTIONS.get(element, [])]
    after = decided(game, state, ref.MOVE_ON + WATER)
    assert after["phase"][0] == (Phase.EXTRA if element == FIRE else Phase.CHANCE)
    last = board(rules, color=color, phase=Phase.CHANCE, rolls_left=0)
    assert rolled(game, last, EQUILIBRIUM_ROLL)["phase"][0] == (
        Phase.KEEP if element == METAL else Phase.MOVE
    )


def test_R11_any_power_is_legal_until_one_is_used() -> None:
    game = game_of(ANY)
    state = board(ANY, **FOR_ALL_POWERS)
    expected = sorted(
        [ref.MOVE_ON + WATER, *POWER_ACTIONS[WATER], *POWER_ACTIONS[EARTH], *POWER_ACTIONS[WOOD]]
    )
    assert legal(game, state) == expected
    used = board(ANY, used=0b01, **FOR_ALL_POWERS)
    assert legal(game, used) == [ref.MOVE_ON + WATER]
    others = board(ANY, used=0b10, **FOR_ALL_POWERS)
    assert legal(game, others) == expected


def test_R11_any_seat_may_use_the_tiger_as_its_one_power() -> None:
    game = game_of(ANY)
    last_roll = board(ANY, player=1, phase=Phase.CHANCE, rolls_left=0)
    state = rolled(game, last_roll, "water water fire metal dragon")
    assert state["phase"][0] == Phase.KEEP
    state = decided(game, state, 0b00011)
    assert state["used"][0] == 0b10
    state = rolled(game, state, "water water fire fire dragon")
    assert legal(game, state) == [ref.MOVE_ON + WATER, ref.MOVE_ON + FIRE], "fear and wood are spent"
    state = decided(game, state, ref.MOVE_ON + WATER)
    assert (state["phase"][0], state["player"][0]) == (Phase.CHANCE, 0), "rebirth is spent"
    spent = board(ANY, player=1, phase=Phase.CHANCE, rolls_left=0, used=0b10)
    assert rolled(game, spent, "water water fire metal dragon")["phase"][0] == Phase.MOVE


def test_R11_any_seat_may_use_rebirth_as_its_one_power() -> None:
    game = game_of(ANY)
    state = board(ANY, player=1, dice="water fire dragon dragon dragon")
    state = decided(game, state, ref.MOVE_ON + WATER)
    assert legal(game, state) == [ref.END_TURN, ref.REBIRTH_TURN]
    state = decided(game, state, ref.REBIRTH_TURN)
    assert (state["player"][0], state["turn"][0], state["used"][0]) == (1, 1, 0b10)
    state["rolls_left"] = 0
    state = rolled(game, state, "water fire dragon dragon dragon")
    assert state["phase"][0] == Phase.MOVE, "the tiger is spent"
    assert legal(game, state) == [ref.MOVE_ON + WATER, ref.MOVE_ON + FIRE]
    state = decided(game, state, ref.MOVE_ON + FIRE)
    assert (state["phase"][0], state["player"][0]) == (Phase.CHANCE, 0)


@pytest.mark.parametrize("action", [ref.NO_MOVE_BY_FEAR, ref.WOOD_ON + METAL, ref.JUMP_ON + FIRE])
def test_R11_a_power_is_used_once(action: int) -> None:
    game = game_of(ANY)
    state = decided(game, board(ANY, player=0, **FOR_ALL_POWERS), action)
    assert state["used"][0] == 0b01
    assert state["phase"][0] == Phase.CHANCE, "rebirth is spent"
    assert state["player"][0] == 1


def test_R12_fear_skips_a_possible_move() -> None:
    game = game_of(OWN)
    state = board(OWN, player=WATER, water="a......|.....", dice="water fire dragon dragon dragon")
    assert ref.NO_MOVE_BY_FEAR in legal(game, state)
    after = decided(game, state, ref.NO_MOVE_BY_FEAR)
    assert (after["pieces"] == state["pieces"]).all()
    assert after["player"][0] == 1
    stuck = board(OWN, player=WATER, dice=FIVE_DRAGONS)
    assert legal(game, stuck) == [ref.PASS]
    balanced = board(OWN, player=WATER, dice=EQUILIBRIUM_ROLL)
    assert legal(game, balanced) == [ref.EQUILIBRIUM, ref.NO_MOVE_BY_FEAR]


def test_R12_rebirth_takes_an_extra_turn() -> None:
    game = game_of(OWN)
    state = decided(
        game, board(OWN, player=FIRE, dice="water fire dragon dragon dragon"), ref.MOVE_ON + WATER
    )
    assert legal(game, state) == [ref.END_TURN, ref.REBIRTH_TURN]
    reborn = decided(game, state, ref.REBIRTH_TURN)
    assert (reborn["player"][0], reborn["turn"][0], reborn["used"][0]) == (FIRE, 1, 1 << FIRE)
    assert reborn["phase"][0] == Phase.CHANCE
    declined = decided(game, state, ref.END_TURN)
    assert (declined["player"][0], declined["turn"][0], declined["used"][0]) == (FIRE + 1, 1, 0)


def test_R12_rebirth_and_perfection_are_two_choices() -> None:
    game = game_of(OWN)
    state = decided(game, board(OWN, player=FIRE, dice="water water water water water"), ref.MOVE_ON + WATER)
    assert legal(game, state) == [ref.END_TURN, ref.PERFECTION_TURN, ref.REBIRTH_TURN]
    kept = decided(game, state, ref.PERFECTION_TURN)
    assert (kept["player"][0], kept["used"][0], kept["perfection"][0]) == (FIRE, 0, 0)
    spent = decided(game, state, ref.REBIRTH_TURN)
    assert (spent["player"][0], spent["used"][0], spent["perfection"][0]) == (FIRE, 1 << FIRE, 0)


def test_R12_the_tiger_rolls_a_third_time() -> None:
    game = game_of(OWN)
    state = board(OWN, player=METAL, phase=Phase.CHANCE, rolls_left=0)
    state = rolled(game, state, "water water fire metal dragon")
    assert state["phase"][0] == Phase.KEEP
    stopped = decided(game, state, ref.STOP_ROLLING)
    assert (stopped["phase"][0], stopped["used"][0]) == (Phase.MOVE, 0)
    rolling = decided(game, state, 0b00011)
    assert rolling["used"][0] == 1 << METAL
    assert rolling["rolls_left"][0] == 0
    assert rolling["dice"][0].tolist() == [WATER, WATER, -1, -1, -1]
    assert rolled(game, rolling, "water water water wood wood")["phase"][0] == Phase.MOVE


def test_R12_the_tiger_is_not_spent_while_rolls_are_left() -> None:
    game = game_of(OWN)
    state = board(OWN, player=METAL)
    for rolls_left in (1, 0):
        state = decided(game, rolled(game, state, "water water fire metal dragon"), 0)
        assert (state["used"][0], state["rolls_left"][0]) == (0, rolls_left)
    state = decided(game, rolled(game, state, "water water fire metal dragon"), 0)
    assert (state["used"][0], state["rolls_left"][0]) == (1 << METAL, 0)


def test_R12_anxiety_jumps_to_the_next_empty_space() -> None:
    game = game_of(OWN)
    state = board(OWN, player=EARTH, fire="d.ab#..|.....", dice="fire fire water water dragon")
    assert legal(game, state) == [ref.MOVE_ON + WATER, ref.JUMP_ON + FIRE]
    after = decided(game, state, ref.JUMP_ON + FIRE)
    assert pieces(after, EARTH)[FIRE] == 6
    assert after["used"][0] == 1 << EARTH


def test_R12_a_jump_needs_an_empty_space_on_the_path() -> None:
    """There is no space beyond number 5 (R4)."""
    game = game_of(OWN)
    full = board(OWN, player=EARTH, fire="......d|.abce", dice="fire fire dragon dragon dragon")
    assert legal(game, full) == [ref.PASS]
    room = board(OWN, player=EARTH, fire="......d|.abc.", dice="fire fire dragon dragon dragon")
    assert legal(game, room) == [ref.JUMP_ON + FIRE, ref.PASS]
    assert pieces(decided(game, room, ref.JUMP_ON + FIRE), EARTH)[FIRE] == 12


def test_R12_anxiety_needs_a_piece_that_may_move() -> None:
    state = board(OWN, player=EARTH, fire=".......|da...", dice="fire dragon dragon dragon dragon")
    assert ref.JUMP_ON + FIRE not in legal(game_of(OWN), state)


def test_R12_anxiety_lets_blocked_pieces_jump_in_an_equilibrium() -> None:
    game = game_of(OWN)
    state = board(
        OWN,
        player=EARTH,
        water="..d....|.....",  # advances
        fire="..dab..|.....",  # jumps
        metal="a#.....|.....",  # jumps onto the board
        earth="......d|abc.e",  # jumps onto its number
        wood=".......|da...",  # stays
        dice=EQUILIBRIUM_ROLL,
    )
    assert legal(game, state) == [ref.EQUILIBRIUM, ref.EARTH_EQUILIBRIUM]
    assert pieces(decided(game, state, ref.EQUILIBRIUM), EARTH) == [4, 3, 0, 7, 8]
    after = decided(game, state, ref.EARTH_EQUILIBRIUM)
    assert pieces(after, EARTH) == [4, 6, 3, 11, 8]
    assert after["used"][0] == 1 << EARTH
    unblocked = board(OWN, player=EARTH, dice=EQUILIBRIUM_ROLL)
    assert legal(game, unblocked) == [ref.EQUILIBRIUM]


def test_R12_jumps_make_a_blocked_equilibrium_possible() -> None:
    game = game_of(OWN)
    state = board(OWN, player=EARTH, dice=EQUILIBRIUM_ROLL, **on_all_paths("a......|....."))
    assert legal(game, state) == [ref.EARTH_EQUILIBRIUM, ref.PASS]
    assert pieces(decided(game, state, ref.EARTH_EQUILIBRIUM), EARTH) == [2] * 5


def test_R12_wood_counts_all_dragons_as_one_element() -> None:
    game = game_of(OWN)
    state = board(OWN, player=WOOD, metal="..e....|.....", dice="metal fire fire dragon dragon")
    state["pieces"][0, 0, WATER] = 2
    # on water the destination of the two dragons is occupied
    wild = [ref.WOOD_ON + e for e in (FIRE, METAL, EARTH, WOOD)]
    assert legal(game, state) == [ref.MOVE_ON + FIRE, ref.MOVE_ON + METAL, *wild]
    after = decided(game, state, ref.WOOD_ON + METAL)
    assert pieces(after, WOOD) == [0, 0, 6, 0, 0]
    assert after["used"][0] == 1 << WOOD
    assert pieces(decided(game, state, ref.WOOD_ON + EARTH), WOOD) == [0, 0, 3, 2, 0]


def test_R13_wood_needs_a_dragon() -> None:
    state = board(OWN, player=WOOD, dice="metal fire fire water water")
    assert legal(game_of(OWN), state) == [ref.MOVE_ON + WATER, ref.MOVE_ON + FIRE, ref.MOVE_ON + METAL]


@pytest.mark.parametrize(
    "dice", ["fire dragon dragon dragon dragon", "fire fire fire fire dragon", FIVE_DRAGONS]
)
def test_R13_five_of_a_kind_with_dragons_is_perfection(dice: str) -> None:
    game = game_of(OWN)
    state = decided(game, board(OWN, player=WOOD, dice=dice), ref.WOOD_ON + FIRE)
    assert state["perfection"][0] == 1
    assert pieces(state, WOOD)[FIRE] == 5
    assert legal(game, state) == [ref.END_TURN, ref.PERFECTION_TURN]


def test_R13_four_elements_and_a_dragon_are_an_equilibrium() -> None:
    game = game_of(OWN)
    state = board(OWN, player=WOOD, earth="e......|.....", dice="water fire metal wood dragon")
    assert legal(game, state) == [
        *(ref.MOVE_ON + e for e in (WATER, FIRE, METAL, WOOD)),
        *(ref.WOOD_ON + e for e in (WATER, FIRE, METAL, WOOD)),
        ref.WOOD_EQUILIBRIUM,
    ]
    after = decided(game, state, ref.WOOD_EQUILIBRIUM)
    assert pieces(after, WOOD) == [1, 1, 1, 2, 1]
    assert after["used"][0] == 1 << WOOD
    assert after["perfection"][0] == 0
    stuck = board(OWN, player=WOOD, dice="water fire metal wood dragon", **on_all_paths("a......|....."))
    assert ref.WOOD_EQUILIBRIUM not in legal(game, stuck)
    assert ref.WOOD_ON + WATER in legal(game, stuck)


def test_R13_swaps_count_dragons_as_dragons() -> None:
    game = game_of(OWN)
    state = board(OWN, player=WOOD, fire="ea.....|.....", dice="fire dragon dragon dragon dragon")
    swap = ref.FIRST_SWAP + FIRE * 10
    assert {swap, ref.WOOD_ON + FIRE, ref.WOOD_ON + WATER} <= set(legal(game, state))
    after = decided(game, state, swap)
    assert after["used"][0] == 0
    assert after["perfection"][0] == 0


def test_R14_a_piece_on_the_path_of_its_color_cannot_be_swapped() -> None:
    position: dict[str, Any] = {
        "water": "abc....|.....",
        "color": [FIRE, WATER, METAL, EARTH, WOOD],
        "dice": FIVE_DRAGONS,
    }
    immune = Rules(players=3, immunity=True)
    # seat 1 plays water, so only the pair (0, 2) can swap on the path of water
    assert legal(game_of(immune), board(immune, **position)) == [ref.PASS, ref.FIRST_SWAP + 1]
    swaps = [ref.FIRST_SWAP, ref.FIRST_SWAP + 1, ref.FIRST_SWAP + 2]
    assert legal(game_of(THREE), board(THREE, **position)) == [ref.PASS, *swaps]


@pytest.mark.parametrize(("path", "pairs"), [(WATER, [1]), (FIRE, [2]), (WOOD, [0, 1, 2])])
def test_R14_immunity_also_applies_to_four_dragons(path: int, pairs: list[int]) -> None:
    """Seat 0 plays fire and seat 1 water; of (0, 1), (0, 2), (1, 2), the pairs without the immune seat can swap."""
    rules = Rules(players=3, immunity=True)
    dice = f"{NAMES[path]} dragon dragon dragon dragon"
    color = [FIRE, WATER, METAL, EARTH, WOOD]
    state = board(rules, color=color, dice=dice, **on_all_paths("abc....|....."))
    swaps = [ref.FIRST_SWAP + path * 3 + pair for pair in pairs]
    assert legal(game_of(rules), state) == [ref.PASS, *swaps]
    everyone = [ref.FIRST_SWAP + path * 3 + pair for pair in range(3)]
    assert legal(game_of(THREE), state) == [ref.PASS, *everyone]


@pytest.mark.parametrize(
    ("players", "spaces", "dead"),
    [(2, 7, 15), (3, 7, 10), (4, 10, 5), (2, 5, 15), (2, 3, 15), (4, 1, 5)],
)
def test_R15_dead_pieces_are_on_plain_spaces_without_five_in_a_row(
    players: int, spaces: int, dead: int
) -> None:
    drawn = Game(Rules(players=players, spaces=spaces, dead_pieces=dead)).reset(5_000, seed=4)["dead"]
    bits = drawn[:, :, None] >> np.arange(16) & 1
    assert (bits.sum((1, 2)) == dead).all()
    assert not bits[:, :, 0].any()
    assert not bits[:, :, spaces + 1 :].any()
    five_in_a_row = drawn & drawn >> 1 & drawn >> 2 & drawn >> 3 & drawn >> 4
    assert not five_in_a_row.any()


def test_R15_every_layout_is_equally_likely() -> None:
    """Two dead pieces on ten plain spaces have 45 layouts."""
    drawn = Game(Rules(players=3, spaces=2, dead_pieces=2)).reset(20_000, seed=5)["dead"]
    counts = Counter(map(bytes, drawn))
    assert len(counts) == 45
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_R15_redrawn_layouts_stay_equally_likely() -> None:
    """With 15 dead pieces on 25 spaces, the numbers of pieces per path have their combinatorial distribution."""
    share: Counter[tuple[int, ...]] = Counter()
    for per_path in product(range(5), repeat=5):  # five on one path would be five in a row
        if sum(per_path) == 15:
            share[tuple(sorted(per_path))] += int(np.prod([comb(5, k) for k in per_path]))
    n = 20_000
    drawn = Game(Rules(players=2, spaces=5, dead_pieces=15)).reset(n, seed=6)["dead"]
    per_path = (drawn[:, :, None] >> np.arange(16) & 1).sum(2)
    seen = Counter(tuple(sorted(row)) for row in per_path.tolist())
    assert set(seen) <= set(share)
    expected = np.array([share[key] for key in share]) / sum(share.values()) * n
    observed = np.array([seen[key] for key in share])
    assert expected.min() > 10
    assert stats.chisquare(observed, expected).pvalue > 1e-3


def test_R15_a_layout_puts_dead_pieces_on_its_spaces_and_changes_nothing_else() -> None:
    layout = "##../..#./..../...#/#..."
    fixed, empty = (Game(Rules(spaces=4, dead_pieces=dead)).reset(50, seed=7) for dead in (layout, 0))
    assert (fixed["dead"] == [0b110, 0b1000, 0, 0b10000, 0b10]).all()
    fixed["dead"] = 0
    assert np.array_equal(fixed, empty)
    assert Rules(spaces=4, dead_pieces="..../..../..../..../....") == Rules(spaces=4)


@pytest.mark.parametrize(
    ("spaces", "layout", "words"),
    [
        (2, "#./../../..", "a number or 5 paths of . and # with / between them"),
        (2, "#a/../../../..", "a number or 5 paths of . and #"),
        (2, "#.|...../../../../..", "a number or 5 paths of . and #"),
        (2, "..#/.../.../.../...", r"on plain spaces, 2 on each path \(R15\)"),
        (3, "#./../../../..", r"on plain spaces, 3 on each path \(R15\)"),
        (5, "#####/...../...../...../.....", "fewer than 5 in a row, because no piece could pass them"),
        (4, "####/####/####/####/....", r"at most 15 for 2 players on 20 plain spaces \(R15\)"),
    ],
)
def test_R15_an_impossible_layout_is_refused(spaces: int, layout: str, words: str) -> None:
    with pytest.raises(ValueError, match=f"^dead_pieces must be {words}.*, got {re.escape(repr(layout))}$"):
        Rules(spaces=spaces, dead_pieces=layout)


def test_layouts_and_dead_pieces_are_inverses() -> None:
    for spaces, count in ((0, 1), (1, 6), (2, 56), (3, 792)):
        standard = layouts.standard_layouts(spaces)
        assert len(set(standard)) == count
        for layout in standard:
            assert layouts.layout_of(layouts.dead_of(layout), spaces) == layout == layouts.standard(layout)
            assert layouts.standard("/".join(reversed(layout.split("/")))) == layout


def test_R15_dead_pieces_block_like_any_piece() -> None:
    game = game_of(BASIC)
    state = board(BASIC, water="a.#....|.....", dice="water water dragon dragon dragon")
    assert legal(game, state) == [ref.PASS]


@pytest.mark.parametrize("action", [ref.END_TURN, ref.PERFECTION_TURN])
def test_R16_the_turn_limit_ends_a_game(action: int) -> None:
    rules = Rules(max_turns=10)
    game = game_of(rules)
    state = board(rules, water=".......|a....", turn=9, dice="wood wood wood wood wood")
    state = decided(game, state, ref.MOVE_ON + WOOD, action)
    assert state["phase"][0] == Phase.OVER
    assert (state["expired"][0], state["turn"][0], state["player"][0]) == (1, 10, 0)
    assert game.rewards(state)[0].tolist() == [0, 0]
    assert game.scores(state)[0].tolist() == [1 + 0, 0]
    assert game.legal_actions(state).all()


def test_R16_an_earlier_turn_does_not_end_a_game() -> None:
    rules = Rules(max_turns=10)
    game = game_of(rules)
    state = decided(game, board(rules, turn=8, dice="wood wood fire fire water"), ref.MOVE_ON + WOOD)
    assert (state["phase"][0], state["turn"][0]) == (Phase.CHANCE, 9)


def test_R16_a_game_won_on_the_last_turn_counts() -> None:
    rules = Rules(max_turns=10)
    game = game_of(rules)
    state = numbers(rules, "0 1 1 1 1", "0 0 0 0 0", turn=9, dice="water fire fire metal metal")
    state["pieces"][0, 0, WATER] = 7
    state = decided(game, state, ref.MOVE_ON + WATER)
    assert (state["phase"][0], state["expired"][0]) == (Phase.OVER, 0)
    assert game.rewards(state)[0].tolist() == [1, -1]


# ------------------------------------------------------------------------------------------ seats and errors


def test_given_and_random_colors_are_permutations() -> None:
    given = Game(Rules(players=3, colors=("wood", "water", "metal"))).reset(20, seed=7)["color"]
    assert (given[:, :3] == [WOOD, WATER, METAL]).all()
    assert (np.sort(given, axis=1) == ELEMENTS).all()
    in_order = Game(THREE).reset(20, seed=7)["color"]
    assert (in_order == ELEMENTS).all()
    drawn = Game(Rules(players=3, colors="random")).reset(12_000, seed=7)["color"]
    assert (np.sort(drawn, axis=1) == ELEMENTS).all()
    counts = Counter(map(tuple, drawn[:, :3].tolist()))
    assert len(counts) == 60
    assert stats.chisquare(list(counts.values())).pvalue > 1e-3


def test_an_illegal_action_changes_nothing() -> None:
    game = game_of(BASIC)
    state = np.concatenate([board(BASIC, dice="water water fire fire wood")] * 3)
    before = state.copy()
    with pytest.raises(IllegalActionError, match=r"metal"):
        game.step(state, np.array([ref.MOVE_ON + WATER, ref.MOVE_ON + METAL, ref.MOVE_ON + WATER]))
    assert state.tobytes() == before.tobytes()


def test_a_step_does_not_change_a_finished_game() -> None:
    game = game_of(BASIC)
    state = numbers(BASIC, "1 1 1 1 1", "0 0 0 0 0", phase=Phase.OVER)
    before = state.copy()
    game.step(state, np.array([ref.MOVE_ON + WATER]))
    assert state.tobytes() == before.tobytes()
