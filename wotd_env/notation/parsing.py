"""Parse games from text. Errors name the faulty line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS, letters, parse_position, position, read_dice, wrong
from wotd_env.core.rules import DICE, Phase
from wotd_env.core.state import States
from wotd_env.notation.games import NOBODY, RecordedGame, outcome, same_but_stream
from wotd_env.notation.words import parse_action

MOST_TEXT = 10_000_000  # largest text of a game, in characters or bytes; the longest game is shorter

_LONGEST_TAG = 1000  # characters
_TAGS = ("Position", "Seed", *SEATS, "Result", "Points")
_TAG = re.compile(r'\[([A-Za-z]+) (".*")\]\s*')
_COMMENT = ";"


def read_game(file: str | Path) -> RecordedGame:
    """Return the game in a file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: as in `parse_game`; the message names the file.
    """
    with Path(file).open("rb") as stream:
        content = stream.read(MOST_TEXT + 1)
    try:
        return parse_game(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} must be a game as text, in UTF-8, got: {error}") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def parse_game(text: str) -> RecordedGame:
    """Parse the text of a game. The dice must match the seed, and the result must match the last position.

    Raises:
        ValueError: for malformed text; the message contains the line number, the expected text and the given text.
    """
    if not isinstance(text, str) or len(text) > MOST_TEXT:
        got = "more" if isinstance(text, str) else repr(text)
        raise ValueError(f"a game must be a text of at most {MOST_TEXT:,} characters, got {got}")
    lines = text.split("\n")
    tags: dict[str, tuple[int, str]] = {}
    for first, line in enumerate(lines):  # the header ends at the first turn
        if line.startswith("["):
            with _at(first + 1):
                _read_tag(line, first + 1, tags)
        elif line.partition(_COMMENT)[0].strip():
            break
    else:
        first = len(lines)
    turns = ((i + 1, lines[i].partition(_COMMENT)[0]) for i in range(first, len(lines)))
    return _replay(tags, ((number, word) for number, line in turns for word in line.split()))


@contextmanager
def _at(line: int) -> Iterator[None]:
    """Add the line number to the message of a ValueError raised inside."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"line {line}: {error}") from None


def _read_tag(line: str, number: int, tags: dict[str, tuple[int, str]]) -> None:
    found = _TAG.fullmatch(line) if len(line) <= _LONGEST_TAG else None
    if not found or found[1] not in _TAGS:
        raise wrong("a line of the header", f'[NAME "..."] with one of the names {", ".join(_TAGS)}', line)
    name = found[1]
    if name in tags:
        raise ValueError(f"{name} must be given once, got it here and in line {tags[name][0]}")
    try:
        tags[name] = number, json.loads(found[2])
    except ValueError:
        raise wrong(name, "a JSON string", found[2]) from None


def _replay(tags: dict[str, tuple[int, str]], words: Iterator[tuple[int, str]]) -> RecordedGame:
    """Replay a game. `tags` maps names to (line number, text); `words` yields (line number, word) of all turns."""
    if "Position" not in tags:
        raise ValueError('a game must begin with its first position, [Position "..."], got none')
    line, text = tags["Position"]
    with _at(line):
        rules, state = parse_position(text)
    follows = "stream=" in text
    game = Game(rules, skip_forced=False)
    seed = None
    if "Seed" in tags:
        line, text = tags["Seed"]
        with _at(line):
            seed, state, follows = _from_seed(game, state, text, follows)
    states: list[States] = []
    actions: list[int] = []
    turn, heading = -1, list[str]()
    for line, word in words:
        with _at(line):
            record = state[0]
            if record["phase"] == Phase.OVER:
                raise wrong("the next word", "none, because the game is over", word)
            if record["turn"] != turn:
                turn = int(record["turn"])
                heading = [f"{turn + 1}.", SEATS[record["player"]]]
            if heading:
                if word != heading[0]:
                    raise wrong("the beginning of a turn", heading[0], word)
                del heading[0]
            elif word.startswith("["):
                _read_roll(game, state, word, follows, first=not states)
            else:
                if record["phase"] == Phase.CHANCE:
                    raise wrong("the next word", "a roll, as in [wfmmd]", word)
                action = parse_action(game, state, word)
                states.append(state.copy())
                actions.append(action)
                game.decide(state, [action], validate=False)
    states.append(state)
    for name, value in outcome(game, state).items():
        if name in tags and tags[name][1] != value:
            with _at(tags[name][0]):
                raise wrong(name, f"{value}, by the last position", tags[name][1])
    for seat in SEATS[rules.players :]:
        if seat in tags:
            with _at(tags[seat][0]):
                raise wrong("a seat", f"one of {', '.join(SEATS[: rules.players])}", seat)
    names = tuple(tags.get(seat, (0, NOBODY))[1] for seat in SEATS[: rules.players])
    return RecordedGame(rules, np.concatenate(states), np.array(actions, np.int64), names, seed)


def _from_seed(game: Game, state: States, text: str, has_stream: bool) -> tuple[int, States, bool]:
    """Return the seed in `text`, the first position with its random stream, and True: the stream is known."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(2**64))):
        raise wrong("Seed", "a number from 0 to 2**64 - 1", text)
    seed = check_integer("Seed", int(text), 0, 2**64 - 1)
    fresh = game.reset(1, seed=seed, roll=bool(state["phase"][0] != Phase.CHANCE))
    if not same_but_stream(state, fresh)[0] or (has_stream and state["rng"][0] != fresh["rng"][0]):
        start = position(game.rules, fresh)
        raise wrong("Seed", f'the seed of a game with the first position "{start}"', text)
    return seed, fresh, True


def _read_roll(game: Game, state: States, word: str, follows: bool, first: bool) -> None:
    """Apply the roll in a word to a state, in place. If the random stream is known, the dice must follow from it."""
    if len(word) != DICE + 2 or word[-1] != "]":
        raise wrong("a roll", "five dice in brackets, as in [wfmmd]", word)
    dice = read_dice("a roll", word[1:-1])
    if state["phase"][0] != Phase.CHANCE:
        if not first or state["dice"][0].tolist() != dice:
            expected = f"[{letters(state['dice'][0])}], as in the position" if first else "due"
            raise wrong("a roll", expected, word)
    elif follows:
        game.roll(state)
        if state["dice"][0].tolist() != dice:
            raise wrong("a roll", f"[{letters(state['dice'][0])}], by the seed or stream", word)
    else:
        try:
            game.roll(state, [dice])
        except ValueError:
            raise wrong("a roll", f"one with the kept dice, {letters(state['dice'][0])}", word) from None
