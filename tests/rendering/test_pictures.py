"""Games as pictures: one scene, in SVG, in pixels, in a window, in notebooks and as recordings."""

from __future__ import annotations

import copy
import io
import json
import pickle
import re
import sys
import threading
import types
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import gymnasium
import numpy as np
import pytest
from gymnasium.error import DependencyNotInstalled
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.positions import board
from tools import board as front
from tools import cases, rooms
from wotd_env import STATE, Game, Phase, Rules, make_policy, notation, way_of_the_dragon_v0
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.rendering import (
    RENDER_MODES,
    RENDERERS,
    Replay,
    Viewer,
    glyphs,
    render_rgb,
    render_svg,
    render_text,
    replay_game,
    roll_off_text,
    show,
)
from wotd_env.rendering.scene import HEIGHT, PALETTES, WIDTH, Mark, scene
from wotd_env.rendering.svg import style, symbols
from wotd_env.rendering.text import seat_names

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
VARIANTS = [
    Rules(),
    Rules(players=2, spaces=3, dead_pieces=15, powers="own"),
    Rules(players=3, spaces=0, powers="any", immunity=True),
    Rules(players=4, spaces=10, powers="own", dead_pieces=5, colors="random", immunity=True),
    Rules(players=5, spaces=10, powers="any", colors="random"),
    Rules(players=5, spaces=1, powers="own"),
]
variants = pytest.mark.parametrize("rules", VARIANTS, ids=str)


def played(rules: Rules, seed: int = 0, most: int = 10_000) -> tuple[Game, np.ndarray, list[int]]:
    """A game between random players: its positions and actions."""
    game, policy, rng = Game(rules), make_policy("random"), np.random.default_rng(seed)
    state = game.reset(1, seed=seed)
    states = [state.copy()]
    actions: list[int] = []
    while state["phase"] != Phase.OVER and len(actions) < most:
        actions.append(int(policy.act(game, state, rng)[0]))
        game.step(state, actions[-1:])
        states.append(state.copy())
    return game, np.concatenate(states), actions


LONG = Rules(players=5, powers="own", max_turns=65535)


def unusual() -> list[np.ndarray]:
    """Positions that games seldom reach, by the rules `LONG`."""
    rules = LONG
    roll = "fire fire fire fire fire"
    tie = board(rules, dice=roll, phase=Phase.OVER, turn=65533)
    tie["pieces"][0, :4] = [[8 + (seat + path) % 5 for path in range(5)] for seat in range(4)]
    due = board(rules, water="..a.b..|.c...", rolls_left=1)
    due["dice"] = [1, 5, -1, -1, -1]
    return [
        tie,
        due,
        board(rules, water="..a.b..|.c...", dice=roll, phase=Phase.EXTRA, perfection=1, turn=65533),
        board(rules, water="..a.b..|.c...", dice=roll, phase=Phase.OVER, truncated=1, turn=65535),
        board(rules, fire="...edcb|.....", dice=roll, phase=Phase.KEEP, player=2, rolls_left=0, used=0b11011),
    ]


def drawing(kind: str, number: int, *names: str, theme: str = "light") -> str:
    """What a piece or a die looks like."""
    colors = [PALETTES[theme][name] for name in names]
    picture: str = getattr(glyphs, kind)(number, *colors)
    return picture


def count(marks: list[Mark], svg: str) -> int:
    return sum(mark.svg == svg for mark in marks)


# ------------------------------------------------------------------------------------------------ the scene


@variants
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_everything_on_the_table_is_drawn(rules, theme):
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
            assert count(marks, piece) == 5 + 1 + focus  # on the board, on its card, above
        stone = glyphs.dead(*(PALETTES[theme][name] for name in ("stone", "cut", "rim")))
        assert count(marks, stone) == rules.dead_pieces
        for face in range(6):
            die = drawing("die", face, f"fill{face}", f"ink{face}", "frame", theme=theme)
            assert count(marks, die) == (record["dice"] == face).sum()


