"""Play in the single environment."""

from __future__ import annotations

import numpy as np


def play(env, rng, steps=2**63):
    """Play random legal actions to the end or for some steps; return the results of all steps."""
    told = []
    while steps:
        action = rng.choice(np.flatnonzero(env.get_wrapper_attr("action_masks")()))
        told.append(env.step(action))
        steps -= 1
        if told[-1][2] or told[-1][3]:
            return told
    return told
