"""The layouts of dead pieces of the track `generalization`: agents train on some and are graded on others.

Equivalent layouts are represented by their standard layout, so no test layout is a training layout with its paths in
another order. The lists never change, because results with other lists could not be compared.
"""

from __future__ import annotations

import hashlib

from wotd_env.core.arguments import check_choice
from wotd_env.core.layouts import standard_layouts

TESTS = {2: 12, 3: 4}
"""Plain spaces of the track -> number of test layouts. All other layouts, and the empty one, are for training."""


def layouts(split: str, spaces: int) -> list[str]:
    """Return the standard layouts of a split, `"train"` or `"test"`, with 2 or 3 plain spaces.

    Raises:
        ValueError: for another split or number of spaces.
    """
    check_choice("split", split, ("train", "test"))
    if spaces not in TESTS:
        raise ValueError(f"spaces must be one of {', '.join(map(str, TESTS))} in this track, got {spaces!r}")
    dead = [layout for layout in standard_layouts(spaces) if "#" in layout]
    test = sorted(dead, key=lambda layout: hashlib.sha256(layout.encode()).digest())[: TESTS[spaces]]
    return sorted(test) if split == "test" else sorted({*standard_layouts(spaces)} - {*test})
