"""Describe a position as a scene, from which all pictures are drawn.

A scene is a list of marks. A mark is a drawing with its place. The size of a scene is 800 by 600 units.

The first mark of a scene is the empty board, which is the same for all positions of the same rules. Equal pieces, dice
and texts have equal drawings, so that the modules `svg`, `raster` and `replay` can store each drawing once.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.actions import Action
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.checks import check_one
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE, DRAGON, NUMBERED, PATHS, POWERS, REROLLS, Phase, Rules
from wotd_env.core.state import States
from wotd_env.rendering import glyphs
from wotd_env.rendering.glyphs import number, tag
from wotd_env.rendering.lettering import CAPITAL, lettering, width_of
from wotd_env.rendering.text import check_roll_off, seat_names, winners

WIDTH, HEIGHT = 800, 600

_SIGNS = {
    "fill0": "#22262b", "fill1": "#c8321e", "fill2": "#f7f7f2", "fill3": "#f2c12e", "fill4": "#1f6fc0",
    "fill5": "#157a5f", "ink0": "#f7f3e8", "ink1": "#fff4e0", "ink2": "#22262b", "ink3": "#2b2410",
    "ink4": "#f4f8ff", "ink5": "#f6dd8c", "edge": "#17191c", "rim": "#fffdf6",
}  # fmt: skip

PALETTES: dict[str, dict[str, str]] = {
    "light": {
        **_SIGNS,
        "paper": "#f3ecdd", "card": "#fbf7ee", "space": "#fdfaf3", "line": "#d6cbb4", "text": "#25272b",
        "faint": "#6f6858", "frame": "#17191c", "accent": "#157a5f", "stone": "#aaa598", "cut": "#4c483f",
        "lane0": "#d3d6da", "lane1": "#f0cdc3", "lane2": "#e6e3dc", "lane3": "#f3e0a4", "lane4": "#c5d9ee",
        "road0": "#7d848d", "road1": "#c9705f", "road2": "#a5a199", "road3": "#b98f1a", "road4": "#5b8fc4",
    },
    "dark": {
        **_SIGNS,
        "paper": "#16181c", "card": "#22252b", "space": "#14161a", "line": "#3a3e46", "text": "#f0ebdf",
        "faint": "#a39d90", "frame": "#777c85", "accent": "#4fc39f", "stone": "#7d7a73", "cut": "#24221e",
        "lane0": "#2b3037", "lane1": "#4a241e", "lane2": "#484a4d", "lane3": "#4d4117", "lane4": "#1b3a5c",
        "road0": "#757d88", "road1": "#b9604f", "road2": "#9a9b9c", "road3": "#ab8a2b", "road4": "#4c84bd",
    },
}  # fmt: skip
"""Colors by theme and name. A digit at the end of a name is the number of an element, or 5 for the dragon."""

# CSS variables, which `svg.style` defines
PALETTES["auto"] = {name: f"var(--wotd-{name})" for name in PALETTES["light"]}


class Mark(NamedTuple):
    """A drawing and its place in a scene. The upper left corner of the drawing's box is at x, y."""

    svg: str  # SVG code of the drawing, inside a box from (0, 0) to (`width`, `height`)
    x: float
    y: float
    scale: float = 1  # ratio of the size in the scene to the size of the box
    width: float = glyphs.BOX
    height: float = glyphs.BOX


# Layout in scene units.
_MARGIN = 24
_DIE, _DIE_STEP, _DICE_Y = 68, 80, 22
_DICE_X = WIDTH - _MARGIN - _DIE_STEP * (DICE - 1) - _DIE
_BOARD_Y, _LANE, _LANE_STEP = 156, 56, 62
_START = 84  # left end of the pieces that are not on the board yet
_FIRST, _LAST = 222, WIDTH - _MARGIN - 8  # left end of the first space, right end of the last one
_GAP = 14  # gap between plain and numbered spaces
_CARD_Y, _CARD, _CARD_GAP, _BADGE = 480, 98, 12, 36


