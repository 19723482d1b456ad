"""Draw the picture at the head of the README, light and dark (`python -m tools.board`)."""

from pathlib import Path

import numpy as np

from wotd_env import STATE, Game, Phase, Rules
from wotd_env.rendering import render_svg

FOLDER = Path(__file__).parents[1] / "docs"
RULES = Rules(players=4, powers="own", dead_pieces=3)


def position() -> tuple[np.ndarray, np.ndarray]:
    """Return a position in the middle of a game, and the one before the last move, STATE (1,) each."""
    state = np.zeros(1, STATE)
    game = state[0]
    game["color"] = [0, 1, 2, 3, 4]
    game["pieces"][:4] = [[9, 4, 0, 2, 12], [3, 10, 6, 0, 5], [6, 0, 11, 8, 2], [0, 7, 4, 9, 1]]
    game["dead"] = [1 << 5, 0, 1 << 2, 1 << 4, 0]
    game["turn"], game["player"], game["phase"], game["rolls_left"] = 41, 2, Phase.KEEP, 1
    game["dice"] = [2, 2, 2, 4, 5]
    game["used"] = 0b0010
    before = state.copy()
    before["turn"] = 40
    before["pieces"][0, 1, 2] = 3
    return state, before


def pictures() -> dict[Path, str]:
    """Return what the files are to hold."""
    state, before = position()
    return {
        FOLDER / name: render_svg(Game(RULES), state, before, action=0b00111, theme=theme) + "\n"
        for name, theme in (("board.svg", "light"), ("board-dark.svg", "dark"))
    }


if __name__ == "__main__":
    for file, picture in pictures().items():
        file.write_text(picture)
