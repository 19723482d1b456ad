"""A game whose layouts of dead pieces are drawn from a list, for learners that use `Game` directly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.core.stream import mix
from wotd_env.envs.starts import read_layouts


class LayoutGame(Game):
    """A `Game` in which each new game draws one of the layouts, as in the environments with the argument `layouts`.

    Args:
        rules: the rules. `dead_pieces` must not be 0, because learned values and networks ignore dead pieces otherwise.
        layouts: the layouts, such as `"#./../../../.."`; if None, the rules place the dead pieces.
        **options: other arguments of `Game`.

    Raises:
        ValueError: for an impossible layout, an empty list, or rules without dead pieces.
    """

    def __init__(self, rules: Rules, layouts: Sequence[str] | None = None, **options: Any) -> None:
        super().__init__(rules, **options)
        self.layouts = read_layouts(replace(rules, dead_pieces=0), layouts)
        if layouts is not None and not rules.dead_pieces:
            raise ValueError(
                "dead_pieces must be at least 1 if layouts are given, got 0: choose dead_pieces=5"
            )

    def reset(self, state: States | int, seed: int | None = None, **options: Any) -> States:
        """Do the same as `Game.reset`, with a layout for each new game."""
        started = super().reset(state, seed, **options)
        where = options.get("where")
        self._place(started, np.ones(len(started), np.bool_) if where is None else np.asarray(where))
        return started

    def step_autoreset(self, state: States, actions: Any, **options: Any) -> None:  # type: ignore[override]
        """Do the same as `Game.step_autoreset`, with a layout for each new game. The arrays must be given by name."""
        done = options.setdefault("done", np.empty(len(state), np.bool_))
        super().step_autoreset(state, actions, **options)
        self._place(state, done)
        if (observation := options.get("observation")) is not None:
            self.observe(state, out=observation)

    def _place(self, state: States, new: NDArray[np.bool_]) -> None:
        """Draw the layouts of the games at `new`. They are before their first move, so dice and masks stay valid."""
        if len(self.layouts):
            streams: Any = ~state["rng"][new]
            state["dead"][new] = self.layouts[mix(streams) % np.uint64(len(self.layouts))]
