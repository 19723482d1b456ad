"""Rules, dice and short helpers for the tests of the rulings R1 to R16."""

from typing import Any

import numpy as np

from tests.helpers.positions import NAMES
from wotd_env import Game, Rules

BASIC = Rules()
THREE = Rules(players=3)
OWN = Rules(players=5, powers="own")  # seat k has the power of element k
ANY = Rules(players=2, powers="any")

EQUILIBRIUM_ROLL = "water fire metal earth wood"
FIVE_DRAGONS = "dragon dragon dragon dragon dragon"


def game_of(rules: Rules) -> Game:
    return Game(rules, skip_forced=False)


def on_all_paths(drawn: str) -> dict[str, Any]:
    return dict.fromkeys(NAMES, drawn)


def pieces(state: np.ndarray, seat: int) -> list[int]:
    return [int(space) for space in state["pieces"][0, seat]]
