"""Notation: positions as lines, decisions as short words, games as text; docs/notation.md describes it for readers.

    [Position "A......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 1 A keep 2 wfmmd"]
    [Seed "7"]
    [A "planner"]
    [B "greedy"]
    [Result "*"]
    [Points "0-0"]

    1. A [wfmmd] mm [mmmeo] mmm [wmmme] m3
    2. B [wweod]

Words are understood and written against a game's legal actions, so that nothing here knows a rule.
"""

from __future__ import annotations

import functools
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
from wotd_env.core.actions import PAIRS, Action, pairs, power_of
from wotd_env.core.arguments import check_integer
from wotd_env.core.checks import check_one
from wotd_env.core.game import Game
from wotd_env.core.position import (
    FACES,
    SEATS,
    letters,
    parse_position,
    position,
    read_dice,
    read_position,
    wrong,
)
from wotd_env.core.rules import DICE, ELEMENTS, Phase, Power, Rules
from wotd_env.core.state import ROW, States

__all__ = [
    "FIXED_WORDS",
    "RecordedGame",
    "action_text",
    "legal_words",
    "parse_action",
    "parse_game",
    "parse_position",
    "position",
    "read_game",
    "record_game",
    "write_game",
]

MOST_TEXT = 10_000_000
"""Limit of the characters or bytes of a game; the longest game has fewer."""

_LONGEST_TAG = 1000  # characters
_TAGS = ("Position", "Seed", *SEATS, "Result", "Points")
_TAG = re.compile(r'\[([A-Za-z]+) (".*")\]\s*')
_NOBODY = "?"
_COMMENT = ";"

FIXED_WORDS: dict[int, str] = {
    Action.STOP_ROLLING: "stop",
    Action.EQUILIBRIUM: "equilibrium",
    Action.WOOD_EQUILIBRIUM: "equilibrium+wood",
    Action.EARTH_EQUILIBRIUM: "equilibrium+earth",
    Action.PASS: "pass",
    Action.NO_MOVE_BY_FEAR: "fear",
    Action.END_TURN: "end",
    Action.PERFECTION_TURN: "perfection",
    Action.REBIRTH_TURN: "rebirth",
}
"""Words of the actions that have the same word in every position."""


class RecordedGame(NamedTuple):
    """A recorded game with T decisions; `str` returns its text."""

    rules: Rules
    states: States
    """STATE (T + 1,), the position at every decision, including forced ones, and the last position"""
    actions: NDArray[np.int64]
    """the decisions, int64 (T,)"""
    players: tuple[str, ...]
    """names of the players, by seat; "?" if unknown"""
    seed: int | None = None
    """seed of `Game.reset(1, seed=...)`; None if unknown"""

    def __str__(self) -> str:
        return _write(self)


# -------------------------------------------------------------------------------------------------------- decisions


def action_text(game: Game, state: States, action: int) -> str:
    """Write a legal action as a short word, such as `mm`, `m3` or `pass`.

    Args:
        game: the rules.
        state: STATE (1,), the position of the action.
        action: number of the action.

    Raises:
        IllegalActionError: if the action is not legal.
        ValueError: for a record that is invalid under these rules, or several records.
    """
    check_one(state)
    after = state.copy()
    game.decide(after, [action])
    return _word(game.rules, state[0], after[0], int(action))


def legal_words(game: Game, state: States) -> dict[str, int]:
    """Return the words of all legal actions of a position, STATE (1,), with their numbers, ascending.

    The result is empty if the game is over or a roll is due.

    Raises:
        ValueError: for a record that is invalid under these rules, or several records.
    """
    check_one(state)
    legal = np.flatnonzero(game.legal_actions(state)[0])
    if state["phase"][0] == Phase.OVER or not len(legal):
        return {}
    if state["phase"][0] == Phase.KEEP:
        holds = _hold_words(state[0])
        return {holds[action]: action for action in legal.tolist()}
    before = np.repeat(state, len(legal))
    after = before.copy()
    game.decide(after, legal)
    return {_word(game.rules, *each): each[2] for each in zip(before, after, legal.tolist(), strict=True)}


