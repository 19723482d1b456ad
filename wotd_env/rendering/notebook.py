"""Show positions in notebooks."""

from __future__ import annotations

import math

from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.rendering.svg import render_svg


class Pictures:
    """Pictures side by side, shown as the value of a notebook cell."""

    def __init__(self, pictures: list[str], more: int) -> None:
        self._pictures, self._more = pictures, more

    def __repr__(self) -> str:
        more = f", {self._more} more are not drawn" if self._more else ""
        return f"<pictures of {len(self._pictures)} games{more}>"

    def _repr_html_(self) -> str:
        columns = min(math.ceil(math.sqrt(len(self._pictures))), 5) or 1
        cells = "".join(f"<div>{picture}</div>" for picture in self._pictures)
        more = f"<p>and {self._more} more</p>" if self._more else ""
        return (
            f'<div style="display:grid;gap:8px;grid-template-columns:repeat({columns},minmax(0,1fr));'
            f'max-width:{max(640, 320 * columns)}px">'
            f"<style>.wotd{{display:block;width:100%;height:auto;border-radius:8px}}</style>{cells}</div>{more}"
        )


def show(
    game: Game,
    states: States,
    before: States | None = None,
    theme: str = "auto",
    most: int = 16,
) -> Pictures:
    """Show games in a notebook, side by side.

    Args:
        game: the rules.
        states: STATE (N,).
        before: STATE (N,), earlier positions of the same games. Pieces that have moved since are marked.
        theme: "light", "dark", or "auto" for the preference of the reader's system.
        most: maximum number of pictures; the first games are drawn.

    Raises:
        ValueError: for a record that is invalid under these rules, or an unknown theme.
    """
    before = states if before is None else before
    drawn = range(min(len(states), most))
    pictures = [render_svg(game, states[i : i + 1], before[i : i + 1], theme=theme) for i in drawn]
    return Pictures(pictures, len(states) - len(pictures))
