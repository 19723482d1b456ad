"""A game as text: the paths as rows, their spaces as columns, a letter for every seat's pieces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import ELEMENTS, NUMBERED, POWERS, Phase

__all__ = ["render_text"]

LETTERS = "ABCDE"
DEAD = "#"
EMPTY = "."
ANIMALS = ("black tortoise", "red bird", "white tiger", "yellow dragon", "blue dragon")
FACES = (*ELEMENTS, "DRAGON")


def render_text(game: Game, state: NDArray[np.void]) -> str:
    """Return what a person at the table sees of a game.

    Args:
        game: the rules.
        state: STATE (1,).

    Returns:
        Lines of at most 110 characters without a line break at the end.
    """
    return "\n".join([*_news(game, state), "", *_board(game, state[0]), "", *_seats(game, state)])


def _news(game: Game, state: NDArray[np.void]) -> list[str]:
    """Return the lines that tell what is going on."""
    record = state[0]
    actor = f"player_{record['player']} ({LETTERS[record['player']]})"
    if record["phase"] == Phase.OVER:
        when = f"after {record['turn']} turns" if record["truncated"] else f"in turn {record['turn'] + 1}"
        return [f"The game is over {when}: {_result(game, state)}."]
    left = int(record["rolls_left"])
    what = {
        Phase.CHANCE: "rolls the dice",
        Phase.KEEP: f"chooses which dice to keep, {left} re-roll{'s' * (left != 1)} left",
        Phase.MOVE: "moves",
        Phase.EXTRA: "may take an extra turn",
    }[Phase(record["phase"])]
    if record["phase"] == Phase.KEEP and left == 0:
        what = "may re-roll once more by the eye of the tiger"
    perfection = " (perfection)" if record["perfection"] else ""
    dice = "  ".join(f"[{FACES[face] if face >= 0 else '?'}]" for face in record["dice"])
    return [f"Turn {record['turn'] + 1}: {actor} {what}{perfection}", f"Dice: {dice}"]


def _result(game: Game, state: NDArray[np.void]) -> str:
    if state["truncated"][0]:
        return "the limit of turns is reached, nobody wins"
    rewards = game.rewards(state)[0]
    winners = [f"player_{seat} ({LETTERS[seat]})" for seat in np.flatnonzero(rewards == rewards.max())]
    return f"{winners[0]} wins" if len(winners) == 1 else f"{', '.join(winners)} share the victory"


def _board(game: Game, record: np.void) -> list[str]:
    """Return the board, one line a path, under the numbers of the spaces."""
    spaces = game.rules.spaces
    numbers = [*range(1, spaces + 1), *(f"+{points}" for points in range(1, NUMBERED + 1))]
    lines = [_row("", numbers, spaces, "off the board")]
    for path, element in enumerate(ELEMENTS):
        cells = [
            DEAD if record["dead"][path] >> space & 1 else EMPTY for space in range(spaces + NUMBERED + 1)
        ]
        waiting = ""
        for seat in range(game.rules.players):
            space = record["pieces"][seat, path]
            if space:
                cells[space] = LETTERS[seat]
            else:
                waiting += LETTERS[seat]
        lines.append(_row(element, cells[1:], spaces, " ".join(waiting)))
    return lines


def _row(name: str, cells: Sequence[object], spaces: int, waiting: str) -> str:
    plain, numbered = (" ".join(f"{cell:>2}" for cell in part) for part in (cells[:spaces], cells[spaces:]))
    return f"{name:<6} {plain} | {numbered} |  {waiting}".rstrip()


def _seats(game: Game, state: NDArray[np.void]) -> list[str]:
    """Return a line for every seat, the one to act marked."""
    record = state[0]
    lines = []
    for seat, score in enumerate(game.scores(state)[0]):
        mark = ">" if record["phase"] != Phase.OVER and record["player"] == seat else " "
        color = record["color"][seat]
        power = ""
        if game.rules.powers != "none":
            power = POWERS[color] if game.rules.powers == "own" else "any power"
            power += " (used)" if record["used"] >> seat & 1 else ""
        who = f"{LETTERS[seat]}  player_{seat}  {ELEMENTS[color]}, {ANIMALS[color]}"
        lines.append(f"{mark} {who:<34}  {score:>2} point{' ' if score == 1 else 's'}  {power}".rstrip())
    if game.rules.dead_pieces:
        lines.append(f"  {DEAD}  dead piece")
    return lines
