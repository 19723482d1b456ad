"""Pictures of positions: the scene, SVG and pixels."""

import io
import re
from dataclasses import replace
from itertools import combinations
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.pictures import VARIANTS, check_apart, check_inside, played, ties, variants
from tests.helpers.positions import board, immune_pieces
from tools import __main__ as tool
from wotd_env import Game, Phase, Rules
from wotd_env.core.starting import roll_off_of
from wotd_env.rendering import glyphs, render_rgb, render_svg, render_text, roll_off_text, show
from wotd_env.rendering.scene import PALETTES, WIDTH, Mark, scene
from wotd_env.rendering.svg import style, symbols

LONG = Rules(players=5, powers="own", max_turns=65535)


def unusual() -> list[np.ndarray]:
    """Return positions that games rarely reach, with the rules `LONG`."""
    rules = LONG
    roll = "fire fire fire fire fire"
    tie = board(rules, dice=roll, phase=Phase.OVER, turn=65533)
    tie["pieces"][0, :4] = [[8 + (seat + path) % 5 for path in range(5)] for seat in range(4)]
    unrolled = board(rules, water="..a.b..|.c...", rolls_left=1)
    unrolled["dice"] = [1, 5, -1, -1, -1]
    return [
        tie,
        unrolled,
        board(rules, water="..a.b..|.c...", dice=roll, phase=Phase.EXTRA, perfection=1, turn=65533),
        board(rules, water="..a.b..|.c...", dice=roll, phase=Phase.OVER, expired=1, turn=65535),
        board(rules, fire="...edcb|.....", dice=roll, phase=Phase.KEEP, player=2, rolls_left=0, used=0b11011),
    ]


def drawing(kind: str, number: int, *names: str, theme: str = "light") -> str:
    """Return the drawing of a piece or a die."""
    colors = [PALETTES[theme][name] for name in names]
    picture: str = getattr(glyphs, kind)(number, *colors)
    return picture


def rasterized(svg: str, mode: str) -> np.ndarray:
    """Return the pixels of a drawing, uint8."""
    import resvg_py
    from PIL import Image

    picture = io.BytesIO(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))
    return np.asarray(Image.open(picture).convert(mode))


def count(marks: list[Mark], svg: str) -> int:
    return sum(mark.svg == svg for mark in marks)


# ------------------------------------------------------------------------------------------------ the scene


