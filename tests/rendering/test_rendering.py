"""The text rendering of positions."""

import re
import textwrap

import numpy as np
import pytest

from tests.helpers.pictures import played, variants
from tests.helpers.positions import board
from wotd_env import Game, Phase, Rules, way_of_the_dragon_v0
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.rendering import render_text
from wotd_env.rendering.text import seat_names

POWERS = Rules(players=3, spaces=4, powers="own", dead_pieces=2)


def text_of(rules: Rules, state: np.ndarray) -> str:
    return render_text(Game(rules), state)


def test_render_text_draws_the_expected_layout():
    state = board(
        POWERS,
        water="a.b. | ..c..",
        fire=".#.. | .....",
        metal="..a. | ...b.",
        wood="...# | a....",
        dice="water fire fire wood dragon",
        phase=Phase.KEEP,
        player=1,
        turn=8,
        used=0b100,
    )
    expected = """\
        Turn 9: player_1 (B) chooses which dice to keep, 2 re-rolls left
        Dice: [water]  [fire]  [fire]  [wood]  [DRAGON]

                1  2  3  4 | +1 +2 +3 +4 +5 |  off the board
        water   A  .  B  . |  .  .  C  .  . |
        fire    .  #  .  . |  .  .  .  .  . |  A B C
        metal   .  .  A  . |  .  .  .  B  . |  C
        earth   .  .  .  . |  .  .  .  .  . |  A B C
        wood    .  .  .  # |  A  .  .  .  . |  B C

          A  player_0  water, black tortoise   1 point   fear
        > B  player_1  fire, red bird          4 points  rebirth
          C  player_2  metal, white tiger      3 points  eye of the tiger (used)
          #  dead piece"""
    assert text_of(POWERS, state) == textwrap.dedent(expected)


def test_render_text_shows_the_given_names():
    state = board(Rules(), water="a...... | .....", player=1)
    text = render_text(Game(Rules()), state, names=["me", "planner"])
    assert text.startswith("Turn 1: planner (B) rolls the dice")
    assert text.endswith(
        "  A  me       water, black tortoise   0 points\n> B  planner  fire, red bird          0 points"
    )


def test_seat_names_are_short_and_escaped():
    assert seat_names(None, 2) == ["player_0", "player_1"]
    assert seat_names(["me:Anna", "me", "?", "td"], 4) == ["Anna", "me", "player_2", "td"]
    assert seat_names(["\x1b[2Jtd", "td"], 2) == [r"'\x1b[2Jtd'", "td"]
    with pytest.raises(
        ValueError, match=r"names must be a list of 2 strings, one for each seat, got \['td'\]"
    ):
        seat_names(["td"], 2)


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({}, "Turn 1: player_0 (A) rolls the dice"),
        (
            {"phase": Phase.KEEP, "rolls_left": 1},
            "Turn 1: player_0 (A) chooses which dice to keep, 1 re-roll left",
        ),
        (
            {"phase": Phase.KEEP, "rolls_left": 0, "color": [2, 1, 0, 3, 4]},
            "Turn 1: player_0 (A) may re-roll once more with the eye of the tiger",
        ),
        ({"phase": Phase.MOVE}, "Turn 1: player_0 (A) moves"),
        ({"phase": Phase.EXTRA, "perfection": 1}, "Turn 1: player_0 (A) may take an extra turn (perfection)"),
        (
            {"phase": Phase.OVER, "expired": 1, "turn": 1000},
            "The game is over after 1000 turns: the turn limit is reached, nobody wins.",
        ),
        (
            {"phase": Phase.OVER, "wood": "....|a....", "turn": 40},
            "The game is over in turn 41: player_0 (A) wins with 1 point.",
        ),
        (
            {"phase": Phase.OVER, "wood": "....|a....", "earth": "....|b....", "turn": 40},
            "The game is over in turn 41: player_0 (A) and player_1 (B) share the victory.",
        ),
    ],
)
def test_the_first_line_describes_the_phase(fields, line):
    rolled = fields.get("phase") in (Phase.KEEP, Phase.MOVE, Phase.EXTRA)
    state = board(POWERS, dice="fire fire fire fire fire" if rolled else None, **fields)
    for name, value in fields.items():
        if name in (state.dtype.names or ()):
            state[name] = value
    assert text_of(POWERS, state).splitlines()[0] == line


def test_unrolled_dice_are_shown_as_unknown():
    state = board(Rules())
    state["dice"] = [1, 5, -1, -1, -1]
    assert "Dice: [fire]  [DRAGON]  [?]  [?]  [?]" in text_of(Rules(), state)


@variants
def test_the_text_shows_all_pieces_and_the_seat_to_act(rules):
    game, states, _ = played(rules)
    for state in states[:-1].reshape(-1, 1):
        lines = render_text(game, state).splitlines()
        assert len({line.index("|") for line in lines[3:9]}) == 1
        assert max(map(len, lines)) <= 110
        for seat in range(rules.players):
            assert sum(line[6:].count("ABCDE"[seat]) for line in lines[4:9]) == 5
        assert sum(line.count("#") for line in lines[4:9]) == rules.dead_pieces
        assert [line[0] == ">" for line in lines[10 : 10 + rules.players]].index(True) == state["player"][0]


@pytest.mark.parametrize(
    "make",
    [way_of_the_dragon_v0.env, way_of_the_dragon_v0.raw_env, WayOfTheDragonEnv],
    ids=["env", "raw_env", "single"],
)
def test_environments_render_the_text(make, capsys):
    env = make(render_mode="ansi")
    env.reset(seed=0)
    assert env.render() == render_text(Game(), env.record)
    assert capsys.readouterr().out == ""


def test_colors_do_not_change_the_text():
    game = Game(POWERS)
    state = game.reset(1, seed=3)
    text = render_text(game, state, color=True)
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == render_text(game, state)
    colored = re.findall(r"\x1b\[[0-9;]+m(.+?)\x1b\[0m", text)
    # five pieces and the list of players
    assert colored.count("A") == colored.count("B") == colored.count("C") == 5 + 1
    assert colored.count("#") == 2 + 1
