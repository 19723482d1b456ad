"""Kernels that loop over the records of a batch, to apply the rules or to write observations.

All array arguments except `config` have one row per game, so that each thread can work on a slice of the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine, stream
from wotd_env.core.actions import Bits
from wotd_env.core.checks import approves, faults
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.dice import Keep
from wotd_env.core.observation import ONE_HOT, Entries, encode_integers, encode_one_hot, write_mask
from wotd_env.core.rules import Phase
from wotd_env.core.state import Flag, Floats, Int, Record, Records


@kernel
def seed(states: Records, where: NDArray[np.bool_], first: np.uint64) -> None:
    """Set the random streams of the games marked in `where`: game i gets the stream of seed `first + i`."""
    for i in range(states.shape[0]):
        if where[i]:
            states[i].rng = stream.mix(first + np.uint64(i) + stream.STEP)


@kernel
def reset(
    states: Records, config: Configs, starters: NDArray[np.int64], where: NDArray[np.bool_], to_decision: bool
) -> None:
    """Start the games marked in `where`. If `to_decision` is true, also play to the first decision."""
    rules = config[0]
    for i in range(states.shape[0]):
        if where[i]:
            s = states[i]
            engine.new_game(s, rules, starters[i])
            engine.run(s, rules, engine.dice_index(s), to_decision)


@kernel
def roll_off_round(states: Records, config: Configs, candidates: NDArray[np.int64]) -> None:
    """Play one round of the roll-off (R1). Remove the losers of the round from `candidates`, bits (N,)."""
    for i in range(states.shape[0]):
        candidates[i] = engine.roll_off_round(states[i], candidates[i])


@kernel
def first_wrong(
    states: Records, config: Configs, actions: NDArray[np.int64], shown: NDArray[np.uint16]
) -> Int:
    """Return the index of the first game with an invalid record or an illegal action, or -1 if there is no such game.

    Write the result of `engine.dice_index` for each checked game to `shown`, uint16 (N,).
    """
    rules = config[0]
    for i in range(states.shape[0]):
        s = states[i]
        roll = engine.dice_index(s)
        shown[i] = roll
        if not approves(s, rules, roll, actions[i]) and (
            faults(s, rules) or not is_legal(s, rules, actions[i])
        ):
            return i
    return -1


@kernel
def is_legal(s: Record, rules: Config, action: Int) -> Flag:
    """Return whether an action (any integer) is legal."""
    if s.phase == Phase.OVER:
        return True
    actions, swaps = engine.legal(s, rules, engine.dice_index(s))
    return engine.contains(actions, swaps, action)


@kernel
def step(states: Records, config: Configs, actions: NDArray[np.int64], validate: bool, chance: bool) -> Int:
    """Take each game's action and play to the game's next decision. If `chance` is false, stop before the next roll.

    If `validate` is true and `first_wrong` finds a game, change no game. Return the index of this game, or -1.
    """
    if validate:
        wrong = first_wrong(states, config, actions, np.empty(states.shape[0], np.uint16))
        if wrong >= 0:
            return wrong
    rules = config[0]
    for i in range(states.shape[0]):
        s = states[i]
        if s.phase != Phase.OVER:
            engine.run(s, rules, engine.decide(s, rules, engine.dice_index(s), actions[i]), chance)
    return -1


@kernel
def roll(states: Records, config: Configs) -> None:
    """Roll in every game in which a roll is due, and play these games to their next decisions."""
    for i in range(states.shape[0]):
        engine.run(states[i], config[0], engine.dice_index(states[i]), True)


@kernel
def roll_given(states: Records, config: Configs, rolls: NDArray[np.uint64]) -> None:
    """Apply roll `rolls[i]` to each game i in which a roll is due. Then play to the next decision or roll."""
    for i in range(states.shape[0]):
        if states[i].phase == Phase.CHANCE:
            engine.set_roll(states[i], config[0], rolls[i])
            engine.run(states[i], config[0], rolls[i], False)


@kernel
def legal_actions(states: Records, config: Configs, mask: Entries) -> None:
    """Write the action masks, int8 (N, A)."""
    for i in range(states.shape[0]):
        actions, swaps = engine.legal(states[i], config[0], engine.dice_index(states[i]))
        write_mask(actions, swaps, mask[i])


@kernel
def observe(states: Records, config: Configs, observers: NDArray[np.int64], observation: Entries) -> None:
    """Write the observation of each game, int8 (N, D). If `observers` is empty, the seat to act is the observer."""
    if config[0].encoding != ONE_HOT:
        observe_integers(states, config, observers, observation)
        return
    for i in range(states.shape[0]):
        s = states[i]
        observer = observers[i] if observers.size else np.int64(s.player)
        encode_one_hot(s, config[0], observer, engine.dice_index(s), observation[i])


@kernel
def observe_integers(
    states: Records, config: Configs, observers: NDArray[np.int64], observation: Entries
) -> None:
    """Write the observations in an encoding other than one-hot.

    The loop is not part of `observe`, because it would slow down the one-hot loop.
    """
    for i in range(states.shape[0]):
        s = states[i]
        observer = observers[i] if observers.size else np.int64(s.player)
        encode_integers(s, config[0], observer, engine.dice_index(s), observation[i])


@kernel
def scores(states: Records, config: Configs, out: NDArray[np.integer[Any]]) -> None:
    """Write every seat's points to `out`, integers (N, n)."""
    for i in range(states.shape[0]):
        for seat in range(config[0].players):
            out[i, seat] = engine.score(states[i], config[0], seat)


