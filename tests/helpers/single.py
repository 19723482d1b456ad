"""Play in the single-agent environment."""

import numpy as np


def play(env, rng, steps=2**63):
    """Play random legal actions for at most `steps` steps; return the results of all steps."""
    results = []
    for _ in range(steps):
        action = rng.choice(np.flatnonzero(env.get_wrapper_attr("action_masks")()))
        results.append(env.step(action))
        if results[-1][2] or results[-1][3]:
            break
    return results
