"""What a policy is, and the only way to ask one: without the dice to come."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.rules import ELEMENTS, Phase, Rules
from wotd_env.core.state import ROW, STATE, States

__all__ = ["Policy", "ask", "check_made_for", "check_rules", "play_out", "seen_in"]


@runtime_checkable
class Policy(Protocol):
    """What chooses actions."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose an action for the seat to act in every game.

        Args:
            game: the rules that the games follow.
            state: STATE (N,), games at their decisions; not to be changed. The streams of random numbers in them are
                not those of the games: no policy can know the dice to come.
            rng: the only source of randomness of a policy that needs one.

        Returns:
            Legal actions, int64 (N,); anything from 0 to A - 1 for games that are over.
        """
        ...


def check_rules(policy: Policy, rules: Rules) -> None:
    """Make sure that a policy plays certain rules, before games begin.

    A policy that is made for some rules alone, as a network is, has a method `check_rules(rules)` that says so.

    Raises:
        ValueError: if it plays others alone; both are named.
    """
    check = getattr(policy, "check_rules", None)
    if callable(check):
        check(rules)


def check_made_for(name: str, own: Rules, rules: Rules) -> None:
    """Make sure that what is made for some rules serves games of others.

    Who starts, when a game is truncated, and colours that mean nothing may differ; what is made for random colours is
    for all colours.

    Args:
        name: what the error calls it.
        own: the rules it is made for.
        rules: those of the games.

    Raises:
        ValueError: if it does not; both rules are named.
    """
    essence, other = _essence(own), _essence(rules)
    if essence.colors == "random":
        other = replace(other, colors="random")
    if essence != other:
        raise ValueError(f"{name} is made for {own}, not for {rules}")


def _essence(rules: Rules) -> Rules:
    """Return rules with the same values in all fields that make no difference to what is learnt."""
    colors: Any = None
    if rules.powers == "own" or rules.immunity:
        colors = rules.colors or ELEMENTS[: rules.players]
    return replace(rules, colors=colors, start="dragons", max_turns=1000)


def seen_in(encoding: str, game: Game) -> Game:
    """Return a game whose observations are in an encoding: the same one, or its like."""
    if game.encoding == encoding:
        return game
    return Game(game.rules, game.skip_forced, game.num_threads, encoding)


def ask(policy: Policy, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the actions that a policy chooses, legal or not, int64 (N,).

    It is shown a copy of the games with streams drawn from `rng`, 64 bits a game: it can neither know the dice to come
    nor change a game.

    Raises:
        ValueError: unless it returns an integer for every game.
    """
    shown = state.view(ROW).copy().view(STATE)
    shown["rng"] = rng.integers(0, 1 << 64, len(shown), dtype=np.uint64)
    actions = np.asarray(policy.act(game, shown, rng))
    if actions.shape != state.shape or actions.dtype.kind not in "iu":
        raise ValueError(f"act must return integers {state.shape}, got {actions.dtype} {actions.shape}")
    return actions.astype(np.int64)


def play_out(
    game: Game,
    state: States,
    seats: NDArray[np.integer],
    choose: Callable[[int, NDArray[np.int64]], NDArray[np.int64]],
) -> Iterator[NDArray[np.int64]]:
    """Play games on to their ends, in place; yields before every step what is about to be done.

    Args:
        game: the rules.
        state: STATE (N,).
        seats: integers (N, n): the number, from 0 on, of the player in each seat.
        choose: `choose(player, games)` returns the actions of a player in games (M,), given by their indices. A game
            that it ends itself, by its phase, needs none.

    Yields:
        int64 (N,): the action of every game, which is legal, or -1 where the game is over. The games are changed when
        the next is asked for.

    Raises:
        IllegalActionError: if an action is illegal; no game has been changed by that step.
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
