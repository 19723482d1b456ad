"""Positions and games as text: exact round trips, and errors for malformed text."""

import functools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers import ROOT
from tests.helpers.positions import board
from tests.helpers.strategies import any_rules, decisions
from wotd_env import STATE, Game, IllegalActionError, Phase, Rules, notation

LINE = "..A....|B..../#B.....|A..../.......|...../.......|...../.......|..... wf(meo) 12 A keep 2 wwfmd"
seeds = st.integers(0, 2**32)


def random_game(rules: Rules, seed: int, limit: int = 80) -> notation.RecordedGame:
    """Return the first decisions of a game between random players; they often stop rolling early."""
    game, state, rng = Game(rules), Game(rules).reset(1, seed=seed), np.random.default_rng(seed)
    actions: list[int] = []
    while len(actions) < limit and not game.is_over(state)[0]:
        weight = game.legal_actions(state) * rng.random(game.num_actions)
        weight[:, 31] *= 10
        actions.append(int(weight.argmax()))
        game.step(state, actions[-1:])
    return notation.record_game(
        rules, actions, seed=seed, players=[f"p{seat}" for seat in range(rules.players)]
    )


# -------------------------------------------------------------------------------------------------------- positions


def test_a_position_line_contains_all_visible_fields():
    rules, state = notation.parse_position(LINE)
    assert rules == Rules(dead_pieces=1)
    expected = board(
        rules,
        water="..a....|b....",
        fire="#b.....|a....",
        dice="water water fire metal dragon",
        turn=11,
        phase=Phase.KEEP,
    )
    expected["rng"] = 0
    assert state.tobytes() == expected.tobytes()
    assert notation.position(rules, state) == LINE


