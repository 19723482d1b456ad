"""The track `generalization`: agents train on some layouts of dead pieces, and are graded on others.

Equivalent layouts are represented by their standard layout, so no test layout is a training layout with its paths in
another order. The lists never change, because results with other lists could not be compared.
"""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_choice
from wotd_env.core.layouts import layout_of, standard_layouts
from wotd_env.core.rules import DEAD, Rules
from wotd_env.core.state import States

TESTS = {2: 12, 3: 4}
"""Plain spaces of the track -> number of test layouts. All other layouts, and the empty one, are for training."""

BOARDS = {spaces: Rules(spaces=spaces, dead_pieces=5) for spaces in TESTS}
"""Plain spaces -> the rules of the bundled positions. `dead_pieces` applies to games; positions have other numbers."""

TRAIN, TEST = "training layouts", "test layouts"  # names in results


def layouts(split: str, spaces: int) -> list[str]:
    """Return the standard layouts of a split, `"train"` or `"test"`, with 2 or 3 plain spaces.

    Raises:
        ValueError: for another split or number of spaces.
    """
    check_choice("split", split, ("train", "test"))
    if spaces not in TESTS:
        raise ValueError(f"spaces must be one of {', '.join(map(str, TESTS))} in this track, got {spaces!r}")
    test = in_order(spaces)[: TESTS[spaces]]
    return sorted(test) if split == "test" else sorted({*standard_layouts(spaces)} - {*test})


def graded(spaces: int) -> list[str]:
    """Return the layouts of the bundled positions: all test layouts, then the same number of training layouts."""
    return in_order(spaces)[: 2 * TESTS[spaces]]


def in_order(spaces: int) -> list[str]:
    """Return the layouts with dead pieces in a fixed order that does not depend on their properties."""
    dead = [layout for layout in standard_layouts(spaces) if DEAD in layout]
    return sorted(dead, key=lambda layout: hashlib.sha256(layout.encode()).digest())


def by_split(rules: Rules, state: States) -> dict[str, NDArray[np.bool_]]:
    """Return for each split which states have one of its layouts: name of the split -> bool (N,).

    The result is empty if `rules` are not those of the track.
    """
    if rules not in BOARDS.values():
        return {}
    dead, number = np.unique(state["dead"], axis=0, return_inverse=True)
    tests = layouts("test", rules.spaces)
    test = np.array([layout_of(each, rules.spaces) in tests for each in dead], np.bool_)[number]
    return {TRAIN: ~test, TEST: test}
