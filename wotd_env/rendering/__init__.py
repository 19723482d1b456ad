"""Render games as text, SVG, pixels, windows, notebook output and recordings."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np

from wotd_env.core.arguments import check_choice
from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.rendering.raster import render_rgb
from wotd_env.rendering.replay import Replay, replay_game
from wotd_env.rendering.svg import Pictures, render_svg, show
from wotd_env.rendering.text import render_text, roll_off_text
from wotd_env.rendering.window import FPS, close_window, show_in_window

__all__ = [
    "FPS",
    "RENDERERS",
    "RENDER_MODES",
    "Pictures",
    "Renderer",
    "Replay",
    "render_rgb",
    "render_svg",
    "render_text",
    "replay_game",
    "roll_off_text",
    "show",
]


def _each(
    draw: Callable[[Game, States, States], Any], game: Game, states: States, before: States
) -> tuple[Any, ...]:
    return tuple(draw(game, states[i : i + 1], before[i : i + 1]) for i in range(len(states)))


RENDERERS: dict[str, Callable[[Game, States, States], tuple[Any, ...] | None]] = {
    "human": show_in_window,
    "rgb_array": partial(_each, render_rgb),
    "svg": partial(_each, render_svg),
    "ansi": partial(_each, lambda game, state, before: render_text(game, state)),
    "ansi_color": partial(_each, lambda game, state, before: render_text(game, state, color=True)),
}
"""The render function `f(game, states, before)` of each mode. `states`, STATE (N,), are the games. `before`, STATE
(N,), are the same games before their last moves. The function returns one picture per game, or None if it opens a
window.
"""

# modules of the extra `render`
_NEEDED = {"human": ("pygame", "resvg_py", "PIL"), "rgb_array": ("resvg_py", "PIL")}
RENDER_MODES = [mode for mode in RENDERERS if all(map(find_spec, _NEEDED.get(mode, ())))]
"""The values of the argument `render_mode` that work with the installed libraries."""


class Renderer:
    """The renderer of an environment. The last move of each game is marked.

    Args:
        game: the rules.
        mode: one of `RENDER_MODES`, or None to render nothing.

    Raises:
        ValueError: for an unknown mode.
    """

    def __init__(self, game: Game, mode: str | None) -> None:
        self._game, self._mode = game, check_choice("render_mode", mode, (None, *RENDERERS))
        self._seen: States | None = None  # the games in the previous call of `render`
        self._before: States | None = None  # the games before their last moves

    def render(self, states: States) -> tuple[Any, ...] | None:
        """Return one picture for each game of `states`, STATE (N,), or None if the mode is "human" or None.

        Pass the same games in the same order to every call, because `render` finds a move by comparing a game with its
        state in the previous call.

        Raises:
            ValueError: for a record that is invalid under the rules, or if the number of games has changed.
        """
        self._game.check(states)
        if self._mode is None:
            gymnasium.logger.warn("render() does nothing without a render_mode; 'ansi' returns text")
            return None
        if self._seen is None or self._before is None:
            self._seen = self._before = states.copy()
        if len(states) != len(self._seen):
            raise ValueError(
                f"states must be the {len(self._seen)} games of the last call, got {len(states)}"
            )
        moved = (states["pieces"] != self._seen["pieces"]).any((1, 2))
        self._before = np.where(moved, self._seen, self._before)
        self._seen = states.copy()
        return RENDERERS[self._mode](self._game, states, self._before)

    def close(self) -> None:
        """Close the window in mode "human"."""
        if self._mode == "human":
            close_window()
