"""Layouts of dead pieces as text (R15).

A layout has the plain spaces of the five paths, drawn as in a position: `#` is a dead piece, `.` is any other space.
So `#./../../../..` has one dead piece, on space 1 of the path of water, on a board with two plain spaces. Without
immunity (R14), layouts that differ only in the order of their paths are equivalent. The *standard* layout among them
has its paths in the order of their characters.
"""

from __future__ import annotations

from itertools import combinations_with_replacement, product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.rules import BLOCKADE, DEAD, EMPTY, PATHS


def standard(layout: str) -> str:
    """Return the standard layout: `../#./../../##` -> `##/#./../../..`."""
    return "/".join(sorted(layout.split("/")))


def standard_layouts(spaces: int) -> list[str]:
    """Return the standard layouts of games of two players; the empty layout is the last one.

    There are 6, 56 and 792 with one, two and three plain spaces.
    """
    paths = [path for path in map("".join, product(DEAD + EMPTY, repeat=spaces)) if BLOCKADE not in path]
    return list(map("/".join, combinations_with_replacement(paths, PATHS)))


def layout_of(dead: ArrayLike, spaces: int) -> str:
    """Return the layout of dead pieces that are given as in the field `dead` of `STATE`, integers (5,)."""
    return "/".join(
        "".join(DEAD if bits >> space & 1 else EMPTY for space in range(1, spaces + 1))
        for bits in np.asarray(dead).tolist()
    )


def dead_of(layout: str) -> NDArray[np.uint16]:
    """Return the dead pieces of a layout as in the field `dead` of `STATE`, uint16 (5,)."""
    paths = layout.split("/")
    return np.array(
        [sum((mark == DEAD) << at for at, mark in enumerate(path, 1)) for path in paths], np.uint16
    )
