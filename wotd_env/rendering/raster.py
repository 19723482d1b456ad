"""Render a position in pixels."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from io import BytesIO
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.extras import needed_for
from wotd_env.rendering.scene import HEIGHT, WIDTH, Mark, scene
from wotd_env.rendering.svg import place

MOST_WIDTH = 10_000
"""Maximum width of a picture in pixels. Such a picture takes 300 MB; without memory, the process aborts."""


class _Sprite(NamedTuple):
    """The pixels of a mark. Drawing the mark over a pixel p gives the pixel `color + p * keep / 255`."""

    area: tuple[slice, slice]
    color: NDArray[np.uint16]  # (h, w, 3): RGB, 0 to 255, already multiplied by the opacity (0 to 1)
    keep: NDArray[np.uint16]  # (h, w, 1): 0 (the mark is opaque) to 255 (transparent)


def render_rgb(
    game: Game,
    state: States,
    before: States | None = None,
    action: int | None = None,
    theme: str = "light",
    *,
    width: int = 640,
    roll_off: NDArray[np.int8] | None = None,
    names: Sequence[str] | None = None,
) -> NDArray[np.uint8]:
    """Return the picture of a position as RGB pixels, uint8 (3/4 `width`, `width`, 3).

    Args:
        game: the rules.
        state: STATE (1,).
        before: STATE (1,), an earlier position of the same game. Pieces that have moved since then are marked.
        action: the decision taken in this position. If the action is a hold, the kept dice are marked.
        theme: "light" or "dark", but not "auto", because only browsers know the reader's preference.
        width: width of the picture in pixels.
        roll_off: int8 (R, n, 5), the result of `roll_off_of`. If given, its dice are shown instead of the points.
        names: the players' names by seat; by default "player_0", "player_1" and so on.

    Raises:
        ImportError: if the extra `render` is not installed.
        ValueError: for a record that is invalid under these rules, an unknown theme, a wrong number of names, or a
            width outside 1 to MOST_WIDTH.
    """
    if theme == "auto":
        raise ValueError("theme must be 'light' or 'dark' in pixels, got 'auto'")
    check_integer("width", width, 1, MOST_WIDTH)
    board, *marks = scene(game, state, before, action, theme, roll_off=roll_off, names=names)
    picture = _ground(board, width).copy()
    for mark in marks:
        sprite = _sprite(mark, width)
        picture[sprite.area] = (picture[sprite.area] * sprite.keep + 127) // 255 + sprite.color
    return picture


@functools.lru_cache(maxsize=8)
def _ground(board: Mark, width: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(_draw(board, 0, 0, width, _height(width), width)[..., :3])


@functools.lru_cache(maxsize=1024)  # at a width of 640 pixels, the marks of a few games take 10 MB
def _sprite(mark: Mark, width: int) -> _Sprite:
    unit = width / WIDTH
    left, top = max(math.floor(mark.x * unit), 0), max(math.floor(mark.y * unit), 0)
    right = min(math.ceil((mark.x + mark.width * mark.scale) * unit), width)
    bottom = min(math.ceil((mark.y + mark.height * mark.scale) * unit), _height(width))
    pixels = _draw(mark, left, top, right - left, bottom - top, width).astype(np.uint16)
    opacity = pixels[..., 3:]
    area = slice(top, bottom), slice(left, right)
    return _Sprite(area, (pixels[..., :3] * opacity + 127) // 255, 255 - opacity)


def _height(width: int) -> int:
    return max(width * HEIGHT // WIDTH, 1)


def _draw(mark: Mark, left: int, top: int, columns: int, rows: int, width: int) -> NDArray[np.uint8]:
    """Return the RGBA pixels of one mark on a transparent ground, uint8 (rows, columns, 4)."""
    with needed_for("a picture in pixels", "render"):
        import resvg_py
        from PIL import Image
    unit = width / WIDTH
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{columns}" height="{rows}" '
        f'viewBox="{left / unit} {top / unit} {columns / unit} {rows / unit}">{place(mark, mark.svg)}</svg>'
    )
    with Image.open(BytesIO(resvg_py.svg_to_bytes(svg_string=svg, skip_system_fonts=True))) as image:
        return np.asarray(image.convert("RGBA"))
