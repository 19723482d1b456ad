"""R1 with `start="loser"`: the last-placed player of the last game starts, wherever it sits in the next one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests import reference as ref
from tests.helpers.positions import from_record, numbers, reference_rules
from tests.helpers.single import play
from wotd_env import Phase, Rules
from wotd_env.envs.single import WayOfTheDragonEnv

pytestmark = pytest.mark.filterwarnings("ignore:.*lost by an illegal action")

LOSER: dict[str, Any] = {"spaces": 1, "start": "loser", "seat": "random"}


class Beginner:
    """Plays random legal actions in the seats of all opponents, and notes them."""

    def __init__(self):
        self.seats = []

    def begins(self, env, **reset):
        """Reset the environment; return who begins: 0 is the learner, k the k-th of the list of opponents."""
        self.seats.clear()
        env.reset(**reset)
        (player,) = places(env, self.seats[:1] or [env.seat])
        return player

    def act(self, game, state, rng):
        self.seats.append(int(state["player"][0]))
        return np.array([rng.choice(np.flatnonzero(mask)) for mask in game.legal_actions(state)])


def places(env, seats):
    """The players in these seats: 0 is the learner, k the k-th of the list of opponents."""
    return {(seat - env.seat) % env.game.rules.players for seat in seats}


def last_placed(env):
    """The seats that are last in the game as it stands."""
    return ref.last_placed(reference_rules(env.game.rules), from_record(env.record[0]))


def play_on(env, rng, how):
    """Go on with a game to its end, to an illegal action or for a few steps; return the players who are last in it."""
    if how == "illegal":
        env.step(50)  # never legal at a hold, which comes first
        return {0}
    play(env, rng, 3 if how == "unfinished" else 2**63)
    return places(env, last_placed(env))


@pytest.mark.parametrize("players", [2, 3, 5])
def test_R01_the_loser_starts_in_its_new_seat(players):
    """The learner or the same opponent of the list, also after an illegal action and in place of unfinished games."""
    policy = Beginner()
    env = WayOfTheDragonEnv(players=players, opponents=policy, **LOSER)
    env.reset(seed=0)
    rng = np.random.default_rng(players)
    moved, begun, single = 0, set(), 0
    for game in range(60):
        how = ("finished", "illegal", "unfinished")[game % 3]
        if env.action_masks().all():  # a game that ended before the learner's first decision
            how = "finished"
        last, seat = play_on(env, rng, how), env.seat
        first = policy.begins(env)
        assert first in last
        moved += env.seat != seat
        begun.add(first)
        single += len(last) == 1
    assert moved > 10
    assert single > 20
    assert begun == set(range(players))


def test_R01_tied_losers_roll_off():
    policy = Beginner()
    env = WayOfTheDragonEnv(players=3, opponents=policy, **LOSER)
    state = numbers(Rules(players=3, spaces=1), "2 1 0 0 0", "1 0 0 0 0", "0 0 1 0 0")
    state["dice"], state["phase"], state["rolls_left"] = [4, 4, 5, 5, 5], Phase.KEEP, 1
    begun = []
    for seed in range(60):
        env.reset(seed=seed, options={"state": state})
        last = places(env, last_placed(env))
        first = policy.begins(env)
        assert first in last
        if len(last) == 2:
            begun.append(first)
    assert len(begun) > 30
    assert set(begun) == {0, 1, 2}


def test_R01_a_given_seat_or_seed_overrides_the_loser():
    policy = Beginner()
    env = WayOfTheDragonEnv(opponents=policy, **{**LOSER, "seat": 1})
    env.reset(seed=0)
    env.step(50)
    assert policy.begins(env, options={"starting_player": 0}) == 1
    ends = []
    for _ in range(2):
        env.reset(seed=4)
        ends.append(env.record)
        env.step(50)
    assert ends[0] == ends[1]
