"""Hypothesis strategies for rules and seeds, and short random play."""

from collections.abc import Iterator

import numpy as np
from hypothesis import strategies as st

from wotd_env import Game, Rules

BATCH = 16
STEPS = 60

seeds = st.integers(0, 2**32)


def layouts(spaces: int, most: int) -> st.SearchStrategy[str]:
    """Return a strategy for layouts of at most `most` dead pieces."""
    path = st.text("#.", min_size=spaces, max_size=spaces).filter(lambda path: "#####" not in path)
    texts = st.lists(path, min_size=5, max_size=5).map("/".join)
    return texts.filter(lambda layout: layout.count("#") <= most)


@st.composite
def any_rules(draw: st.DrawFn) -> Rules:
    """Draw any valid rules."""
    players = draw(st.integers(2, 5))
    spaces = draw(st.integers(0, 10))
    most_dead = min(5 * (5 - players), 5 * spaces)
    colors = st.sampled_from([None, "random"]) | st.permutations(
        ["water", "fire", "metal", "earth", "wood"]
    ).map(lambda names: tuple(names[:players]))
    return Rules(
        players=players,
        spaces=spaces,
        powers=draw(st.sampled_from(["none", "own", "any"])),
        immunity=draw(st.booleans()),
        dead_pieces=draw(st.integers(0, most_dead) | layouts(spaces, most_dead)),
        colors=draw(colors),
        start=draw(st.sampled_from(["dragons", "loser"]) | st.integers(0, players - 1)),
        max_turns=draw(st.sampled_from([1, 5, 30, 1000])),
    )


def decisions(rules: Rules, seed: int) -> Iterator[tuple[Game, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield each step of short random play: game, states, legal random actions, states after `decide`.

    The states are STATE (BATCH,); there are STEPS steps.
    """
    rng = np.random.default_rng(seed)
    game = Game(rules, skip_forced=False)
    state = game.reset(BATCH, seed=seed)
    for _ in range(STEPS):
        mask = game.legal_actions(state)
        # Stopping early more often lets the games progress further.
        weight = mask * rng.random(mask.shape)
        weight[:, 31] *= 10
        actions = weight.argmax(1)
        after = state.copy()
        game.decide(after, actions)
        yield game, state, actions, after
        game.step(state, actions)
