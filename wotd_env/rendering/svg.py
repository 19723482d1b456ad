"""Render a position as a single SVG without fonts, scripts or external files; show several positions in a notebook."""

from __future__ import annotations

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from xml.sax.saxutils import escape

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game
from wotd_env.core.rules import DRAGON, PATHS, POWERS
from wotd_env.core.state import States
from wotd_env.rendering import glyphs
from wotd_env.rendering.scene import HEIGHT, PALETTES, WIDTH, Mark, scene
from wotd_env.rendering.text import render_text, roll_off_text


def render_svg(
    game: Game,
    state: States,
    before: States | None = None,
    action: int | None = None,
    theme: str = "light",
    *,
    width: int = WIDTH,
    roll_off: NDArray[np.int8] | None = None,
    names: Sequence[str] | None = None,
) -> str:
    """Return a position as an SVG picture. The same arguments give the same string.

    Args:
        game: the rules.
        state: STATE (1,).
        before: STATE (1,), an earlier position of the same game. Pieces that have moved since then are
            marked. If `before` is a position of another game, nothing is marked.
        action: the action taken in this position. If the action is a hold, the kept dice are marked.
        theme: "light", "dark", or "auto" for the reader's preference. "auto" works only in browsers.
        width: width of the picture in pixels; the height is three quarters of the width.
        roll_off: int8 (R, n, 5), the result of `roll_off_of`. If R > 0, the picture shows the dice of
            the roll-off instead of the seats' points.
        names: the players' names by seat; by default "player_0", "player_1" and so on.

    Raises:
        ValueError: for a record that is invalid under these rules, or an invalid value of another argument.
    """
    check_integer("width", width, 1)
    marks = scene(game, state, before, action, theme, roll_off=roll_off, names=names)
    uses = Counter(mark.svg for mark in marks)
    ids = {svg: f"w{zlib.crc32(svg.encode()):08x}" for svg, count in uses.items() if count > 1}
    symbols = "".join(f'<g id="{name}">{svg}</g>' for svg, name in ids.items())
    drawn = "".join(
        place(mark, f'<use href="#{ids[mark.svg]}"/>' if mark.svg in ids else mark.svg) for mark in marks
    )
    text = "\n".join([render_text(game, state, names=names), *roll_off_text(roll_off)])
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wotd" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{width}" height="{width * HEIGHT // WIDTH}">'
        f"<title>{escape(text.partition(chr(10))[0])}</title><desc>{escape(text)}</desc>"
        f"{f'<style>{style()}</style>' if theme == 'auto' else ''}<defs>{symbols}</defs>{drawn}</svg>"
    )


PAGES = (
    ("light", ":is([data-theme=light],[data-jp-theme-light=true],.vscode-light) "),
    ("dark", ":is([data-theme=dark],[data-jp-theme-light=false],.vscode-dark) "),
)
"""The themes of Sphinx sites, JupyterLab and VS Code, which can differ from the reader's preference."""


class Pictures:
    """Pictures of games, side by side. A notebook shows this object if it is the last expression of a cell."""

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
            f"<style>.wotd{{display:block;width:100%;height:auto;border-radius:8px}}"
            f"{''.join(colors(*page) for page in PAGES)}</style>{cells}</div>{more}"
        )


def show(
    game: Game, states: States, before: States | None = None, theme: str = "auto", most: int = 16
) -> Pictures:
    """Return pictures of games.

    Args:
        game: the rules.
        states: STATE (N,).
        before: STATE (N,), earlier positions of the same games. Pieces that have moved since then are marked.
        theme: "light", "dark", or "auto" for the theme of the page, in JupyterLab, VS Code and Sphinx sites; elsewhere
            for the reader's preference.
        most: maximum number of pictures.

    Raises:
        ValueError: for a record that is invalid under these rules, or an unknown theme.
    """
    game.check(states)
    before = states if before is None else before
    drawn = range(min(len(states), check_integer("most", most, 0)))
    pictures = [render_svg(game, states[i : i + 1], before[i : i + 1], theme=theme) for i in drawn]
    return Pictures(pictures, len(states) - len(drawn))


def place(mark: Mark, drawing: str) -> str:
    """Return the SVG `drawing`, moved and scaled to the place of `mark`."""
    scale = f" scale({mark.scale:.5g})" if mark.scale != 1 else ""
    at = f"{mark.x:.2f} {mark.y:.2f}"
    return f'<g transform="translate({at}){scale}">{drawing}</g>' if mark.x or mark.y or scale else drawing


def style() -> str:
    """Return the CSS of the theme "auto": the colors follow the reader's preference, light or dark."""
    return f"{colors('light')}@media (prefers-color-scheme:dark){{{colors('dark')}}}"


def colors(theme: str, within: str = "") -> str:
    """Return the CSS of the colors of a theme, for pictures in elements that the selector `within` matches."""
    values = ";".join(f"--wotd-{name}:{color}" for name, color in PALETTES[theme].items())
    return f"{within}.wotd{{{values}}}"


def symbols() -> str:
    """Return an SVG with one symbol for each part of a picture.

    The ids of the symbols are `piece-0` to `piece-4`, `dead`, `die-0` to `die-5`, `element-0` to `element-4`, `power-0`
    to `power-4`, `power-5` (for the rule `powers="any"`), and `again` (an arrow for another roll or turn). Pieces and
    dice use the CSS variables of `style`. Elements, powers and `again` have the color of the surrounding text.
    """
    colors, ink = PALETTES["auto"], "currentColor"
    drawings = {
        "dead": glyphs.dead(colors["stone"], colors["cut"], colors["rim"]),
        "again": glyphs.again(ink),
    }
    for color in range(PATHS):
        fill, figure = colors[f"fill{color}"], colors[f"ink{color}"]
        drawings[f"piece-{color}"] = glyphs.piece(color, fill, figure, colors["edge"], colors["rim"])
        drawings[f"element-{color}"] = glyphs.face(color, ink, colors["card"])
    for face in range(DRAGON + 1):
        fill, figure = colors[f"fill{face}"], colors[f"ink{face}"]
        drawings[f"die-{face}"] = glyphs.die(face, fill, figure, colors["frame"])
    for power in range(len(POWERS) + 1):
        drawings[f"power-{power}"] = glyphs.power(power, ink, colors["card"])
    box = f"0 0 {glyphs.BOX} {glyphs.BOX}"
    parts = (glyphs.tag("symbol", drawing, id=name, viewBox=box) for name, drawing in drawings.items())
    return f'<svg xmlns="http://www.w3.org/2000/svg">{"".join(parts)}</svg>'
