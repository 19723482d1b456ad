"""Pictures of games: `text` for terminals and notebooks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.rendering.text import render_text

__all__ = ["RENDER_MODES", "render", "render_text"]

RENDER_MODES = ["human", "ansi"]
"""What environments offer: to print the position at every step, or to return it as text."""


def render(game: Game, state: NDArray[np.void], mode: str) -> str | None:
    """Render a game, STATE (1,), in one of the `RENDER_MODES`."""
    text = render_text(game, state)
    if mode == "ansi":
        return text
    print(text)
    return None
