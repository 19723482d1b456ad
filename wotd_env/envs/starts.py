"""Start the next games of an environment: seeds, reset options, and the learner's seat."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from wotd_env.core import batch, engine, stream
from wotd_env.core.arguments import check_integer
from wotd_env.core.checks import check_states
from wotd_env.core.compilation import kernel
from wotd_env.core.config import LOSER, Config, Configs
from wotd_env.core.game import Game, check_seed
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import ROW, STATE, Record, Records, States

ANY_SEAT = -1  # value of the setting `seat`: the learner's seat is drawn for every game


def fixed_seat(rules: Rules, seat: int | str) -> int:
    """Return the setting `seat` as an integer, ANY_SEAT for `"random"`; raise ValueError for other values."""
    if isinstance(seat, str) and seat == "random":
        return ANY_SEAT
    return check_integer("seat", seat, 0, rules.players - 1, "or 'random'")


class Seeds(NamedTuple):
    """The seeds of N environments."""

    number: NDArray[np.uint64]  # (N,)
    given: NDArray[np.bool_]  # (N,), False: the environment has no seed

    @property
    def first(self) -> int | None:
        """The first seed, or None if there is none."""
        return int(self.number[self.given.argmax()]) if self.given.any() else None


def read_seeds(seed: Any, num_envs: int) -> Seeds:
    """Return the seeds of environments: `seed + i`, or the items of a list of N; raise ValueError if one is invalid."""
    if seed is None:
        return Seeds(np.zeros(num_envs, np.uint64), np.zeros(num_envs, np.bool_))
    if isinstance(seed, str) or not (isinstance(seed, Sequence) or np.ndim(seed)):
        numbers = check_seed(seed) + np.arange(num_envs, dtype=np.uint64)
        return Seeds(numbers, np.ones(num_envs, np.bool_))
    if len(seed) != num_envs:
        raise ValueError(
            f"seed must be an integer or a list of {num_envs}, one for each environment, got {len(seed)}"
        )
    numbers = np.array([0 if one is None else check_seed(one) for one in seed], np.uint64)
    return Seeds(numbers, np.array([one is not None for one in seed]))


def read_options(rules: Rules, options: Mapping[str, Any] | None, *more: str) -> tuple[Any, States | None]:
    """Return the options `"starting_player"` and `"state"` of a reset, the state as a copy, STATE (1,).

    The caller reads the options in `more`. Unknown keys get a warning.

    Raises:
        ValueError: if the state is not a running game of these rules, or if both keys are given.
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
        raise ValueError(
            "options must not have both 'state' and 'starting_player': a state knows who is to act"
        )
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


class LastGames(NamedTuple):
    """The last games of N environments."""

    state: States  # STATE (N,)
    seats: NDArray[np.int8]  # (N,): the learners' seats
    lost: NDArray[np.bool_]  # (N,): whether the learner lost by an illegal action


class _Starts(NamedTuple):
    """The starts of N games in compiled code."""

    where: NDArray[np.bool_]  # start this game
    seeds: NDArray[np.uint64]
    seeded: NDArray[np.bool_]  # use the dice of the seed; otherwise the dice of the record continue
    starters: NDArray[np.int64]  # see engine.new_game
    seats: NDArray[np.int8]  # the learners' seats in the last games, replaced by the next ones
    lost: NDArray[np.bool_]  # the learner lost the last game by an illegal action


def next_games(
    game: Game,
    last: LastGames | None,
    where: NDArray[np.bool_],
    seat: int,
    seeds: Seeds,
    options: tuple[Any, States | None],
) -> tuple[States, NDArray[np.int8]]:
    """Start the next games and play them to their first decisions.

    A seed gives the dice of `Game.reset(1, seed=seed)`. Without a seed the dice of the last game continue; first games
    get random seeds. A given state keeps its dice unless there is a seed.

    Args:
        game: the rules.
        last: the last games, which are not changed; None before the first games.
        where: bool (N,): the environments that start a game.
        seat: the learner's seat, or ANY_SEAT.
        seeds: the seeds of all environments.
        options: the result of `read_options`.

    Returns:
        All games, STATE (N,), and the learners' seats, int8 (N,).

    Raises:
        ValueError: for an invalid starting player.
    """
    starter, given = options
    n = len(where)
    seeded = where & seeds.given
    if last is None:
        last = LastGames(np.zeros(n, STATE), np.zeros(n, np.int8), np.zeros(n, np.bool_))
        if given is None:
            random = np.uint64(secrets.randbits(63)) + np.arange(n, dtype=np.uint64)
            seeds, seeded = Seeds(np.where(seeded, seeds.number, random), where), where
    state = last.state.view(ROW).copy().view(STATE)
    if given is None:
        state.view(ROW)[seeded] = np.zeros(1, STATE).view(ROW)  # a first game, see `engine.new_game`
    else:
        state[where] = given
    starts = _Starts(
        where=where,
        seeds=seeds.number,
        seeded=seeded,
        starters=game.starters(starter, n),
        seats=last.seats.copy(),
        lost=last.lost & ~seeded,
    )
    game.apply(_start, state, starts, seat, given is None, validate=False)
    return state, starts.seats


@kernel
def _start(states: Records, config: Configs, starts: Any, seat: Any, new: Any) -> None:
    """Start the next games, or without `new` continue the games in the records."""
    rules = config[0]
    for i in range(states.shape[0]):
        if starts.where[i]:
            s = states[i]
            batch.seed(states[i : i + 1], starts.seeded[i : i + 1], starts.seeds[i])
            if new:
                starts.seats[i] = next_game(
                    s, rules, starts.starters[i], starts.seats[i], seat, starts.lost[i]
                )
            else:
                starts.seats[i] = choose_seat(s, rules, seat)
                engine.run(s, rules, engine.shown(s), True)


@kernel
def next_game(s: Record, rules: Config, starter: Any, learner: Any, seat: Any, lost: Any) -> Any:
    """Start a learner's next game in the record of its last one, up to the first decision. Return its new seat.

    The order of the other players does not change. A learner that lost the last game by an illegal action counts as
    its loser (R1).
    """
    chosen = choose_seat(s, rules, seat)
    if starter == LOSER and lost:
        starter = chosen
    elif starter == LOSER:
        engine.move_seats(s, rules, (chosen - learner) % rules.players)
    engine.new_game(s, rules, starter)
    engine.run(s, rules, engine.shown(s), True)
    return chosen


@kernel
def choose_seat(s: Record, rules: Config, seat: Any) -> Any:
    """Return a learner's seat: the given one, or one drawn from the game's stream without advancing it."""
    return np.int64(stream.mix(~s.rng) % np.uint64(rules.players)) if seat == ANY_SEAT else np.int64(seat)
