"""Policies that misbehave; arena workers create them by name, as `tests.helpers.arena_policies:NAME`."""

import os

import numpy as np

from wotd_env import Game, Phase


class Lowest:
    """Plays the lowest legal action."""

    def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        actions: np.ndarray = game.legal_actions(state).argmax(1)
        return actions


class Illegal(Lowest):
    """Plays a nonexistent action in the fourth turn."""

    def act(self, game, state, rng):
        return np.where(state["turn"] == 3, 999, super().act(game, state, rng))


class Raises(Lowest):
    """Raises in the fourth turn."""

    def act(self, game, state, rng):
        if (state["turn"] == 3).any():
            raise KeyError("turn four")
        return super().act(game, state, rng)


class Malformed(Lowest):
    """Returns one action too many from the fourth turn on."""

    def act(self, game, state, rng):
        actions = super().act(game, state, rng)
        return np.append(actions, 0) if (state["turn"] >= 3).any() else actions


class Hangs(Lowest):
    """Never returns in the second turn."""

    def act(self, game, state, rng):
        while (state["turn"] == 1).any():
            pass
        return super().act(game, state, rng)


class Dies(Lowest):
    """Ends its process in the third or fourth turn."""

    def act(self, game, state, rng):
        if ((state["turn"] == 2) | (state["turn"] == 3)).any():
            os._exit(7)
        return super().act(game, state, rng)


class Refuses(Lowest):
    """Raises in the third or fourth turn."""

    def act(self, game, state, rng):
        if ((state["turn"] == 2) | (state["turn"] == 3)).any():
            raise RuntimeError("turns three and four")
        return super().act(game, state, rng)


class Stuck(Lowest):
    """Never returns."""

    def act(self, game, state, rng):
        while True:
            pass


class Deadly(Lowest):
    """Ends its process at once."""

    def act(self, game, state, rng):
        os._exit(9)


class Broken:
    """Raises in every call."""

    def act(self, game, state, rng):
        return _helper(state)


def _helper(state: np.ndarray) -> np.ndarray:
    raise ZeroDivisionError("nothing can be divided by it")


class Nonsense(Lowest):
    """Always plays a nonexistent action."""

    def act(self, game, state, rng):
        return np.full(len(state), 999)


class Vandal(Lowest):
    """Modifies the states that it is given."""

    def act(self, game, state, rng):
        actions = super().act(game, state, rng)
        state["pieces"] = 1
        state["phase"] = Phase.OVER
        return actions


class Gambler(Lowest):
    """Plays at random."""

    def act(self, game, state, rng):
        return (game.legal_actions(state) * rng.random((len(state), game.num_actions))).argmax(1)


class Seer(Lowest):
    """Predicts the next dice from a copy of the state and records whether they occur; for one game at a time."""

    def __init__(self) -> None:
        self.foreseen: np.ndarray | None = None
        self.right: list[bool] = []

    def act(self, game, state, rng):
        if self.foreseen is not None:
            self.right.append(np.array_equal(state["dice"][0], self.foreseen))
        actions = super().act(game, state, rng)
        future = state[:1].copy()
        game.step(future, actions[:1])
        self.foreseen = None if future["phase"][0] == Phase.OVER else future["dice"][0]
        return actions


class Cheat:
    """Keeps copies of the states that it is given."""

    def __init__(self) -> None:
        self.shown: list[np.ndarray] = []

    def act(self, game, state, rng):
        self.shown.append(state.copy())
        return game.legal_actions(state).argmax(1)