class _Board:
    """The coordinates of the spaces of a board, and the size of a piece on a space."""

    def __init__(self, spaces: int) -> None:
        self.spaces = spaces
        self.step = (_LAST - _FIRST - _GAP) / (spaces + NUMBERED)
        self.size = min(self.step - 4, _LANE - 14)

    def x(self, space: int) -> float:
        """Return the x coordinate of the middle of a space; spaces are numbered from 1."""
        return _FIRST + (space - 0.5) * self.step + _GAP * (space > self.spaces)

    @staticmethod
    def y(path: int) -> float:
        return _BOARD_Y + _LANE_STEP * path + _LANE / 2


def scene(
    game: Game,
    state: States,
    before: States | None = None,
    action: int | None = None,
    theme: str = "light",
    *,
    roll_off: NDArray[np.int8] | None = None,
    names: Sequence[str] | None = None,
) -> list[Mark]:
    """Return the marks of a position in drawing order.

    See `svg.render_svg` for the arguments and errors.
    """
    palette = PALETTES[check_choice("theme", theme, tuple(PALETTES))]
    rounds = None if roll_off is None else check_roll_off(roll_off, game.rules.players)
    rounds = rounds if rounds is not None and len(rounds) else None
    before = state if before is None else before
    check_one(state)
    check_one(before)
    if action is not None:
        check_integer("action", action, 0, game.num_actions - 1)
    scores = game.scores(np.concatenate([state, before]))[0].tolist()  # raises ValueError for invalid records
    moved = moved_pieces(before[0], state[0])
    if before["turn"] > state["turn"] or any(goal == 0 for *_, goal in moved):
        moved = []  # `before` is a position of another game: mark nothing
    focus = winners(game, state) if state["phase"][0] == Phase.OVER else [int(state["player"][0])]
    shown = seat_names(names, game.rules.players)
    return [
        _empty_board(game.rules.spaces, theme),
        *_status(state[0], palette, focus, shown, rolled_off=rounds is not None),
        *_dice(state[0], palette, action),
        *_pieces(game.rules, state[0], palette, moved),
        *_seats(game.rules, state[0], palette, shown, focus, scores if rounds is None else rounds),
    ]


def _text(
    text: str, x: float, y: float, size: float, color: str, *, weight: float = 1.5, anchor: float = 0
) -> Mark:
    """Return the mark of a text that starts at x if `anchor` is 0, and ends at x if `anchor` is 1."""
    width, pad = width_of(text), 2.0
    scale = size / CAPITAL
    svg = tag("g", lettering(text, color, weight), transform=f"translate({pad:g} {CAPITAL + pad:g})")
    x -= (width * anchor + pad) * scale
    return Mark(svg, x, y - (CAPITAL + pad) * scale, scale, width + 2 * pad, CAPITAL + 2 * pad + 3)


def _fitted(name: str, x: float, y: float, size: float, room: float, color: str) -> Mark:
    """Return the mark of a name, at most `room` wide."""
    least = 0.6 * size
    while len(name) > 2 and width_of(name) * least > CAPITAL * room:
        name = f"{name.removesuffix('..')[:-1]}.."
    size = min(size, CAPITAL * room / max(width_of(name), 1))
    return _text(name, x, y, size, color, weight=1.9 if size > 14 else 1.5)


@functools.lru_cache(maxsize=64)
def _empty_board(spaces: int, theme: str) -> Mark:
    palette, board = PALETTES[theme], _Board(spaces)
    side, radius = board.size, board.size / 2
    parts = [tag("rect", width=WIDTH, height=HEIGHT, fill=palette["paper"])]
    for path in range(PATHS):
        y, fill = board.y(path), palette[f"fill{path}"]
        space = {"fill": palette["space"], "stroke": palette[f"road{path}"]}
        lane = {"x": _MARGIN, "y": y - _LANE / 2, "width": WIDTH - 2 * _MARGIN, "height": _LANE}
        parts.append(tag("rect", **lane, rx=_LANE / 2, fill=palette[f"lane{path}"]))
        line = f"M{_FIRST - 8} {number(y)}H{number(board.x(spaces + NUMBERED))}"
        parts.append(tag("path", d=line, stroke=palette[f"road{path}"], stroke_width=3))
        disc = tag("circle", cx=24, cy=24, r=23, fill=fill, stroke=palette["frame"], stroke_width=1.5)
        element = glyphs.face(path, palette[f"ink{path}"], fill)
        sign = tag("g", element, transform="translate(7.2 7.2) scale(.7)")
        parts.append(tag("g", disc + sign, transform=f"translate({_MARGIN + 4} {number(y - 24)})"))
        for i in range(1, spaces + 1):
            parts.append(tag("circle", cx=board.x(i), cy=y, r=radius * 0.8, **space, stroke_width=2))
        for i in range(1, NUMBERED + 1):
            x = board.x(spaces + i)
            box = {"x": x - radius, "y": y - radius, "width": side, "height": side, "rx": radius * 0.36}
            parts.append(tag("rect", **box, **space, stroke_width=2.5))
            figure = _text(str(i), 0, 0, radius * 0.78, palette["text"], weight=1.7)
            left, top = x - width_of(str(i)) * figure.scale / 2 + figure.x, y + radius * 0.39 + figure.y
            place = f"translate({number(left)} {number(top)}) scale({number(figure.scale)})"
            parts.append(tag("g", figure.svg, transform=place))
    return Mark("".join(parts), 0, 0, 1, WIDTH, HEIGHT)