@kernel
def rewards(states: Records, config: Configs, out: Floats) -> None:
    """Write every seat's reward to `out`, floats (N, n)."""
    for i in range(states.shape[0]):
        engine.rewards(states[i], config[0], out[i])


@kernel
def restart(s: Record, rules: Config) -> tuple[Bits, Bits, Keep]:
    """Start a new game in a record, play to the first decision, and return the result of `engine.run`."""
    engine.new_game(s, rules, rules.start)
    return engine.run(s, rules, engine.NOTHING_KEPT, True)


@kernel
def step_autoreset(
    states: Records,
    config: Configs,
    actions: NDArray[np.int64],
    validate: bool,
    observation: Entries,
    mask: Entries,
    reward: Floats,
    done: NDArray[np.bool_],
) -> Int:
    """Take the actions, write rewards and `done`, restart finished games, and write observations and masks.

    Skip empty output arrays. Return -1 or, like `step`, the index of the game that `first_wrong` finds.
    """
    games = states.shape[0]
    shown = np.empty(games * validate, np.uint16)
    if validate:
        wrong = first_wrong(states, config, actions, shown)
        if wrong >= 0:
            return wrong
    rules = config[0]
    one_hot = observation.size and rules.encoding == ONE_HOT
    reward[:] = 0
    # Each iteration rolls for game i, and then finishes the step of game i - 1. While one of the two games waits for a
    # table lookup, the processor works on the other game.
    rolled = engine.NOTHING_KEPT
    for i in range(games + 1):
        keep = rolled
        if i < games:
            s = states[i]
            before = np.uint64(shown[i]) if validate else engine.dice_index(s)
            rolled = engine.roll_if_due(s, rules, engine.decide(s, rules, before, actions[i]))
        if i == 0:
            continue
        s = states[i - 1]
        legal, swaps, keep = engine.run(s, rules, keep, True)
        over = s.phase == Phase.OVER
        if done.size:
            done[i - 1] = over
        if over:
            if reward.size:
                engine.rewards(s, rules, reward[i - 1])
            legal, swaps, keep = restart(s, rules)
        if mask.size:
            write_mask(legal, swaps, mask[i - 1])
        if one_hot:
            encode_one_hot(s, rules, np.int64(s.player), keep, observation[i - 1])
    if observation.size and not one_hot:
        observe_integers(states, config, np.empty(0, np.int64), observation)
    return -1


# --------------------------------------------------------------------------- one game: kernels of single environments


@kernel
def step_one(states: Records, config: Configs, action: Int) -> int:
    """Take an action in the first game, if legal, and play to the next decision.

    Return the next seat to act, the number of players if the game is over, or -1 if the action is illegal.
    """
    s, rules = states[0], config[0]
    if not is_legal(s, rules, action):
        return -1
    engine.step(s, rules, action)
    player: int = rules.players if s.phase == Phase.OVER else s.player
    return player


@kernel
def legal_one(states: Records, config: Configs) -> tuple[Bits, Bits]:
    """Return the legal actions and swaps of the first game, as bits."""
    return engine.legal(states[0], config[0], engine.dice_index(states[0]))


@kernel
def view_one(
    states: Records, config: Configs, observer: Int, ended: bool, observation: Entries, mask: Entries
) -> None:
    """Write the mask of the first game, like `view`, and the observation if the encoding is one-hot.

    Other encodings are left to `observe_integers`, because most programs never need its compilation.
    """
    s, rules = states[0], config[0]
    keep = engine.dice_index(s)
    if rules.encoding == ONE_HOT:
        encode_one_hot(s, rules, np.int64(observer), keep, observation)
    write_mask_of(s, rules, observer, ended, keep, mask)


@kernel
def view(s: Record, rules: Config, observer: Int, ended: bool, observation: Entries, mask: Entries) -> None:
    """Write the observation, int8 (D,), and action mask, int8 (A,), of seat `observer`. Skip an empty `observation`."""
    keep = engine.dice_index(s)
    if observation.size:
        if rules.encoding == ONE_HOT:
            encode_one_hot(s, rules, np.int64(observer), keep, observation)
        else:
            encode_integers(s, rules, np.int64(observer), keep, observation)
    write_mask_of(s, rules, observer, ended, keep, mask)


@inlined
def write_mask_of(s: Record, rules: Config, observer: Int, ended: bool, keep: Keep, mask: Entries) -> None:
    """Write the action mask of seat `observer`, int8 (A,).

    If the game is over or has ended for this seat (`ended`), the mask is all ones. Otherwise the mask is all zeros
    unless this seat must act.
    """
    actions, swaps = np.uint64(0), np.uint64(0)
    if ended:
        actions, swaps = engine.ALL_ACTIONS, engine.ALL_SWAPS
    elif s.player == observer or s.phase == Phase.OVER:
        actions, swaps = engine.legal(s, rules, keep)
    write_mask(actions, swaps, mask)
