"""`wotd play`: input, saved games and resumed games."""

import functools
import os
import re
import shutil
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from tests.helpers import ROOT
from tests.helpers.commands import wotd
from wotd_env import Game, notation
from wotd_env.analysis import Advisor
from wotd_env.cli import FAILED, WRONG_USE, match
from wotd_env.cli.match import Decision, equities

EMPTY = "/".join([".......|....."] * 5)
POSITION = "|AB.../|B..../|...../|...../|..... wf(meo) 3 A move 0 {}"


play = functools.partial(wotd, "play")


def decision(line: str) -> Decision:
    rules, state = notation.parse_position(line)
    return Decision(Game(rules, skip_forced=False), state)


def hold(dice: str, left: int = 2) -> Decision:
    return decision(f"{EMPTY} wf(meo) 1 A keep {left} {dice}")


# --------------------------------------------------------------------------------------------------------------- input


@pytest.mark.parametrize(
    ("dice", "typed", "expected"),
    [
        ("wwfmd", "wwf", "wwf"),
        ("wwfmd", "fww", "wwf"),
        ("wwfmd", "WWF", "wwf"),
        ("wwfmd", "keep water fire", "wf"),
        ("wwfmd", "keep water, water and re-roll the rest", "ww"),
        ("wwfmd", "water", "w"),
        ("wwfmd", "keep dragon", "d"),
        ("wwfmd", "k d", "d"),
        ("wwfmd", "re-roll fire metal dragon", "ww"),
        ("wwfmd", "reroll the dragon", None),
        ("wwfmd", "r d", "wwfm"),
        ("wwfmd", "stop", "stop"),
        ("wwfmd", "keep all", "stop"),
        ("wwfmd", "keep all dice and stop rolling", "stop"),
        ("wwfmd", "none", "none"),
        ("wwfmd", "re-roll all dice", "none"),
        ("wwfmd", "1", None),
        ("wwfmd", "1 3", None),
        ("wwoom", "wood", "o"),
        ("woodd", "keep wood", "o"),
        ("woodd", "keep wood wood", "oo"),
        ("woodd", "wood", "o"),
        ("wwfmd", "ff", None),
        ("wwfmd", "metals", None),
        ("wwfmd", "keep", None),
        ("wwfmd", "0", None),
        ("wwfmd", "99999999999999999999", None),
        ("wwfmd", "", None),
        ("wwfmd", "k 6", None),
        ("wwfmd", "k 1 b", None),
        ("wwfmd", "\x1b[2J", None),
    ],
)
def test_holds_are_chosen_by_words_letters_and_numbers(dice, typed, expected):
    asked = hold(dice)
    if expected is None:
        with pytest.raises(ValueError, match=r"\w+") as error:
            asked.read(typed)
        assert "\x1b" not in str(error.value)
    else:
        action = asked.read(typed)
        assert next(choice.notation for choice in asked.choices if choice.action == action) == expected


def test_every_hold_can_be_chosen_by_the_numbers_of_its_dice():
    for dice in ("wwfmd", "fffff", "wfmeo", "wwddd"):
        for count in range(6):
            for kept in combinations(range(5), count):
                asked = hold(dice)
                numbers = " ".join(str(place + 1) for place in kept)
                other = " ".join(str(place + 1) for place in range(5) if place not in kept)
                assert asked.read(f"k {numbers}" if kept else "r 12345") is None
                by_keeping = asked.read("")
                again = hold(dice)
                assert again.read(f"r{other}" if other else "keep 12345") is None
                assert again.read("roll") == by_keeping
                after = asked.state.copy()
                asked.game.decide(after, np.array([by_keeping]))
                left = sorted(face for face in after["dice"][0].tolist() if face >= 0)
                assert left == sorted(asked.dice[place] for place in kept)


@pytest.mark.parametrize("number", ["0", "00019", "999999999999", "1" * 5000])
def test_error_for_an_invalid_number_names_the_range(number):
    with pytest.raises(ValueError, match="number of a choice must be from 1 to 4"):
        decision(f"{EMPTY} wf(meo) 1 A move 0 wfmee").read(number)


