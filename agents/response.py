"""Best responses: `python train.py td --against POLICY` learns to beat a policy that stays as it is.

The learner has one seat of every game, the policy all others. What is learnt is what a position is worth if they play
on like that. A turn of the learner is planned, and its dice are worked out, as in self-play (`agents.td`). A turn of
the policy cannot be planned: it is known only by what it does. So it is sampled, but the luck of its dice is taken out,
by the value that is being learnt: in place of what the turn has led to stands

    plan(s) - what the policy has given away by that plan,

where a decision gives away what it is worth less than the best one. That differs from the value after the turn by the
luck of the rolls, which has mean zero whatever the policy does and however wrong the value still is. So what is learnt
is free of the noise of all dice; only that of the policy's choices is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game, Phase
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan
from wotd_env.planning.playing import Turns, play_turns
from wotd_env.policy import Policy, ask


@dataclass
class Against:
    """Plays turns as `play_turns` does, but those of all seats but the learner's by a policy."""

    policy: Policy
    """plays the other seats"""
    seat: NDArray[np.int64]
    """(N,): the learner's seats"""
    rng: np.random.Generator
    """what the policy draws from"""

    def __call__(self, game: Game, state: States, value: Value, at_random: NDArray[np.bool_]) -> Turns:
        """Play one turn in every game, in place, see `play_turns`; the policy's turns are never at random.

        Args:
            game: the rules.
            state: STATE (N,), games before the first roll of a turn.
            value: the value of the afterstates, zero-sum.
            at_random: bool (N,), where the turn ends at random; is cleared where the policy is to play.
        """
        own = state["player"] == self.seat
        at_random &= own
        shape = len(state), game.rules.players
        turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
        for games in (np.flatnonzero(own), np.flatnonzero(~own)):
            part = state[games]
            if own[games].all():
                played = play_turns(game, part, value, at_random[games])
            else:
                played = sample_turns(game, part, value, self.policy, self.rng)
            state[games], turns.before[games], turns.after[games] = part, played.before, played.after
        return turns


def sample_turns(game: Game, state: States, value: Value, policy: Policy, rng: np.random.Generator) -> Turns:
    """Let a policy play one turn in every game, in place.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn. They are left before that of the next turn, or ended.
        value: the value of the afterstates, zero-sum.
        policy: what plays.
        rng: what it draws from.

    Returns:
        What the turns were worth: `after`, and `before`, the same without the luck of the dice.

    Raises:
        IllegalActionError: if the policy chooses an illegal action.
    """
    single = Game(game.rules, skip_forced=False, num_threads=game.num_threads)
    turn, player = state["turn"].copy(), state["player"].astype(np.int64)
    going = np.arange(len(state))
    expected = plan(single, state, value)[1]
    while going.size:
        part = state[going]
        single.roll(part, validate=False)
        legal = single.legal_actions(part)
        actions = legal.argmax(1)
        if (asked := np.flatnonzero(legal.sum(1) > 1)).size:
            actions[asked] = ask(policy, game, part[asked], rng)
            single.check(part, actions)
            worth, best = plan(single, part[asked], value)
            expected[going[asked]] += worth[np.arange(asked.size), actions[asked]] - best
        single.decide(part, actions, validate=False)
        state[going] = part
        going = going[(part["turn"] == turn[going]) & (part["phase"] != Phase.OVER)]
    over = (state["phase"] == Phase.OVER)[:, None]
    after = np.where(over, game.rewards(state), value(game, state)).astype(np.float32)
    games = np.arange(len(state))
    luck = (after[games, player] - expected)[:, None]
    before = (after + luck / (game.rules.players - 1)).astype(np.float32)
    before[games, player] = expected
    return Turns(before, after)
