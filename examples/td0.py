"""TD(0) on afterstates with exactly planned turns, for the basic game of two players.

A small network estimates the value of positions between turns. Within a turn only one seat decides, and the dice have
known probabilities. So the program can compute the expected value of a turn exactly. This value is the target of TD(0):

    V(s)  <-  E[max over holds and moves of V(afterstate)]

The example uses `Game.decide` to reach the afterstates, and `Game.chance_outcomes` for the probabilities of rolls.

    python examples/td0.py [TURNS]
"""

import sys
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch as th
from torch import nn

from wotd_env import Action, Game, Phase

game = Game(skip_forced=False)
PIECES = game.observation_layout["pieces"]

# Tables of the dice. A keep is the sorted list of 0 to 5 kept faces; a roll is a sorted list of five faces.
KEEPS: list[list[int]] = [keep for dice in range(6) for keep in game.chance_outcomes(dice)[0].tolist()]
ROLLS = [keep for keep in KEEPS if len(keep) == 5]  # faces 0 to 4 are elements, 5 is the dragon
HOLDS = np.array(  # [roll, hold]: index in KEEPS of the kept dice; bit i of a hold keeps die i
    [[KEEPS.index([roll[i] for i in range(5) if hold >> i & 1]) for hold in range(32)] for roll in ROLLS]
)
CHANCE = np.zeros((len(ROLLS), len(KEEPS)), np.float32)  # [roll, keep]: chance that the keep becomes the roll
for number, keep in enumerate(KEEPS):
    for faces, probability in zip(*game.chance_outcomes(5 - len(keep)), strict=True):
        CHANCE[ROLLS.index(sorted([*keep, *faces.tolist()])), number] = probability

# The 32 possible ends of a turn, each as a pair: the last action, and a roll that allows this action.
MOVES = [(Action.MOVE_ON + e, [e] * count + [5] * (5 - count)) for e in range(5) for count in range(1, 6)]
SWAPS = [(Action.FIRST_SWAP + e, [e, 5, 5, 5, 5]) for e in range(5)]
ENDS = [*MOVES, (Action.EQUILIBRIUM, [0, 1, 2, 3, 4]), *SWAPS, (Action.PASS, [5] * 5)]
EQUILIBRIUM, SWAP, PASS, NONE = 25, 26, 31, 32


def ends_of(roll: list[int]) -> list[int]:
    """Return eleven indices in ENDS: five moves, five swaps and the pass. NONE replaces an end that `roll` forbids."""
    moves = [5 * e + roll.count(e) - 1 if e in roll else NONE for e in range(5)]
    if roll == [0, 1, 2, 3, 4]:
        moves = [EQUILIBRIUM, *[NONE] * 4]
    dragons = roll.count(5)
    swaps = [SWAP + e if dragons == 5 or (dragons == 4 and e in roll) else NONE for e in range(5)]
    return [*moves, *swaps, PASS]


ALLOWED = np.array([ends_of(roll) for roll in ROLLS])  # (252, 11)


def logits(network: nn.Module, state: np.ndarray) -> th.Tensor:
    """Return logits (N,) of the win probability of the seat to act; V = 2 sigmoid(logit) - 1 = tanh(logit / 2)."""
    return th.squeeze(network(th.from_numpy(game.observe(state)[:, PIECES]).float()), 1)


class Plan(NamedTuple):
    """The exact plans of the turns in N games. Values are expected rewards of the seat to act."""

    ends: np.ndarray  # (N, 32): the positions at the ends of the turn; entries of illegal ends are invalid
    last: np.ndarray  # (N, 252, 11): value of each end for each last roll, -inf if illegal
    keeps: np.ndarray  # (2, N, 462): values of the keeps, with one roll left and with two rolls left
    value: np.ndarray  # (N,): expected value of the turn before its first roll

    def end(self, roll: np.ndarray) -> np.ndarray:
        """Return the best ends, indices in ENDS (N,), for the last rolls `roll`, indices in ROLLS (N,)."""
        return np.asarray(ALLOWED[roll, self.last[np.arange(len(roll)), roll].argmax(1)])

    def hold(self, roll: np.ndarray, left: np.ndarray | int) -> np.ndarray:
        """Return the best holds (N,) for rolls (N,). `left` is the number of re-rolls left, 1 or 2."""
        values = self.keeps[left - 1, np.arange(len(roll))]
        return np.asarray(np.take_along_axis(values, HOLDS[roll], 1).argmax(1))