@variants
def test_pictures_are_well_formed_and_name_what_they_use(rules):
    game, states, _ = played(rules)
    for at in range(1, len(states), max(1, len(states) // 8)):
        svg = render_svg(game, states[at : at + 1], states[at - 1 : at])
        picture = ElementTree.fromstring(svg)
        space = "{http://www.w3.org/2000/svg}"
        names = [symbol.attrib["id"] for symbol in picture.findall(f"{space}defs/{space}g")]
        used = {use.attrib["href"][1:] for use in picture.iter(f"{space}use")}
        assert len(names) == len(set(names))
        assert used == set(names)
        assert picture.findtext(f"{space}desc") == render_text(game, states[at : at + 1])
        assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")  # nothing from elsewhere
        assert "<text" not in svg  # no fonts


@given(st.integers(0, 2**32), st.sampled_from(VARIANTS), st.integers(0, 60))
def test_nothing_leaves_the_picture(seed, rules, moves):
    game, states, _ = played(rules, seed, moves)
    check_inside(scene(game, states[-1:], states[-2:][:1]))


def check_inside(marks: list[Mark]) -> None:
    for mark in marks:
        assert mark.x >= 0
        assert mark.y >= 0
        assert mark.x + mark.width * mark.scale <= WIDTH
        assert mark.y + mark.height * mark.scale <= HEIGHT


@pytest.mark.parametrize("index", range(len(unusual())))
def test_nothing_above_the_board_overlaps(index):
    check_apart(scene(Game(LONG), unusual()[index]))


def check_apart(marks: list[Mark]) -> None:
    above = [mark for mark in marks[1:] if mark.y + mark.height * mark.scale < 156]  # the board starts there
    assert len(above) > 7
    for one, other in combinations(above, 2):
        apart = (
            one.x + one.width * one.scale <= other.x + 1
            or other.x + other.width * other.scale <= one.x + 1
            or one.y + one.height * one.scale <= other.y + 6  # a line of text leaves room below it
            or other.y + other.height * other.scale <= one.y + 6
        )
        assert apart, (one, other)


@variants
def test_pieces_stand_apart(rules):
    game, states, _ = played(rules)
    pieces = [drawing("piece", color, f"fill{color}", f"ink{color}", "edge", "rim") for color in range(5)]
    for at in range(0, len(states), max(1, len(states) // 8)):
        marks = [mark for mark in scene(game, states[at : at + 1]) if mark.svg in pieces]
        for one, other in combinations(marks, 2):
            gap = max(abs(one.x - other.x), abs(one.y - other.y))
            assert gap >= min(one.scale, other.scale) * glyphs.BOX


def test_every_drawing_stays_in_its_box():
    import resvg_py
    from PIL import Image

    drawn = {}
    for rules in VARIANTS:
        game, states, actions = played(rules)
        for at in range(1, len(states), 7):
            for mark in scene(game, states[at : at + 1], states[at - 1 : at], (*actions, 31)[at])[1:]:
                drawn[mark.svg] = mark
    assert len(drawn) > 50
    for mark in drawn.values():
        svg = (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-20 -20 {mark.width + 40} {mark.height + 40}" '
            f'width="{round(mark.width + 40)}" height="{round(mark.height + 40)}">{mark.svg}</svg>'
        )
        image = Image.open(io.BytesIO(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True)))
        ink = np.argwhere(np.asarray(image.convert("RGBA"))[..., 3] > 8)
        assert ink.min() >= 19
        assert (ink.max(0) <= [mark.height + 21, mark.width + 21]).all()


def test_equal_positions_give_equal_pictures():
    game, states, _ = played(VARIANTS[3])
    state = states[40:41].copy()
    state["rng"] = 0  # the dice to come show nowhere
    assert render_svg(game, state) == render_svg(game, states[40:41].copy())
    assert (render_rgb(game, state) == render_rgb(game, states[40:41].copy())).all()
    assert render_svg(game, state) != render_svg(game, states[10:11])


def test_seats_and_elements_differ_in_shape():
    one_color = ["#000"] * 2
    assert len(set(glyphs.OUTLINES)) == 5
    assert len({glyphs.face(face, *one_color) for face in range(6)}) == 6
    assert len({glyphs.power(power, *one_color) for power in range(6)}) == 6


def test_symbols_are_well_formed_and_take_the_colours_of_the_style():
    names = {name.get("id") for name in ElementTree.fromstring(symbols())}
    kinds = {"piece": 5, "die": 6, "element": 5, "power": 6}
    assert names == {f"{kind}-{i}" for kind, count in kinds.items() for i in range(count)} | {"dead", "again"}
    used = set(re.findall(r"var\((--[\w-]+)\)", symbols()))
    assert used
    assert used <= set(re.findall(r"(--[\w-]+):", style()))


def test_what_has_moved_is_marked():
    rules = Rules()
    before = board(rules, water="a......|.....", fire="..ab...|.....", phase=Phase.KEEP, dice="fire " * 5)
    game, plain = Game(rules), render_svg(Game(rules), before)
    assert render_svg(game, before, before) == plain
    moved = before.copy()
    moved["pieces"][0, 0, 0] = 4
    swapped = before.copy()
    swapped["pieces"][0, :2, 1] = [4, 3]
    for after, ways in ((moved, 1), (swapped, 2)):
        accent = PALETTES["light"]["accent"]
        marks = scene(game, after, before)
        assert sum(f'fill="none" stroke="{accent}" stroke-width="5"' in mark.svg for mark in marks) == ways
        assert len(marks) == len(scene(game, after)) + 2 * ways  # a way and a ring for each piece


def test_another_game_marks_nothing():
    game, states, _ = played(Rules())
    for later in (states[-1:], states[20:21]):
        assert render_svg(game, states[:1], later) == render_svg(game, states[:1])


def ties(rules: Rules, rounds: int) -> tuple[Game, int, np.ndarray]:
    """A game whose start took so many rounds of the roll-off: the rules, its seed, and its roll-off."""
    game = Game(rules)
    seed = next(seed for seed in range(10_000) if len(game.roll_off(seed)) == rounds)
    return game, seed, game.roll_off(seed)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("rounds", [1, 2, 4])
@variants
def test_the_roll_off_is_on_the_cards(rules, rounds, theme):
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


def test_the_first_picture_of_a_recorded_game_shows_the_roll_off(tmp_path):
    from PIL import Image

    rules = Rules(players=3)
    game, seed, roll_off = ties(rules, 2)
    recorded = notation.record_game(rules, [31], seed=seed)
    replay = replay_game(recorded)
    data = content(replay.html())
    first, second = data["captions"][:2]
    assert first.startswith("Roll-off for the start, by dragons: A [")
    assert ". A tie, so once more: " in first
    assert "Roll-off" not in second
    replay.save(tmp_path / "game.gif")
    wanted = render_rgb(game, recorded.states[:1], None, 31, roll_off=roll_off)
    with Image.open(tmp_path / "game.gif") as gif:
        shown = np.asarray(gif.convert("RGB")).astype(int)
    cards = np.s_[384:, :]
    assert np.abs(shown - wanted)[cards].mean() < 4
    assert np.abs(wanted.astype(int) - render_rgb(game, recorded.states[:1], None, 31))[cards].mean() > 4
    svg = render_svg(game, recorded.states[:1], roll_off=roll_off)
    assert roll_off_text(roll_off)[1] in svg
    unknown = replay_game(recorded._replace(seed=None))
    assert "Roll-off" not in content(unknown.html())["captions"][0]


def test_a_roll_off_in_words_names_who_rolled_how_many_dragons():
    *_, roll_off = ties(Rules(players=5), 3)
    lines = roll_off_text(roll_off)
    assert len(lines) == 3
    for line, dice in zip(lines, roll_off, strict=True):
        assert len(line) <= 110
        for seat in range(5):
            dragons = (dice[seat] == 5).sum()
            said = re.search(rf"{'ABCDE'[seat]} \[([wfmeod]+)\] (\d|none)", line)
            assert (said is None) == (dice[seat, 0] < 0)
            if said:
                assert said[1].count("d") == dragons
                assert said[2] == (str(dragons) if dragons else "none")
    assert roll_off_text(Game(Rules(start=0)).roll_off(0)) == []


NAMES = ("me:Anna", "planner", "sb3:runs/2026-01-01/model.zip", "Zoë (2)", "x" * 500)


@pytest.mark.parametrize("players", range(2, 6))
def test_pictures_of_a_recorded_game_show_the_names_of_its_players(players):
    rules, names = Rules(players=players), NAMES[-players:]
    recorded = notation.record_game(rules, [], seed=0, players=names)
    replay = replay_game(recorded)
    first = seat_names(names, players)[recorded.states["player"][0]]
    assert first in content(replay.html())["captions"][0]
    svg = render_svg(replay.game, recorded.states, names=names)
    assert "player_" not in svg
    assert svg != render_svg(replay.game, recorded.states)
    assert (next(replay.pictures()) != next(Replay(replay.game, recorded.states).pictures())).any()
    for seat in range(players):
        recorded.states["player"] = seat
        marks = scene(replay.game, recorded.states, names=names)
        check_inside(marks)
        check_apart(marks)


def test_kept_dice_are_marked():
    game = Game()
    state = board(Rules(), dice="water fire fire wood dragon", phase=Phase.KEEP)
    bar = f'fill="{PALETTES["light"]["accent"]}"/>'

    def bars(marks: list[Mark]) -> list[float]:
        return [mark.x for mark in marks if mark.svg.startswith("<rect") and mark.svg.endswith(bar)]

    assert len(bars(scene(game, state))) == 0
    assert len(bars(scene(game, state, action=0b00110))) == 2
    game.decide(state, [0b00110])
    assert len(bars(scene(game, state))) == 2  # until the others are rolled
    assert sum("stroke-dasharray" in mark.svg for mark in scene(game, state)) == 3


@pytest.mark.parametrize("draw", [render_svg, render_rgb, show], ids=lambda draw: draw.__name__)
def test_wrong_input_is_named(draw):
    game, state = Game(), Game().reset(1, seed=0)
    with pytest.raises(ValueError, match="theme must be one of 'light', 'dark', 'auto', got 'sepia'"):
        draw(game, state, theme="sepia")
    five = Game(Rules(players=5)).reset(1, seed=0, starting_player=4)
    with pytest.raises(ValueError, match="player must be from 0 to 1, got 4"):
        draw(game, five)
    with pytest.raises(ValueError, match="player must be from 0 to 1, got 4"):
        draw(game, state, five)


def test_only_browsers_know_what_their_readers_prefer():
    game, state = Game(), Game().reset(1, seed=0)
    svg = render_svg(game, state, theme="auto")
    assert set(re.findall(r"var\((--wotd-\w+)\)", svg)) <= set(re.findall(r"(--wotd-\w+):#", svg))
    with pytest.raises(ValueError, match="theme must be 'light' or 'dark' in pixels"):
        render_rgb(game, state, theme="auto")
    with pytest.raises(ValueError, match="width must be at least 1"):
        render_rgb(game, state, width=0)


@pytest.mark.parametrize("pictures", [front.pictures, cases.pictures], ids=["board", "rules"])
def test_pictures_of_the_pages_are_up_to_date(pictures):
    for file, picture in pictures().items():
        assert file.read_text() == picture, "run `make docs-tables`"


def test_every_case_is_on_the_page_of_the_rules():
    page = (cases.FOLDER.parent / "rules.md").read_text()
    assert set(re.findall(r"\(rules/([\w-]+)\.svg\)", page)) == set(cases.CASES)
    assert {file.name for file in cases.FOLDER.iterdir()} == {file.name for file in cases.pictures()}


def test_rooms_are_drawn_as_the_import_contract_has_them():
    assert rooms.PICTURE.read_text() == rooms.picture(), "run `make docs-tables`"
    drawn = {room for floor in rooms.layers() for room in floor}
    assert {"core", "cli"} <= drawn
    page = rooms.PICTURE.with_name("design.md").read_text()
    rows = set(re.findall(r"^\| \[wotd_env/(\w+)/\]", page, re.MULTILINE))
    folders = {file.parent.name for file in (rooms.ROOT / "wotd_env").glob("*/__init__.py")}
    assert rows == folders <= drawn, (
        "each room has a row in docs/design.md, and a place in the import contract"
    )


# ------------------------------------------------------------------------------------------------ pixels


@pytest.mark.parametrize("width", [300, 640, 1200])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_pixels_are_those_of_the_whole_picture(width, theme):
    import resvg_py
    from PIL import Image

    game, states, _ = played(VARIANTS[3])
    for state, before in ((states[60:61], states[59:60]), (states[-1:], states[-2:-1])):
        svg = render_svg(game, state, before, theme=theme, width=width)
        image = Image.open(io.BytesIO(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True)))
        whole = np.asarray(image.convert("RGB")).astype(int)
        pixels = render_rgb(game, state, before, theme=theme, width=width)
        assert pixels.shape == (width * 3 // 4, width, 3)
        assert pixels.dtype == np.uint8
        difference = np.abs(whole - pixels)
        assert difference.mean() < 0.1
        assert (difference > 20).any(2).mean() < 0.0005  # thin lines that meet in one pixel


def test_pictures_are_the_callers_own():
    game, state = Game(), Game().reset(1, seed=0)
    first = render_rgb(game, state)
    first[:] = 0
    assert render_rgb(game, state).any()


# ------------------------------------------------------------------------------------------------ environments

makers = pytest.mark.parametrize(
    "make",
    [way_of_the_dragon_v0.env, way_of_the_dragon_v0.raw_env, WayOfTheDragonEnv, WayOfTheDragonVectorEnv],
    ids=["env", "raw_env", "single", "vector"],
)


@makers
@pytest.mark.parametrize("mode", RENDER_MODES)
def test_all_environments_take_all_modes(make, mode, hidden_window):
    env = make(render_mode=mode, players=3, powers="own")
    assert mode in env.metadata["render_modes"]
    env.reset(seed=0)
    picture = env.render()
    if make is WayOfTheDragonVectorEnv and mode != "human":
        (picture,) = picture
    kinds = {"human": type(None), "rgb_array": np.ndarray}
    assert type(picture) is kinds.get(mode, str)
    env.close()


def test_pictures_of_an_environment_mark_what_has_moved():
    env = way_of_the_dragon_v0.raw_env(render_mode="svg")
    env.reset(seed=0)
    before = env.record
    assert env.render() == render_svg(env.game, before)
    while (env.record["pieces"] == before["pieces"]).all():
        env.step(int(env.action_masks().nonzero()[0][-1]))
    marked = render_svg(env.game, env.record, before)
    assert env.render() == marked != render_svg(env.game, env.record)
    assert env.render() == marked  # until something moves again
    env.reset(seed=1)
    assert env.render() == render_svg(env.game, env.record)


def test_a_viewer_remembers_each_game_of_a_batch():
    game = Game()
    state = board(Rules(), water="a......|.....", dice="fire " * 5).repeat(2)
    viewer, before = Viewer(game, "svg"), state.copy()
    viewer.render(state)
    state["pieces"][1, 0, 0] = 5
    expected = (render_svg(game, state[:1]), render_svg(game, state[1:], before[1:]))
    assert viewer.render(state) == expected
    assert viewer.render(state.copy()) == expected


def test_a_new_renderer_is_an_entry(monkeypatch):
    monkeypatch.setitem(RENDERERS, "turn", lambda game, states, before: states["turn"].tolist())
    assert Viewer(Game(), "turn").render(Game().reset(2, seed=0)) == [0, 0]


def test_sb3_gets_pixels_where_it_asks_for_them_first():
    from stable_baselines3.common.env_util import make_vec_env

    env = make_vec_env(ID, n_envs=2, seed=0)
    assert env.get_attr("render_mode") == ["rgb_array"] * 2
    env.reset()
    assert [image.shape for image in env.get_images() if image is not None] == [(480, 640, 3)] * 2
    tiled = env.render("rgb_array")
    assert tiled is not None
    assert tiled.shape == (960, 640, 3)


def test_gymnasium_shows_pixels_in_a_window(hidden_window):
    env = gymnasium.wrappers.HumanRendering(gymnasium.make(ID, render_mode="rgb_array"))
    _, info = env.reset(seed=0)
    env.step(int(info["action_mask"].argmax()))
    assert screen().shape == (480, 640, 3)
    env.close()


def test_gymnasium_records_videos(tmp_path, monkeypatch):
    # MoviePy, which writes what Gymnasium has recorded, wants an old Pillow: this stands in for it.
    written: list[Any] = []

    class Clip:
        def __init__(self, frames: list[np.ndarray], fps: int) -> None:
            written.append((frames, fps))

        def write_videofile(self, path: str, logger: object) -> None:
            written.append(path)

    module = types.ModuleType("moviepy.video.io.ImageSequenceClip")
    module.ImageSequenceClip = Clip  # type: ignore[attr-defined]
    for name in ("moviepy", "moviepy.video", "moviepy.video.io", module.__name__):
        monkeypatch.setitem(sys.modules, name, module)
    env = gymnasium.make(ID, render_mode="rgb_array")
    env = gymnasium.wrappers.RecordVideo(env, str(tmp_path / "videos"), video_length=3)
    _, info = env.reset(seed=0)
    for _ in range(3):
        *_, info = env.step(int(info["action_mask"].argmax()))
    env.close()
    (frames, fps), path = written
    assert [frame.shape for frame in frames] == [(480, 640, 3)] * len(frames)
    assert len(frames) == 3 + 1
    assert fps == env.metadata["render_fps"]
    assert path.endswith(".mp4")


# ------------------------------------------------------------------------------------------------ the window


def screen() -> np.ndarray:
    """What the window shows, uint8 (height, width, 3)."""
    import pygame

    surface = pygame.display.get_surface()
    assert surface is not None
    return pygame.surfarray.array3d(surface).swapaxes(0, 1)


def test_the_window_shows_the_same_pixels(hidden_window):
    env = WayOfTheDragonEnv(render_mode="human")
    env.reset(seed=0)
    np.testing.assert_array_equal(screen(), render_rgb(env.game, env.record, width=800))
    before = env.record
    env.step(0)
    np.testing.assert_array_equal(screen(), render_rgb(env.game, env.record, before, width=800))
    assert env.render() is None


def test_many_games_share_the_window(hidden_window):
    env = WayOfTheDragonVectorEnv(100, render_mode="human")
    env.reset(seed=0)
    np.testing.assert_array_equal(screen()[:150, :200], render_rgb(env.game, env.record[:1], width=200))
    np.testing.assert_array_equal(screen()[450:, 600:], render_rgb(env.game, env.record[15:16], width=200))


def test_the_window_can_be_resized_and_shut(hidden_window):
    import pygame

    env = WayOfTheDragonEnv(render_mode="human")
    env.reset(seed=0)
    pygame.display.set_mode((1000, 300), pygame.RESIZABLE)
    env.render()
    np.testing.assert_array_equal(screen()[:, 300:700], render_rgb(env.game, env.record, width=400))
    assert not screen()[:, :300].any()
    pygame.event.post(pygame.event.Event(pygame.QUIT))
    env.render()
    env.step(0)
    assert not pygame.display.get_init()  # it stays shut ...
    env.close()
    env.render()
    assert pygame.display.get_init()  # ... until the environment was closed


def test_copies_of_an_environment_with_a_window(hidden_window):
    env = WayOfTheDragonEnv(render_mode="human")
    env.reset(seed=0)
    for again in (copy.deepcopy(env), pickle.loads(pickle.dumps(env))):
        again.step(0)
        assert again.render() is None


def test_without_a_display_the_cure_is_named(monkeypatch):
    monkeypatch.setenv("SDL_VIDEODRIVER", "none such")
    with pytest.raises(RuntimeError, match=r"use render_mode='rgb_array', or set .* SDL_VIDEODRIVER=dummy"):
        WayOfTheDragonEnv(render_mode="human").reset(seed=0)


# ------------------------------------------------------------------------------------------------ the extra


@pytest.mark.parametrize("missing", ["resvg_py", "PIL"])
def test_pixels_name_the_extra_that_is_missing(missing, monkeypatch):
    monkeypatch.setitem(sys.modules, missing, None)
    env = WayOfTheDragonEnv(render_mode="rgb_array", spaces=2)  # learners that never draw need no extra
    env.reset(seed=0)
    with pytest.raises(ImportError, match=rf"{missing}, part of the extra render"):
        render_rgb(env.game, env.record, width=77)


@pytest.mark.parametrize(("missing", "ending"), [("PIL", "gif"), ("av", "mp4")])
def test_recordings_name_the_extra_that_is_missing(missing, ending, monkeypatch, tmp_path):
    game, states, actions = played(Rules(), most=2)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ImportError, match=rf"{missing}, part of the extra render"):
        Replay(game, states, actions).save(tmp_path / f"game.{ending}")
    assert not list(tmp_path.iterdir())


def test_a_window_names_the_extra_that_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(DependencyNotInstalled, match="a window needs pygame, part of the extra render"):
        WayOfTheDragonEnv(render_mode="human").reset(seed=0)


# ------------------------------------------------------------------------------------------------ notebooks


def test_notebooks_show_a_batch_as_a_grid():
    game = Game()
    states = game.reset(20, seed=0)
    shown = show(game, states)
    page = ElementTree.fromstring(f"<div>{shown._repr_html_()}</div>")
    assert len(list(page.iter("{http://www.w3.org/2000/svg}svg"))) == 16
    assert "and 4 more" in "".join(page.itertext())
    assert repr(shown) == "<pictures of 16 games, 4 more are not drawn>"
    assert render_svg(game, states[3:4], theme="dark") in show(game, states, theme="dark")._repr_html_()
    assert repr(show(game, states[:0])) == "<pictures of 0 games>"


def content(page: str) -> dict:
    (data,) = re.findall(r'<script id="data" type="application/json">(.*?)</script>', page, flags=re.DOTALL)
    whole: dict = json.loads(data)
    return whole


@variants
def test_a_page_holds_the_whole_game_and_asks_for_nothing(rules):
    game, states, actions = played(rules, most=120)
    replay = Replay(game, states, actions)
    page = replay.html()
    data = content(page)
    assert len(data["frames"]) == len(data["captions"]) == len(data["turns"]) == len(states)
    before = states[:1]
    for i in range(len(states)):
        if i and (states[i]["pieces"] != states[i - 1]["pieces"]).any():
            before = states[i - 1 : i]
        action = actions[i] if i < len(actions) else None
        marks = scene(game, states[i : i + 1], before, action, "auto")
        places = [data["places"][place] for place in data["frames"][i]]
        assert [data["drawings"][place[0]] for place in places] == [mark.svg for mark in marks]
        assert [float(place[1]) for place in places] == pytest.approx([mark.x for mark in marks], abs=0.01)
    assert data["captions"][0].startswith(render_text(game, states[:1]).partition("\n")[0])
    assert not re.search(r"(src|href)=[\"'](?!#)|url\(|@import|https?://(?!www\.w3\.org)", page)
    assert "default-src 'none'" in page
    assert "{{" not in page


def test_a_page_is_small():
    game, states, actions = played(Rules(players=5, powers="own", spaces=3))
    page = Replay(game, states, actions).html()
    assert len(page) < 100_000 + 1000 * len(states)


def test_a_page_allows_its_own_scripts_alone():
    import base64
    import hashlib

    page = Replay(*played(Rules(), most=3)).html("dark")
    for kind, policy in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{policy} 'sha256-{digest}'" in page
    assert "color-scheme: dark" in page


def test_notebooks_show_a_game_in_a_frame():
    replay = Replay(*played(Rules(), most=3))
    frame = ElementTree.fromstring(replay._repr_html_())
    assert frame.attrib["srcdoc"] == replay.html().replace("\n", " ")  # by the rules of XML
    assert frame.attrib["sandbox"] == "allow-scripts"
    assert repr(replay) == "<replay of 4 positions>"


# ------------------------------------------------------------------------------------------------ recordings


def test_a_gif_has_a_picture_for_every_position(tmp_path):
    from PIL import Image, ImageSequence

    game, states, actions = played(Rules(), most=6)
    Replay(game, states, actions).save(tmp_path / "game.gif", width=300, fps=4)
    with Image.open(tmp_path / "game.gif") as gif:
        assert len(list(ImageSequence.Iterator(gif))) == len(states)
        assert gif.size == (300, 225)
        assert gif.info["duration"] == 250
        for i in (0, len(states) - 1):
            gif.seek(i)
            shown = np.asarray(gif.convert("RGB")).astype(int)
            wanted = render_rgb(game, states[i : i + 1], states[:1], (*actions, None)[i], width=300)
            assert np.abs(shown - wanted).mean() < 4  # a GIF has 256 colours


def test_an_mp4_has_a_picture_for_every_position(tmp_path):
    import av

    game, states, actions = played(Rules(), most=6)
    Replay(game, states, actions).save(tmp_path / "game.mp4", width=301, theme="dark")
    with av.open(tmp_path / "game.mp4") as film:
        pictures = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(pictures) == len(states)
    assert pictures[0].shape == (224, 300, 3)  # H.264 wants even sizes
    wanted = render_rgb(game, states[:1], None, actions[0], "dark", width=301)[:224, :300]
    assert np.abs(pictures[0].astype(int) - wanted).mean() < 8


def test_threads_may_save_one_file_at_once(tmp_path, monkeypatch):
    saved, at_once, replace = Replay(*played(Rules(), most=2)), threading.Barrier(2), Path.replace

    def wait_for_the_other(part, target):
        at_once.wait()  # both have written their parts, and none is the file yet
        return replace(part, target)

    monkeypatch.setattr(Path, "replace", wait_for_the_other)
    with ThreadPoolExecutor(2) as threads:
        for call in [threads.submit(saved.save, tmp_path / "game.html") for _ in range(2)]:
            call.result()
    assert [file.name for file in tmp_path.iterdir()] == ["game.html"]


def test_a_file_that_cannot_be_made_leaves_the_old_one(tmp_path, monkeypatch):
    replay = Replay(*played(Rules(), most=2))
    target = tmp_path / "game.gif"
    target.write_text("mine")
    monkeypatch.setattr("wotd_env.rendering.replay.render_rgb", lambda *arguments, **options: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        replay.save(target)
    assert [file.name for file in tmp_path.iterdir()] == ["game.gif"]
    assert target.read_text() == "mine"
    with pytest.raises(ValueError, match=r"must end in \.html, \.gif, \.mp4, got .*game\.avi"):
        replay.save(tmp_path / "game.avi")
    with pytest.raises(ValueError, match="theme must be"):
        replay.save(tmp_path / "game.html", theme="sepia")


def test_a_recorded_game_is_played_again():
    rules = Rules(players=3, powers="any")
    _, states, actions = played(rules, seed=5, most=30)
    replay = replay_game(notation.record_game(rules, actions, seed=5))
    asked = replay.game.legal_actions(replay.states).sum(1) > 1  # forced moves are shown too
    np.testing.assert_array_equal(replay.states[asked], states)
    assert [replay.actions[i] for i in np.flatnonzero(asked)] == [*actions, None]


def test_wrong_recordings_are_named():
    game, states, actions = played(Rules(), most=4)
    with pytest.raises(ValueError, match="at least one position"):
        Replay(game, states[:0])
    with pytest.raises(ValueError, match="one for each of the 5 positions, or for all but the last, got 2"):
        Replay(game, states, actions[:2])
    with pytest.raises(ValueError, match="player must be"):
        Replay(game, Game(Rules(players=5)).reset(1, seed=0, starting_player=4))
    assert Replay(game, states).actions == [None] * 5
    assert states.dtype == STATE