@given(any_rules(), seeds)
def test_positions_survive_the_round_trip_bit_for_bit(rules: Rules, seed: int) -> None:
    steps = list(decisions(rules, seed))
    for _, state, _, after in steps[:: max(1, len(steps) // 6)]:
        for one in (state[:1], after[1:2], after[2:3]):
            line = notation.position(rules, one, stream=True)
            assert "\n" not in line
            read_rules, read = notation.parse_position(line)
            assert read_rules == rules
            assert read.tobytes() == one.tobytes()
            short = notation.position(rules, one)
            assert line.startswith(short)
            one = one.copy()
            one["rng"] = 0
            assert notation.parse_position(short)[1].tobytes() == one.tobytes()


def test_rarely_set_fields_survive_the_round_trip():
    rules = Rules(
        players=4, spaces=0, powers="any", start=3, max_turns=65535, colors=("wood", "fire", "water", "metal")
    )
    state = board(rules, used=0b1010, perfection=1, phase=Phase.EXTRA, turn=65534, player=3)
    state["dice"] = 5
    line = notation.position(rules, state, stream=True)
    assert line.endswith(
        " wfme(o) 65535 D extra 0 ddddd used=BD perfection powers=any colors=wood,fire,water,metal start=3 "
        "max_turns=65535 stream=0000000000000001"
    )
    over = state.copy()
    over["phase"], over["expired"], over["turn"], over["perfection"] = Phase.OVER, 1, 65535, 0
    wall = "##########|....."
    full = board(Rules(players=2, spaces=10), water=wall, fire=wall, metal=wall)
    for which, one in ((rules, state), (rules, over), (Rules(spaces=10), full)):
        read_rules, read = notation.parse_position(notation.position(which, one, stream=True))
        assert (read_rules, read.tobytes()) == (which, one.tobytes())


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (LINE, "", "a position must begin with board, colors, turn, seat, phase, re-rolls, dice, got ''"),
        (LINE, "x " * 600, "a position must be one line of at most 1,000 characters, got 1,200 characters"),
        (
            "|B..../#B",
            "|B....#B",
            "board must be 5 paths, water, fire, metal, earth, wood, with / between them",
        ),
        ("A....|B", "A....B", r"path 1 \(water\) must be 0 to 10 plain spaces, then | and 5 numbered ones"),
        ("|A....", "|A...", r"path 2 \(fire\) must be 0 to 10 plain spaces"),
        ("#B.....", "#B......", r"path 2 \(fire\) must be as long as the first path, with 7 plain"),
        ("A....|B", "A..A.|B", r"path 1 \(water\) must be made of \. and the letters ABCDE, each once"),
        ("|A....", "|#....", "and # on plain spaces, got '#B.....|#....'"),
        (
            "|A....",
            "|C....",
            r"position: pieces must be spaces from 0 to 12, and 0 for seats that do not play",
        ),
        ("wf(meo)", "wf(me)", r"colors must be the colors wfmeo in any order, .* as in wf\(meo\), got"),
        ("wf(meo)", "wf(meo))", "colors must be the colors"),
        ("wf(meo)", "w(fmeo)", "colors must be the colors of 2 to 5 seats before the bracket"),
        (" 12 ", " 0 ", "turn must be a number from 1 to 65536, got '0'"),
        (" 12 ", " \u0661 ", "turn must be a number"),
        (" 12 ", f" {'9' * 900} ", "turn must be a number from 1 to 65536, got '9+\\.\\.\\.'$"),
        (" 12 ", " 1001 ", "position: turn must be below max_turns = 1000"),
        (" A ", " C ", "seat must be one of 'A', 'B', got 'C'"),
        ("keep", "hold", "phase must be one of 'chance', 'keep', 'move', 'extra', 'over', got 'hold'"),
        ("keep 2", "keep 3", "re-rolls must be a number from 0 to 2, got '3'"),
        ("keep 2", "keep 0", "position: rolls_left must be 1 or 2 in phase KEEP"),
        ("wwfmd", "wwfm", r"dice must be 5 letters out of w, f, m, e, o, d, \?, got 'wwfm'"),
        ("wwfmd", "wwfm?", "position: dice must be five faces"),
        ("wwfmd", "wwfmd used=BA", "used must be the seats that have used their power, as in used=AC"),
        ("wwfmd", "wwfmd used=C", "position: used must be from 0 to 3"),
        ("wwfmd", "wwfmd expired", "position: expired must be 0"),
        ("wwfmd", "wwfmd stream=12", "stream must be 16 hexadecimal digits"),
        ("wwfmd", "wwfmd powers=all", "position: powers must be one of 'none', 'own', 'any', got 'all'"),
        ("wwfmd", "wwfmd players=3", "words after the dice must be used=SEATS, .* got 'players=3'"),
        ("wwfmd", "wwfmd immunity immunity", "position: immunity must be given once, got it twice"),
        ("wwfmd", "wwfmd dead_pieces=16", "position: dead_pieces must be an integer from 0 to 15"),
    ],
)
def test_malformed_positions_raise_specific_errors(old: str, new: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        notation.parse_position(LINE.replace(old, new, 1))
    assert len(str(caught.value)) < 400


def test_dice_may_be_written_in_any_order():
    line = LINE.replace("wwfmd", "dmwfw")
    assert notation.position(*notation.parse_position(line)) == LINE


@given(
    st.text(max_size=40) | st.binary(max_size=40).map(bytes.hex), st.integers(0, len(LINE)), st.integers(0, 9)
)
def test_mutated_positions_are_valid_or_raise_value_error(text: str, at: int, cut: int) -> None:
    try:
        rules, state = notation.parse_position(LINE[:at] + text + LINE[at + cut :])
    except ValueError:
        return
    again = notation.parse_position(notation.position(rules, state, stream=True))
    assert (again[0], again[1].tobytes()) == (rules, state.tobytes())


def test_illegal_action_errors_contain_the_position():
    game, state = Game(), Game().reset(1, seed=3)
    with pytest.raises(IllegalActionError) as caught:
        game.step(state, [54])
    found = re.search(r'position: "(.*)"$', str(caught.value))
    assert found
    assert found[1] == notation.position(game.rules, state)


# -------------------------------------------------------------------------------------------------------- decisions


@pytest.mark.parametrize(
    ("drawn", "fields", "words"),
    [
        (
            {"dice": "water water fire metal dragon", "phase": Phase.KEEP},
            {},
            {"none": 0, "ww": 3, "d": 16, "stop": 31},
        ),
        (
            {
                "dice": "water water fire metal dragon",
                "phase": Phase.KEEP,
                "rolls_left": 0,
                "color": [2, 0, 1, 3, 4],
            },
            {"powers": "own"},
            {"none+metal": 0, "wwf+metal": 7, "stop": 31},
        ),
        ({"water": "a....", "dice": "water water fire metal dragon"}, {}, {"w3": 32, "f1": 33, "m1": 34}),
        (
            {"water": ".a...", "dice": "water water fire metal dragon"},
            {"powers": "any"},
            {"fear": 51, "w|1+wood": 37},
        ),
        ({"water": "a.b..", "dice": "water water fire fire fire"}, {"powers": "any"}, {"w4+earth": 42}),
        ({"dice": "water fire metal earth wood"}, {"powers": "any"}, {"equilibrium": 47, "fear": 51}),
        ({"dice": "water fire metal earth dragon"}, {"powers": "any"}, {"equilibrium+wood": 48}),
        (
            {"water": "b....", "dice": "water fire metal earth wood"},
            {"powers": "any"},
            {"equilibrium+earth": 49},
        ),
        ({"water": "....|a....", "dice": "water water water water water"}, {}, {"pass": 50}),
        (
            {"phase": Phase.EXTRA, "perfection": 1},
            {"powers": "any"},
            {"end": 52, "perfection": 53, "rebirth": 54},
        ),
        (
            {"water": "abc..", "player": 1, "dice": "water dragon dragon dragon dragon"},
            {"players": 3},
            {"wB-C": 55, "wA-B": 56, "wA-C": 57},
        ),
    ],
)
def test_actions_are_written_and_parsed_as_words(
    drawn: dict[str, Any], fields: dict[str, Any], words: dict[str, int]
) -> None:
    rules = Rules(**({"spaces": 4} | fields))
    for path in ("water", "fire"):
        if path in drawn:
            drawn[path] = drawn[path].ljust(rules.spaces + 5 + ("|" in drawn[path]), ".")
    state = board(rules, **drawn)
    if drawn.get("phase") == Phase.EXTRA:
        state["dice"] = 0
    game = Game(rules)
    for word, action in words.items():
        assert notation.action_text(game, state, action) == word
        assert notation.parse_action(game, state, word) == action


@given(any_rules(), seeds)
def test_legal_actions_have_distinct_words(rules: Rules, seed: int) -> None:
    for game, state, _, _ in list(decisions(rules, seed))[::20]:
        legal = np.flatnonzero(game.legal_actions(state[:1])[0]).tolist()
        if game.is_over(state)[0]:
            continue
        words = [notation.action_text(game, state[:1], action) for action in legal]
        assert [notation.parse_action(game, state[:1], word) for word in words] == legal
        assert all(re.fullmatch(r"[A-Ea-z0-9|+-]{1,18}", word) for word in words)


def test_errors_for_unknown_action_words_list_the_legal_ones():
    game, state = Game(), board(Rules(), water="a......|.....", dice="water water fire metal dragon")
    with pytest.raises(ValueError, match="action must be one of w3, f1, m1, got 'w4'"):
        notation.parse_action(game, state, "w4")
    over = board(Rules(), dice="water water fire metal dragon", phase=Phase.OVER)
    with pytest.raises(ValueError, match="none, because the game is over"):
        notation.parse_action(game, over, "pass")
    with pytest.raises(ValueError, match="none, because a roll is due"):
        notation.parse_action(game, board(Rules()), "pass")
    keep = board(Rules(), dice="water water fire metal dragon", phase=Phase.KEEP)
    assert notation.parse_action(game, keep, "dfw") == notation.parse_action(game, keep, "wfd")


# ------------------------------------------------------------------------------------------------------------ games


@given(any_rules(), seeds)
def test_games_survive_the_round_trip_bit_for_bit(rules: Rules, seed: int) -> None:
    played = random_game(rules, seed)
    text = str(played)
    read = notation.parse_game(text)
    assert read.states.tobytes() == played.states.tobytes()
    assert read.actions.tolist() == played.actions.tolist()
    assert (read.rules, read.players, read.seed) == (rules, played.players, seed)
    assert str(read) == text

    # Without a seed, the dice come from the text.
    again = notation.parse_game(re.sub(r"\[Seed .*\]\n", "", text))
    assert (again.states["rng"] == 0).all()
    for name in STATE.names or ():
        assert name == "rng" or (again.states[name] == played.states[name]).all()
    # The random stream in the position replaces the seed.
    streamed = str(played._replace(seed=None))
    assert "stream=" in streamed
    assert notation.parse_game(streamed).states.tobytes() == played.states.tobytes()


def test_any_player_names_survive_the_round_trip(tmp_path):
    names = ('say "so" \\', "a\nb\r\u2028\x00 ; ]", "\ud800ß木")
    played = random_game(Rules(players=3), 1)._replace(players=names)
    notation.write_game(tmp_path / "game.txt", played)
    assert notation.read_game(tmp_path / "game.txt").players == names
    assert [file.name for file in tmp_path.iterdir()] == ["game.txt"]


BY_HAND = """
; a game of a wall and a runner

[Position "A|...../A|...../A|...../A|...../A|..... wf(meo) 1 B chance 2 ?????"] \r
; nobody knows who played

1. B [wwddd] stop w|1  ; 2. A [wwwww]
2. A
  [omefw]
    stop equilibrium\r
"""


def test_a_game_can_be_written_by_hand():
    game = notation.parse_game(BY_HAND)
    assert game.players == ("?", "?")
    assert game.actions.tolist() == [31, 32, 31, 47]
    assert game.states["pieces"][-1, :2].tolist() == [[1, 2, 2, 2, 2], [2, 0, 0, 0, 0]]
    assert str(game).splitlines()[-2:] == ["1. B [wwddd] stop w|1", "2. A [wfmeo] stop equilibrium"]
    with pytest.raises(ValueError, match="line 9: a roll must be five dice"):
        notation.parse_game(BY_HAND.replace("[omefw]", "[omefww]"))


def test_examples_in_the_notation_page_are_valid():
    page = (ROOT / "docs" / "reference" / "notation.md").read_text()
    *_, line, game = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)
    assert notation.position(*notation.parse_position(line)) == line.rstrip()
    assert notation.parse_game(game).seed == 11
    for line in re.findall(r'"(\S+\|.* keep .*|\S+\|.* move .*)"', page):
        notation.parse_position(line)


