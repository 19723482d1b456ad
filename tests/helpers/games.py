"""Rules of all kinds, games of random play, and replies to text games."""

import re

import numpy as np

from wotd_env import Game, Phase, Rules, make_policy

VARIANTS = [
    Rules(),
    Rules(players=3, spaces=3),
    Rules(players=5, spaces=0),
    Rules(players=2, spaces=4, powers="any", dead_pieces=10),
    Rules(players=3, spaces=2, powers="own", colors="random", immunity=True, dead_pieces=3),
    Rules(players=4, spaces=3, powers="any", immunity=True, dead_pieces=5),
    Rules(players=5, spaces=1, powers="own"),
    Rules(players=2, spaces=2, powers="own", colors=("metal", "earth"), max_turns=20),
    Rules(players=2, spaces=2, powers="own", colors=("wood", "fire")),
]


def positions(rules: Rules, games: int = 60, decisions: int = 40, skip_forced: bool = False) -> np.ndarray:
    """Return unfinished games at decisions of random play, STATE (N,)."""
    game = Game(rules, skip_forced=skip_forced)
    player, rng = make_policy("random"), np.random.default_rng(1)
    state = game.reset(games, seed=1)
    met = []
    for _ in range(decisions):
        met.append(state[state["phase"] != Phase.OVER])
        game.step(state, player.act(game, state, rng))
    return np.concatenate(met)


def first_legal(message: str) -> str:
    """Return a reply to a message of a text game: its first legal action, or nothing after the game."""
    found = re.search(r"^Legal actions: ([^,\n]*)", message, re.MULTILINE)
    return f"<action>{found[1]}</action>" if found else ""
