"""Draw text as strokes, so that an SVG needs no font and looks the same on every machine.

A letter is an SVG path on a grid. The baseline is at y = 0, and y increases downwards. Small letters are 7 units high,
capitals and digits 10 units.
"""

from __future__ import annotations

import functools
import unicodedata

CAPITAL = 10.0

_SPACING = 2.5
_ROUND = "a3.2 3.5 0 1 0-6.4 0 3.2 3.5 0 1 0 6.4 0"

# character -> (width, SVG path)
_LETTERS: dict[str, tuple[float, str]] = {
    " ": (1.8, ""), "A": (8, "M0 0 4-10 8 0M1.4-3.4H6.6"),
    "B": (6.4, "M0-5.2V-10H3.6a2.4 2.4 0 0 1 0 4.8H0V0H3.8a2.6 2.6 0 0 0 0-5.2"),
    "C": (7.2, "M7.2-8.2A4.2 5 0 1 0 7.2-1.8"), "D": (7.4, "M0 0V-10H2.6a4.8 5 0 0 1 0 10Z"),
    "E": (5.8, "M5.8-10H0V0H5.8M0-5.1H5"), "F": (5.6, "M5.6-10H0V0M0-5H4.8"),
    "G": (7.8, "M7.2-8.2A4.2 5 0 1 0 7.8-3.9V-4.6H4.8"), "H": (7.2, "M0-10V0M7.2-10V0M0-5.1H7.2"), "I": (0, "M0-10V0"),
    "J": (4.6, "M4.6-10V-2.6A2.4 2.6 0 0 1 0-2.2"), "K": (6.6, "M0-10V0M6.2-10 0-3.8M2.2-5.9 6.6 0"),
    "L": (5.4, "M0-10V0H5.4"), "M": (9, "M0 0V-10L4.5-3 9-10V0"), "N": (7.2, "M0 0V-10L7.2 0V-10"),
    "O": (8.4, "M8.4-5a4.2 5 0 1 0-8.4 0 4.2 5 0 1 0 8.4 0"), "P": (6.2, "M0 0V-10H3.5a2.7 2.7 0 0 1 0 5.4H0"),
    "Q": (8.4, "M8.4-5a4.2 5 0 1 0-8.4 0 4.2 5 0 1 0 8.4 0M5.4-2.6 8.2.4"),
    "R": (6.4, "M0 0V-10H3.5a2.6 2.6 0 0 1 0 5.2H0M3.2-4.8 6.4 0"),
    "S": (6, "M5.7-8.4C5.1-9.5 4.1-10 3-10 1.4-10 .3-9 .3-7.6.3-4.4 6-5.8 6-2.6 6-1 4.8 0 3 0 1.6 0 .5-.6 0-1.8"),
    "T": (7, "M0-10H7M3.5-10V0"), "U": (7, "M0-10V-3.5a3.5 3.5 0 0 0 7 0V-10"), "V": (7.6, "M0-10 3.8 0 7.6-10"),
    "W": (10.8, "M0-10 2.7 0 5.4-9 8.1 0 10.8-10"), "X": (7, "M0-10 7 0M7-10 0 0"),
    "Y": (7, "M0-10 3.5-4.8 7-10M3.5-4.8V0"), "Z": (6.4, "M0-10H6.4L0 0H6.4"),
    "a": (6.4, f"M6.4-3.5{_ROUND}M6.4-7V0"), "b": (6.4, f"M6.4-3.5{_ROUND}M0-10V0"),
    "c": (5.6, "M5.6-6A3.2 3.5 0 1 0 5.6-1"), "d": (6.4, f"M6.4-3.5{_ROUND}M6.4-10V0"),
    "e": (6.4, "M0-3.7H6.4A3.2 3.5 0 1 0 5.6-1"), "f": (3.8, "M3.8-9.9C2.2-10.2 1.5-9.4 1.5-7.9V0M0-6.8H3.6"),
    "g": (6.4, f"M6.4-3.5{_ROUND}M6.4-7V.2A3.2 2.8 0 0 1 .5 1.4"), "h": (6, "M0-10V0M0-4a3 3 0 0 1 6 0V0"),
    "i": (0, "M0-7V0M0-9.7V-9.6"), "j": (2, "M2-7V.6A2 2.2 0 0 1 0 2.7M2-9.7V-9.6"),
    "k": (5.4, "M0-10V0M5-7 0-2.4M1.8-4 5.4 0"), "l": (0, "M0-10V0"),
    "m": (10, "M0-7V0M0-4.4a2.5 2.6 0 0 1 5 0V0M5-4.4a2.5 2.6 0 0 1 5 0V0"), "n": (6, "M0-7V0M0-4a3 3 0 0 1 6 0V0"),
    "o": (6.4, f"M6.4-3.5{_ROUND}"), "p": (6.4, f"M6.4-3.5{_ROUND}M0-7V3"), "q": (6.4, f"M6.4-3.5{_ROUND}M6.4-7V3"),
    "r": (3.6, "M0-7V0M0-4A3 3 0 0 1 3.6-6.9"),
    "s": (5, "M4.7-5.8C4.3-6.6 3.5-7 2.5-7 1.2-7 .3-6.3.3-5.3.3-2.9 5-4.3 5-1.9 5-.7 4 0 2.5 0 1.3 0 .4-.5 0-1.3"),
    "t": (4, "M1.4-9.2V-2C1.4-.3 2.4.2 4-.1M0-6.8H3.8"), "u": (6, "M0-7V-3a3 3 0 0 0 6 0M6-7V0"),
    "v": (6, "M0-7 3 0 6-7"), "w": (9, "M0-7 2.2 0 4.5-6.6 6.8 0 9-7"), "x": (5.4, "M0-7 5.4 0M5.4-7 0 0"),
    "y": (6, "M0-7 3.1-.2M6-7 3.1-.2 1.8 3"), "z": (5.2, "M0-7H5.2L0 0H5.2"),
    "0": (6.6, "M6.6-5a3.3 5 0 1 0-6.6 0 3.3 5 0 1 0 6.6 0"), "1": (6.6, "M1.4-8 4-10V0"),
    "2": (6.6, "M.3-7.4A3 2.8 0 0 1 6.2-7.1C6.2-4.7 3.6-3.4.2 0H6.6"),
    "3": (6.6, "M.5-8.4A2.9 2.5 0 1 1 3-5.2H2.6 3A3 2.6 0 1 1 .2-1.8"), "4": (6.6, "M5 0V-10L0-2.8H6.6"),
    "5": (6.6, "M5.8-10H1.2L.8-5.4A3.1 3.2 0 1 1 .3-1.6"), "6": (6.6, "M5.7-9C2.6-11.3.1-8 .1-3.2a3.2 3.2 0 1 0 .1-.6"),
    "7": (6.6, "M0-10H6.4L2.4 0"),
    "8": (6.6, "M3.3-5.4a2.6 2.3 0 1 0 0-4.6 2.6 2.3 0 1 0 0 4.6a3.1 2.7 0 1 0 0 5.4 3.1 2.7 0 1 0 0-5.4"),
    "9": (6.6, "M.9-1C4 1.3 6.5-2 6.5-6.8a3.2 3.2 0 1 0-.1.6"),
    "_": (5.4, "M0 1.2H5.4"), "-": (3.6, "M0-3.6H3.6"), "+": (5.6, "M0-3.8H5.6M2.8-6.6V-1"), ".": (0, "M0-.1V0"),
    ",": (1, "M1-.2 0 1.8"), ":": (0, "M0-.1V0M0-5.6V-5.5"), "'": (0, "M0-10V-7.6"), "/": (4.6, "M0 1 4.6-11"),
    "(": (2.4, "M2.4-11A8 8 0 0 0 2.4 1"), ")": (2.4, "M0-11A8 8 0 0 1 0 1"), "=": (5.6, "M0-5.2H5.6M0-2.4H5.6"),
    "#": (7, "M2.2 0 3.6-10M5 0 6.4-10M.6-6.7H7M0-3.3H6.4"),
    "?": (5.4, "M0-8A2.8 2.6 0 0 1 5.4-7.2C5.4-5.2 2.7-5 2.7-2.8M2.7-.1V0"),
}  # fmt: skip


@functools.lru_cache(maxsize=1024)
def _letters(text: str) -> list[tuple[float, str]]:
    """Return the width and SVG path of every letter."""
    plain = unicodedata.normalize("NFKD", text)
    return [_LETTERS.get(letter, _LETTERS["?"]) for letter in plain if not unicodedata.combining(letter)]


def width_of(text: str) -> float:
    """Return the width of a line of text in units of the grid. The thickness of the strokes is not included."""
    letters = _letters(text)
    return sum(width for width, _ in letters) + _SPACING * max(len(letters) - 1, 0)


@functools.lru_cache(maxsize=1024)
def lettering(text: str, color: str, weight: float = 1.5) -> str:
    """Return a line of text as SVG, with strokes of width `weight`."""
    at, parts = 0.0, []
    for width, path in _letters(text):
        if path:
            parts.append(f'<path transform="translate({at:g})" d="{path}"/>' if at else f'<path d="{path}"/>')
        at = round(at + width + _SPACING, 2)
    style = f'fill="none" stroke="{color}" stroke-width="{weight:g}" stroke-linecap="round" stroke-linejoin="round"'
    return f"<g {style}>{''.join(parts)}</g>"