def test_holds_can_be_changed_and_undone():
    asked = hold("wwfmd")
    for typed in ("k 1 3", "k5", "r 1"):
        assert asked.read(typed) is None
    assert asked.kept == frozenset({2, 4})
    asked.undo()
    assert asked.kept == frozenset({0, 2, 4})
    asked.undo()
    assert sorted(asked.kept or ()) == [0, 2]
    asked.undo()
    with pytest.raises(ValueError, match="nothing to undo"):
        asked.undo()
    with pytest.raises(ValueError, match="no dice are chosen yet"):
        asked.read("")


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("fire", "f3"),
        ("f3", "f3"),
        ("F3", "f3"),
        ("2", "f3"),
        ("move on water", "w2"),
        ("move on water, to space 2", "w2"),
        ("mov wat", "w2"),
        ("move", None),
        ("wood", None),
        ("", None),
        ("w9", None),
    ],
)
def test_moves_are_chosen_by_words_notation_and_numbers(typed, expected):
    asked = decision(f"{EMPTY} wf(meo) 1 A move 0 wwfff")
    if expected is None:
        with pytest.raises(
            ValueError, match=r"w2 \(move on water, to space 2\); f3 \(move on fire, to space 3\)"
        ):
            asked.read(typed)
    else:
        assert asked.read(typed) == notation.parse_action(asked.game, asked.state, expected)


def test_swaps_and_powers_are_chosen_by_words_and_notation():
    line = "A..B...|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 9 A move 0 wdddd powers=any"
    asked = decision(line)
    for choice in asked.choices:
        assert asked.read(choice.words) == choice.action
        assert asked.read(choice.notation) == choice.action
        assert asked.read(choice.notation.upper()) == choice.action
    assert asked.read("swap") == notation.parse_action(asked.game, asked.state, "wA-B")
    with pytest.raises(ValueError, match="is ambiguous"):
        asked.read("wood")


def test_tiger_holds_are_chosen_by_the_same_words():
    asked = decision("|...../|...../|...../|...../|..... mf(weo) 1 A keep 0 wwfmd powers=own")
    assert asked.read("none") == notation.parse_action(asked.game, asked.state, "none+metal")
    assert asked.read("ww") == notation.parse_action(asked.game, asked.state, "ww+metal")
    assert asked.read("stop") == 31


def test_advice_ranks_the_choices():
    asked = hold("wwfmd")
    advisor = Advisor(asked.game)
    equity = advisor.analyze(asked.state).actions[0]
    ranked = np.argsort(-equity)[: len(asked.choices)]
    whole = equities(asked, advisor).splitlines()
    assert whole[1].endswith(f"   0.0  ww               {asked.game.describe_action(asked.state, ranked[0])}")
    assert f" {1000 * (equity[ranked[0]] - equity[ranked[1]]):6.1f}  " in whole[2]
    assert whole[-1] == f"regret in thousandths of equity; by {advisor.source}"
    assert len(whole) == len(asked.choices) + 2
    values = [float(line.split()[0]) for line in whole[1:-1]]
    assert values == sorted(values, reverse=True)
    assert values[0] == pytest.approx(equity.max(), abs=1e-3)
    assert equities(asked, advisor, 3).splitlines()[4] == f"and {len(asked.choices) - 3} more: equity all"


# ------------------------------------------------------------------------------------------------ whole games


def first_choices(count: int) -> str:
    """Return the input that takes the first choice at least `count` times: one of its lines is invalid each time."""
    return "none\n1\n" * count


SMALL = ("--spaces", 0, "--seed", 3)


def test_a_whole_game_is_played_recorded_and_reviewed(tmp_path):
    result = play("me", "greedy", *SMALL, typed="stop\nfire\nstop\n" + first_choices(2000))
    assert result.exit_code == 0, result.output
    recorded = notation.read_game(tmp_path / "game.txt")
    assert recorded.players == ("me", "greedy")
    assert recorded.seed == 3
    assert Game(recorded.rules).is_over(recorded.states[-1:])[0]
    assert "Roll-off for the start" in result.output
    assert "The game is over in turn" in result.output
    assert "luck-adjusted" in result.output
    assert "blunder: regret " in result.output