def test_expired_and_unfinished_games_have_distinct_results():
    rules = Rules(players=3, max_turns=2)
    assert '[Result "1/3-1/3-1/3"]\n[Points "0-0-0"]' in str(random_game(rules, 1))
    assert '[Result "*"]' in str(random_game(Rules(), 1, limit=3))
    whole = str(random_game(Rules(spaces=0), 3, limit=10_000))
    assert re.search(r'\[Result "(1-0|0-1)"\]', whole)


def test_records_contain_forced_decisions_for_either_skip_forced():
    rules = Rules(spaces=1)
    skipping, asking = Game(rules), Game(rules, skip_forced=False)
    records = []
    for game in (skipping, asking):
        state, actions = game.reset(1, seed=5), []
        while not game.is_over(state)[0]:
            legal = game.legal_actions(state)
            actions.append(int(legal.argmax() if legal.sum() == 1 else np.flatnonzero(legal[0])[-1]))
            game.step(state, actions[-1:])
        records.append(notation.record_game(rules, actions, seed=5))
    assert len(actions) == len(records[0].actions)
    assert str(records[0]) == str(records[1])


def damaged(old: str, new: str) -> str:
    """Return the text of a whole game with one occurrence of `old` replaced."""
    text = str(random_game(Rules(spaces=1), 4, limit=10_000))
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "[Position",
            "[Positon",
            r"line 1: a line of the header must be \[NAME \"...\"\] with one of the names Position",
        ),
        ('[A "', '[B "', "line 4: B must be given once, got it here and in line 3"),
        ('[A "', '[C "', "line 3: a seat must be one of A, B, got 'C'"),
        ('[A "p0"]', '[A "p0""]', "line 3: A must be a JSON string"),
        ('[A "p0"]', "[A p0]", "line 3: a line of the header must be"),
        ('[A "p0"]', f'[A "{"x" * 2000}"]', "line 3: a line of the header must be"),
        ("(meo) 1 ", "(meo) 2 ", "line 2: Seed must be the seed of a game with the first position"),
        ("(meo) 1 ", "(meo) x ", "line 1: turn must be a number"),
        (
            '[Seed "4"]',
            '[Seed "5"]',
            "line 2: Seed must be the seed of a game with the first position .*, got '5'",
        ),
        ('[Seed "4"]', '[Seed "-4"]', r"line 2: Seed must be a number from 0 to 2\*\*64 - 1, got '-4'"),
        ('[Seed "4"]', f'[Seed "{2**64}"]', "line 2: Seed must be an integer from 0 to"),
        ('[Result "', '[Result "1-', "line 5: Result must be .*, by the last position"),
        ('[Points "', '[Points "1', "line 6: Points must be"),
        ("\n2. ", "\n3. ", "line 9: the beginning of a turn must be 2., got '3.'"),
        ("\n1. ", "\n", "line 8: the beginning of a turn must be 1., got"),
        ("stop", "stpo", "line 8: action must be one of .*, stop, got 'stpo'"),
        ("stop", f"{'s' * 100_000}", "line 8: action must be one of .*, got 's+\\.\\.\\.'"),
        ("stop", "[wwwww]", "line 8: a roll must be .*, got '.wwwww.'"),
        ("stop", "[www", r"line 8: a roll must be five dice in brackets, as in \[wfmmd\], got '\[www'"),
    ],
)
def test_malformed_games_raise_errors_with_the_line_number(old: str, new: str, message: str) -> None:
    text = damaged(old, new)
    with pytest.raises(ValueError, match=message) as caught:
        notation.parse_game(text)
    assert len(str(caught.value)) < 500


