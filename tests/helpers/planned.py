"""Rules with small boards, an arbitrary value function and turns by decisions, for the tests of planned turns."""

import numpy as np

from wotd_env import STATE, Game, Phase, Policy, Rules

VARIANTS = [
    Rules(spaces=2),
    Rules(players=3, spaces=1),
    Rules(players=5, spaces=0),
    Rules(players=2, spaces=2, powers="any", dead_pieces=4),
    Rules(players=3, spaces=1, powers="own", colors=("metal", "earth", "wood"), dead_pieces=1),
    Rules(players=4, spaces=2, powers="own", colors="random", immunity=True, dead_pieces=2),
    Rules(players=5, spaces=1, powers="any", immunity=True, max_turns=30),
]


def arbitrary(game: Game, afterstates: np.ndarray) -> np.ndarray:
    """Return arbitrary values that differ between all afterstates and seats, so that tests detect any mix-up."""
    seen = afterstates.copy()
    seen["rng"] = 0
    weights = np.random.default_rng(5).normal(size=(STATE.itemsize, game.rules.players))
    return np.sin(seen.view(np.uint8).reshape(-1, STATE.itemsize) @ weights)


def by_decisions(game: Game, state: np.ndarray, policy: Policy) -> np.ndarray:
    """Return the games after a turn in which a policy takes every decision."""
    after, rng = state.copy(), np.random.default_rng(0)
    while (due := (after["turn"] == state["turn"]) & (after["phase"] != Phase.OVER)).any():
        part = after[due]
        game.roll(part)
        game.decide(part, policy.act(game, part, rng))
        after[due] = part
    return after