def test_files_are_numbered_and_never_overwritten(tmp_path):
    for name in ("game.txt", "game-2.txt", "game-3.txt"):
        result = play(*SMALL, typed="")
        assert result.exit_code == 0
        assert f"The game is saved in {name}" in result.output
        assert (tmp_path / name).is_file()
    taken = play("--file", "game.txt")
    assert taken.exit_code == WRONG_USE
    assert "game.txt already exists" in taken.output
    assert play("--file", "mine.txt", typed="q\n").exit_code == 0
    assert {file.name for file in tmp_path.iterdir()} == {"game.txt", "game-2.txt", "game-3.txt", "mine.txt"}


@pytest.mark.parametrize(("letter", "most"), [("A", 495), ("é", 82), ("🐉", 41)])
def test_overlong_names_are_refused(tmp_path, letter, most):
    file = tmp_path / "game.txt"
    for length, code in ((most + 1, WRONG_USE), (most, 0)):
        name = f"me:{letter * length}"
        result = play(name, "greedy", "--file", file)
        assert result.exit_code == code
        assert file.exists() == (code == 0)
        assert ("a seat name must have at most 500 characters, got me:" in result.stderr) == bool(code)
    assert notation.read_game(file).players == (name, "greedy")
    resumed = play(f"me:{letter * 1100}", "greedy", "--resume", file)
    assert resumed.exit_code == WRONG_USE
    assert notation.read_game(file).players == (name, "greedy")


@pytest.mark.parametrize("cut", [0, 4])
def test_a_resumed_game_equals_an_uninterrupted_one(tmp_path, cut):
    rules = ("me", "random", "random", "--spaces", 1, "--powers", "own", "--seed", 8)
    typed = first_choices(3000)
    whole = play(*rules, "--file", "whole.txt", typed=typed)
    assert whole.exit_code == 0
    assert play(*rules, "--file", "parts.txt", typed=first_choices(cut)).exit_code == 0
    for lines in (first_choices(2), typed):
        assert play("--resume", "parts.txt", typed=lines).exit_code == 0
    assert Path("parts.txt").read_text() == Path("whole.txt").read_text()
    again = play("--resume", "parts.txt")
    assert "The game is over" in again.output
    assert Path("parts.txt").read_text() == Path("whole.txt").read_text()


def test_a_game_can_start_from_a_position(tmp_path):
    line = POSITION.format("ffmdd")
    result = play("me", "first", "--position", line, "--seed", 1, typed="list\nposition\nfire\n")
    assert result.exit_code == 0
    assert line in result.output
    recorded = notation.read_game("game.txt")
    assert recorded.seed is None
    assert recorded.states["rng"].all()  # the file contains the random stream
    longer = play("--resume", "game.txt", typed=first_choices(2000))
    assert longer.exit_code == 0
    assert "The game is over" in longer.output


def test_a_handwritten_game_can_be_resumed(tmp_path):
    Path("hand.txt").write_text(f'[Position "{POSITION.format("ffmdd")}"]\n3. A [ffmdd]\n')
    refused = play("--resume", "hand.txt")
    assert refused.exit_code == WRONG_USE
    assert "wotd play me planner --resume hand.txt" in refused.output
    assert play("me", "me:Anna", "--resume", "hand.txt", typed=first_choices(3)).exit_code == 0
    assert notation.read_game("hand.txt").players == ("me", "me:Anna")
    result = play("--resume", "hand.txt", typed=first_choices(2000))
    assert "Anna (B)" in result.output
    assert "The game is over" in result.output


def test_a_handwritten_game_may_end_before_a_roll(tmp_path):
    header = f'[Position "{EMPTY} wf(meo) 1 A {{}}"]\n[A "me"]\n[B "first"]\n'
    for name, text in {
        "unrolled.txt": header.format("chance 2 ?????"),
        "decided.txt": header.format("keep 2 wwfmd") + "1. A [wwfmd] ww\n",
    }.items():
        Path(name).write_text(text)
        assert play("--resume", name).exit_code == 0
        result = play("--resume", name, typed=first_choices(2000))
        assert result.exit_code == 0
        assert "The game is over" in result.output


