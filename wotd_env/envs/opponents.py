"""The policies of the seats that do not learn.

The policies `random` and `greedy` are *scripts*: they run in compiled code. The draws of `random` are derived from the
game's random stream, but do not advance it. So the dice do not depend on the policies, and scripts play the same moves
in every batch, process and interface.

All other policies run outside of compiled code. They draw from the random generator of the environment. They get copies
of the games with different random streams, so they cannot foresee the dice.

Relative seats are counted from the learner's seat in turn order: 1 is the seat after the learner.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core import engine
from wotd_env.core.checks import IllegalActionError
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.layouts import layout_of
from wotd_env.core.rules import Phase
from wotd_env.core.state import ROW, STATE, Record, Records, States, scratch
from wotd_env.core.stream import mix
from wotd_env.envs.results import frozen
from wotd_env.envs.starts import LEARNER, NO_LAYOUTS
from wotd_env.policies import Script, greedy, make_policy, random, script_of
from wotd_env.policy import Policy, ask, check_plays

SCRIPT_BITS = (len(Script) - 1).bit_length()


class Pool:
    """Policies of which one is drawn for each game. It plays all seats except the learner's.

        Pool(["greedy", "random", "td"], weights=[2, 1, 1])
        Pool({"last week": snapshot, "greedy": "greedy"})

    The draw depends only on the game's random stream. To change a pool, assign another pool to `env.opponents`.

    Args:
        opponents: policies, as objects or names; or a dict from any names to policies. In a list, a policy object gets
            the name of its class.
        weights: the relative probabilities, at least 0; by default all are equal.

    Attributes:
        policies: the policies.
        names: their names, which `info["opponent"]` contains.
        weights: the probabilities, float64 (P,).

    Raises:
        ValueError: for an invalid policy or invalid weights.
    """

    def __init__(
        self, opponents: Sequence[str | Policy] | Mapping[str, str | Policy], weights: ArrayLike | None = None
    ) -> None:
        if isinstance(opponents, Mapping):
            self.names, given = tuple(map(str, opponents)), list(opponents.values())
        elif isinstance(opponents, list | tuple):
            given = list(opponents)
            self.names = tuple(one if isinstance(one, str) else type(one).__qualname__ for one in given)
        else:
            raise ValueError(f"opponents of a Pool must be a list or a dict of policies, got {opponents!r}")
        if not given:
            raise ValueError("opponents of a Pool must be at least one policy, got none")
        self.policies: tuple[Policy, ...] = tuple(make_policy(one) for one in given)
        self.weights = _probabilities(weights, len(given))

    def __repr__(self) -> str:
        return f"Pool({list(self.names)}, weights={self.weights.round(4).tolist()})"


def _probabilities(weights: ArrayLike | None, count: int) -> NDArray[np.float64]:
    """Return weights as probabilities, float64 (count,). Raise ValueError for invalid weights."""
    try:
        given = np.ones(count) if weights is None else np.array(weights, np.float64)
    except (TypeError, ValueError):
        given = np.empty(0)
    if (
        given.shape != (count,)
        or not np.isfinite(given).all()
        or given.min() < 0
        or not 0 < given.sum() < np.inf
    ):
        raise ValueError(
            f"weights must be {count} finite numbers, one for each policy, at least 0 and not all 0, got {weights!r}"
        )
    probabilities: NDArray[np.float64] = frozen(given / given.sum())
    return probabilities


Given = str | Policy | Sequence[str | Policy] | Pool
"""The types of the argument `opponents` of the environments."""


def other_seats(opponents: str | Policy | Sequence[str | Policy], others: int) -> list[Policy]:
    """Return the policy of each other seat, in turn order. Raise ValueError for an invalid argument."""
    given: Sequence[Any] = opponents if isinstance(opponents, list | tuple) else [opponents] * others
    if len(given) != others:
        expected = f"one policy, or a list of {others}, one for each other seat"
        raise ValueError(f"opponents must be {expected}, got {len(given)}: {opponents!r}")
    return [make_policy(opponent) for opponent in given]


class Opponents:
    """The policies of the seats that do not learn. Each game has one of P choices of policies for all these seats.

    Args:
        game: the rules.
        opponents: one policy for all opponents, as an object or a name; or a list or tuple with one policy for each
            opponent, in turn order after the learner; or a `Pool`. Without a pool, P is 1.
        layouts: the dead pieces of layouts that the games draw, uint16 (L, 5); the policies must play all of them.

    Attributes:
        given: the argument `opponents`.
        cumulative: the cumulative probabilities of the choices, float64 (P,).
        names: the name of each choice, object (P,), if `opponents` is a pool; otherwise None.
        scripts: int64 (P,): for each choice, the scripts of all relative seats as one integer, SCRIPT_BITS bits for
            each seat. A tuple or a record would be slower.
        outside: whether at least one policy is not a script.
    """

    def __init__(self, game: Game, opponents: Given, layouts: NDArray[np.uint16] = NO_LAYOUTS) -> None:
        others = game.rules.players - 1
        self.game, self.given, self.layouts = game, opponents, layouts
        choices: list[Sequence[Policy]]  # for each choice, the policies of the relative seats 1 to n - 1
        self.names: NDArray[Any] | None = None
        weights = np.ones(1)
        if isinstance(opponents, Pool):
            choices = [[policy] * others for policy in opponents.policies]
            self.names, weights = np.array(opponents.names, object), opponents.weights
        else:
            choices = [other_seats(opponents, others)]
        self.cumulative = weights.cumsum()
        self.cumulative /= self.cumulative[-1]
        self._set(choices)
        drawn = {layout_of(dead, game.rules.spaces) for dead in layouts}
        played = [replace(game.rules, dead_pieces=layout) for layout in sorted(drawn)] or [game.rules]
        for policy in self._players:
            for rules in played:
                check_plays(policy, rules)

    def _set(self, choices: list[Sequence[Policy]]) -> None:
        self._choices = choices
        scripts = np.array([[script_of(policy) for policy in choice] for choice in choices], np.int64)
        self.scripts: NDArray[np.int64] = (scripts << SCRIPT_BITS * np.arange(1, scripts.shape[1] + 1)).sum(1)
        self.outside = bool((scripts == Script.OUTSIDE).any())
        # distinct, so that `decide` calls each policy only once for all its seats
        self._players = list({id(policy): policy for choice in choices for policy in choice}.values())
        numbers = {id(policy): number for number, policy in enumerate(self._players)}
        # [choice, relative seat]: index of the policy in _players
        self._player = np.array([[-1, *(numbers[id(policy)] for policy in choice)] for choice in choices])

    def replaced(self, opponents: Given) -> Opponents:
        """Return other opponents for the same environment. Raise ValueError for an invalid argument."""
        if isinstance(opponents, Pool) != isinstance(self.given, Pool):
            must = "must" if isinstance(self.given, Pool) else "must not"
            raise ValueError(
                f"opponents {must} be a Pool, as when the environment was made, because its infos keep their keys; "
                f"got {opponents!r}"
            )
        return Opponents(self.game, opponents, self.layouts)

    def keep(self, last: Opponents, chosen: NDArray[np.integer]) -> NDArray[np.int64]:
        """Add the choices of running games to these opponents, but never draw them for new games.

        `chosen`, integers (N,), contains the choice of each game among `last`, the opponents until now. Return the
        choice of each game among all choices, int64 (N,).
        """
        used, number = np.unique(chosen, return_inverse=True)
        first = len(self._choices)
        self._set([*self._choices, *(last._choices[choice] for choice in used)])
        if self.names is not None and last.names is not None:
            self.names = np.concatenate([self.names, last.names[used]])
        choices: NDArray[np.int64] = first + number
        return choices

    def play(self, state: States, learner: int, choice: int, rng: np.random.Generator) -> None:
        """Play one game until the seat `learner` must act or the game is over.

        Update `state`, STATE (1,), in place. `choice` is the choice of this game.
        """
        scripts = self.scripts[choice]
        while not play_in_one(state, self.game.config, learner, scripts, scratch()):
            learners = np.zeros(1, LEARNER)
            learners["seat"], learners["opponent"] = learner, choice
            self.decide(state, learners, np.zeros(1, np.int64), rng)

    def decide(
        self, state: States, learners: NDArray[np.void], waiting: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Take one action in each game that waits for a policy outside of compiled code.

        `waiting` contains the indices of these games. `learners` are the learners of all games, LEARNER (N,).

        Raises:
            ValueError: if a policy plays an illegal action. By then, other policies may have acted in other games.
        """
        rows = state.view(ROW)
        learners = learners[waiting]
        relative = (state["player"].take(waiting) - learners["seat"]) % self.game.rules.players
        players = self._player[learners["opponent"], relative]
        for player, policy in enumerate(self._players):
            chosen = waiting[players == player]
            if chosen.size:
                games = rows[chosen].view(STATE)
                try:
                    self.game.step(games, ask(policy, self.game, games, rng))
                except IllegalActionError as error:
                    raise ValueError(f"opponent {policy!r} plays an illegal action: {error}") from error
                rows[chosen] = games.view(ROW)


