"""`python -m tests.helpers.hostile RANDOM MUTATED`: pass invalid records to every function that takes records.

It runs in its own process, because it looks for crashes. Every batch lies between two guards, and rejected records
must not change. Accepted records are played without validation, to show that the checks are sufficient.
"""

import sys
from collections.abc import Callable

import numpy as np
import pytest

from tests.helpers.learned import some_value
from wotd_env import STATE, Game, Phase, Rules, make_policy
from wotd_env.core.checks import faults
from wotd_env.planning.values import hand_made

VARIANTS = (
    Rules(),
    Rules(players=5, spaces=0, powers="any"),
    Rules(players=3, spaces=10, powers="own", colors="random", immunity=True, dead_pieces=10),
)
POLICIES = ("random", "first", "greedy", "planner", "mcts:2")
BATCH = 1 << 16
GUARD = 64  # records before and after a batch


CALLS: dict[str, Callable[[Game, np.ndarray], object]] = {
    "legal_actions": lambda game, state: game.legal_actions(state),
    "observe": lambda game, state: game.observe(state),
    "observe as a seat": lambda game, state: game.observe(state, 1),
    "scores": lambda game, state: game.scores(state),
    "rewards": lambda game, state: game.rewards(state),
    "step": lambda game, state: game.step(state, np.full(len(state), 31)),
    "decide": lambda game, state: game.decide(state, np.full(len(state), 31)),
    "step_autoreset": lambda game, state: game.step_autoreset(state, np.full(len(state), 31)),
    "roll": lambda game, state: game.roll(state),
    "roll given dice": lambda game, state: game.roll(state, np.zeros((len(state), 5), np.int8)),
} | {
    name: lambda game, state, name=name: make_policy(name).act(game, state, np.random.default_rng(0))
    for name in POLICIES
}
CALLS["the hand-made value"] = hand_made
CALLS["a learned value"] = lambda game, state: some_value(game.rules)(game, state)
"""Every function that takes records."""


def attack(game: Game, records: np.ndarray) -> int:
    """Pass a batch of records to every function; return the number of accepted ones."""
    guarded = np.zeros(len(records) + 2 * GUARD, STATE)
    guarded.view(np.uint8)[:] = 0xA5
    state = guarded[GUARD:-GUARD]
    state[:] = records
    good = np.array([faults(record, game.config[0]) == 0 for record in state])
    before = guarded.tobytes()
    for call in CALLS.values():
        for part in (state, state[~good][:1].copy()):
            if not good.all() and len(part):
                with pytest.raises(ValueError, match=r"must be|is illegal|a roll is due"):
                    call(game, part)
        assert guarded.tobytes() == before, "an invalid record was changed"
    accepted = state[good].copy()
    rng = np.random.default_rng(1)
    for _ in range(5):
        game.roll(accepted, validate=False)
        for name in POLICIES[:4]:
            chosen = make_policy(name).act(game, accepted, rng)
        game.observe(accepted, validate=False)
        game.rewards(accepted, validate=False)
        live = accepted["phase"] != Phase.OVER
        legal = game.legal_actions(accepted, validate=False)
        assert legal[np.arange(len(chosen)), chosen][live].all()
        game.step(accepted, chosen, validate=False)
    return int(good.sum())


def mutated(game: Game, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return records of running games with up to three bytes changed, mostly by small amounts."""
    state = game.reset(count, seed=int(rng.integers(2**32)))
    for _ in range(int(rng.integers(40))):
        game.step(state, make_policy("random").act(game, state, rng))
    raw = state.view(np.uint8).reshape(count, -1)
    rows = np.arange(count)
    for _ in range(3):
        where = rng.integers(8, raw.shape[1], count)
        small = (raw[rows, where].astype(int) + rng.integers(-2, 3, count)) % 256
        value = np.where(rng.random(count) < 0.7, small, rng.integers(0, 256, count))
        change = rng.random(count) < 0.6
        raw[rows[change], where[change]] = value[change]
    return state


def main(random: int, mutations: int) -> None:
    """Attack with batches under alternating rules."""
    rng = np.random.default_rng(0)
    accepted = 0
    for total, make in (
        (random, lambda game, count: np.frombuffer(rng.bytes(64 * count), STATE)),
        (mutations, lambda game, count: mutated(game, count, rng)),
    ):
        for i, first in enumerate(range(0, total, BATCH)):
            game = Game(VARIANTS[i % len(VARIANTS)])
            accepted += attack(game, make(game, min(BATCH, total - first)))
    print(f"{accepted:,} of {random + mutations:,} records were accepted")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
