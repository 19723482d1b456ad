"""The start of games in the environments."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wotd_env.core import batch, engine
from wotd_env.core.arguments import check_integer, check_seed
from wotd_env.core.checks import check_states
from wotd_env.core.compilation import kernel
from wotd_env.core.config import LOSER, Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.layouts import dead_of
from wotd_env.core.rules import PATHS, Phase, Rules
from wotd_env.core.state import ROW, STATE, Record, Records, States, as_state
from wotd_env.core.stream import mix

ANY_SEAT = -1  # a value of the setting `seat`: draw the learner's seat for every game
LAYOUT_SALT = np.uint64(0x6C61796F7574)  # separates the draw of the layout from the other draws
CONTINUE = -3  # a value of `starter` in `restart`: continue the game in the record

LEARNER = np.dtype(
    [
        ("seat", "i1"),
        ("opponent", "i4"),  # index of the opponents in this game, see `Opponents`
        ("steps", "i4"),  # number of the learner's actions in this game
        ("waiting", "?"),  # during a reset or step: whether an opponent of the learner must act next
        ("ended", "?"),  # whether the game has ended for the learner; the next step then starts another game
        ("lost", "?"),  # whether the learner lost the game by an illegal action
    ]
)
"""The seat and the progress of one environment's learner."""


def fixed_seat(rules: Rules, seat: int | str) -> int:
    """Return the setting `seat` as an integer; `"random"` becomes ANY_SEAT. Raise ValueError for an invalid seat."""
    if isinstance(seat, str) and seat == "random":
        return ANY_SEAT
    return check_integer("seat", seat, 0, rules.players - 1, "or 'random'")


def read_layouts(rules: Rules, layouts: Sequence[str] | None) -> NDArray[np.uint16]:
    """Return the dead pieces of layouts, uint16 (L, 5).

    Raises:
        ValueError: for an impossible layout, an empty list, or rules with other dead pieces.
    """
    if layouts is None:
        return NO_LAYOUTS
    if isinstance(layouts, str) or not (given := list(layouts)):  # a generator can be read only once
        raise ValueError(f"layouts must be a list of layouts such as '#./../../../..', got {layouts!r}")
    if rules.dead_pieces:
        raise ValueError(f"dead_pieces must be 0 if layouts are given, got {rules.dead_pieces!r}")
    for number, layout in enumerate(given):
        try:
            replace(rules, dead_pieces=str(layout))
        except ValueError as error:
            raise ValueError(f"layouts[{number}]: {error}") from None
    return np.array([dead_of(layout) for layout in given])


class Draws(NamedTuple):
    """The choices that are drawn for every game."""

    seat: int  # the learner's seat, or ANY_SEAT
    opponents: NDArray[np.float64]  # (P,): cumulative probabilities of the opponents; the last entry is 1
    layouts: NDArray[np.uint16]  # (L, 5): the dead pieces of layouts; L is 0 if the rules place them


ALWAYS = np.ones(1)  # cumulative probabilities of a single choice
NO_LAYOUTS = np.zeros((0, PATHS), np.uint16)


class Seeds(NamedTuple):
    """The seeds of N environments."""

    number: NDArray[np.uint64]  # (N,)
    given: NDArray[np.bool_]  # (N,): whether the environment has a seed


def read_seeds(seed: Any, num_envs: int) -> Seeds:
    """Return the seeds of environments for the argument `seed` of `reset`: an integer, a list or None.

    Environment i gets `seed + i` or item i of the list. An invalid seed raises ValueError.
    """
    if seed is None:
        return Seeds(np.zeros(num_envs, np.uint64), np.zeros(num_envs, np.bool_))
    if isinstance(seed, str) or not (isinstance(seed, Sequence) or np.ndim(seed)):
        numbers = check_seed(seed) + np.arange(num_envs, dtype=np.uint64)
        return Seeds(numbers, np.ones(num_envs, np.bool_))
    if len(seed) != num_envs:
        raise ValueError(f"seed must be an integer or a list of {num_envs} seeds, got {len(seed)}")
    numbers = np.array([0 if one is None else check_seed(one) for one in seed], np.uint64)
    return Seeds(numbers, np.array([one is not None for one in seed]))