def parse_action(game: Game, state: States, text: str) -> int:
    """Return the number of the action that a word stands for in a position, STATE (1,).

    Raises:
        ValueError: if it stands for no legal action; the message has the words of all of them.
    """
    words = legal_words(game, state)
    if not words:
        over = state["phase"][0] == Phase.OVER
        raise wrong("action", f"none, because {'the game is over' if over else 'a roll is due'}", text)
    kept, *power = text.split("+")
    if kept and set(kept) <= set(FACES):  # dice may come in any order
        text = "+".join(["".join(sorted(kept, key=FACES.index)), *power])
    if text not in words:
        raise wrong("action", f"one of {', '.join(words)}", text)
    return words[text]


def _word(rules: Rules, before: np.void, after: np.void, action: int) -> str:
    """Return the word of an action, given the position before it and that after it."""
    if before["phase"] == Phase.KEEP:
        return _hold_words(before)[action]
    if action in FIXED_WORDS:
        return FIXED_WORDS[action]
    if action >= Action.FIRST_SWAP:
        path, pair = divmod(action - Action.FIRST_SWAP, pairs(rules.players))
        one, other = sorted((before["player"] + PAIRS[rules.players, pair]) % rules.players)
        return f"{FACES[path]}{SEATS[one]}-{SEATS[other]}"
    path = (action - Action.MOVE_ON) % len(ELEMENTS)
    space = int(after["pieces"][before["player"], path])
    number = space - rules.spaces
    power = power_of(action)
    return f"{FACES[path]}{f'|{number}' if number > 0 else space}{'' if power is None else _with(power)}"


def _with(power: Power) -> str:
    """Return the end of the word of an action that uses a power."""
    return f"+{ELEMENTS[power]}"


def _hold_words(record: np.void) -> list[str]:
    """Return the words of all holds, legal or not, by their numbers; those that are not free use the tiger (R12)."""
    return _holds(record["dice"].tobytes(), "" if record["rolls_left"] else _with(Power.TIGER))


@functools.cache
def _holds(dice: bytes, power: str) -> list[str]:
    faces = np.frombuffer(dice, np.int8)
    kept = [letters(faces[die] for die in range(DICE) if hold >> die & 1) for hold in range(1 << DICE)]
    rerolls = [(word or "none") + power for word in kept[: Action.STOP_ROLLING]]
    return [*rerolls, FIXED_WORDS[Action.STOP_ROLLING]]


# ------------------------------------------------------------------------------------------------------------ games


def record_game(
    rules: Rules,
    actions: ArrayLike,
    *,
    seed: int | None = None,
    state: States | None = None,
    players: Sequence[str] = (),
) -> RecordedGame:
    """Play a game again, from its seed or from a position with its stream.

    Args:
        rules: of the game.
        actions: integers (T,): the decisions; forced ones, which `Game` takes by itself unless it is told otherwise,
            may be left out.
        seed: that of `Game.reset`.
        state: STATE (1,), the position that it began in, if there is no seed.
        players: who played, by seat.

    Raises:
        IllegalActionError: for an action that is not legal where it stands.
        ValueError: for actions after the end, or unless there is one of seed and position.
    """
    if (seed is None) == (state is None):
        raise ValueError("a game is recorded from one of seed and state, got both or none")
    game = Game(rules, skip_forced=False)
    current = game.reset(1, seed=seed) if state is None else state.copy()
    game.roll(current)
    given = np.asarray(actions)
    if given.ndim != 1 or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"actions must be a list of integers, got {actions!r}")
    states, taken = [current.copy()], []

    def take(action: int) -> None:
        game.step(current, [action])
        taken.append(action)
        states.append(current.copy())

    for number, action in enumerate(given.tolist()):
        if (forced := _forced(game, current)) is not None and forced != action:
            take(forced)
        if current["phase"][0] == Phase.OVER:
            raise ValueError(f"the game is over after {number} actions, got {len(given)}")
        take(action)
    if (forced := _forced(game, current)) is not None:
        take(forced)
    names = tuple(players) or (_NOBODY,) * rules.players
    if len(names) != rules.players:
        raise ValueError(f"players must be a name for each of the {rules.players} seats, got {names!r}")
    return RecordedGame(rules, np.concatenate(states), np.array(taken, np.int64), names, seed)