@variants
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_scenes_contain_all_pieces_and_dice(rules, theme):
    game, states, _ = played(rules)
    for state in states[:: max(1, len(states) // 12)]:
        record = state
        state = state.reshape(1)
        marks = scene(game, state, theme=theme)
        over = record["phase"] == Phase.OVER
        rewards = game.rewards(state)[0]
        for seat in range(rules.players):
            color = int(record["color"][seat])
            piece = drawing("piece", color, f"fill{color}", f"ink{color}", "edge", "rim", theme=theme)
            focus = rewards[seat] == rewards.max() if over else seat == record["player"]
            assert count(marks, piece) == 5 + 1 + focus  # board, card and headline
        dead_piece = glyphs.dead(*(PALETTES[theme][name] for name in ("stone", "cut", "rim")))
        assert count(marks, dead_piece) == rules.dead_pieces
        for face in range(6):
            die = drawing("die", face, f"fill{face}", f"ink{face}", "frame", theme=theme)
            assert count(marks, die) == (record["dice"] == face).sum()


@variants
def test_svg_is_well_formed_and_defines_exactly_the_used_symbols(rules):
    game, states, _ = played(rules)
    for index in range(1, len(states), max(1, len(states) // 8)):
        svg = render_svg(game, states[index : index + 1], states[index - 1 : index])
        picture = ElementTree.fromstring(svg)
        space = "{http://www.w3.org/2000/svg}"
        names = [symbol.attrib["id"] for symbol in picture.findall(f"{space}defs/{space}g")]
        used = {use.attrib["href"][1:] for use in picture.iter(f"{space}use")}
        assert len(names) == len(set(names))
        assert used == set(names)
        assert picture.findtext(f"{space}desc") == render_text(game, states[index : index + 1])
        assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")  # no external resources
        assert "<text" not in svg  # no fonts


@given(st.integers(0, 2**32), st.sampled_from(VARIANTS), st.integers(0, 60))
def test_all_marks_lie_inside_the_picture(seed, rules, moves):
    game, states, _ = played(rules, seed, moves)
    check_inside(scene(game, states[-1:], states[-2:][:1]))


@pytest.mark.parametrize("index", range(len(unusual())))
def test_marks_above_the_board_do_not_overlap(index):
    check_apart(scene(Game(LONG), unusual()[index]))


@variants
def test_pieces_do_not_overlap(rules):
    game, states, _ = played(rules)
    pieces = [drawing("piece", color, f"fill{color}", f"ink{color}", "edge", "rim") for color in range(5)]
    for index in range(0, len(states), max(1, len(states) // 8)):
        marks = [mark for mark in scene(game, states[index : index + 1]) if mark.svg in pieces]
        assert len(marks) > 5 * rules.players
        for one, other in combinations(marks, 2):
            gap = max(abs(one.x - other.x), abs(one.y - other.y))
            assert gap >= min(one.scale, other.scale) * glyphs.BOX


def test_drawings_stay_in_their_boxes():
    drawn = {}
    for rules in VARIANTS:
        game, states, actions = played(rules)
        for index in range(1, len(states), 7):
            for mark in scene(
                game, states[index : index + 1], states[index - 1 : index], (*actions, 31)[index]
            )[1:]:
                drawn[mark.svg] = mark
    assert len(drawn) > 50
    for mark in drawn.values():
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -20 {mark.width + 40} {mark.height + 40}" '
            f'width="{round(mark.width + 40)}" height="{round(mark.height + 40)}">{mark.svg}</svg>'
        )
        ink = np.argwhere(rasterized(svg, "RGBA")[..., 3] > 8)
        assert ink.min() >= 19
        assert (ink.max(0) <= [mark.height + 21, mark.width + 21]).all()


def test_pictures_do_not_depend_on_the_random_stream():
    game, states, _ = played(VARIANTS[3])
    state = states[40:41].copy()
    state["rng"] = 0  # the random stream is invisible
    assert render_svg(game, state) == render_svg(game, states[40:41].copy())
    assert (render_rgb(game, state) == render_rgb(game, states[40:41].copy())).all()
    assert render_svg(game, state) != render_svg(game, states[10:11])


def test_seats_and_elements_differ_in_shape():
    one_color = ["#000"] * 2
    assert len(set(glyphs.OUTLINES)) == 5
    assert len({glyphs.face(face, *one_color) for face in range(6)}) == 6
    assert len({glyphs.power(power, *one_color) for power in range(6)}) == 6


def test_symbols_are_well_formed_and_use_the_colors_of_the_style():
    names = {name.get("id") for name in ElementTree.fromstring(symbols())}
    kinds = {"piece": 5, "die": 6, "element": 5, "power": 6}
    assert names == {f"{kind}-{i}" for kind, count in kinds.items() for i in range(count)} | {"dead", "again"}
    used = set(re.findall(r"var\((--[\w-]+)\)", symbols()))
    assert used
    assert used <= set(re.findall(r"(--[\w-]+):", style()))


def test_moved_pieces_are_marked():
    rules = Rules()
    before = board(rules, water="a......|.....", fire="..ab...|.....", phase=Phase.KEEP, dice="fire " * 5)
    game, plain = Game(rules), render_svg(Game(rules), before)
    assert render_svg(game, before, before) == plain
    moved = before.copy()
    moved["pieces"][0, 0, 0] = 4
    swapped = before.copy()
    swapped["pieces"][0, :2, 1] = [4, 3]
    for after, moves in ((moved, 1), (swapped, 2)):
        accent = PALETTES["light"]["accent"]
        marks = scene(game, after, before)
        assert sum(f'fill="none" stroke="{accent}" stroke-width="5"' in mark.svg for mark in marks) == moves
        assert len(marks) == len(scene(game, after)) + 2 * moves  # a path and a ring per moved piece


def test_locks_are_on_the_pieces_that_the_engine_never_swaps():
    game, state, immune = immune_pieces()
    without = [(mark.svg, mark.x, mark.y) for mark in scene(Game(replace(game.rules, immunity=False)), state)]
    locks = [mark for mark in scene(game, state) if (mark.svg, mark.x, mark.y) not in without]
    assert len({mark.svg for mark in locks}) == 1
    assert len(locks) == len(immune) == 4
    columns, rows = (sorted({round(getattr(mark, name)) for mark in locks}) for name in "xy")
    assert [(1 + columns.index(round(mark.x)), rows.index(round(mark.y))) for mark in locks] == [
        (seat + 1, path) for seat, path in sorted(immune)
    ]


def test_a_previous_state_of_another_game_marks_nothing():
    game, states, _ = played(Rules())
    for later in (states[-1:], states[20:21]):
        assert render_svg(game, states[:1], later) == render_svg(game, states[:1])


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("rounds", [1, 2, 4])
@variants
def test_the_cards_show_the_roll_off(rules, rounds, theme):
    game, seed, roll_off = ties(replace(rules, start="dragons"), rounds)
    state = game.reset(1, seed=seed)
    marks = scene(game, state, theme=theme, roll_off=roll_off)
    without = scene(game, state, theme=theme)
    shown = [mark for mark in marks if mark not in without and "player" not in mark.svg]
    dice = [mark for mark in shown if mark.width == glyphs.BOX]
    assert len(dice) == (roll_off >= 0).sum()
    for face in range(6):
        die = drawing("die", face, f"fill{face}", f"ink{face}", "frame", theme=theme)
        assert sum(die in mark.svg for mark in dice) == (roll_off == face).sum()
    for one, other in combinations(dice, 2):
        gap = max(abs(one.x - other.x), abs(one.y - other.y))
        assert gap >= one.scale * glyphs.BOX
        assert one.y >= 480
        assert one.x + one.scale * glyphs.BOX <= WIDTH


def test_roll_off_text_counts_the_dragons_of_each_seat():
    *_, roll_off = ties(Rules(players=5), 3)
    lines = roll_off_text(roll_off)
    assert len(lines) == 3
    for line, dice in zip(lines, roll_off, strict=True):
        assert len(line) <= 110
        for seat in range(5):
            dragons = (dice[seat] == 5).sum()
            match = re.search(rf"{'ABCDE'[seat]} \[([wfmeod]+)\] (\d|none)", line)
            assert (match is None) == (dice[seat, 0] < 0)
            if match:
                assert match[1].count("d") == dragons
                assert match[2] == (str(dragons) if dragons else "none")
    assert roll_off_text(roll_off_of(Game(Rules(start=0)), 0)) == []


def test_kept_dice_are_marked():
    game = Game()
    state = board(Rules(), dice="water fire fire wood dragon", phase=Phase.KEEP)
    bar = f'fill="{PALETTES["light"]["accent"]}"/>'

    def bars(marks: list[Mark]) -> list[float]:
        return [mark.x for mark in marks if mark.svg.startswith("<rect") and mark.svg.endswith(bar)]

    assert len(bars(scene(game, state))) == 0
    assert len(bars(scene(game, state, action=0b00110))) == 2
    game.decide(state, [0b00110])
    assert len(bars(scene(game, state))) == 2  # until the next roll
    assert sum("stroke-dasharray" in mark.svg for mark in scene(game, state)) == 3


@pytest.mark.parametrize("draw", [render_svg, render_rgb, show], ids=lambda draw: draw.__name__)
def test_invalid_input_raises_errors_that_name_it(draw):
    game, state = Game(), Game().reset(1, seed=0)
    with pytest.raises(ValueError, match="theme must be one of 'light', 'dark', 'auto', got 'sepia'"):
        draw(game, state, theme="sepia")
    five = Game(Rules(players=5)).reset(1, seed=0, starting_player=4)
    with pytest.raises(ValueError, match="player must be from 0 to 1, got 4"):
        draw(game, five)
    with pytest.raises(ValueError, match="player must be from 0 to 1, got 4"):
        draw(game, state, five)


def test_pixels_do_not_support_the_auto_theme():
    game, state = Game(), Game().reset(1, seed=0)
    svg = render_svg(game, state, theme="auto")
    used = set(re.findall(r"var\((--wotd-\w+)\)", svg))
    assert used
    assert used <= set(re.findall(r"(--wotd-\w+):#", svg))
    with pytest.raises(ValueError, match="theme must be 'light' or 'dark' in pixels"):
        render_rgb(game, state, theme="auto")
    with pytest.raises(ValueError, match="width must be an integer from 1 to 10000"):
        render_rgb(game, state, width=0)


def test_generated_pictures_are_up_to_date():
    drawn = tool.cases() | {tool.TURN_FILE: tool.turn()}
    assert {file: file.read_text() for file in drawn} == drawn, "run `make docs-tables`"


def test_the_rules_page_shows_every_case():
    page = tool.RULES_FOLDER.with_suffix(".md").read_text()
    names = {file.name for file in tool.cases()}
    assert set(re.findall(r"\(rules/([\w-]+\.svg)\)", page)) == names
    assert {file.name for file in tool.RULES_FOLDER.iterdir()} == names


# ------------------------------------------------------------------------------------------------ pixels


@pytest.mark.parametrize("width", [300, 640, 1200])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pixels_equal_the_rasterized_svg(width, theme):
    game, states, _ = played(VARIANTS[3])
    for state, before in ((states[60:61], states[59:60]), (states[-1:], states[-2:-1])):
        svg = render_svg(game, state, before, theme=theme, width=width)
        whole = rasterized(svg, "RGB").astype(int)
        pixels = render_rgb(game, state, before, theme=theme, width=width)
        assert pixels.shape == (width * 3 // 4, width, 3)
        assert pixels.dtype == np.uint8
        difference = np.abs(whole - pixels)
        assert difference.mean() < 0.1
        assert (difference > 20).any(2).mean() < 0.0005  # thin lines that meet in one pixel


def test_callers_can_modify_the_pixels():
    game, state = Game(), Game().reset(1, seed=0)
    first = render_rgb(game, state)
    first[:] = 0
    assert render_rgb(game, state).any()
