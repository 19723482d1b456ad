"""The roll-off that decides who starts a game (R1), replayed to show its dice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import batch
from wotd_env.core.game import Game
from wotd_env.core.rules import DICE


def roll_off_of(game: Game, seed: int) -> NDArray[np.int8]:
    """Return the dice of the roll-off that decides the starting player in `game.reset(1, seed=seed)` (R1).

    Returns:
        Faces, int8 (rounds, n, 5), ascending. The faces are -1 for a seat that does not roll in a round. If
        `rules.start` is a seat, the array has no rounds.
    """
    state = game.reset(1, seed=seed, starting_player=0, roll=False)  # the same game without the roll-off
    rolling = np.array([(1 << game.rules.players) - 1])
    rounds = np.empty((0, game.rules.players, DICE), np.int8)
    while not isinstance(game.rules.start, int):
        dice = np.full((1, game.rules.players, DICE), -1, np.int8)
        before = state.copy()
        for seat in range(game.rules.players):
            if rolling[0] >> seat & 1:
                rolled = state.copy()
                game.roll(rolled)
                dice[0, seat], state["rng"] = rolled["dice"][0], rolled["rng"]
        rounds = np.concatenate([rounds, dice])
        game.apply(batch.roll_off_round, before, rolling)
        if rolling.item().bit_count() == 1:
            break
    return rounds
