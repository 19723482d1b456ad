"""Copies of the vector environment, its use in other processes, and its memory."""

import copy
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.vectors import assert_same, play, random_actions
from wotd_env import STATE
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