def _status(
    record: np.void, palette: dict[str, str], focus: list[int], names: list[str], *, rolled_off: bool
) -> Iterator[Mark]:
    """Yield the marks of the status. `focus` contains the seat to act or, in a finished game, the winning seats."""
    phase, finished = Phase(record["phase"]), int(record["turn"])
    turn = f"turn {finished + 1}" + " - the most dragons begin" * rolled_off
    name = names[focus[0]] if focus else "nobody wins"
    what = {
        Phase.CHANCE: "rolls the dice",
        Phase.KEEP: "keeps dice" if record["rolls_left"] else "eye of the tiger?",
        Phase.MOVE: "moves",
        Phase.EXTRA: "takes an extra turn?",
        Phase.OVER: "wins",
    }[phase]
    if record["expired"]:
        turn, what = f"turn {finished}", "turn limit reached"
    elif len(focus) > 1:
        name, what = "a tie", "victory shared"
    yield _text(turn + " - perfection" * bool(record["perfection"]), _MARGIN + 4, 38, 14, palette["faint"])
    x, size = float(_MARGIN), 68 if len(focus) <= 1 else 44
    for seat in focus:
        yield _piece(int(record["color"][seat]), palette, x + size / 2, 88, size)
        x += size + 4
    x += 10 if focus else 4
    yield _fitted(name, x, 84, 19, _DICE_X - x - 12, palette["text"])
    yield _text(what, x, 113, 15, palette["text"], weight=1.6)


def _dice(record: np.void, palette: dict[str, str], action: int | None) -> Iterator[Mark]:
    phase = record["phase"]
    chosen = phase == Phase.KEEP and action is not None and action <= Action.STOP_ROLLING
    for i, face in enumerate(record["dice"].tolist()):
        kept = (action or 0) >> i & 1 if chosen else phase == Phase.CHANCE and face >= 0
        x, y, size = _DICE_X + _DIE_STEP * i, _DICE_Y, float(_DIE)
        if chosen and not kept:
            size *= 0.62
        if face < 0 or size < _DIE:
            box = {"x": 3, "y": 3, "width": 42, "height": 42, "rx": 9}
            dashes = {"stroke_dasharray": "4.5 3.6"}
            blank = tag("rect", **box, fill="none", stroke=palette["faint"], stroke_width=1.6, **dashes)
            yield Mark(blank, x, y, _DIE / glyphs.BOX)
        if face >= 0:
            yield _die(face, palette, x + (_DIE - size) / 2, y + (_DIE - size) / 2, size)
        if kept:
            bar = tag("rect", width=40, height=6, rx=3, fill=palette["accent"])
            yield Mark(bar, x + (_DIE - 40) / 2, y + _DIE + 5, 1, 40, 6)
    if phase == Phase.OVER:
        return
    end = WIDTH - _MARGIN - 4 - 26 * REROLLS
    y = _DICE_Y + _DIE + 31
    yield _text("re-rolls left", end - 6.6, y, 13, palette["faint"], anchor=1)
    for i in range(REROLLS):
        color = palette["accent" if i < record["rolls_left"] else "line"]
        yield Mark(glyphs.again(color, 6), end + 26 * i + 4, y - 18, 0.5)


