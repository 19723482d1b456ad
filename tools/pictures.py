"""The pictures of README.md and docs/reference/rules.md (`make docs-tables`)."""

from pathlib import Path

from agents import evaluate
from tools.pages import ROOT
from wotd_env import Game, Rules, make_policy
from wotd_env.rendering.cases import CASES, draw_case

RULES_FOLDER = ROOT / "docs" / "reference" / "rules"

GAME_FILE = ROOT / "docs" / "game.gif"  # the moving picture at the head of README.md
SHOWN = 61  # number of positions shown, the last ones of the game


def draw_game() -> None:
    """Write the end of a game that `td` plays in all four seats."""
    played = evaluate.replay(Game(Rules(players=4)), make_policy("td"), seed=5)
    played.states, played.actions = played.states[-SHOWN:], played.actions[-SHOWN:]
    played.save(GAME_FILE, width=480)


def cases() -> dict[Path, str]:
    """Return the pictures of docs/reference/rules.md."""
    return {RULES_FOLDER / f"{name}.svg": draw_case(name) + "\n" for name in CASES}
