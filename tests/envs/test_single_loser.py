"""R1 with `start="loser"`: the last-placed player of the last game starts the next one, in any seat."""

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


class SeatRecorder:
    """Random policy of all opponents that records the seats it plays."""

    def __init__(self):
        self.seats = []

    def reset_and_find_starter(self, env, **reset):
        """Reset the environment; return the starting player: 0 is the learner, k the k-th opponent."""
        self.seats.clear()
        env.reset(**reset)
        (player,) = places(env, self.seats[:1] or [env.seat])
        return player

    def act(self, game, state, rng):
        self.seats.append(int(state["player"][0]))
        return np.array([rng.choice(np.flatnonzero(mask)) for mask in game.legal_actions(state)])


def places(env, seats):
    """Return the players in these seats: 0 is the learner, k the k-th opponent."""
    return {(seat - env.seat) % env.game.rules.players for seat in seats}


def last_placed(env):
    """Return the last-placed seats of the current position."""
    return ref.last_placed(reference_rules(env.game.rules), from_record(env.record[0]))


def play_game(env, rng, ending):
    """Play a game to its end, to an illegal action or for a few steps; return its last-placed players."""
    if ending == "illegal":
        env.step(50)  # a pass, which is illegal in the first decision
        return {0}
    play(env, rng, 3 if ending == "unfinished" else 2**63)
    return places(env, last_placed(env))


@pytest.mark.parametrize("players", [2, 3, 5])
def test_R01_the_loser_starts_in_its_new_seat(players):
    """The loser is the learner or an opponent. Illegal actions and unfinished games count too."""
    policy = SeatRecorder()
    env = WayOfTheDragonEnv(players=players, opponents=policy, **LOSER)
    env.reset(seed=0)
    rng = np.random.default_rng(players)
    moved, starters, single = 0, set(), 0
    for game in range(60):
        ending = ("finished", "illegal", "unfinished")[game % 3]
        if env.action_masks().all():  # the game ended before the learner's first decision
            ending = "finished"
        last, seat = play_game(env, rng, ending), env.seat
        first = policy.reset_and_find_starter(env)
        assert first in last
        moved += env.seat != seat
        starters.add(first)
        single += len(last) == 1
    assert moved > 10
    assert single > 20
    assert starters == set(range(players))


def test_R01_tied_losers_roll_off():
    policy = SeatRecorder()
    env = WayOfTheDragonEnv(players=3, opponents=policy, **LOSER)
    state = numbers(Rules(players=3, spaces=1), "2 1 0 0 0", "1 0 0 0 0", "0 0 1 0 0")
    state["dice"], state["phase"], state["rolls_left"] = [4, 4, 5, 5, 5], Phase.KEEP, 1
    starters = []
    for seed in range(60):
        env.reset(seed=seed, options={"state": state})
        last = places(env, last_placed(env))
        first = policy.reset_and_find_starter(env)
        assert first in last
        if len(last) == 2:
            starters.append(first)
    assert len(starters) > 30
    assert set(starters) == {0, 1, 2}


def test_R01_a_given_seat_or_seed_overrides_the_loser():
    policy = SeatRecorder()
    env = WayOfTheDragonEnv(opponents=policy, **{**LOSER, "seat": 1})
    env.reset(seed=0)
    env.step(50)
    assert policy.reset_and_find_starter(env, options={"starting_player": 0}) == 1
    ends = []
    for _ in range(2):
        env.reset(seed=4)
        ends.append(env.record)
        env.step(50)
    assert ends[0] == ends[1]