@pytest.mark.parametrize(
    ("given", "seated"),
    [
        ([], ("me", "planner", "planner")),
        (["me:Anna"], ("me:Anna", "planner", "planner")),
        (["first"], ("me", "first", "first")),
        (["first", "me", "me"], ("first", "me", "me")),
    ],
)
def test_unnamed_seats_are_taken_by_policies(given, seated):
    assert play(*given, *SMALL, "--players", 3).exit_code == 0
    assert notation.read_game("game.txt").players == seated


def test_a_game_file_cannot_run_code(tmp_path):
    Path("evil.py").write_text("raise SystemExit('run')")
    game = '[Position "{}"]\n[A "me"]\n[B "{}"]\n3. A [ffmdd]\n'
    Path("game.txt").write_text(game.format(POSITION.format("ffmdd"), "evil:policy"))
    result = play("--resume", "game.txt", typed="q\n")
    assert result.exit_code == WRONG_USE
    assert "names 'evil:policy' for seat B: name the players" in result.output
    Path("model.zip").write_bytes(b"")
    Path("game.txt").write_text(game.format(POSITION.format("ffmdd"), "sb3:model.zip"))
    assert "trust" in play("--resume", "game.txt", typed="q\n").output
    Path("game.txt").write_text(game.format(POSITION.format("ffmdd"), r"me:\u001b[2J"))
    assert "\x1b[2J" not in play("--resume", "game.txt", typed="q\n").output


def test_several_people_can_play():
    result = play("me:Anna", "me:Ben", "random", *SMALL, "--players", 3, typed=first_choices(60))
    assert result.exit_code == 0
    assert "Anna (A), Ben (B), random (C) play." in result.output
    for name in ("Anna (A): which dice", "Ben (B): which dice"):
        assert name in result.output
    for name in ("A  Anna    water", "B  Ben     fire", "C  random  metal"):
        assert name in result.output


def test_names_may_contain_markup():
    result = play("me:[/b] [red]", "greedy", "--spaces", 0, "--seed", 3, typed=first_choices(2000))
    assert result.exit_code == 0, result.output
    assert result.output.count("[/b] [red] (A)") > 2
    assert "luck-adjusted" in result.output
    assert re.search(r"(\[/b\] \[red\]|greedy) \([AB]\) wins", result.output)


def test_help_and_hints_make_no_decision():
    lines = "help\n?\nlist\nboard\nhint\nequity\nequity all\nposition\nk 1 2\nu\nu\nnonsense\nroll\nq\n"
    result = play("me", "me", *SMALL, typed=lines)
    assert result.exit_code == 0
    assert len(notation.read_game("game.txt").actions) == 0
    for text in (
        "Choose a move by its number",
        "equity  to win   regret  choice",
        "keep 2 ",
        "[1 ",
        "nothing to undo",
        "unknown choice",
    ):
        assert text in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["planner", "greedy"], "wotd watch"),
        (["me", "planner", "planner", "--players", "2"], "a player for each of the 2 seats, got 3"),
        (["me", "planner", "--players", "3"], "a player for each of the 3 seats, got 2"),
        (["me", "nobody"], "nobody"),
        (["me", "td", "--spaces", "4"], "no trained model of td"),
        (["me", "planner", "--seed", "-1"], "seed must be"),
        (["--resume", "missing.txt"], "missing.txt"),
        (["--resume", "missing.txt", "--seed", "3"], "--seed cannot be combined with --resume"),
        (["--resume", "missing.txt", "--spaces", "3"], "--spaces cannot be combined"),
        (["--position", "nonsense"], "position"),
        (["--file", "game.md"], "must end in .txt"),
    ],
)
def test_wrong_use_prints_an_error_and_writes_no_file(tmp_path, arguments, words):
    result = play(*arguments)
    assert result.exit_code == WRONG_USE
    assert words in result.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("other", [b"", b"\xff no text"], ids=["a game", "no text"])