@kernel
def play_in_one(states: Records, config: Configs, learner: Any, scripts: Any, scratch: Records) -> Any:
    """Call `play_scripts` for one game, STATE (1,), and return its result."""
    return play_scripts(states[0], config[0], learner, scripts, scratch[0])


@kernel
def play_scripts(s: Record, rules: Config, learner: Any, scripts: Any, after: Record) -> Any:
    """Play the seats with scripts until the learner or a seat without a script must act, or the game is over.

    Return False if a seat without a script must act.
    """
    while s.phase != Phase.OVER and s.player != learner:
        relative = s.player - learner
        relative += rules.players * (relative < 0)
        script = scripts >> SCRIPT_BITS * relative & (1 << SCRIPT_BITS) - 1
        if script == Script.OUTSIDE:
            return False
        # Two decisions never get the same bits: every roll advances the stream, and between two rolls each phase occurs
        # at most once. `starts.restart` uses this formula with phase 0, in which no seat decides.
        bits = mix(~s.rng ^ np.uint64(s.phase))
        engine.step(s, rules, choose(script, s, rules, after, bits))
    return True


@inlined
def choose(script: Any, s: Record, rules: Config, after: Record, bits: Any) -> Any:
    """Return the action of a compiled `Script` for the seat to act; `after` is working memory.

    Compiled code cannot look up a function in a table, so each script has a branch here.
    """
    if script == Script.GREEDY:
        return greedy.choose(s, rules, after)
    return random.choose(s, rules, bits)
