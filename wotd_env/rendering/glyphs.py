"""SVG drawings of elements, animals, powers and dice. Each drawing fits into a box of 48 by 48 units.

Elements and pieces can be recognized without colors, because their outlines differ.
"""

from __future__ import annotations

import functools

BOX = 48

OUTLINES = (
    "M13.5 5.8 34.5 5.8 45 24 34.5 42.2 13.5 42.2 3 24Z",
    "M44.5 24a20.5 20.5 0 1 1-41 0 20.5 20.5 0 1 1 41 0Z",
    "M12 5.5H36Q42.5 5.5 42.5 12V36Q42.5 42.5 36 42.5H12Q5.5 42.5 5.5 36V12Q5.5 5.5 12 5.5Z",
    "M24 3.2Q37.6 10.4 44.8 24 37.6 37.6 24 44.8 10.4 37.6 3.2 24 10.4 10.4 24 3.2Z",
    "M5 5H27Q43 5 43 21V43H21Q5 43 5 27Z",
)
"""Outlines of the pieces as SVG paths, by color."""


def number(value: float) -> str:
    """Return a number as text with at most two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".")


def tag(name: str, content: str = "", /, **attributes: str | float) -> str:
    """Return an SVG element. Underscores in the names of attributes become hyphens."""
    texts = {key: value if isinstance(value, str) else number(value) for key, value in attributes.items()}
    start = name + "".join(f' {key.replace("_", "-")}="{text}"' for key, text in texts.items())
    return f"<{start}>{content}</{name}>" if content else f"<{start}/>"


def _lines(path: str, width: float, color: str = "{ink}") -> str:
    ends = {"stroke_linecap": "round", "stroke_linejoin": "round"}
    return tag("path", d=path, fill="none", stroke=color, stroke_width=width, **ends)


def _shape(path: str, color: str = "{ink}") -> str:
    return tag("path", d=path, fill=color, fill_rule="evenodd")


def _ellipse(x: float, y: float, rx: float, ry: float, **turn: str) -> str:
    return tag("ellipse", cx=x, cy=y, rx=rx, ry=ry, **turn, fill="{ink}")


# The drawings have two placeholders for colors, {ink} and {ground}.
_WAVE = "c3.5-4.6 6.8-4.6 10 0s6.5 4.6 10 0 6.5-4.6 10 0"
_WING = _shape(
    "M23.5 24C20 16 14 12 7.5 13.5 8.5 15.5 9.5 17 11 18 9.8 18.2 9 18.2 8.3 18 9.8 21 11.5 22.5 13.5 23.2"
    " 12.5 23.7 11.7 23.9 11 23.8 13.5 28 18 30 22.5 30Z"
)

_ELEMENTS = (
    _lines(f"M9 15{_WAVE}M9 24.5{_WAVE}M9 34{_WAVE}", 4),
    _shape("M25 5C27 13 38 18 38 30 38 38 32 43 24 43S10 38 10 30"
           "C10 24 13 21 15 16 17 18 18.5 20 19 23 22 18 24.5 12 25 5Z"
           "M24 40C28 40 31 37.5 31 33.5 31 29.5 27 27.5 25.5 23 24 27 18 29 18 34 18 38 21 40 24 40Z"),
    _shape("M41 24a17 17 0 1 1-34 0 17 17 0 1 1 34 0ZM17 17V31H31V17Z"),
    _shape("M4 38 17.5 13 23.5 24 28.5 16.5 44 38ZM17.5 19.5 14.5 25 17 27 19 25 21 26Z"),
    _shape("M40 8C40 27 33 38 17 38 15 38 13.5 37.5 12.5 37 9.5 19 20 8 40 8Z") + _lines("M7 43 14 36", 3.4)
    + _lines("M15 35 31 17M20.5 29V21.5M21.5 28.5H29", 2.2, "{ground}"),
)  # fmt: skip

_ANIMALS = (
    "".join(_ellipse(x, y, 4.2, 3, transform=f"rotate({turn} {x} {y})")
            for x, y, turn in ((14.5, 16.5, 40), (33.5, 16.5, -40), (15, 34.5, -40), (33, 34.5, 40)))
    + _ellipse(24, 11.5, 3.8, 4.5) + _lines("M24 36V40", 2.6) + _ellipse(24, 26, 10.5, 11)
    + _lines("M20.5 20.5H27.5L30.5 26 27.5 31.5H20.5L17.5 26ZM20.5 20.5 18 17.5M27.5 20.5 30 17.5"
             "M30.5 26H34M17.5 26H14M20.5 31.5 18 34.5M27.5 31.5 30 34.5", 1.7, "{ground}"),

    _WING + f'<g transform="matrix(-1 0 0 1 48 0)">{_WING}</g>'
    + _shape("M24 7.5C26.5 7.5 28 9.3 28 11.5 28 13.5 27 14.5 27 17 27 21 28 25 28 28 28 31 26.5 33 24 33"
             "S20 31 20 28C20 25 21 21 21 17 21 15 20.3 14.3 20 13L15.8 12.3 20 10.3C20.5 8.6 22 7.5 24 7.5Z")
    + _lines("M24 31V41.5M22 31C21.5 35 19.5 37.5 16.5 39M26 31C26.5 35 28.5 37.5 31.5 39", 2.6)
    + '<circle cx="23.3" cy="11.2" r="1.2" fill="{ground}"/>',

    _shape("M11 19.5C8 15 8.5 10.5 10 9.5 13 9 16.5 10.5 18.5 12.5ZM37 19.5"
           "C40 15 39.5 10.5 38 9.5 35 9 31.5 10.5 29.5 12.5Z")
    + _lines("M24 11.5C31.5 11.5 37.5 16.5 37.5 24.5 37.5 29.5 35 31.5 33 34 31 37 28 39.5 24 39.5"
             "S17 37 15 34C13 31.5 10.5 29.5 10.5 24.5 10.5 16.5 16.5 11.5 24 11.5Z", 2.2)
    + _shape("M23 12H25L24.5 20H23.5ZM17.5 13.5 19.5 12.5 21.5 18.5 20.7 19ZM30.5 13.5 28.5 12.5 26.5 18.5 27.3 19Z"
             "M10.5 23 17 24.6 16.8 25.6 10.5 26ZM37.5 23 31 24.6 31.2 25.6 37.5 26Z"
             "M12.2 30 17.5 28.8 17.8 29.7 13.5 33ZM35.8 30 30.5 28.8 30.2 29.7 34.5 33Z"
             "M20.5 30H27.5C27.5 32 25.5 33.3 24 33.3S20.5 32 20.5 30Z")
    + _lines("M24 33V35M24 35C23 36.3 21.5 36.5 20.3 35.8M24 35C25 36.3 26.5 36.5 27.7 35.8", 1.5)
    + _ellipse(19.3, 23.5, 2, 1.7) + _ellipse(28.7, 23.5, 2, 1.7),

    '<g transform="translate(3.4 3.6) scale(.86)">'
    + _lines("M19.5 16.5C17 14 15.8 11.5 16.2 7.8M17 12.5C14.8 12.3 13.3 11.3 12.5 9.5"
             "M28.5 16.5C31 14 32.2 11.5 31.8 7.8M31 12.5C33.2 12.3 34.7 11.3 35.5 9.5", 2.3)
    + _shape("M24 13.5C29 13.5 33.5 16.5 33.5 21.5L38 20 35 25 37.5 26 32.5 28.5C31.5 30 30.5 31.5 30.5 33.5"
             " 30.5 37 28 39.5 24 39.5S17.5 37 17.5 33.5C17.5 31.5 16.5 30 15.5 28.5L10.5 26 13 25 10 20 14.5 21.5"
             "C14.5 16.5 19 13.5 24 13.5Z")
    + _shape("M16.8 21.5 22.3 24 21.5 26C19 26 17.2 24.5 16.8 21.5ZM31.2 21.5 25.7 24 26.5 26"
             "C29 26 30.8 24.5 31.2 21.5ZM22.3 34.5a1.4 1.4 0 1 1-2.8 0 1.4 1.4 0 1 1 2.8 0Z"
             "M28.5 34.5a1.4 1.4 0 1 1-2.8 0 1.4 1.4 0 1 1 2.8 0Z", "{ground}")
    + _lines("M17.5 35C14.5 35 12.5 33 12.8 30.5M30.5 35C33.5 35 35.5 33 35.2 30.5", 1.7) + "</g>",

    '<g transform="translate(4.4 4) scale(.84)">'
    + _lines("M18.5 20C12 20.5 9 25.5 11 30.5 13.5 36.5 20 34.5 24 31 27.5 28 32 28.5 33 32", 6.4)
    + _lines("M33 32C33.5 35.5 31.5 37.5 28.5 38", 4.2)
    + _shape("M29.5 35 29.5 41 22 38.5ZM14.5 20.5 8 17 9.5 24ZM10.5 26 4.8 27.5 9.5 31.5ZM11.5 32 9 37.5 16 36Z"
             "M20 30.5 20 24.5 25 29ZM28.5 28.5 32.5 24.5 34.5 30ZM17 35 16.5 40 20.5 37ZM31 33.5 37 35 36.5 31Z")
    + _shape("M16 17.5C15.5 13.5 17.5 11 20.5 10.5L14 5.5 23 7.5 24 10 22.5 5.8C26 6.5 28.5 8 29.5 10.8"
             "L34.5 12.5 38.5 12C40.5 14 40.5 16.5 39.5 18L34 17.8 31.5 18.5 30 20.5 37 20.8"
             "C37 23 34.5 24.5 31 24.3L22.5 23.5Z")
    + _lines("M38.5 18.5C41 20.5 41.5 23.5 39.5 26", 1.5)
    + _shape("M24.5 13.8 29.5 14.5C29 16.5 26 16.8 24.5 13.8Z", "{ground}") + "</g>",
)  # fmt: skip

_DRAGON = (
    _shape("M7 42C5.5 34 7 28 11 23L5 22 12.5 17.5 8 12.5 16.5 13.5C15.5 9.5 13 6.5 9.5 4.5 17.5 4 24 6.5 27 11.5"
           " 33 11 38 13 40.5 16.5L44.5 17.5C45.5 20.5 44.5 23.5 42.5 24.5L40.5 28 38.5 25 35.5 28 33.5 25.2"
           " 29 26.5 28 30 34 29.5 40 31C40.5 34 37.5 36 33.5 36L29.5 36.5 31 41.5 25.5 38"
           "C23.5 39.5 22.5 41 22.5 43Z")
    + _shape("M26 17.5 33.5 18C33 20.5 28.5 21.5 26 17.5Z", "{ground}")
)  # fmt: skip


def again(ink: str, width: float = 5) -> str:
    """Return the symbol for another roll or turn: a circular arrow."""
    return _lines("M37.5 17A15.5 15.5 0 1 0 39 28", width, ink) + _shape("M41.5 6.5V21H27Z", ink)


_POWERS = (
    _lines("M17 11V37M31 11V37", 7),
    again("{ink}"),
    _lines("M5 24C13 11 35 11 43 24 35 37 13 37 5 24Z", 4) + _ellipse(24, 24, 4.5, 8),
    _lines("M7 34C9 13 32 9 38 26", 5)
    + _shape("M29 25.5 43.5 21.5 40 36Z")
    + '<rect x="16" y="31" width="13" height="11" rx="2.5" fill="{ink}"/>',
    _DRAGON,
    _shape("M24 5 29.5 17.5 43 19 33 28 36 42 24 35 12 42 15 28 5 19 18.5 17.5Z"),
)


def power(number: int, ink: str, ground: str) -> str:
    """Return the symbol of a power. `number` is the number of the power's color, or 5 for `powers="any"`."""
    return _POWERS[number].format(ink=ink, ground=ground)


