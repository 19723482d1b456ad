"""The pictures of README.md, docs/reference/rules.md and docs/explanation/design.md (`make docs-tables`)."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np

from wotd_env import Game, Phase, Rules, make_policy, notation
from wotd_env.policy import ask, play_out
from wotd_env.rendering import Replay, render_svg

ROOT = Path(__file__).parents[1]
RULES_FOLDER = ROOT / "docs" / "reference" / "rules"
LAYERS_FILE = ROOT / "docs" / "explanation" / "layers.svg"

GAME_FILE = ROOT / "docs" / "game.gif"
"""The moving picture at the head of README.md."""
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


def layers() -> list[list[str]]:
    """Return the packages of each layer, top layer first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [contract for contract in contracts if contract.get("containers") == ["wotd_env"]]
    return [[name.strip().strip("()") for name in layer.split("|")] for layer in contract["layers"]]


def layers_picture() -> str:
    """Return the picture as SVG: a row for each layer, with an arrow to the layers below."""
    width_all, row_height, gap, margin = 720, 44, 18, 12
    rows = layers()
    parts = []
    for number, names in enumerate(rows):
        top = margin + number * (row_height + gap)
        width = (width_all - 2 * margin - gap * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            left = margin + column * (width + gap)
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{row_height}" rx="8"/>')
            parts.append(f'<text x="{left + width / 2:.1f}" y="{top + row_height / 2 + 5}">{name}</text>')
        if number < len(rows) - 1:
            middle, bottom = width_all / 2, top + row_height
            parts.append(f'<path d="M{middle} {bottom + 3}v{gap - 8}m-4 -4l4 5l4 -5"/>')
    height = 2 * margin + len(rows) * (row_height + gap) - gap
    words = "; ".join(", ".join(names) for names in rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {width_all} {height}" width="{width_all}" '
        f'height="{height}"><title>The layers of wotd_env, each above the layers that it may import: {words}</title>'
        "<style>svg{--line:#57534e;--fill:#f5f0e6;--text:#1c1917}"
        "@media(prefers-color-scheme:dark){svg{--line:#a8a29e;--fill:#292524;--text:#f5f5f4}}"
        "rect{fill:var(--fill);stroke:var(--line)}path{fill:none;stroke:var(--line);stroke-width:1.5}"
        "text{fill:var(--text);font:15px ui-monospace,monospace;text-anchor:middle}</style>"
        f"{''.join(parts)}</svg>\n"
    )
