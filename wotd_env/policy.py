"""The interface of a policy, its optional parts, and `ask`, which hides the future dice from a policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import as_actions, kind_of
from wotd_env.core.checks import IllegalActionError
from wotd_env.core.game import Game
from wotd_env.core.rules import ELEMENTS, Phase, Rules, essence
from wotd_env.core.state import ROW, STATE, States, take


@runtime_checkable
class Policy(Protocol):
    """An object that chooses actions."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose an action for the seat to act in each game.

        Args:
            game: the rules of the games.
            state: the games, STATE (N,). The policy must not change this array. The field `rng` does not contain the
                real random streams, so that no policy can know the future dice.
            rng: the only source of randomness that the policy may use.

        Returns:
            Actions, int64 (N,): a legal action for each running game, and any number from 0 to A - 1 for a game that is
            over. A is the number of actions.
        """


@runtime_checkable
class RulesBound(Protocol):
    """A policy or value function that fits only certain rules. `check_rules` is called before the first game."""

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the object does not fit `rules`. The error names the object's rules and `rules`."""


@runtime_checkable
class HasEquity(Protocol):
    """A policy that estimates the value of states. The arena uses these values to measure the luck of the dice."""

    def equity(self, game: Game, state: States) -> NDArray[np.floating[Any]]:
        """Return the expected reward of the seat to act in each game, floats (N,).

        Before a roll (phase CHANCE) the expected reward is the mean over all outcomes of the roll.
        """


@runtime_checkable
class Fingerprinted(Protocol):
    """A policy with a fingerprint. The arena reuses stored games of the policy while its fingerprint is unchanged."""

    def fingerprint(self) -> str:
        """Return a string that changes whenever the policy may play differently, such as a digest of its weights."""


def check_plays(policy: Policy, rules: Rules) -> None:
    """Raise ValueError if a policy cannot play games with these rules."""
    if isinstance(policy, RulesBound):
        policy.check_rules(rules)


def check_made_for(name: str, own: Rules, rules: Rules) -> None:
    """Raise ValueError if an object made for the rules `own` does not fit the rules `rules`.

    The starting player, the turn limit, and colors without an effect may differ. An object made for random colors fits
    all colors. An object made for some dead pieces fits all dead pieces, or none, because it can see them.
    """
    made_for, other = _essence(own), _essence(rules)
    if made_for.dead_pieces:
        made_for, other = replace(made_for, dead_pieces=0), replace(other, dead_pieces=0)
    if made_for.colors == "random":
        other = replace(other, colors="random")
    if made_for != other:
        differing = [field for field, value in vars(made_for).items() if value != getattr(other, field)]
        made, got = (
            ", ".join(f"{field}={getattr(of, field)!r}" for field in differing) for of in (own, rules)
        )
        raise ValueError(f"{name} is made for {made}, not for {got}: choose {made}")


@lru_cache(maxsize=256)
def _essence(rules: Rules) -> Rules:
    """Return `rules` with default values in the fields that `check_made_for` ignores."""
    colors: Any = None
    if rules.powers == "own" or rules.immunity:
        colors = rules.colors or ELEMENTS[: rules.players]
    return replace(essence(rules), colors=colors)


def seen_in(encoding: str, game: Game) -> Game:
    """Return a game like `game` whose observations have the given encoding."""
    if game.encoding == encoding:
        return game
    return _game(game.rules, game.skip_forced, game.num_threads, encoding)


_game = lru_cache(maxsize=16)(Game)  # a policy asks for the same game at every decision


def ask(policy: Policy, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the actions that a policy chooses, int64 (N,). They may be illegal.

    The policy gets a copy of the games, in which each random stream is replaced with 64 bits from `rng`.

    Raises:
        ValueError: if the policy does not return one integer for each game.
    """
    shown = state.view(ROW).copy().view(STATE)
    shown["rng"] = rng.integers(0, 1 << 64, len(shown), dtype=np.uint64)
    actions = policy.act(game, shown, rng)
    try:
        return np.array(as_actions(actions, len(state)))  # a copy, which the caller may change
    except ValueError:
        got = f"{kind_of(actions)} from {type(policy).__name__}"
        raise ValueError(f"act must return integers {state.shape}, got {got}") from None


def play_out(
    game: Game,
    state: States,
    seats: NDArray[np.integer],
    choose: Callable[[int, NDArray[np.int64]], NDArray[np.int64]],
) -> Iterator[NDArray[np.int64]]:
    """Play all games to the end, and update `state` in place.

    Args:
        game: the rules.
        state: STATE (N,).
        seats: integers (N, n): the number of the player in each of the n seats of each game.
        choose: function `choose(player, games)`; `player` is the number of a player, and `games` contains the indices
            of M games. The function returns the player's actions in these games, (M,). It may also end a game by
            setting the phase of the game to OVER; the action for this game is then ignored.

    Yields:
        int64 (N,): a legal action for each running game, and -1 for games that are over. The games change when the next
        array is requested.

    Raises:
        IllegalActionError: if an action is illegal. None of the chosen actions is then applied.
    """
    players = range(int(seats.max(initial=-1)) + 1)
    while (live := np.flatnonzero(state["phase"] != Phase.OVER)).size:
        actions = np.full(len(state), -1)
        to_act = seats[live, state["player"][live]]
        for player in players:
            if (games := live[to_act == player]).size:
                actions[games] = choose(player, games)
        game.check(state, actions)
        yield actions
        game.step(state, actions, validate=False)


def play_policies(
    game: Game,
    state: States,
    seats: NDArray[np.integer],
    policies: Sequence[Policy],
    rng: np.random.Generator,
) -> Iterator[NDArray[np.int64]]:
    """Play games between policies. `seats` contains indices into `policies`. For the result and errors see `play_out`.

    An IllegalActionError names the policy.
    """
    try:
        yield from play_out(
            game, state, seats, lambda player, games: ask(policies[player], game, take(state, games), rng)
        )
    except IllegalActionError as error:
        policy = policies[seats[error.game, state["player"][error.game]]]
        if repr(policy) in str(error):  # the policy has checked its actions itself
            raise
        message = f"policy {policy!r} plays an illegal action: {error}"
        raise IllegalActionError(error.game, error.action, error.legal, message) from None
