"""The pictures of README.md and docs/reference/rules.md (`make docs-tables`)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tools.pages import ROOT
from wotd_env import Game, Rules, make_policy
from wotd_env.policy import play_policies
from wotd_env.rendering import Replay
from wotd_env.rendering.cases import CASES, draw_case

RULES_FOLDER = ROOT / "docs" / "reference" / "rules"

GAME_FILE = ROOT / "docs" / "game.gif"  # the moving picture at the head of README.md
SHOWN = 60  # number of positions shown, the last ones of the game


def draw_game() -> None:
    """Write the end of a game that `td` plays in all four seats."""
    game, td, rng = Game(Rules(players=4)), make_policy("td"), np.random.default_rng(0)
    state, same = game.reset(1, seed=5), np.zeros((1, 4), np.int64)
    states, actions = [], []
    for chosen in play_policies(game, state, same, [td], rng):
        states.append(state.copy())
        actions.append(chosen[0])
    Replay(game, np.concatenate([*states[-SHOWN:], state]), actions[-SHOWN:]).save(GAME_FILE, width=480)


def cases() -> dict[Path, str]:
    """Return the pictures of docs/reference/rules.md."""
    return {RULES_FOLDER / f"{name}.svg": draw_case(name) + "\n" for name in CASES}
