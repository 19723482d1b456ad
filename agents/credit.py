"""Credit for decisions, as they are made: what each changes of the result to expect, the luck of the dice left out.

A game's result comes after some hundred decisions and as many rolls, so it says little of any one of them. A value of
positions says at once what a decision has given away: the planner works out exactly what every choice is worth by that
value. These credits are the reward of the game with the value as a potential, less the luck of the dice:

    credit = reward + value after - value before - luck

The luck of a roll has mean zero, and with two players what a potential adds to a game depends on its start alone. So
for the sum of all credits to come (a discount of 1) the best policy is the one that it is without them, however wrong
the value is: where the position at the end of a turn is worth more or less, once the next player's turn is worked out,
than the value had said, that belongs to the credit too.

With more than two players it is no potential: only what the seat that acts can expect is worked out, and the others are
taken to share its changes alike. What each decision gives away by the value is as exact there, and with a discount of 0
that is what is learnt from.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game, Phase
from wotd_env.core.game import IllegalActionError
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan

__all__ = ["Creditor"]


class Creditor:
    """Steps games as `Game.step` does, and says what each decision is worth.

    Args:
        game: the games that are played.
        value: the value of positions at the ends of turns.
    """

    def __init__(self, game: Game, value: Value) -> None:
        self.value = value
        self.players = game.rules.players
        self._game = Game(game.rules, skip_forced=False, num_threads=game.num_threads)
        self._skip_forced = game.skip_forced

    def step(self, state: States, actions: NDArray[np.int64]) -> NDArray[np.float32]:
        """Take actions (N,) in games at their decisions, in place, and roll on to the next decisions.

        Returns:
            float32 (N, n): by seat, what the step has changed of the result to expect but for the luck of the dice.

        Raises:
            IllegalActionError: if an action is illegal; nothing has been changed.
        """
        game = self._game
        credit = np.zeros((len(state), self.players), np.float32)
        worth, best = plan(game, state, self.value)
        rows = np.arange(len(state))
        chosen = worth[rows, actions]
        if not np.isfinite(chosen).all():
            game.check(state, actions)  # says what is wrong
            raise IllegalActionError(-1, -1, [], "a game in the batch waits for no decision")
        self._pay(credit, rows, state["player"], chosen - best)
        going = rows
        while going.size:
            part = state[going]
            turn = part["turn"].copy()
            game.decide(part, actions, validate=False)
            begun = np.flatnonzero((part["turn"] != turn) & (part["phase"] == Phase.CHANCE))
            if begun.size:
                start = part[begun]
                expected = plan(game, start, self.value)[1]
                said = self.value(game, start)[np.arange(len(start)), start["player"]]
                self._pay(credit, going[begun], start["player"], expected - said)
            game.roll(part, validate=False)
            state[going] = part
            if not self._skip_forced:
                break
            legal = game.legal_actions(part, validate=False)
            forced = np.flatnonzero((part["phase"] == Phase.MOVE) & (legal.sum(1) == 1))
            going, actions = going[forced], legal[forced].argmax(1)
        return credit

    def _pay(
        self,
        credit: NDArray[np.float32],
        games: NDArray[np.int64],
        seats: NDArray[np.int8],
        change: NDArray[np.floating],
    ) -> None:
        """Credit seats with changes of what they can expect, and the others with the opposite."""
        credit[games] -= (change / (self.players - 1))[:, None]
        credit[games, seats] += change * self.players / (self.players - 1)
