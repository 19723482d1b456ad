"""The pictures of README.md and docs/reference/rules.md (`make docs-tables`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wotd_env import Game, Phase, Rules, make_policy, notation
from wotd_env.policy import ask, play_out
from wotd_env.rendering import Replay, render_svg

ROOT = Path(__file__).parents[1]
RULES_FOLDER = ROOT / "docs" / "reference" / "rules"

GAME_FILE = ROOT / "docs" / "game.gif"  # the moving picture at the head of README.md
SHOWN = 60  # positions of the game, up to its end

CASES = """
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
"""Pictures of docs/reference/rules.md, one a line: name, position, optionally the action (in the notation)."""


def draw_game() -> None:
    """Write the end of a game that `td` plays in all four seats."""
    game, td, rng = Game(Rules(players=4)), make_policy("td"), np.random.default_rng(0)
    state, same = game.reset(1, seed=5), np.zeros((1, 4), np.int64)
    states, actions = [], []
    for chosen in play_out(game, state, same, lambda player, games: ask(td, game, state, rng)):
        states.append(state.copy())
        actions.append(chosen[0])
    Replay(game, np.concatenate([*states[-SHOWN:], state]), actions[-SHOWN:]).save(GAME_FILE, width=480)


def cases() -> dict[Path, str]:
    """Return the pictures of docs/reference/rules.md."""
    pictures = {}
    for line in CASES.strip().splitlines():
        name, _, case = line.partition(": ")
        position, _, action = case.partition(" -> ")
        pictures[RULES_FOLDER / f"{name}.svg"] = _case(position, action) + "\n"
    return pictures


def _case(position: str, word: str) -> str:
    """Return the picture of a position: the dice, and the pieces after the action."""
    rules, before = notation.parse_position(position)
    game = Game(rules, skip_forced=False)
    if not word:
        return render_svg(game, before, theme="auto")
    action = notation.parse_action(game, before, word)
    if before["phase"][0] == Phase.KEEP:
        return render_svg(game, before, action=action, theme="auto")
    after = before.copy()
    game.decide(after, [action])
    shown = after if game.is_over(after)[0] else before.copy()
    shown["pieces"] = after["pieces"]
    return render_svg(game, shown, before, theme="auto")