def _die(face: int, palette: dict[str, str], x: float, y: float, size: float) -> Mark:
    drawing = glyphs.die(face, palette[f"fill{face}"], palette[f"ink{face}"], palette["frame"])
    return Mark(drawing, x, y, size / glyphs.BOX)


def _piece(color: int, palette: dict[str, str], x: float, y: float, size: float) -> Mark:
    """Return the mark of a piece with its center at x, y."""
    fill, ink = palette[f"fill{color}"], palette[f"ink{color}"]
    drawing = glyphs.piece(color, fill, ink, palette["edge"], palette["rim"])
    return Mark(drawing, x - size / 2, y - size / 2, size / glyphs.BOX)


def moved_pieces(before: np.void, after: np.void) -> list[tuple[int, int, int, int]]:
    """Return the pieces whose space differs between the positions, as (seat, path, space before, space after)."""
    old, new = before["pieces"], after["pieces"]
    moved = np.argwhere(old != new).tolist()
    return [(seat, path, int(old[seat, path]), int(new[seat, path])) for seat, path in moved]


def _pieces(
    rules: Rules, record: np.void, palette: dict[str, str], moved: list[tuple[int, int, int, int]]
) -> Iterator[Mark]:
    board, n = _Board(rules.spaces), rules.players
    slot = min((_FIRST - _START - 10) / n, 38)  # width per seat for pieces that are not on the board yet
    for seat, path, start, goal in moved:
        origin = board.x(start) if start else _START + (seat + 0.5) * slot
        yield _way(origin, board.x(goal), board.y(path), palette["accent"])
    for path in range(PATHS):
        for space in range(1, rules.spaces + 1):
            if record["dead"][path] >> space & 1:
                stone = glyphs.dead(palette["stone"], palette["cut"], palette["rim"])
                x, y = board.x(space) - board.size / 2, board.y(path) - board.size / 2
                yield Mark(stone, x, y, board.size / glyphs.BOX)
    arrived = {(seat, path) for seat, path, *_ in moved}
    for seat in range(n):
        color = int(record["color"][seat])
        for path in range(PATHS):
            space, y = int(record["pieces"][seat, path]), board.y(path)
            if space == 0:
                yield _piece(color, palette, _START + (seat + 0.5) * slot, y, min(slot - 1, board.size))
                continue
            if (seat, path) in arrived:
                yield _halo(color, palette["accent"], board.x(space), y, board.size)
            yield _piece(color, palette, board.x(space), y, board.size)
            if rules.immunity and color == path:  # R14
                yield _lock(palette, board.x(space), y, board.size)


def _way(start: float, goal: float, y: float, color: str) -> Mark:
    """Return the mark of a move: a line below the spaces."""
    left, right = sorted((start, goal))
    depth, bend = 25, min(14, (right - left) / 2)
    low, end = 5 + depth, number(5 + right - left)
    path = f"M5 5Q5 {low} {5 + bend:g} {low}H{number(5 + right - left - bend)}Q{end} {low} {end} 5"
    line = tag("path", d=path, fill="none", stroke=color, stroke_width=5, stroke_linecap="round")
    origin = tag("circle", cx=5 + start - left, cy=5, r=5, fill=color)
    return Mark(line + origin, left - 5, y - 5, 1, right - left + 10, depth + 10)


def _halo(color: int, ring: str, x: float, y: float, size: float) -> Mark:
    """Return a ring around a piece that has just moved."""
    shape = {"transform": "translate(6 6)", "d": glyphs.OUTLINES[color]}
    outline = tag("path", **shape, fill=ring, stroke=ring, stroke_width=12, stroke_linejoin="round")
    scale = size / glyphs.BOX
    return Mark(outline, x - 30 * scale, y - 30 * scale, scale, 60, 60)


def _lock(palette: dict[str, str], x: float, y: float, size: float) -> Mark:
    lock = (
        tag("circle", cx=24, cy=24, r=22, fill=palette["card"], stroke=palette["edge"], stroke_width=3)
        + tag("path", d="M17 22V17a7 7 0 0 1 14 0V22", fill="none", stroke=palette["text"], stroke_width=4)
        + tag("rect", x=13, y=21, width=22, height=15, rx=3, fill=palette["text"])
    )
    return Mark(lock, x + size * 0.12, y + size * 0.12, size * 0.42 / glyphs.BOX)


