"""Copies of the vector environment, its use in other processes, and its memory."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv

from tests.helpers.vectors import assert_same, play, random_actions
from wotd_env import STATE
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.policies.first import First


@pytest.mark.parametrize("clone", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
@pytest.mark.parametrize("opponents", ["random", First()])
def test_copies_continue_the_running_games(clone, opponents):
    env = WayOfTheDragonVectorEnv(20, opponents=opponents, spaces=1, autoreset_mode="SameStep")
    play(env, 5, 10)
    other = clone(env)
    rng = np.random.default_rng(8)
    for _ in range(40):
        actions = random_actions(env.action_masks(), rng)
        assert_same(env.step(actions), other.step(actions))
    assert (env.record["turn"] > 0).any()


def play_in_child(connection):
    env = WayOfTheDragonVectorEnv(600, spaces=1, num_threads=2)
    connection.send(play(env, 2, 20)[-1])
    connection.close()


# the test forks a threaded process on purpose
@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_child_processes_of_a_threaded_process_play_the_same_games(method):
    env = WayOfTheDragonVectorEnv(600, spaces=1, num_threads=2)
    expected = play(env, 2, 20)[-1]
    context = multiprocessing.get_context(method)
    here, there = context.Pipe()
    child = context.Process(target=play_in_child, args=(there,), daemon=True)
    child.start()
    there.close()
    assert_same(here.recv(), expected)
    child.join()
    assert child.exitcode == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_async_workers_forked_from_a_threaded_process_play_the_same():
    play(WayOfTheDragonVectorEnv(600, num_threads=2), 2, 3)
    workers = AsyncVectorEnv([lambda: WayOfTheDragonEnv(spaces=1, opponents="random")] * 2, context="fork")
    native = WayOfTheDragonVectorEnv(2, spaces=1, opponents="random")
    rng = np.random.default_rng(4)
    assert_same(workers.reset(seed=3), native.reset(seed=3))
    for _ in range(60):
        actions = random_actions(native.action_masks(), rng)
        assert_same(workers.step(actions), native.step(actions))
    workers.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_sb3_workers_forked_from_a_threaded_process_play_the_same():
    vec_env = pytest.importorskip("stable_baselines3.common.vec_env")
    play(WayOfTheDragonVectorEnv(600, num_threads=2), 2, 3)
    make = functools.partial(WayOfTheDragonEnv, spaces=1, opponents="random")
    workers = vec_env.SubprocVecEnv([make] * 2, start_method="fork")
    native = WayOfTheDragonVectorEnv(2, spaces=1, opponents="random", autoreset_mode="SameStep")
    workers.seed(3)
    np.testing.assert_array_equal(workers.reset(), native.reset(seed=3)[0])
    rng = np.random.default_rng(4)
    for _ in range(60):
        np.testing.assert_array_equal(workers.env_method("action_masks"), native.action_masks())
        actions = random_actions(native.action_masks(), rng)
        observations, rewards, dones, _ = workers.step(actions)
        expected = native.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        np.testing.assert_array_equal(dones, expected[2] | expected[3])
    workers.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_data_loader_workers_play_the_same_games():
    data = pytest.importorskip("torch.utils.data")
    play(WayOfTheDragonVectorEnv(600, num_threads=2), 2, 3)

    class FinalObservations(data.Dataset):  # type: ignore[name-defined,misc]
        def __len__(self):
            return 4

        def __getitem__(self, seed):
            env = WayOfTheDragonVectorEnv(600, num_threads=2)
            return play(env, seed, 3)[-1][0]

    batches = list(data.DataLoader(FinalObservations(), batch_size=1, num_workers=2, collate_fn=list))
    assert len(batches) == 4
    for seed, batch in enumerate(batches):
        np.testing.assert_array_equal(batch[0], play(WayOfTheDragonVectorEnv(600), seed, 3)[-1][0])


MEMORY = """
    import re, sys
    from pathlib import Path
    import numpy as np
    from wotd_env import Game
    from wotd_env.policies.random import Random

    def peak():
        return 1024 * int(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])

    def run(games, decisions):
        game, policy, rng = Game(), Random(), np.random.default_rng(0)
        state = game.reset(games, seed=0)
        observation = np.empty((games, game.observation_size), np.int8)
        mask = np.empty((games, game.num_actions), np.int8)
        game.observe(state, out=observation)
        game.legal_actions(state, out=mask)
        for _ in range(decisions // games):
            game.step_autoreset(state, policy.act(game, state, rng), observation, mask)
            yield peak()

    list(run(10, 10))
    before = peak()
    growth = [now - before for now in run(int(sys.argv[1]), int(sys.argv[2]))]
    print(growth[0], growth[-1])
"""


def memory(games, decisions):
    """Return the bytes that a new process needs beyond its imports: after the first decisions, and after all."""
    if not Path("/proc/self/status").exists():
        pytest.skip("only Linux reports the peak of the process itself: getrusage includes its parent's")
    command = [sys.executable, "-c", textwrap.dedent(MEMORY), str(games), str(decisions)]
    first, last = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    return int(first), int(last)


def test_a_million_games_fit_into_400_megabytes():
    first, last = memory(1_000_000, 3_000_000)
    assert first <= last < 400e6
    assert first > 1_000_000 * STATE.itemsize


@pytest.mark.parametrize("decisions", [2_000_000, pytest.param(100_000_000, marks=pytest.mark.slow)])
def test_memory_does_not_grow_with_the_number_of_decisions(decisions):
    first, last = memory(10_000, decisions)
    assert last - first < 1e6
