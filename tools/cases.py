"""Draw the pictures of docs/rules.md, one of every case (`make docs-tables`)."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from wotd_env import Game, Phase, notation
from wotd_env.rendering import render_svg

FOLDER = Path(__file__).parents[1] / "docs" / "rules"


class Case(NamedTuple):
    """A position, and what is done in it."""

    position: str
    """as docs/notation.md writes it"""
    action: str = ""
    """as docs/notation.md writes it; empty: the position alone is shown"""


CASES = {
    "board": Case(
        "..A....|..B../.B.....|...A./..A....|B..../A...B..|...../..B..A.|..... wf(meo) 14 A keep 2 wwfmd"
    ),
    "hold": Case(
        ".......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 1 A keep 2 wwmed", "ww"
    ),
    "enter": Case(
        ".......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 1 A move 0 wwwwd", "w4"
    ),
    "move": Case(
        ".......|...../.A....B|...../.......|...../.......|...../..B....|..... wf(meo) 9 A move 0 fffmd", "f5"
    ),
    "pass-by": Case(
        ".......|...../.AB....|...../.......|...../.......|...../..B....|..... wf(meo) 9 A move 0 fffmd", "f5"
    ),
    "blocked": Case(
        ".......|...../.A..B..|...../A......|...../.......|...../..B....|..... wf(meo) 9 A move 0 fffmd"
    ),
    "number": Case(
        ".......|...../.....A.|B..../.......|...../.......|...../..B....|..... wf(meo) 31 A move 0 fffmd",
        "f|2",
    ),
    "pass": Case(
        ".......|A..../.A.B...|...../B......|.A.../.......|..A../.......|B...A wf(meo) 44 A move 0 wwwff",
        "pass",
    ),
    "equilibrium": Case(
        ".......|...../.A.....|...../AB.....|...../.......|.A.../......A|..... wf(meo) 12 A move 0 wfmeo",
        "equilibrium",
    ),
    "perfection": Case(
        ".......|...../A......|...../.......|...../B......|...../.......|..... wf(meo) 5 A move 0 fffff", "f6"
    ),
    "four-dragons": Case(
        ".......|...../.......|...../A......|...B./B......|...../.......|..... wf(meo) 20 A move 0 mdddd",
        "mA-B",
    ),
    "five-dragons": Case(
        "..A..B.|...../..B....|...../A......|..C../B.....A|...../.C.....|..... wfm(eo) 20 A move 0 ddddd",
        "mA-C",
    ),
    "end": Case(
        ".......|A...B/.......|.A..B/...B...|..A../B......|...A./....A..|...B. wf(meo) 60 A move 0 ooowd",
        "o|1",
    ),
    "dead-pieces": Case(
        "...#...|...../.A.....|...../#......|...../.......|...../..B..#.|..... wf(meo) 7 A keep 2 ffwmd"
    ),
    "immunity": Case(
        "A....B.|...../.......|...../A......|B..../.......|...../.......|..... wf(meo) 20 A move 0 wdddd immunity"
    ),
    "fear": Case(
        "A......|....B/.......|...../.......|...../.......|...../.......|..... wf(meo) 30 A move 0 wwfff powers=own",
        "fear",
    ),
    "rebirth": Case(
        ".......|...../..A....|...../.......|...../..B....|...../.......|..... fw(meo) 30 A extra 0 fffww powers=own",
        "rebirth",
    ),
    "tiger": Case(
        ".......|...../..A....|...../.......|...../..B....|...../.......|..... mw(feo) 30 A keep 0 fffwe powers=own",
        "fff+metal",
    ),
    "wood": Case(
        ".......|...../..A....|...../.......|...../..B....|...../.......|..... ow(fme) 30 A move 0 ffwdd powers=own",
        "f7+wood",
    ),
    "anxiety": Case(
        ".......|...../..A.BC.|...../.......|...../..B....|...../.......|..... ewf(mo) 30 A move 0 ffwmm powers=own",
        "f7+earth",
    ),
}
"""The pictures by the names of their files."""


def drawn(case: Case) -> str:
    """Return the picture of a case: the dice, and on the board what the action has moved."""
    rules, before = notation.parse_position(case.position)
    game = Game(rules, skip_forced=False)
    if not case.action:
        return render_svg(game, before, theme="auto")
    action = notation.parse_action(game, before, case.action)
    if before["phase"][0] == Phase.KEEP:
        return render_svg(game, before, action=action, theme="auto")
    after = before.copy()
    game.decide(after, [action])
    shown = after if game.is_over(after)[0] else before.copy()
    shown["pieces"] = after["pieces"]
    return render_svg(game, shown, before, theme="auto")


def pictures() -> dict[Path, str]:
    """Return what the files are to hold."""
    return {FOLDER / f"{name}.svg": drawn(case) + "\n" for name, case in CASES.items()}


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for file, picture in pictures().items():
        file.write_text(picture)
