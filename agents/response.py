"""Best responses: `python train.py td --against POLICY` learns to beat a fixed policy.

The learner plays one seat of every game, and the policy plays all other seats. The learner's turns are planned as in
self-play (`agents.td`). The policy's turns can only be sampled. Let s be the position before such a turn. Instead of
the value after the turn, the TD target uses

    plan(s) - sum of the regrets of the policy's decisions in this turn.

Here plan(s) is the expected value of a planned turn from s. The regret of a decision is the planned value of the best
action minus the planned value of the policy's action. The target thus excludes the luck of the rolls. The mean of this
luck is zero for any policy and any value function. So excluding it adds no bias.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game, Phase
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan
from wotd_env.planning.playing import Turns, play_turns
from wotd_env.policy import Policy, ask


def against(
    policy: Policy, seat: NDArray[np.int64], rng: np.random.Generator
) -> Callable[[Game, States, Value, NDArray[np.bool_]], Turns]:
    """Return a function with the interface of `play_turns`.

    The function plans the learner's turns and samples the policy's turns. `seat`, (N,), contains the learner's seat in
    each game.
    """

    def play(game: Game, state: States, value: Value, at_random: NDArray[np.bool_]) -> Turns:
        own = state["player"] == seat
        at_random &= own
        shape = len(state), game.rules.players
        turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
        for games in (np.flatnonzero(own), np.flatnonzero(~own)):
            part = state[games]
            if own[games].all():
                played = play_turns(game, part, value, at_random[games])
            else:
                played = sample_turns(game, part, value, policy, rng)
            state[games], turns.before[games], turns.after[games] = part, played.before, played.after
        return turns

    return play


def sample_turns(game: Game, state: States, value: Value, policy: Policy, rng: np.random.Generator) -> Turns:
    """Play one turn of a policy in every game. Update `state`, STATE (N,), in place.

    Each game must be before the first roll of a turn. `value` must be a zero-sum value function.

    Returns:
        Two arrays with the values of all n seats, float32 (N, n). `after` contains the values at the ends of the turns.
        `before` is `after` minus the luck of the dice in the turns.

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
