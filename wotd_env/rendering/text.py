"""Render a game as text: paths are rows, spaces are columns, and letters stand for the seats' pieces."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_integers, check_names
from wotd_env.core.checks import check_one
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS, letters
from wotd_env.core.rules import DEAD, DICE, DRAGON, ELEMENTS, EMPTY, MAX_PLAYERS, NUMBERED, POWERS, Phase
from wotd_env.core.state import States

ANIMALS = ("black tortoise", "red bird", "white tiger", "yellow dragon", "blue dragon")
FACE_NAMES = (*ELEMENTS, "DRAGON")

# ANSI codes for the five elements, the dragon and dead pieces, e.g. "97;40" for white letters on black.
# All terminals support the 16 basic colors.
_COLORS = ("97;40", "97;41", "30;107", "30;103", "97;44", "97;42", "97;100")
_STONE = 6


def render_text(game: Game, state: States, color: bool = False, names: Sequence[str] | None = None) -> str:
    """Return a position as text: the phase, the dice, the board and the seats.

    Args:
        game: the rules.
        state: STATE (1,).
        color: whether to color dice, paths and pieces with ANSI escape sequences.
        names: the players' names by seat (see `seat_names`).

    Returns:
        Lines of at most 110 characters, not counting names and escape sequences. There is no line break at the end.

    Raises:
        ValueError: for a record that is invalid under these rules, or a wrong number of names.
    """
    check_one(state)
    game.check(state)
    how: _Paint = paint if color else lambda text, color: text
    names = seat_names(names, game.rules.players)
    news, seats = _news(game, state, names, how), _seats(game, state, names, how)
    return "\n".join([*news, "", *_board(game, state[0], how), "", *seats])


def seat_names(names: Sequence[str] | None, players: int) -> list[str]:
    """Return the name to show for each seat.

    Args:
        names: names by seat, as in game files. "me:Anna" is shown as "Anna". "?" is shown as "player_0" for seat 0,
            "player_1" for seat 1 and so on. None means "?" for all seats. Control characters are shown as escapes.
        players: number of seats.

    Raises:
        ValueError: if `names` is not a list of one string for each seat.
    """
    if names is not None:
        check_names("names", names, players)
    shown = []
    for seat, name in enumerate(names or ["?"] * players):
        known = name.removeprefix("me:") or "me"
        shown.append(f"player_{seat}" if name == "?" else known if known.isprintable() else repr(known))
    return shown


def describe_due(state: States) -> str:
    """Return words for the next decision or roll, such as "rolls the dice". `state` is STATE (1,)."""
    check_one(state)
    left = int(state["rolls_left"][0])
    keep = f"chooses which dice to keep, {left} re-roll{'s' * (left != 1)} left"
    return {
        Phase.CHANCE: "rolls the dice",
        Phase.KEEP: keep if left else "may re-roll once more with the eye of the tiger",
        Phase.MOVE: "moves",
        Phase.EXTRA: "may take an extra turn",
        Phase.OVER: "has finished",
    }[Phase(state["phase"][0])]


def roll_off_text(rounds: NDArray[np.int8] | None) -> list[str]:
    """Return the rounds of a roll-off (see `roll_off_of`) as lines of at most 110 characters.

    Raise ValueError if `rounds` is not the result of `roll_off_of`.
    """
    lines = []
    for number, dice in enumerate(() if rounds is None else check_roll_off(rounds)):
        rolled = [
            f"{SEATS[seat]} [{letters(dice[seat])}] {(dice[seat] == DRAGON).sum() or 'none'}"
            for seat in np.flatnonzero(dice[:, 0] >= 0)
        ]
        what = "Roll-off for the start, by dragons" if number == 0 else "A tie, so once more"
        lines.append(f"{what}: {', '.join(rolled)}")
    return lines


def check_roll_off(rounds: NDArray[np.int8], players: int | None = None) -> NDArray[np.int64]:
    """Return the dice of a roll-off, int64 (R, n, 5). Raise ValueError for an invalid array."""
    given = np.shape(rounds)
    seats = (
        given[1]
        if players is None and len(given) == 3 and given[1] <= MAX_PLAYERS
        else players or MAX_PLAYERS
    )
    return check_integers("roll_off", rounds, (*given[:1], seats, DICE), -1, DRAGON)


_Paint = Callable[[str, int], str]


def paint(text: str, color: int) -> str:
    """Color text with ANSI codes. `color` is 0 to 4 for an element, 5 for the dragon, or 6 for dead pieces."""
    return f"\x1b[1;{_COLORS[color]}m{text}\x1b[0m"


def _news(game: Game, state: States, names: Sequence[str], paint: _Paint) -> list[str]:
    """Return the lines with the turn and the dice. If the game is over, return a line with the result."""
    record = state[0]
    lettered = [f"{name} ({letter})" for name, letter in zip(names, SEATS, strict=False)]
    actor = lettered[record["player"]]
    if record["phase"] == Phase.OVER:
        when = f"after {record['turn']} turns" if record["expired"] else f"in turn {record['turn'] + 1}"
        return [f"The game is over {when}: {describe_result(game, state, lettered)}."]
    perfection = " (perfection)" if record["perfection"] else ""
    dice = "  ".join(
        paint(f"[{FACE_NAMES[face]}]", face) if face >= 0 else "[?]" for face in record["dice"].tolist()
    )
    return [f"Turn {record['turn'] + 1}: {actor} {describe_due(state)}{perfection}", f"Dice: {dice}"]


def winners(game: Game, state: States) -> list[int]:
    """Return the winning seats of a finished game, or an empty list if the turn limit has ended it."""
    rewards = game.rewards(state)[0]
    won: list[int] = np.flatnonzero(rewards == rewards.max()).tolist()
    return [] if state["expired"][0] else won


def describe_result(game: Game, state: States, names: Sequence[str]) -> str:
    """Return the result of a finished game in words."""
    won = winners(game, state)
    if not won:
        return "the turn limit is reached, nobody wins"
    if len(won) > 1:
        return f"{listed([names[seat] for seat in won])} share the victory"
    points = int(game.scores(state)[0, won[0]])
    return f"{names[won[0]]} wins with {points} point{'s' * (points != 1)}"


def listed(words: Sequence[str]) -> str:
    """Join words as in "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _board(game: Game, record: np.void, paint: _Paint) -> list[str]:
    spaces = game.rules.spaces
    numbers = [f"{space:>2}" for space in range(1, spaces + 1)]
    numbers += [f"+{points}" for points in range(1, NUMBERED + 1)]
    lines = [_row(" " * 6, numbers, spaces, "off the board")]
    for path, element in enumerate(ELEMENTS):
        dead = [record["dead"][path] >> space & 1 for space in range(spaces + NUMBERED + 1)]
        cells = [f" {paint(DEAD, _STONE)}" if stone else f" {EMPTY}" for stone in dead]
        waiting = []
        for seat in range(game.rules.players):
            space = record["pieces"][seat, path]
            piece = paint(SEATS[seat], int(record["color"][seat]))
            if space:
                cells[space] = f" {piece}"
            else:
                waiting.append(piece)
        name = paint(element, path) + " " * (6 - len(element))
        lines.append(_row(name, cells[1:], spaces, " ".join(waiting)))
    return lines


def _row(name: str, cells: Sequence[str], spaces: int, waiting: str) -> str:
    return f"{name} {' '.join(cells[:spaces])} | {' '.join(cells[spaces:])} |  {waiting}".rstrip()


def _seats(game: Game, state: States, names: Sequence[str], paint: _Paint) -> list[str]:
    """Return the lines about the seats and dead pieces."""
    record = state[0]
    lines, width = [], max(map(len, names))
    for seat, score in enumerate(game.scores(state)[0]):
        mark = ">" if record["phase"] != Phase.OVER and record["player"] == seat else " "
        color = record["color"][seat]
        power = {"none": "", "own": POWERS[color], "any": "any power"}[game.rules.powers]
        power += " (used)" * bool(power and record["used"] >> seat & 1)
        animal = f"{ELEMENTS[color]}, {ANIMALS[color]}"
        who = f"{paint(SEATS[seat], int(color))}  {names[seat]:<{width}}  {animal:<21}"
        points = f"{score:>2} point{' ' if score == 1 else 's'}"
        lines.append(f"{mark} {who}  {points}  {power}".rstrip())
    if game.rules.dead_pieces:
        lines.append(f"  {paint(DEAD, _STONE)}  dead piece")
    return lines
