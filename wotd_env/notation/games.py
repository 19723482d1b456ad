"""Recorded games: made by replaying decisions, written as text, and parsed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env import files
from wotd_env.core.arguments import check_integer, check_integers, check_names
from wotd_env.core.checks import check_one
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS, letters, parse_position, position, read_dice, wrong
from wotd_env.core.rules import DICE, Phase, Rules
from wotd_env.core.state import ROW, States
from wotd_env.notation.words import parse_action, word

NOBODY = "?"
MOST_TEXT = 10_000_000  # in characters or bytes; the text of every game is shorter
_LONGEST_TAG = 1000
_TAGS = ("Position", "Seed", *SEATS, "Result", "Points")
_TAG = re.compile(r'\[([A-Za-z]+) (".*")\]\s*')
_COMMENT = ";"


class RecordedGame(NamedTuple):
    """A recorded game with T decisions; `str` returns its text.

    A decision is *forced* if only one move is legal.
    """

    rules: Rules
    states: States
    """STATE (T + 1,): the position before each decision (forced ones included), then the last position"""
    actions: NDArray[np.int64]  #: the decisions, int64 (T,)
    players: tuple[str, ...]  #: names by seat; "?" if unknown
    seed: int | None = None  #: seed of `Game.reset(1, seed=...)`; None if unknown

    def check(self) -> Game:
        """Check all fields, and return the rules as a `Game` that takes no move by itself.

        Raises:
            IllegalActionError: if an action is illegal.
            ValueError: for an invalid field.
        """
        game = Game(self.rules, skip_forced=False)
        game.check(self.states)
        check_names("players", self.players, self.rules.players)
        if len(self.states) != np.size(self.actions) + 1:
            raise ValueError(
                f"a game must have one position more than actions, got {len(self.states)} positions and "
                f"{np.size(self.actions)} actions"
            )
        game.check(self.states[:-1], self.actions)
        return game

    def __str__(self) -> str:
        rules, states, actions, players, seed = self
        game = self.check()
        after = states[:-1].copy()
        game.decide(after, actions)
        due = (after["phase"] == Phase.CHANCE) & (states[1:]["phase"] != Phase.CHANCE)
        by_hand, by_stream = after.copy(), after.copy()
        for rolled_states, dice in ((by_hand, states[1:]["dice"][due]), (by_stream, None)):
            rolled = rolled_states[due]
            game.roll(rolled, dice)
            rolled_states[due] = rolled
        if (same := same_but_stream(by_hand, states[1:])).sum() < len(actions):
            first = int(same.argmin())
            raise ValueError(
                f"position {first + 1} of the game must be the result of action {first}; all decisions are recorded, "
                "forced ones too, which record_game adds"
            )
        follows = bool((by_stream.view(ROW) == states[1:].view(ROW)).all())
        if seed is not None and not (follows and game.reset(1, seed=seed).view(ROW) == states[:1].view(ROW)):
            raise ValueError(
                f"the dice of the game must be those of its seed, got seed {seed} and other dice"
            )

        stream = seed is None and follows and bool(states["rng"][0])
        tags = {"Position": position(rules, states[:1], stream=stream)}
        if seed is not None:
            tags["Seed"] = str(seed)
        tags |= dict(zip(SEATS, players, strict=False)) | outcome(game, states[-1:])
        lines = [
            f"[{tag} {json.dumps(text, ensure_ascii=not text.isprintable())}]" for tag, text in tags.items()
        ]
        turn = -1
        for i, state in enumerate(states):
            if state["phase"] in (Phase.OVER, Phase.CHANCE):
                break
            if state["turn"] != turn:
                turn = int(state["turn"])
                lines += [""] * (i == 0) + [f"{turn + 1}. {SEATS[state['player']]}"]
            if i == 0 or due[i - 1]:
                lines[-1] += f" [{letters(state['dice'])}]"
            if i < len(actions):
                lines[-1] += f" {word(rules, state, after[i], int(actions[i]))}"
        return "\n".join(lines) + "\n"


def record_game(
    rules: Rules,
    actions: ArrayLike,
    *,
    seed: int | None = None,
    state: States | None = None,
    players: Sequence[str] = (),
) -> RecordedGame:
    """Replay decisions from a seed, or from a first position and its random stream. Return the recorded game.

    Args:
        rules: the rules.
        actions: the decisions, integers (T,). Forced decisions may be left out.
        seed: seed of `Game.reset`.
        state: STATE (1,), the first position, if `seed` is not given.
        players: names of the players, by seat; by default every name is "?".

    Raises:
        IllegalActionError: for an illegal action.
        ValueError: for actions after the end of the game, or if `seed` and `state` are both given or both missing.
    """
    if (seed is None) == (state is None):
        raise ValueError("give either seed or state, got both or none")
    game = Game(rules, skip_forced=False)
    if state is not None:
        check_one(state)
    current = game.reset(1, seed=seed) if state is None else state.copy()
    game.roll(current)
    given = check_integers("actions", actions, (np.size(actions),))
    states, taken = [current.copy()], []

    def take(action: int) -> None:
        game.step(current, [action])
        taken.append(action)
        states.append(current.copy())

    for done, action in enumerate(given.tolist()):
        if (forced := _forced(game, current)) is not None and forced != action:
            take(forced)
        if current["phase"][0] == Phase.OVER:
            raise ValueError(f"the game is over after {done} actions, got {len(given)}")
        take(action)
    if (forced := _forced(game, current)) is not None:
        take(forced)
    names = players or (NOBODY,) * rules.players
    check_names("players", names, rules.players)
    return RecordedGame(rules, np.concatenate(states), np.array(taken, np.int64), tuple(names), seed)


def _forced(game: Game, state: States) -> int | None:
    if state["phase"][0] != Phase.MOVE:
        return None
    legal = np.flatnonzero(game.legal_actions(state)[0])
    return int(legal[0]) if len(legal) == 1 else None


def write_game(file: str | Path, game: RecordedGame) -> None:
    """Write a game to a file, as text.

    Raises:
        OSError: if the file cannot be written; an existing file is unchanged.
        ValueError: for an invalid game, such as a game in which forced decisions are missing.
    """
    files.write(Path(file), str(game).encode())


def same_but_stream(one: States, other: States) -> NDArray[np.bool_]:
    """Return whether each game is equal in two batches, bool (N,). The random streams are ignored."""
    other = other.copy()
    other["rng"] = one["rng"]
    equal: NDArray[np.bool_] = one.view(ROW) == other.view(ROW)
    return equal


def outcome(game: Game, state: States) -> dict[str, str]:
    """Return the tags `Result` and `Points` for the last position of a game, STATE (1,)."""
    points = "-".join(map(str, game.scores(state)[0]))
    if not game.is_over(state)[0]:
        return {"Result": "*", "Points": points}
    rewards = game.rewards(state)[0]
    won = rewards == rewards.max()  # all True at the turn limit (R16)
    return {"Result": "-".join(str(Fraction(int(one), int(won.sum()))) for one in won), "Points": points}


def read_game(file: str | Path) -> RecordedGame:
    """Return the game in a file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: for malformed text; the message contains the file, the line number, the expected and the given text.
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
        raise ValueError(f"a game must be a string of at most {MOST_TEXT:,} characters, got {got}")
    lines = text.split("\n")
    tags: dict[str, tuple[int, str]] = {}
    for first, line in enumerate(lines):
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
    """Add the line number to the message of a ValueError raised in the `with` block."""
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
    """Replay a parsed game. The integers in `tags` and `words` are line numbers."""
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
    for line, token in words:
        with _at(line):
            record = state[0]
            if record["phase"] == Phase.OVER:
                raise wrong("the next word", "none, because the game is over", token)
            if record["turn"] != turn:
                turn = int(record["turn"])
                heading = [f"{turn + 1}.", SEATS[record["player"]]]
            if heading:
                if token != heading[0]:
                    raise wrong("the beginning of a turn", heading[0], token)
                del heading[0]
            elif token.startswith("["):
                _read_roll(game, state, token, follows, first=not states)
            else:
                if record["phase"] == Phase.CHANCE:
                    raise wrong("the next word", "a roll, as in [wfmmd]", token)
                action = parse_action(game, state, token)
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
    """Return the seed in `text`, and the first position with the seed's random stream."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(2**64))):
        raise wrong("Seed", "a number from 0 to 2**64 - 1", text)
    seed = check_integer("Seed", int(text), 0, 2**64 - 1)
    fresh = game.reset(1, seed=seed, roll=bool(state["phase"][0] != Phase.CHANCE))
    if not same_but_stream(state, fresh)[0] or (has_stream and state["rng"][0] != fresh["rng"][0]):
        start = position(game.rules, fresh)
        raise wrong("Seed", f'the seed of a game with the first position "{start}"', text)
    return seed, fresh, True


def _read_roll(game: Game, state: States, word: str, follows: bool, first: bool) -> None:
    """Apply the roll in `word` to `state`."""
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
