"""Replays of recorded games as HTML pages, GIF and MP4."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.helpers.pictures import check_apart, check_inside, content, played, ties, variants
from wotd_env import STATE, Game, Rules, notation
from wotd_env.rendering import Replay, render_rgb, render_svg, render_text, replay_game, roll_off_text
from wotd_env.rendering.scene import scene
from wotd_env.rendering.text import seat_names


def test_the_first_picture_of_a_replay_shows_the_roll_off():
    rules = Rules(players=3)
    game, seed, roll_off = ties(rules, 2)
    recorded = notation.record_game(rules, [31], seed=seed)
    replay = replay_game(recorded)
    data = content(replay.html())
    first, second = data["captions"][:2]
    assert first.startswith("Roll-off for the start, by dragons: A [")
    assert ". A tie, so once more: " in first
    assert "Roll-off" not in second
    expected, without = (
        render_rgb(game, recorded.states[:1], None, 31, roll_off=rounds) for rounds in (roll_off, None)
    )
    assert (next(replay.pictures()) == expected).all()
    assert (expected != without).any()
    svg = render_svg(game, recorded.states[:1], roll_off=roll_off)
    assert roll_off_text(roll_off)[1] in svg
    unknown = replay_game(recorded._replace(seed=None))
    assert "Roll-off" not in content(unknown.html())["captions"][0]


NAMES = ("me:Anna", "planner", "sb3:runs/2026-01-01/model.zip", "Zoë (2)", "x" * 500)


@pytest.mark.parametrize("players", range(2, 6))
def test_replays_show_the_names_of_the_players(players):
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


@variants
def test_a_page_contains_the_game_and_loads_nothing(rules):
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


def test_the_size_of_a_page_is_limited():
    game, states, actions = played(Rules(players=5, powers="own", spaces=3))
    page = Replay(game, states, actions).html()
    assert len(page) < 100_000 + 1000 * len(states)


def test_names_that_look_like_marks_of_the_template_stay_text():
    names = ["{{SCRIPT}}", "{{DATA}} {{STYLE}} {{POLICY}} \\1"]
    game = Game(Rules())
    page = Replay(game, game.reset(1, seed=0), names=names).html()
    captions = content(page)["captions"]
    assert names[0] in captions[0] or names[1] in captions[0]
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert page.count(script) == 1


def test_a_page_allows_only_its_own_script_and_style():
    import base64
    import hashlib

    page = Replay(*played(Rules(), most=3)).html("dark")
    for kind, policy in (("script", "script-src"), ("style", "style-src")):
        (text,) = re.findall(rf"<{kind}>(.*?)</{kind}>", page, flags=re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{policy} 'sha256-{digest}'" in page
    assert "color-scheme: dark" in page


def test_notebooks_show_a_game_in_a_sandboxed_frame():
    replay = Replay(*played(Rules(), most=3))
    frame = ElementTree.fromstring(replay._repr_html_())
    assert frame.attrib["srcdoc"] == replay.html().replace("\n", " ")  # XML normalizes newlines in attributes
    assert frame.attrib["sandbox"] == "allow-scripts"
    assert repr(replay) == "<replay of 4 positions>"


# ------------------------------------------------------------------------------------------------ recordings


def test_a_gif_has_one_picture_per_position(tmp_path):
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
            expected = render_rgb(game, states[i : i + 1], states[:1], (*actions, None)[i], width=300)
            assert np.abs(shown - expected).mean() < 4  # a GIF has 256 colors


def test_an_mp4_has_one_picture_per_position(tmp_path):
    import av

    game, states, actions = played(Rules(), most=6)
    Replay(game, states, actions).save(tmp_path / "game.mp4", width=301, theme="dark")
    with av.open(tmp_path / "game.mp4") as film:
        pictures = [frame.to_ndarray(format="rgb24") for frame in film.decode(video=0)]
    assert len(pictures) == len(states)
    assert pictures[0].shape == (224, 300, 3)  # H.264 needs even sizes
    expected = render_rgb(game, states[:1], None, actions[0], "dark", width=301)[:224, :300]
    assert np.abs(pictures[0].astype(int) - expected).mean() < 8


def test_a_failed_save_keeps_the_old_file(tmp_path, monkeypatch):
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


def test_replay_game_reproduces_a_recorded_game():
    rules = Rules(players=3, powers="any")
    _, states, actions = played(rules, seed=5, most=30)
    replay = replay_game(notation.record_game(rules, actions, seed=5))
    asked = replay.game.legal_actions(replay.states).sum(1) > 1  # forced moves are shown too
    np.testing.assert_array_equal(replay.states[asked], states)
    assert [replay.actions[i] for i in np.flatnonzero(asked)] == [*actions, None]


def test_invalid_replays_raise_errors():
    game, states, actions = played(Rules(), most=4)
    with pytest.raises(ValueError, match="at least one position"):
        Replay(game, states[:0])
    with pytest.raises(ValueError, match="one for each of the 5 positions, or for all but the last, got 2"):
        Replay(game, states, actions[:2])
    with pytest.raises(ValueError, match="player must be"):
        Replay(game, Game(Rules(players=5)).reset(1, seed=0, starting_player=4))
    assert Replay(game, states).actions == [None] * 5
    assert states.dtype == STATE