def test_inconsistent_rolls_raise_specific_errors():
    text = str(random_game(Rules(), 4, limit=2))
    last = text.rstrip()[-7:]
    other = "[wwwww]" if last != "[wwwww]" else "[fffff]"
    with pytest.raises(ValueError, match=rf"a roll must be \{last[:-1]}\], by the seed or stream"):
        notation.parse_game(text.replace(last, other))
    game = '[Position ".|...../.|...../.|...../.|...../.|..... wf(meo) 1 A keep 2 wwwfd"]\n1. A www '
    for roll, message in (
        ("[wwfff]", "line 2: a roll must be one with the kept dice, www"),
        ("ww", r"line 2: the next word must be a roll, as in \[wfmmd\], got 'ww'"),
        ("[wwwff] [wwwff]", "line 2: a roll must be due"),
        ("[wwwxx]", "line 2: a roll must be 5 letters out of w, f, m, e, o, d, got 'wwwxx'"),
    ):
        with pytest.raises(ValueError, match=message):
            notation.parse_game(game + roll)
    with pytest.raises(
        ValueError, match=r"line 2: a roll must be \[wwwfd\], as in the position, got '\[wwffd\]'"
    ):
        notation.parse_game(game.replace("www ", "[wwffd]"))
    assert notation.parse_game(game + "[wwwww]").states["dice"][-1].tolist() == [0] * 5
    assert notation.parse_game(game).states["phase"].tolist() == [Phase.KEEP, Phase.CHANCE]
    assert str(notation.parse_game(str(notation.parse_game(game)))) == str(notation.parse_game(game))


