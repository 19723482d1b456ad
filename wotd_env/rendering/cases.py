"""Draw the pictures of docs/reference/rules.md and of the rules pages of `wotd serve`."""

from __future__ import annotations

import functools

from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.notation import parse_action, parse_position
from wotd_env.rendering.svg import render_svg

_LINES = """
board: ..A....|..B../.B.....|...A./..A....|B..../A...B..|...../..B..A.|..... wf(meo) 14 A keep 2 wwfmd
hold: .......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 1 A keep 2 wwmed -> ww
enter: .......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 1 A move 0 wwwwd -> w4
move: .......|...../.A....B|...../.......|...../.......|...../..B....|..... wf(meo) 9 A move 0 fffmd -> f5
pass-by: .......|...../.AB....|...../.......|...../.......|...../..B....|..... wf(meo) 9 A move 0 fffmd -> f5
blocked: .......|...../.A..B..|...../A......|...../.......|...../..B....|..... wf(meo) 9 A move 0 fffmd
number: .......|...../.....A.|B..../.......|...../.......|...../..B....|..... wf(meo) 31 A move 0 fffmd -> f|2
pass: .......|A..../.A.B...|...../B......|.A.../.......|..A../.......|B...A wf(meo) 44 A move 0 wwwff -> pass
equilibrium: .......|...../.A.....|...../AB.....|...../.......|.A.../......A|..... wf(meo) 12 A move 0 wfmeo -> equilibrium
perfection: .......|...../A......|...../.......|...../B......|...../.......|..... wf(meo) 5 A move 0 fffff -> f6
four-dragons: .......|...../.......|...../A......|...B./B......|...../.......|..... wf(meo) 20 A move 0 mdddd -> mA-B
five-dragons: ..A..B.|...../..B....|...../A......|..C../B.....A|...../.C.....|..... wfm(eo) 20 A move 0 ddddd -> mA-C
end: .......|A...B/.......|.A..B/...B...|..A../B......|...A./....A..|...B. wf(meo) 60 A move 0 ooowd -> o|1
dead-pieces: ...#...|...../.A.....|...../#......|...../.......|...../..B..#.|..... wf(meo) 7 A keep 2 ffwmd
immunity: A....B.|...../.......|...../A......|B..../.......|...../.......|..... wf(meo) 20 A move 0 wdddd immunity
fear: A......|....B/.......|...../.......|...../.......|...../.......|..... wf(meo) 30 A move 0 wwfff powers=own -> fear
rebirth: .......|...../..A....|...../.......|...../..B....|...../.......|..... fw(meo) 30 A extra 0 fffww powers=own -> rebirth
tiger: .......|...../..A....|...../.......|...../..B....|...../.......|..... mw(feo) 30 A keep 0 fffwe powers=own -> fff+metal
wood: .......|...../..A....|...../.......|...../..B....|...../.......|..... ow(fme) 30 A move 0 ffwdd powers=own -> f7+wood
anxiety: .......|...../..A.BC.|...../.......|...../..B....|...../.......|..... ewf(mo) 30 A move 0 ffwmm powers=own -> f7+earth
"""  # noqa: E501

CASES: dict[str, str] = dict(line.split(": ", 1) for line in _LINES.strip().splitlines())
"""The cases by picture name. A case is a position in the format of `wotd_env.notation`; an action may follow."""


@functools.cache
def draw_case(name: str) -> str:
    """Return the picture of a case as SVG, with the dice before the action and the pieces after the action."""
    position, _, word = CASES[name].partition(" -> ")
    rules, before = parse_position(position)
    game = Game(rules, skip_forced=False)
    if not word:
        return render_svg(game, before, theme="auto")
    action = parse_action(game, before, word)
    if before["phase"][0] == Phase.KEEP:
        return render_svg(game, before, action=action, theme="auto")
    after = before.copy()
    game.decide(after, [action])
    shown = after if game.is_over(after)[0] else before.copy()
    shown["pieces"] = after["pieces"]
    return render_svg(game, shown, before, theme="auto")
