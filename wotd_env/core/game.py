"""The class `Game`: the interface to batches of games."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core import batch, checks, dice, parallel
from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import (
    INT64,
    as_actions,
    as_integer,
    as_integers,
    as_output,
    as_seats,
    check_bool,
    check_choice,
    check_integer,
    check_seed,
    kind_of,
)
from wotd_env.core.checks import IllegalActionError
from wotd_env.core.config import DRAGONS, LOSER, config
from wotd_env.core.dice import rolls_of
from wotd_env.core.observation import ENCODINGS, layout
from wotd_env.core.position import position
from wotd_env.core.rules import REROLLS, Phase, Rules, rules_for
from wotd_env.core.state import STATE, Int, States, as_state
from wotd_env.core.words import describe_decision, describe_illegal

MOST_GAMES = np.iinfo(np.intp).max // STATE.itemsize  # a larger batch could not be addressed
_INT8, _FLOAT32 = np.dtype(np.int8), np.dtype(np.float32)
_NO_SEATS = np.empty(0, np.int64)
_T = TypeVar("_T", bound=np.generic)


@dataclass(frozen=True)
class GameSpec:
    """Facts about a game that the interfaces of other libraries require."""

    players: int  #: number of seats
    min_reward: float  #: lowest reward of a seat
    max_turns: int  #: largest possible number of turns in a game (R16)
    max_decisions: int  #: largest possible number of decisions in a game, summed over all seats
    max_decisions_per_turn: int  #: largest possible number of decisions in a turn
    chance: bool = True  #: whether there are chance events (rolls of the dice)
    perfect_information: bool = True  #: whether every seat sees the whole state
    zero_sum: bool = True  #: whether the rewards of a game sum to 0
    max_reward: float = 1.0  #: highest reward of a seat


class Game:
    """The rules of a game, applied to batches of states.

    A batch is a one-dimensional array of `STATE` records. Methods that play games change the batch in place. All
    other methods return new arrays, or fill the array `out`. In shapes, N is the number of games, n the number of
    players, A the number of actions, and D the length of an observation.

    A method with the argument `validate` first checks all records, and raises `ValueError` for the first invalid
    record. If `validate` is False, the method trusts the records and actions: an invalid record or an illegal action
    may have any result, even a crash.

    Args:
        rules: the rules of all games.
        skip_forced: whether the game takes a move at once if this move is the only legal action.
        num_threads: number of threads that share a batch. The number does not change the results.
        encoding: format of the observations: `"one_hot"`, `"compact"`, `"tokens"` or `"features"`
            (docs/reference/encodings.md).
        **fields: fields of `Rules`, as in `Game(players=3, powers="own")`, instead of the argument `rules`.

    Attributes:
        num_actions: number of actions, A.
        observation_size: number of entries of an observation, D.
        observation_layout: dict from the name of each part to its slice of the observation, in the order of the slices.
        spec: facts about the game, a `GameSpec`.
        config: the rules for compiled code, `wotd_env.core.engine.CONFIG` (1,).
    """

    def __init__(
        self,
        rules: Rules | None = None,
        skip_forced: bool = True,
        num_threads: int = 1,
        encoding: str = "one_hot",
        **fields: Any,
    ) -> None:
        self.rules = rules = rules_for(Game, fields, rules)
        self.skip_forced = check_bool("skip_forced", skip_forced)
        self.num_threads = check_integer("num_threads", num_threads, 1)
        self.num_actions = num_actions(rules.players)
        self.encoding: str = check_choice("encoding", encoding, ENCODINGS)
        self.observation_layout = layout(rules, encoding)
        self.observation_size: int = max(part.stop for part in self.observation_layout.values())
        self.config = config(rules, self.skip_forced, ENCODINGS.index(encoding))
        # A turn has at most two holds (three with the tiger), one move, and one decision about an extra turn.
        most = REROLLS + (rules.powers != "none") + 2
        turns = rules.max_turns
        self.spec = GameSpec(rules.players, -1 / (rules.players - 1), turns, turns * most, most)

    def __repr__(self) -> str:
        names = ("skip_forced", "num_threads", "encoding")
        return f"Game({self.rules!r}, {', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    # ------------------------------------------------------------------------------------------------ new games

    def reset(
        self,
        state: States | int,
        seed: int | None = None,
        *,
        starting_player: ArrayLike | None = None,
        where: ArrayLike | None = None,
        roll: bool = True,
    ) -> States:
        """Start games; return the batch, STATE (N,).

        Args:
            state: number of new games, or a batch to restart in place.
            seed: game i gets the random stream of seed + i. If a seed is given, the rule `start="loser"` has the
                effect of `start="dragons"` (R1). By default, new games use seed 0, and restarted games continue their
                streams.
            starting_player: one seat for all games, or a seat for each game (N,). By default the rules determine the
                starting player (R1).
            where: bool (N,), the games to restart; all games by default.
            roll: whether to roll and continue to the first decision; otherwise stop before the first roll.

        Raises:
            ValueError: for an invalid size, seed, seat or shape.
        """
        if fresh := not isinstance(state, np.ndarray):
            state = np.zeros(check_integer("state", state, 0, MOST_GAMES, "or a batch to restart"), STATE)
        work = self._writable(state)
        starters = self.starters(starting_player, len(work))
        if fresh or seed is not None:  # a seed must give the same game after any previous game
            starters[starters == LOSER] = DRAGONS
        roll = check_bool("roll", roll)
        chosen = np.ones(len(work), np.bool_) if where is None else np.array(where)
        if chosen.dtype != np.bool_ or chosen.shape != work.shape:
            raise ValueError(f"where must be bool {work.shape}, got {kind_of(where)}")
        if seed is not None or fresh:
            batch.seed(work, chosen, check_seed(0 if seed is None else seed))
        self._run(batch.reset, work, starters, chosen, roll)
        if work is not state:
            as_state(state)[...] = work
        return state

    def starters(self, starting_player: ArrayLike | None, games: int) -> NDArray[np.int64]:
        """Return the starting player of each game, int64 (N,): a seat, DRAGONS or LOSER."""
        if starting_player is None:
            return np.full(games, self.config["start"][0])
        return as_seats("starting_player", starting_player, games, self.rules.players)

    def new(
        self, batch_size: int, seed: int = 0, *, starting_player: ArrayLike | None = None, roll: bool = True
    ) -> States:
        """Return N = `batch_size` new games, STATE (N,). The other arguments are those of `reset`."""
        batch_size = check_integer("batch_size", batch_size, 0, MOST_GAMES)
        return self.reset(batch_size, seed, starting_player=starting_player, roll=roll)

    # ------------------------------------------------------------------------------------------------ questions

    def is_over(self, state: States) -> NDArray[np.bool_]:
        """Return whether each game has ended (R9, R16), bool (N,)."""
        self.check(state)
        over: NDArray[np.bool_] = state["phase"] == Phase.OVER
        return over

    def describe_action(self, state: States, action: int) -> str:
        """Describe a legal action and its effect. `state` is one game, STATE (1,), before the action.

        Raises:
            IllegalActionError: if the action is illegal.
            ValueError: if `state` is not one game of these rules, or the action is not an integer.
        """
        checks.check_one(state)
        if (number := as_integer(action)) is None:
            raise ValueError(f"action must be an integer, got {kind_of(action)}")
        after = state.copy()
        self.decide(after, [number])
        return describe_decision(self.rules, state[0], after[0], number)

    def explain_illegal(self, state: States, action: int) -> str:
        """Explain why an action is illegal, and list the legal actions. `state` is one game, STATE (1,).

        Raises:
            ValueError: if the action is legal or not an integer, or if `state` is not one game of these rules.
        """
        checks.check_one(state)
        legal = np.flatnonzero(self.legal_actions(state)[0]).tolist()
        number = as_integer(action)
        if number is None or number in legal:
            raise ValueError(f"action must be an illegal action, an integer, got {kind_of(action)}")
        if state["phase"][0] == Phase.CHANCE:
            return "a roll is due; call roll() first"
        return f'{describe_illegal(self.rules, state[0], number, legal)}; position: "{position(self.rules, state)}"'

    def legal_actions(
        self, state: States, out: NDArray[np.int8] | None = None, validate: bool = True
    ) -> NDArray[np.int8]:
        """Return the action masks, int8 (N, A): 1 for legal and 0 for illegal actions.

        In a finished game all actions are legal and do nothing. If a roll is due, no action is legal.
        """
        return self._fill(batch.legal_actions, state, out, self.num_actions, _INT8, validate)

    def observe(
        self,
        state: States,
        seat: ArrayLike | None = None,
        out: NDArray[np.int8] | None = None,
        validate: bool = True,
    ) -> NDArray[np.int8]:
        """Return the observation of the seat to act in each game, int8 (N, D).

        `seat` selects other observers: one seat for all games, or a seat for each game (N,).
        """
        games = len(checks.contiguous(state))
        seats = _NO_SEATS if seat is None else as_seats("seat", seat, games, self.rules.players)
        return self._fill(batch.observe, state, out, self.observation_size, _INT8, validate, seats)

    def scores(
        self, state: States, out: NDArray[np.int64] | None = None, validate: bool = True
    ) -> NDArray[np.int64]:
        """Return every seat's points, int64 (N, n) (R10)."""
        return self._fill(batch.scores, state, out, self.rules.players, INT64, validate)

    def rewards(
        self, state: States, out: NDArray[np.float32] | None = None, validate: bool = True
    ) -> NDArray[np.float32]:
        """Return every seat's reward, float32 (N, n), from -1 to 1; the rewards of a game sum to 0 (R10, R16).

        With w winners among n players, each winner gets (n / w - 1) / (n - 1), and each loser gets -1 / (n - 1). All
        rewards are 0 in a game that has not ended, and in a game that the turn limit has ended.
        """
        return self._fill(batch.rewards, state, out, self.rules.players, _FLOAT32, validate)

    # ------------------------------------------------------------------------------------------------ play

    def step(self, state: States, actions: ArrayLike, validate: bool = True) -> None:
        """Take the actions, integers (N,), and play to each game's next decision. Finished games do not change.

        Raises:
            IllegalActionError: if an action is illegal or a roll is due; all games stay unchanged.
        """
        self._act(batch.step, state, actions, validate, True)

    def decide(self, state: States, actions: ArrayLike, validate: bool = True) -> None:
        """Take the actions, integers (N,), but do not roll.

        `decide` and `roll` are the two halves of `step`, for searches with chance nodes.
        """
        self._act(batch.step, state, actions, validate, False)

    def roll(self, state: States, dice: ArrayLike | None = None, validate: bool = True) -> None:
        """Roll in every game in which a roll is due.

        Args:
            state: STATE (N,), changed in place.
            dice: the five faces after the roll, integers (N, 5), in any order, including the kept dice. If `dice` is
                given, each game rolls only once, and stops at its next decision or before its next roll. By default,
                each game rolls with its random stream until its next decision.
            validate: check all records first.

        Raises:
            ValueError: for impossible faces or an invalid record; all games stay unchanged.
        """
        work = self._writable(state)
        if validate:
            self.check(work)
        if dice is None:
            self._run(batch.roll, work)
        else:
            self._run(batch.roll_given, work, rolls_of(dice, work["dice"], work["phase"] == Phase.CHANCE))
        if work is not state:
            as_state(state)[...] = work

    def step_autoreset(
        self,
        state: States,
        actions: ArrayLike,
        observation: NDArray[np.int8] | None = None,
        mask: NDArray[np.int8] | None = None,
        rewards: NDArray[np.float32] | None = None,
        done: NDArray[np.bool_] | None = None,
        validate: bool = True,
    ) -> None:
        """Take the actions like `step`, restart finished games, and fill the given arrays, in one pass over the batch.

        Args:
            state: STATE (N,), changed in place.
            actions: integers (N,).
            observation: int8 (N, D), filled with the observation of the next seat to act. If a game has ended, this is
                the first observation of the new game.
            mask: int8 (N, A), filled with the action mask of the next seat to act.
            rewards: float32 (N, n), filled with every seat's reward in this step.
            done: bool (N,), filled with True for every game that ended in this step.
            validate: check all records and actions first.

        Raises:
            IllegalActionError: if an action is illegal or a roll is due; all games and arrays stay unchanged.
        """
        n = len(state)
        self._act(
            batch.step_autoreset,
            state,
            actions,
            validate,
            as_output("observation", observation, (n, self.observation_size), _INT8, optional=True),
            as_output("mask", mask, (n, self.num_actions), _INT8, optional=True),
            as_output("rewards", rewards, (n, self.rules.players), _FLOAT32, optional=True),
            as_output("done", done, (n,), np.dtype(np.bool_), optional=True),
        )

    chance_outcomes = staticmethod(dice.chance_outcomes)

    # ------------------------------------------------------------------------------------------------ checks

    def _act(
        self, kernel: Callable[..., Int], state: States, actions: ArrayLike, validate: bool, *arguments: Any
    ) -> None:
        """Apply `actions` with a kernel. After an error, all games are unchanged."""
        work = self._writable(state)
        chosen = as_actions(actions, len(work))
        if len(parallel.slices(len(work), self.num_threads)) == 1:
            wrong = kernel(work, self.config, chosen, validate, *arguments)
            if wrong >= 0:
                raise self.error_in(work, wrong, actions)
        else:
            if validate:
                self.check(work, actions)  # check all slices before any of them changes
            self._run(kernel, work, chosen, False, *arguments)
        if work is not state:
            as_state(state)[...] = work

    def check(self, state: States, actions: ArrayLike | None = None) -> None:
        """Check that records are games of these rules and that actions, if given, are legal.

        Raises:
            IllegalActionError: if an action is illegal or a roll is due.
            ValueError: for an invalid record, or a wrong dtype or shape.
        """
        work = checks.contiguous(state)
        if actions is None:
            found = self._run(checks.first_fault, work)
        else:
            shown = np.empty(len(work), np.uint16)
            found = self._run(batch.first_wrong, work, as_actions(actions, len(work)), shown)
        for part, first in zip(parallel.slices(len(work), self.num_threads), found, strict=True):
            if first >= 0:
                raise self.error_in(state, part.start + first, actions)

    def error_in(self, state: States, game: Int, actions: ArrayLike | None) -> Exception:
        """Return the error for the game with index `game`, which has an invalid record or an illegal action."""
        one = as_state(state[game : game + 1])
        if actions is None or checks.first_fault(one, self.config) >= 0:
            return checks.describe_fault(self.rules, state, game)
        action = int(as_integers("actions", actions, state.shape)[game])
        legal = np.flatnonzero(self.legal_actions(one)[0]).tolist()
        return IllegalActionError(
            int(game), action, legal, f"game {game}: {self.explain_illegal(one, action)}"
        )

    # ------------------------------------------------------------------------------------------------ compiled code

    def apply(
        self, kernel: Callable[..., Any], state: States, *arguments: Any, validate: bool = True
    ) -> list[Any]:
        """Call `kernel(states, config, *arguments)` once for the batch, or once for each thread's part of it.

        Return a list with the result of each call of the kernel. The kernel may be any function, such as one compiled
        with `numba.njit`, and may change the records. It can pass `states[i]` and `config[0]` to the functions of
        `wotd_env.core.engine`.

        An argument that is an array or a NamedTuple of arrays must have a row for every game, and is sliced like the
        batch. A callable argument, such as `wotd_env.core.state.scratch`, is called in each thread, and the kernel gets
        its result.
        """
        work = checks.contiguous(state)
        if validate:
            self.check(work)
        results = self._run(kernel, work, *arguments)
        if work is not state and state.flags.writeable:
            as_state(state)[...] = work
        return results

    def _run(self, kernel: Callable[..., Any], state: States, *arguments: Any) -> list[Any]:
        return parallel.call(kernel, state, self.config, arguments, self.num_threads)

    def _fill(
        self, kernel: Any, state: States, out: Any, size: int, dtype: np.dtype[_T], validate: bool, *more: Any
    ) -> NDArray[_T]:
        """Return the numbers that a kernel writes, (N, size)."""
        state = checks.contiguous(state)
        if validate:
            self.check(state)
        rows: NDArray[_T] = as_output("out", out, (len(state), size), dtype)
        parallel.call(kernel, state, self.config, (*more, rows), self.num_threads)
        return rows

    def _writable(self, state: States) -> States:
        """Return `state` or a contiguous copy, which the caller must copy back to `state`."""
        work = checks.contiguous(state)
        if work is not state and not state.flags.writeable:
            raise ValueError("state is read-only; work on state.copy()")
        return work


def final_rewards(game: Game, state: States) -> NDArray[np.float64]:
    """Return the same rewards as `Game.rewards`, but in double precision, float64 (N, n)."""
    rewards = np.empty((len(state), game.rules.players))
    batch.rewards(state, game.config, rewards)
    return rewards