def read_options(rules: Rules, options: Mapping[str, Any] | None, *more: str) -> tuple[Any, States | None]:
    """Return the options `"starting_player"` and `"state"` of a reset. The state is a copy, STATE (1,).

    A missing option is None. The options in `more` are also allowed; the caller reads them.

    Raises:
        ValueError: if the state is not a running game of these rules, or if both options are given.
    """
    options = options or {}
    known = ("starting_player", "state", *more)
    for key in options:
        if key not in known:
            names = ", ".join(map(repr, known))
            gymnasium.logger.warn("reset() ignores options[%r]; the options are %s", key, names)
    starter, given = options.get("starting_player"), options.get("state")
    if given is None:
        return starter, None
    if starter is not None:
        raise ValueError("options must not have both 'state' and 'starting_player': a state decides who acts")
    if isinstance(given, np.ndarray | np.void):
        given = as_state(given)
    if not isinstance(given, np.ndarray | np.void) or given.dtype != STATE or given.size != 1:
        raise ValueError(f"options['state'] must be one record of wotd_env.STATE, got {given!r}")
    state = np.array(given, STATE).reshape(1)
    try:
        check_states(rules, state)
    except ValueError as error:
        raise ValueError(f"options['state']: {error}") from None
    if state["phase"][0] == Phase.OVER:
        raise ValueError("options['state'] must be a running game, got a finished one")
    return None, state


def next_games(
    game: Game,
    last: States | None,
    learners: NDArray[np.void],
    draws: Draws,
    seeds: Seeds,
    options: tuple[Any, States | None],
) -> States:
    """Return the next games of N environments at their first decisions, STATE (N,).

    Args:
        game: the rules.
        last: the last games, STATE (N,), not changed; None before the first games.
        learners: the learners of the last games, LEARNER (N,). They are replaced by the learners of the next games.
        draws: what to draw for the learners.
        seeds: the seeds of the games. Without a seed, a game continues the random stream of the option `state` or of
            the last game.
        options: a result of `read_options`.

    Raises:
        ValueError: for an invalid starting player; nothing has changed.
    """
    starter, given = options
    n = len(learners)
    starters = game.starters(starter, n) if given is None else np.full(n, CONTINUE)
    if given is not None:
        state = np.repeat(given, n)
    elif last is None:
        state = np.zeros(n, STATE)
        random = np.uint64(secrets.randbits(63)) + np.arange(n, dtype=np.uint64)
        seeds = Seeds(np.where(seeds.given, seeds.number, random), np.ones(n, np.bool_))
    else:
        state = last.view(ROW).copy().view(STATE)
        # For `engine.new_game`, a record of zeros means that there is no last game.
        state.view(ROW)[seeds.given] = np.zeros(1, STATE).view(ROW)
    game.apply(_start, state, learners, starters, seeds, lambda: draws, validate=False)
    return state


@kernel
def _start(
    states: Records, config: Configs, learners: Any, starters: Any, seeds: Seeds, draws: Draws
) -> None:
    for i in range(states.shape[0]):
        batch.seed(states[i : i + 1], seeds.given[i : i + 1], seeds.number[i])
        if seeds.given[i]:
            learners[i].lost = False  # a game with a seed does not depend on the last game
        restart(states[i], config[0], learners[i], starters[i], draws)


@kernel
def restart(s: Record, rules: Config, learner: Any, starter: Any, draws: Draws) -> None:
    """Overwrite the record `s`, the previous game, with the learner's next game. Run it to its first decision.

    `starter` is a seat, DRAGONS, LOSER or CONTINUE. A learner that lost the last game by an illegal action counts as
    loser (R1).
    """
    # Seat, opponents and layout are drawn without advancing the game's random stream.
    chosen = np.int64(draws.seat)
    if chosen == ANY_SEAT:
        chosen = np.int64(mix(~s.rng) % np.uint64(rules.players))
    share = np.float64(mix(~s.rng ^ np.uint64(Phase.OVER)) >> np.uint64(11)) / 2**53  # from 0 to 1, without 1
    opponent = 0
    while draws.opponents[opponent] <= share:  # the last one is 1
        opponent += 1
    learner.opponent = opponent
    layout = mix(~s.rng ^ LAYOUT_SALT)
    if starter != CONTINUE:
        if starter == LOSER and learner.lost:
            starter = chosen
        elif starter == LOSER:
            engine.move_seats(s, rules, (chosen - learner.seat) % rules.players)
        engine.new_game(s, rules, starter)
        if len(draws.layouts):
            for path in range(PATHS):  # numba would compile error texts for `s.dead[:] = ...`, in two seconds
                s.dead[path] = draws.layouts[np.int64(layout % np.uint64(len(draws.layouts))), path]
    engine.run(s, rules, engine.dice_index(s), True)
    learner.seat = chosen
    learner.steps = 0
    learner.waiting = True
    learner.ended = False
    learner.lost = False