def face(number: int, ink: str, ground: str) -> str:
    """Return the symbol of an element (0 to 4) or of the dragon (5) in the color `ink` on the color `ground`."""
    return (*_ELEMENTS, _DRAGON)[number].format(ink=ink, ground=ground)


@functools.lru_cache(maxsize=64)
def die(number: int, fill: str, ink: str, edge: str) -> str:
    """Return a die that shows an element (0 to 4) or the dragon (5)."""
    body = tag("rect", x=2, y=2, width=44, height=44, rx=9, fill=fill, stroke=edge, stroke_width=2)
    return body + tag("g", face(number, ink, fill), transform="translate(4.8 4.8) scale(.8)")


def _outlined(outline: str, fill: str, edge: str, rim: str) -> str:
    """Return a shape with a dark edge and a light rim, so that it stands out from any background."""
    return "".join(
        tag("path", d=outline, fill=fill, stroke=stroke, stroke_width=width, stroke_linejoin="round")
        for stroke, width in ((rim, 5), (edge, 2))
    )


@functools.lru_cache(maxsize=64)
def piece(color: int, fill: str, ink: str, edge: str, rim: str) -> str:
    """Return a piece: the animal of a color inside the outline of this color."""
    return _outlined(OUTLINES[color], fill, edge, rim) + _ANIMALS[color].format(ink=ink, ground=fill)


def dead(fill: str, ink: str, rim: str) -> str:
    """Return a dead piece: a gravestone."""
    stone = _outlined("M9 41.5V22C9 12.5 15.5 6 24 6S39 12.5 39 22V41.5Z", fill, ink, rim)
    return stone + _lines("M18 18 30 30M30 18 18 30", 3.6, ink)