def _forced(game: Game, state: States) -> int | None:
    """Return the action of a move that leaves no choice."""
    if state["phase"][0] != Phase.MOVE:
        return None
    legal = np.flatnonzero(game.legal_actions(state)[0])
    return int(legal[0]) if len(legal) == 1 else None


def write_game(file: str | Path, game: RecordedGame) -> None:
    """Write a game to a file, as text.

    Raises:
        OSError: if the file cannot be written; one that was there is as it was.
        ValueError: if the game is none, such as one in which decisions are left out.
    """
    files.write(Path(file), str(game).encode())


def read_game(file: str | Path) -> RecordedGame:
    """Read a game from a file.

    Raises:
        OSError: if the file cannot be read.
        ValueError: as `parse_game`, with the name of the file.
    """
    with Path(file).open("rb") as stream:
        content = stream.read(MOST_TEXT + 1)
    try:
        return parse_game(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError(f"{file} must be a game as text, in UTF-8, got: {error}") from None
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None


def _write(recorded: RecordedGame) -> str:
    """Return the text of a game."""
    rules, states, actions, players, seed = recorded
    game = Game(rules, skip_forced=False)
    if len(states) != len(actions) + 1 or len(players) != rules.players:
        raise ValueError(
            f"a game must have one position more than actions, and {rules.players} players, "
            f"got {len(states)}, {len(actions)} and {len(players)}"
        )
    after = states[:-1].copy()
    game.decide(after, actions)
    by_hand, by_stream = after.copy(), after.copy()
    due = (after["phase"] == Phase.CHANCE) & (states[1:]["phase"] != Phase.CHANCE)
    rolled = by_hand[due]
    game.roll(rolled, states[1:]["dice"][due])
    by_hand[due] = rolled
    if (same := _same(by_hand, states[1:])).sum() < len(actions):
        raise ValueError(
            f"position {int(same.argmin()) + 1} of the game must be what action {int(same.argmin())} leads to; all "
            "decisions are recorded, forced ones too, which record_game adds"
        )
    rolled = by_stream[due]
    game.roll(rolled)
    by_stream[due] = rolled
    follows = bool(_equal(by_stream, states[1:]).all())
    if seed is not None and not (follows and _equal(game.reset(1, seed=seed), states[:1])[0]):
        raise ValueError(f"the dice of the game must be those of its seed, got seed {seed} and other dice")

    stream = seed is None and follows and bool(states["rng"][0])
    tags = {"Position": position(rules, states[:1], stream=stream)}
    if seed is not None:
        tags["Seed"] = str(seed)
    tags |= dict(zip(SEATS, players, strict=False)) | _outcome(game, states[-1:])
    lines = [
        f"[{tag} {json.dumps(value, ensure_ascii=not value.isprintable())}]" for tag, value in tags.items()
    ]
    turn = -1
    for i, state in enumerate(states):
        if state["phase"] in (Phase.OVER, Phase.CHANCE):
            break  # the last one
        if state["turn"] != turn:
            turn = int(state["turn"])
            lines += [""] * (i == 0) + [f"{turn + 1}. {SEATS[state['player']]}"]
        if i == 0 or due[i - 1]:
            lines[-1] += f" [{letters(state['dice'])}]"
        if i < len(actions):
            lines[-1] += f" {_word(rules, state, after[i], int(actions[i]))}"
    return "\n".join(lines) + "\n"


def _same(one: States, other: States) -> NDArray[np.bool_]:
    """Return whether games are equal but for their streams, bool (N,)."""
    other = other.copy()
    other["rng"] = one["rng"]
    return _equal(one, other)


def _equal(one: States, other: States) -> NDArray[np.bool_]:
    """Return whether games are equal bit by bit, bool (N,)."""
    equal: NDArray[np.bool_] = one.view(ROW) == other.view(ROW)
    return equal


def _outcome(game: Game, state: States) -> dict[str, str]:
    """Return the tags that follow from the last position."""
    points = "-".join(map(str, game.scores(state)[0]))
    if not game.is_over(state)[0]:
        return {"Result": "*", "Points": points}
    rewards = game.rewards(state)[0]
    won = rewards == rewards.max()  # all of them if the game was truncated
    return {"Result": "-".join(str(Fraction(int(one), int(won.sum()))) for one in won), "Points": points}


# ---------------------------------------------------------------------------------------------------------- reading


def parse_game(text: str) -> RecordedGame:
    """Read the text of a game.

    Dice that do not follow from the seed, and a result that is not that of the last position, are errors too.

    Raises:
        ValueError: naming the line, what is wrong there, what it must be, and what it is.
    """
    if not isinstance(text, str) or len(text) > MOST_TEXT:
        got = "more" if isinstance(text, str) else repr(text)
        raise ValueError(f"a game must be a text of at most {MOST_TEXT:,} characters, got {got}")
    lines = text.split("\n")
    tags: dict[str, tuple[int, str]] = {}
    first = 0  # line of the first turn
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
    """Name the line in the errors of what is done inside."""
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
        raise wrong(name, "quoted as JSON quotes it", found[2]) from None


def _replay(tags: dict[str, tuple[int, str]], words: Iterator[tuple[int, str]]) -> RecordedGame:
    """Play a game from its header, by its words and their lines."""
    if "Position" not in tags:
        raise ValueError('a game must begin with the position that it begins in, [Position "..."], got none')
    line, text = tags["Position"]
    with _at(line):
        rules, state, follows = read_position(text)
    game = Game(rules, skip_forced=False)
    seed = None
    if "Seed" in tags:
        line, text = tags["Seed"]
        with _at(line):
            seed, state, follows = _from_seed(game, state, text, follows)
    states: list[States] = []
    actions: list[int] = []
    turn, heading = -1, list[str]()
    line = 0
    for line, word in words:
        with _at(line):
            record = state[0]
            if record["phase"] == Phase.OVER:
                raise wrong("what follows", "nothing, because the game is over", word)
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
                    raise wrong("what follows", "a roll, as in [wfmmd]", word)
                action = parse_action(game, state, word)
                states.append(state.copy())
                actions.append(action)
                game.decide(state, [action], validate=False)
    states.append(state)
    for name, value in _outcome(game, state).items():
        if name in tags and tags[name][1] != value:
            with _at(tags[name][0]):
                raise wrong(name, f"{value}, which is what the game comes to", tags[name][1])
    for seat in SEATS[rules.players :]:
        if seat in tags:
            with _at(tags[seat][0]):
                raise wrong("a seat", f"one of {', '.join(SEATS[: rules.players])}", seat)
    names = tuple(tags.get(seat, (0, _NOBODY))[1] for seat in SEATS[: rules.players])
    return RecordedGame(rules, np.concatenate(states), np.array(actions, np.int64), names, seed)


def _from_seed(game: Game, state: States, text: str, has_stream: bool) -> tuple[int, States, bool]:
    """Return the seed, and the position with the stream that follows from it."""
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(2**64))):
        raise wrong("Seed", "a number from 0 to 2**64 - 1", text)
    seed = check_integer("Seed", int(text), 0, 2**64 - 1)
    fresh = game.reset(1, seed=seed, roll=bool(state["phase"][0] != Phase.CHANCE))
    if not _same(state, fresh)[0] or (has_stream and state["rng"][0] != fresh["rng"][0]):
        raise wrong("Seed", f'that of a game that begins with "{position(game.rules, fresh)}"', text)
    return seed, fresh, True


def _read_roll(game: Game, state: States, word: str, follows: bool, first: bool) -> None:
    """Roll what a word says, in place; if the stream is known it must say so too."""
    if len(word) != DICE + 2 or word[-1] != "]":
        raise wrong("a roll", "five dice in brackets, as in [wfmmd]", word)
    dice = read_dice("a roll", word[1:-1])
    if state["phase"][0] != Phase.CHANCE:
        if not first or state["dice"][0].tolist() != dice:
            expected = f"[{letters(state['dice'][0])}], as the position says" if first else "where one is due"
            raise wrong("a roll", expected, word)
    elif follows:
        game.roll(state)
        if state["dice"][0].tolist() != dice:
            raise wrong(
                "a roll", f"[{letters(state['dice'][0])}], which follows from the seed or stream", word
            )
    else:
        try:
            game.roll(state, [dice])
        except ValueError:
            raise wrong(
                "a roll", f"such that it has the kept dice, {letters(state['dice'][0])}", word
            ) from None
