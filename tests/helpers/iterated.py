"""Value iteration by the slow reference rules, position by position: no symmetry, no layers, no code of the solver."""

from dataclasses import replace

import numpy as np

from tests import reference
from tests.helpers.exact import ROLLS_AFTER
from wotd_env.core.dice import HOLD_KEEP, KEEPS, NUM_ROLLS

ROLLS: list[tuple[int, ...]] = [tuple(dice) for dice in KEEPS[:NUM_ROLLS].tolist()]


def ends_of(rules: reference.Rules, state: reference.State, dice: tuple[int, ...]) -> set[reference.State]:
    """Return the states after the turn, if the rolling stops with these dice."""
    rolled = reference.roll(rules, state, dice)
    states = {reference.decide(rules, rolled, reference.STOP_ROLLING)}
    ends = set()
    while states:
        state = states.pop()
        if state.phase in (reference.CHANCE, reference.OVER):
            ends.add(replace(state, turn=0))  # the turn limit is far
        else:
            states |= {
                reference.decide(rules, state, action) for action in reference.legal_actions(rules, state)
            }
    return ends


def iterate(rules: reference.Rules, start: reference.State, seat: int) -> dict[reference.State, float]:
    """Return the value for a seat of all states before a turn that can follow `start`.

    The other seats play together against it. Until the values converge, every value is computed again from those after
    the turn.
    """
    ends: dict[reference.State, list[set[reference.State]]] = {}
    waiting, over = {start}, set()
    while waiting:
        state = waiting.pop()
        ends[state] = [ends_of(rules, state, dice) for dice in ROLLS]
        for end in set().union(*ends[state]):
            if end.phase == reference.OVER:
                over.add(end)
            elif end not in ends:
                waiting.add(end)
    states = list(ends)
    number = {state: i for i, state in enumerate([*states, *over])}
    most = max(len(after) for rolls in ends.values() for after in rolls)
    after = np.empty((len(states), NUM_ROLLS, most), np.int64)
    for i, rolls in enumerate(ends.values()):
        for roll, states_after in enumerate(rolls):
            indices = [number[state] for state in states_after]
            after[i, roll] = indices + indices[:1] * (most - len(indices))
    sign = np.array([1 if state.player == seat else -1 for state in states])
    rewards = [float(reference.rewards(rules, state)[seat]) for state in over]
    values = np.array([0.0] * len(states) + rewards)
    change = 1.0
    while change > 1e-9:
        of_rolls = (sign[:, None, None] * values[after]).max(2)
        for _ in range(2):
            of_keeps = of_rolls @ ROLLS_AFTER.T
            of_rolls = np.max([of_keeps[:, keeps] for keeps in HOLD_KEEP.T], axis=0)
        new = sign * (of_rolls @ ROLLS_AFTER[-1])
        change = float(np.abs(new - values[: len(states)]).max())
        values[: len(states)] = new
    return dict(zip(states, values.tolist(), strict=False))