def _seats(
    rules: Rules,
    record: np.void,
    palette: dict[str, str],
    names: list[str],
    focus: list[int],
    shown: list[int] | NDArray[np.int64],
) -> Iterator[Mark]:
    """Yield the marks of one card per seat. `shown` contains the seats' points or the roll-off, int8 (R, n, 5)."""
    n = rules.players
    width = (WIDTH - 2 * _MARGIN - (n - 1) * _CARD_GAP) / n
    for seat in range(n):
        x = _MARGIN + seat * (width + _CARD_GAP)
        color = int(record["color"][seat])
        line, weight = ("accent", 4) if seat in focus else ("line", 1.5)
        look = {"fill": palette["card"], "stroke": palette[line], "stroke_width": weight}
        card = tag("rect", x=3, y=3, width=width, height=_CARD, rx=14, **look)
        yield Mark(card, x - 3, _CARD_Y - 3, 1, width + 6, _CARD + 6)
        yield _piece(color, palette, x + 34, _CARD_Y + 32, 46)
        yield _fitted(names[seat], x + 14, _CARD_Y + _CARD - 14, 14, width - 36 - _BADGE, palette["text"])
        if isinstance(shown, np.ndarray):
            yield from _rolled_off(shown[:, seat], palette, x + 61, width - 69)
        else:
            yield _text(
                str(shown[seat]), x + width - 14, _CARD_Y + 44, 25, palette["text"], weight=1.9, anchor=1
            )
        if rules.powers != "none":
            power = color if rules.powers == "own" else len(POWERS)
            badge = _badge(power, bool(record["used"] >> seat & 1), palette)
            yield Mark(badge, x + width - 12 - _BADGE, _CARD_Y + _CARD - 8 - _BADGE, _BADGE / glyphs.BOX)


def _rolled_off(
    rounds: NDArray[np.int64], palette: dict[str, str], left: float, width: float
) -> Iterator[Mark]:
    """Yield the marks of one seat's dice in a roll-off. `rounds`, int8 (R, 5), are the dice in each round."""
    height, step, gap = 44.0, 1.12, 10.0

    def size_of(across: int, columns: int) -> float:
        """Return the size of a die if each round has rows of `across` dice, and `columns` rounds are side by side."""
        wide, high = columns * step * across, -(-len(rounds) // columns) * step * -(-DICE // across)
        return min((width - gap * (columns - 1)) / wide, height / high, 36)

    layouts = [(across, columns) for across in (DICE, 3) for columns in range(1, len(rounds) + 1)]
    # Use one row per round, unless two rows make the dice more than 1.2 times as large.
    across, columns = max(layouts, key=lambda layout: size_of(*layout) * (1.2 if layout[0] == DICE else 1))
    size = size_of(across, columns)
    rows = -(-DICE // across)
    top = _CARD_Y + 10 + (height - step * size * rows * -(-len(rounds) // columns)) / 2
    for i, dice in enumerate(rounds.tolist()):
        row, column = divmod(i, columns)
        for place, face in enumerate(dice):
            if face >= 0:
                x = left + column * (step * size * across + gap) + step * size * (place % across)
                y = top + step * size * (row * rows + place // across)
                die = _die(face, palette, x, y, size)
                yield die if face == DRAGON else die._replace(svg=f'<g opacity=".5">{die.svg}</g>')


def _badge(power: int, spent: bool, palette: dict[str, str]) -> str:
    """Return the drawing of a power, crossed out if the power has been used."""
    ground = "none" if spent else palette["accent"]
    ink = palette["faint"] if spent else palette["card"]
    line = palette["faint"] if spent else palette["accent"]
    gap = tag("path", d="M10 38 38 10", stroke=palette["card"], stroke_width=7)
    strike = tag("path", d="M8 40 40 8", stroke=line, stroke_width=3.5)
    sign = glyphs.power(power, ink, palette["card"])
    return (
        tag("title", (*POWERS, "any power")[power] + " (used)" * spent)
        + tag("circle", cx=24, cy=24, r=22, fill=ground, stroke=line, stroke_width=3)
        + tag("g", sign, transform="translate(8 8) scale(.667)")
        + (gap + strike) * spent
    )
