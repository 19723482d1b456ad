"""Loops over batches: the rules and the encoding applied to every record of an array.

All arrays are sliced alike along the games, so that a thread can work on any part of a batch. `rules` is CONFIG (1,).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wotd_env.core import engine
from wotd_env.core.actions import SWAP
from wotd_env.core.checks import faults
from wotd_env.core.compilation import kernel
from wotd_env.core.observation import encode, write_mask


@kernel
def seed(states: Any, where: Any, first: Any) -> None:
    """Give the games asked for their streams: game i that of seed first + i."""
    for i in range(states.shape[0]):
        if where[i]:
            states[i].rng = engine.mix(first + np.uint64(i) + np.uint64(0x9E3779B97F4A7C15))


@kernel
def reset(states: Any, rules: Any, starters: Any, where: Any, play: Any) -> None:
    """Start new games where asked to, up to their first decision, or to their first roll unless `play`."""
    r = rules[0]
    for i in range(states.shape[0]):
        if where[i]:
            s = states[i]
            engine.new_game(s, r, starters[i])
            engine.run(s, r, engine.shown(s), play)


@kernel
def first_wrong(states: Any, rules: Any, actions: Any) -> Any:
    """Return the first record that is no game of the rules or whose action is illegal, -1 if there is none.

    In a finished game no action is illegal.
    """
    r = rules[0]
    for i in range(states.shape[0]):
        if faults(states[i], r) or not is_legal(states[i], r, actions[i]):
            return i
    return -1


@kernel
def is_legal(s: Any, rules: Any, action: Any) -> Any:
    """Return whether an action, any integer, is legal."""
    if s.phase == engine.OVER:
        return True
    actions, swaps = engine.legal(s, rules, engine.shown(s))
    if 0 <= action < SWAP:
        return actions >> np.uint64(action) & engine.BIT != 0
    if SWAP <= action < SWAP + 50:
        return swaps >> np.uint64(action - SWAP) & engine.BIT != 0
    return False


@kernel
def step(states: Any, rules: Any, actions: Any, validate: Any, chance: Any) -> Any:
    """Take each game's action and go on to its next decision, or with `chance` false no further than the next roll.

    Return -1 or, with `validate`, what `first_wrong` finds: then nothing has been changed.
    """
    if validate:
        wrong = first_wrong(states, rules, actions)
        if wrong >= 0:
            return wrong
    r = rules[0]
    for i in range(states.shape[0]):
        s = states[i]
        if s.phase != engine.OVER:
            engine.run(s, r, engine.decide(s, r, actions[i]), chance)
    return -1


@kernel
def roll(states: Any, rules: Any) -> None:
    """Roll where a roll is due, on to the next decision."""
    for i in range(states.shape[0]):
        engine.run(states[i], rules[0], engine.shown(states[i]), True)


@kernel
def roll_given(states: Any, rules: Any, rolls: Any) -> None:
    """Take the given roll numbers where a roll is due, and go no further than the next roll."""
    for i in range(states.shape[0]):
        if states[i].phase == engine.CHANCE:
            engine.rolled(states[i], rules[0], rolls[i])
            engine.run(states[i], rules[0], rolls[i], False)


@kernel
def legal_actions(states: Any, rules: Any, mask: Any) -> None:
    """Write the action masks, int8 (N, A)."""
    for i in range(states.shape[0]):
        actions, swaps = engine.legal(states[i], rules[0], engine.shown(states[i]))
        write_mask(actions, swaps, mask[i])


@kernel
def observe(states: Any, rules: Any, observers: Any, observation: Any) -> None:
    """Write the observations, int8 (N, D), of the given seats, or if there are none of those to act."""
    for i in range(states.shape[0]):
        s = states[i]
        observer = observers[i] if observers.size else np.int64(s.player)
        encode(s, rules[0], observer, engine.shown(s), observation[i])


@kernel
def scores(states: Any, rules: Any, out: Any) -> None:
    """Write every seat's points (N, n)."""
    for i in range(states.shape[0]):
        for seat in range(rules[0].players):
            out[i, seat] = engine.score(states[i], rules[0], seat)


@kernel
def rewards(states: Any, rules: Any, out: Any) -> None:
    """Write every seat's reward (N, n)."""
    for i in range(states.shape[0]):
        engine.rewards(states[i], rules[0], out[i])


@kernel
def restart(s: Any, rules: Any) -> Any:
    """Start the record's next game and return what `engine.run` does."""
    engine.new_game(s, rules, rules.start)
    return engine.run(s, rules, engine.NOTHING_KEPT, True)


@kernel
def advance(
    states: Any, rules: Any, actions: Any, validate: Any, observation: Any, mask: Any, reward: Any, done: Any
) -> Any:
    """Step, note rewards and ends, restart finished games, encode what the seats to act see; return what `step` does.

    Of the last four arrays those without columns (or, `done`, without rows) are left out.
    """
    if validate:
        wrong = first_wrong(states, rules, actions)
        if wrong >= 0:
            return wrong
    r = rules[0]
    reward[:] = 0
    for i in range(states.shape[0]):
        s = states[i]
        legal, swaps, keep = engine.run(s, r, engine.decide(s, r, actions[i]), True)
        over = s.phase == engine.OVER
        if done.size:
            done[i] = over
        if over:
            if reward.size:
                engine.rewards(s, r, reward[i])
            legal, swaps, keep = restart(s, r)
        if mask.size:
            write_mask(legal, swaps, mask[i])
        if observation.size:
            encode(s, r, np.int64(s.player), keep, observation[i])
    return -1


# ------------------------------------------------------------------------- one game: the loops of single environments


@kernel
def play(states: Any, rules: Any, action: Any) -> Any:
    """Take an action in the first game if it is legal, and go on to the next decision.

    Returns the seat to act then, the number of players if the game is over, -1 if the action is illegal.
    """
    s, r = states[0], rules[0]
    if not is_legal(s, r, action):
        return -1
    engine.run(s, r, engine.decide(s, r, action), True)
    return r.players if s.phase == engine.OVER else s.player


@kernel
def view(states: Any, rules: Any, observer: Any, observation: Any, mask: Any) -> None:
    """Write what a seat sees of the first game, int8 (D,), and its legal actions, int8 (A,): none if not to act."""
    s, r = states[0], rules[0]
    keep = engine.shown(s)
    encode(s, r, observer, keep, observation)
    actions, swaps = engine.legal(s, r, keep)
    to_act = s.player == observer or s.phase == engine.OVER
    write_mask(actions if to_act else np.uint64(0), swaps if to_act else np.uint64(0), mask)