def plan(network: nn.Module, state: np.ndarray) -> Plan:
    """Plan the turns of games STATE (N,)."""
    ends = np.repeat(state, len(ENDS))
    ends["phase"], ends["rolls_left"] = Phase.MOVE, 0
    ends["dice"] = np.tile([roll for _, roll in ENDS], (len(state), 1))
    actions = np.tile([action for action, _ in ENDS], len(state))
    legal = np.flatnonzero(game.legal_actions(ends)[np.arange(len(ends)), actions])
    after, mover = ends[legal], ends["player"][legal]
    game.decide(after, actions[legal])
    value = (logits(network, after).detach() / 2).tanh().numpy() * np.where(after["player"] == mover, 1, -1)
    result = game.rewards(after)[np.arange(len(after)), mover]
    values = np.full((len(state), NONE + 1), -np.inf, np.float32)
    values[np.divmod(legal, len(ENDS))] = np.where(game.is_over(after), result, value)
    ends[legal] = after

    last = values[:, ALLOWED]
    last[last[:, :, :5].max(2) > -np.inf, 10] = -np.inf  # a pass is legal only if no move is legal
    one = last.max(2) @ CHANCE  # for each keep, the mean value of the best end
    two = one[:, HOLDS].max(2) @ CHANCE  # for each keep, the mean value of the best hold
    before = two[:, HOLDS].max(2) @ CHANCE[:, 0]
    return Plan(ends.reshape(len(state), -1), last, np.array([one, two]), before)


def choose(network: nn.Module, state: np.ndarray) -> np.ndarray:
    """Return the planned actions, int64 (N,), for games at a decision, STATE (N,)."""
    planned, phase = plan(network, state), state["phase"]
    roll = np.array([ROLLS.index(dice) if min(dice) >= 0 else 0 for dice in state["dice"].tolist()])
    holds = planned.hold(roll, np.maximum(state["rolls_left"], 1))
    moves = np.array([*(action for action, _ in ENDS), 0])[planned.end(roll)]
    return np.select([phase == Phase.KEEP, phase == Phase.MOVE], [holds, moves], Action.PERFECTION_TURN)


def win_rate(network: nn.Module, opponent: str, games: int) -> float:
    """Play planned turns in a random seat against a named policy, and return the share of games won."""
    envs: Any = gymnasium.make_vec("wotd_env:wotd_env/WayOfTheDragon-v0", num_envs=games, opponents=opponent)
    envs.reset(seed=1 << 40)
    won, running = np.zeros(games, np.bool_), np.ones(games, np.bool_)
    while running.any():
        _, reward, terminated, truncated, _ = envs.step(choose(network, envs.record))
        won |= running & (reward == 1)
        running &= ~(terminated | truncated)
    return float(won.mean())


def train(turns: int = 1500, games: int = 128, seed: int = 0, evaluation_games: int = 500) -> nn.Module:
    """Train a network by self-play, print its win rates ten times, and return it.

    Each game plays one turn between two gradient steps.
    """
    th.set_num_threads(1)  # with one thread, equal seeds give equal weights
    th.manual_seed(seed)
    rng, chance = np.random.default_rng(seed), CHANCE.T.cumsum(1)
    network = nn.Sequential(nn.Linear(PIECES.stop - PIECES.start, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = th.optim.Adam(network.parameters())
    state = game.reset(games, seed=seed, roll=False)
    for turn in range(turns):
        planned = plan(network, state)
        optimizer.param_groups[0]["lr"] = 3e-3 * (1 - turn / turns)
        target = th.from_numpy(1 + planned.value) / 2
        loss = nn.functional.binary_cross_entropy_with_logits(logits(network, state), target)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        keep = np.zeros(games, np.int64)  # keep 0 is the empty keep, so the first roll throws all dice
        for left in (2, 1, 0):
            roll = (chance[keep, :-1] < rng.random((games, 1))).sum(1)
            if left:
                keep = HOLDS[roll, planned.hold(roll, left)]
        state = planned.ends[np.arange(games), planned.end(roll)]
        # Five equal dice earn an extra turn. PERFECTION_TURN starts it; without an extra turn, it changes nothing.
        game.decide(state, np.full(games, Action.PERFECTION_TURN), validate=False)
        game.reset(state, where=game.is_over(state), roll=False)
        if 10 * (turn + 1) // turns > 10 * turn // turns:
            greedy, random = (win_rate(network, name, evaluation_games) for name in ("greedy", "random"))
            print(f"turn {turn + 1}: {greedy:.1%} against greedy, {random:.1%} against random", flush=True)
    return network


if __name__ == "__main__":
    train(*map(int, sys.argv[1:]))