def test_concurrent_programs_do_not_overwrite_a_game(tmp_path, monkeypatch, other):
    play("--file", "game.txt", "--seed", "1", typed="stop\nleave\n")
    shutil.copy("game.txt", "before.txt")
    # the same game, continued by another program
    play("--resume", "before.txt", typed="hint\nstop\n1\nleave\n")
    keep = match.Match._choose
    further = other or Path("before.txt").read_bytes()

    def choose(self, state):
        Path("game.txt").write_bytes(further)
        return keep(self, state)

    monkeypatch.setattr(match.Match, "_choose", choose)
    result = play("--resume", "game.txt", typed="stop\n1\nleave\n")
    assert result.exit_code == WRONG_USE
    assert "another program has changed game.txt" in result.output
    assert Path("game.txt").read_bytes() == further


def test_a_failing_policy_loses_no_game(tmp_path):
    Path("broken.py").write_text(
        "class Broken:\n    def act(self, game, state, rng):\n        raise KeyError('lost')\n"
    )
    sys.path.append(str(tmp_path))
    try:
        result = play("me", "broken:Broken", *SMALL, "--start", 1)
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("broken", None)
    assert result.exit_code == FAILED
    assert "policy 'broken:Broken' failed: KeyError: 'lost'" in result.output
    assert "wotd play --resume game.txt" in result.output
    assert notation.read_game("game.txt").players == ("me", "broken:Broken")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-c", "from wotd_env.cli import main; main()", "play", *arguments]


def test_a_killed_game_can_be_resumed(tmp_path):
    """Kill the process after ten confirmed decisions."""
    rules = ["me", "me", "--spaces", "0", "--seed", "3"]
    with subprocess.Popen(
        [*command(*rules)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as running:
        assert running.stdin
        assert running.stdout
        for _ in range(10):
            running.stdin.write("none\n1\nposition\n")
            running.stdin.flush()
            while (
                not (line := running.stdout.readline()).startswith(("|", ".", "A", "B")) or " wf(" not in line
            ):
                assert line
        running.send_signal(signal.SIGKILL)
    recorded = notation.read_game("game.txt")
    assert len(recorded.actions) >= 10
    assert notation.position(recorded.rules, recorded.states[-1:]) == line.strip()
    assert play("--resume", "game.txt", typed=first_choices(2000)).exit_code == 0
    assert play(*rules, "--file", "whole.txt", typed=first_choices(2000)).exit_code == 0
    assert Path("game.txt").read_text() == Path("whole.txt").read_text()


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="there are no pseudo-terminals")
@pytest.mark.parametrize("plain", [False, True])
def test_a_terminal_gets_colors_unless_no_color_is_set(plain):
    ours, theirs = os.openpty()
    environment = {**os.environ, "TERM": "xterm", "NO_COLOR": "1" if plain else ""}
    with subprocess.Popen(
        command("me", "me", *map(str, SMALL)), stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as running:
        os.close(theirs)
        os.write(ours, b"k 1 2\nquit\n")
        shown = b""
        while True:
            try:
                part = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not part:
                break
            shown += part
        os.close(ours)
        assert running.wait() == 0
    text = shown.decode()
    assert ("\x1b[1;" in text) != plain
    assert "> " in text
    assert "Enter: roll the others" in text


def test_the_page_shows_the_output_of_the_command(monkeypatch):
    """Replay the transcript of docs/how-to/play.md."""
    page = (ROOT / "docs" / "how-to" / "play.md").read_text()
    _, _, rest = page.partition("<!-- transcript -->\n```text\n$ wotd ")
    first, _, shown = rest.partition("```")[0].partition("\n")
    # lines of the board start like typed lines: "> A  me ..."
    typed = iter(re.findall(r"^>(?! [A-E]  )(.*)$", shown, flags=re.MULTILINE))

    def answer(prompt: str) -> str:
        try:
            line = str(next(typed)).strip()
        except StopIteration:
            raise EOFError from None
        print(f"> {line}")
        return line

    monkeypatch.setattr("builtins.input", answer)
    result = wotd(first)
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == shown.splitlines()
