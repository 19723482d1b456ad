"""Show games in a window, for `render_mode="human"`.

A process can have only one window, because SDL, the library under pygame, has only one display.
"""

from __future__ import annotations

import math
import os
from types import SimpleNamespace

from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.extras import needed_for
from wotd_env.rendering.raster import render_rgb
from wotd_env.rendering.scene import HEIGHT, WIDTH

FPS = 4
"""Maximum number of pictures per second, so that people can follow the game."""

MOST = 16

# `shut` is True after the user has closed the window.
_window = SimpleNamespace(clock=None, shut=False)


def show_in_window(game: Game, states: States, before: States) -> None:
    """Show the first `MOST` games of `states`, STATE (N,), in a window.

    Then wait, so that at most `FPS` pictures are shown per second.

    The first call opens the window. If the user closes the window, later calls show nothing until
    `close_window` is called.

    Raises:
        ImportError: if the extra `render` is not installed.
        RuntimeError: if there is no display.
    """
    os.environ.setdefault("PYGAME_HIDE_SUPPORT_PROMPT", "1")
    with needed_for("a window", "render"):
        import pygame
    if _window.shut:
        return
    surface = pygame.display.get_surface() if pygame.display.get_init() else None
    if surface is None:
        try:
            pygame.display.init()  # `pygame.init` would also open the sound device
            surface = pygame.display.set_mode((WIDTH, HEIGHT), pygame.RESIZABLE)
        except pygame.error as error:
            raise RuntimeError(
                f"no window can be opened ({error}): without a display use render_mode='rgb_array', or set the "
                "environment variable SDL_VIDEODRIVER=dummy"
            ) from error
        pygame.display.set_caption("Way of the Dragon")
    if _window.clock is None:
        _window.clock = pygame.time.Clock()
    if any(event.type == pygame.QUIT for event in pygame.event.get()):
        close_window()
        _window.shut = True
        return
    games = min(len(states), MOST)
    columns = math.ceil(math.sqrt(games))
    rows = math.ceil(games / columns)
    width = max(1, min(surface.get_width() // columns, surface.get_height() // rows * WIDTH // HEIGHT))
    surface.fill("black")
    for i in range(games):
        pixels = render_rgb(game, states[i : i + 1], before[i : i + 1], width=width)
        left = (surface.get_width() - columns * width) // 2 + i % columns * width
        top = (surface.get_height() - rows * len(pixels)) // 2 + i // columns * len(pixels)
        surface.blit(pygame.surfarray.make_surface(pixels.swapaxes(0, 1)), (left, top))
    pygame.display.flip()
    _window.clock.tick(FPS)


def close_window() -> None:
    """Close the window if there is one."""
    if _window.clock is not None:
        import pygame

        pygame.display.quit()
        _window.clock = None
    _window.shut = False
