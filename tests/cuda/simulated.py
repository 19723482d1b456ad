"""Play games in numba's simulator of CUDA and on the processor. `test_cuda.py` runs this program in another process.

The simulator must be chosen before numba is imported. A thread of the GPU is a thread of Python here, which makes a
decision take about a millisecond.
"""

import json
import sys

import numpy as np
import pytest

from tests.helpers.variants import KINDS, scatter, typical_variants
from wotd_env import Game, Rules
from wotd_env import cuda as gpu
from wotd_env.core.actions import Action
from wotd_env.core.observation import ENCODINGS

GAMES = 20  # a block of 16, and one that is not full


def compare(game: Game, ours: gpu.CudaGame, state: np.ndarray, rewards: np.ndarray, done: np.ndarray) -> None:
    assert ours.records().tobytes() == state.tobytes()
    np.testing.assert_array_equal(ours.mask, game.legal_actions(state))
    np.testing.assert_array_equal(ours.observation, game.observe(state))
    np.testing.assert_array_equal(ours.player, state["player"])
    np.testing.assert_array_equal(ours.rewards, rewards)
    np.testing.assert_array_equal(ours.done, done)


def walk(rules: Rules, encoding: str, steps: int, seed: int) -> set[str]:
    """Take `steps` decisions in each game by both implementations; return their kinds."""
    game, rng, kinds = Game(rules, encoding=encoding), np.random.default_rng(seed), set()
    ours = gpu.CudaGame(rules, GAMES, encoding)
    rewards, done = np.zeros((GAMES, rules.players), np.float32), np.zeros(GAMES, np.bool_)
    ours.reset(seed)
    state = game.reset(GAMES, seed=seed)
    compare(game, ours, state, rewards, done)
    scatter(rules, state[::2], rng)
    ours.load(state)
    game.roll(state)  # like `load`, it plays a move that is the only legal action
    for _ in range(steps):
        compare(game, ours, state, rewards, done)
        assert not ours.refused.any()
        mask = game.legal_actions(state)
        actions = (mask * rng.random(mask.shape)).argmax(1)
        stops = (mask[:, Action.STOP_ROLLING] == 1) & (rng.random(GAMES) < 0.5)
        actions[stops] = Action.STOP_ROLLING
        game.step_autoreset(state, actions, rewards=rewards, done=done)
        ours.step(actions)
        kinds |= {KINDS.get(action, "swap") for action in actions.tolist()} | (
            {"end of a game"} if done.any() else set()
        )
    compare(game, ours, state, rewards, done)
    for seat in range(rules.players):
        np.testing.assert_array_equal(ours.observe(seat), game.observe(state, seat))
    illegal = game.legal_actions(state).argmin(1)
    illegal[:3] = -1, game.num_actions, 1 << 40
    ours.step(illegal)
    assert ours.refused.all()
    compare(game, ours, state, np.zeros_like(rewards), np.zeros_like(done))
    return kinds


def check_errors() -> None:
    game = gpu.CudaGame(Rules(), 8)
    for actions in (np.zeros(3, np.int64), np.zeros(8, np.float32), np.zeros((8, 1), np.int64)):
        with pytest.raises(ValueError, match=r"actions must be int64 or int32 \(8,\) on the GPU, got "):
            game.step(actions)
    with pytest.raises(ValueError, match="records must be 8 games, got 3"):
        game.load(Game().reset(3))
    with pytest.raises(ValueError, match="seat must be"):
        game.observe(2)


def main(every: int, steps: int) -> None:
    """Compare every `every`-th variant, and print the number of decisions and their kinds as JSON."""
    gpu.MOST_THREADS = 16
    sys.setswitchinterval(1e-4)  # the simulator waits for its threads in a busy loop
    check_errors()
    kinds: set[str] = set()
    variants = typical_variants()[::every]
    for seed, rules in enumerate(variants):
        kinds |= walk(rules, ENCODINGS[seed % len(ENCODINGS)], steps, seed)
    print(json.dumps({"decisions": len(variants) * GAMES * steps, "kinds": sorted(kinds)}))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