@functools.cache
def some_text() -> str:
    return str(random_game(Rules(spaces=0, powers="any"), 3, limit=25))


@given(
    st.text(st.sampled_from('wfmeod?ABCDE0123456789.|/[]()"\\; \n-+=\x00é'), max_size=12),
    st.integers(0, 1000),
    st.integers(0, 12),
)
def test_mutated_games_are_valid_or_raise_value_error(more: str, at: int, cut: int) -> None:
    text = some_text()
    at %= len(text)
    try:
        read = notation.parse_game(text[:at] + more + text[at + cut :])
    except ValueError:
        return
    again = notation.parse_game(str(read))
    assert (again.players, again.states.tobytes()) == (read.players, read.states.tobytes())


def test_words_after_the_end_of_a_game_are_rejected():
    text = str(random_game(Rules(spaces=0), 3, limit=10_000))
    with pytest.raises(ValueError, match="the next word must be none, because the game is over, got 'pass'"):
        notation.parse_game(text + "pass")


def test_invalid_games_are_not_written():
    played = random_game(Rules(), 2, limit=12)
    other = played.states.copy()
    other["used"][-1] = 1
    last = len(other) - 1
    with pytest.raises(
        ValueError, match=f"position {last} of the game must be the result of action {last - 1}"
    ):
        str(played._replace(states=other))
    with pytest.raises(ValueError, match="a game must have one position more than actions, got 2 "):
        str(played._replace(states=played.states[:2]))
    with pytest.raises(ValueError, match="the dice of the game must be those of its seed, got seed 3"):
        str(played._replace(seed=3))
    with pytest.raises(ValueError, match="either seed or state, got both or none"):
        notation.record_game(Rules(), [])
    with pytest.raises(ValueError, match="players must be a list of 2 strings"):
        notation.record_game(Rules(), [], seed=0, players=["one"])
    with pytest.raises(ValueError, match="actions must be an integer array"):
        notation.record_game(Rules(), [0.5], seed=0)
    whole = random_game(Rules(spaces=0), 3, limit=10_000)
    with pytest.raises(ValueError, match=r"the game is over after \d+ actions"):
        notation.record_game(whole.rules, [*whole.actions.tolist(), 31], seed=3)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "a game must begin with its first position"),
        (b"\xff\xfe", "must be a game as text, in UTF-8"),
        (b"PK\x03\x04", "a game must begin with its first position"),
        (b"[" * 100_000, "line 1: a line of the header must be"),
        (b"\n" * 10_000_001, "a game must be a string of at most 10,000,000 characters"),
    ],
)
def test_invalid_game_files_raise_errors_with_the_file_name(tmp_path, content: bytes, message: str) -> None:
    file = tmp_path / "game.txt"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=rf"game\.txt:? .*{message}"):
        notation.read_game(file)


def test_failed_writes_keep_the_old_file(tmp_path):
    file = tmp_path / "game.txt"
    file.write_text("mine")
    played = random_game(Rules(), 2, limit=12)
    with pytest.raises(ValueError, match="seed"):
        notation.write_game(file, played._replace(seed=3))
    assert file.read_text() == "mine"
    with pytest.raises(FileNotFoundError):
        notation.write_game(tmp_path / "nowhere" / "game.txt", played)
