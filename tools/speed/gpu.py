"""Measure a GPU: speed, training and equality of the game in JAX and on CUDA (`python -m tools.speed --gpu`).

A *part* is a process with a time limit; together the limits are four minutes. The time that a part leaves is for the
next part. Each row of the results is printed and written to the file as soon as it is measured, so a failure of a later
part loses nothing. Everything runs from a checkout, with JAX, numba-cuda and PyTorch for the GPU.

A bare machine without a network needs this checkout and, from wheels, the packages that its Python lacks. Besides JAX,
PyTorch, numba 0.67, numba-cuda, matplotlib and rich, these are gymnasium, farama-notifications, pettingzoo, pgx and
svgwrite; also NumPy 2.4 if NumPy is newer there, because numba-cuda 0.30 does not compile with NumPy 2.5. The library
libnvvm of numba-cuda comes with nvcc, in a folder where numba-cuda may not look. The command is

    mkdir -p /tmp/lib && ln -sf $(find -L /usr/local/cuda -name libnvvm.so.4 -print -quit) /tmp/lib &&
    export LD_LIBRARY_PATH=/tmp/lib:$LD_LIBRARY_PATH &&
    python3 -m pip install --no-index --no-deps --target /tmp/site WHEELS/*.whl &&
    PYTHONPATH=/tmp/site python3 -m tools.speed --gpu gpu.json
"""

import functools
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tools.pages import ROOT
from wotd_env import files, speed

RESULTS = Path(__file__).with_name("gpu.json")
PACKAGES = ("wotd-env", "numpy", "numba", "numba-cuda", "llvmlite", "jax", "jaxlib", "pgx", "torch")
Row = dict[str, Any]


class Sizes(NamedTuple):
    """The amount of work of the parts."""

    batches: tuple[int, ...] = (1_048_576, 32_768, 1024)  # numbers of games, the most important first
    seconds: float = 1.0  # length of a measurement of speed
    compared: int = 16_384  # games of the comparisons with the engine
    steps: int = 64  # decisions of each compared game
    training: float = 60.0  # seconds
    num_envs: int = 8192  # games of a training run
    num_steps: int = 64
    minibatch_size: int = 32_768
    evaluation_games: int = 1000


SMALL = Sizes((64,), 0.01, 64, 8, 0.1, 8, 8, 32, 8)
"""Sizes for a trial on a processor."""


# ------------------------------------------------------------------------------------------------------------ the parts


def prepare(sizes: Sizes) -> Iterator[Row]:
    """Describe the machine, and compile the kernels of the engine that the other parts use."""
    import jax

    from tools.speed.__main__ import processor, versions

    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        gpu = subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        gpu = "none"
    devices = [device.device_kind for device in jax.devices()]
    yield {"gpu": gpu, "jax devices": devices, "processor": processor(), "versions": versions(PACKAGES)}
    if sizes != SMALL:
        from wotd_env import Game, evaluate
        from wotd_env.core.dice import KEEP_DICE

        evaluate("greedy", "greedy", 2)
        game = Game(skip_forced=False)
        state = game.reset(1)
        game.observe(state)
        game.step_autoreset(state, game.legal_actions(state).argmax(1))
        game.decide(state, game.legal_actions(state).argmax(1))
        game.rewards(state)
        game.roll(state, KEEP_DICE[:1])


def rollouts(sizes: Sizes) -> Iterator[Row]:
    """Measure the game in JAX with random legal actions."""
    from tools.speed.cases import scan

    for batch in sizes.batches:
        for players, powers in ((2, "none"), (5, "any")):
            rate, _ = speed.rate(scan(batch, players, 1, powers=powers), sizes.seconds)
            yield {"games": batch, "players": players, "powers": powers, "decisions/s": rate}


def peers(sizes: Sizes) -> Iterator[Row]:
    """Measure games of pgx in the same loop."""
    from tools.speed.cases import scan

    batch = sizes.batches[len(sizes.batches) // 2]
    for game in ("tic_tac_toe", "backgammon"):
        rate, _ = speed.rate(scan(batch, 2, 1, game), sizes.seconds)
        yield {"game": game, "games": batch, "decisions/s": rate}


def jax_equality(sizes: Sizes) -> Iterator[Row]:
    """Repeat decisions of the game in JAX with the engine, and compare the records, masks and rewards."""
    import jax
    import jax.numpy as jnp

    from wotd_env import Game, Rules
    from wotd_env.core.dice import KEEP_DICE
    from wotd_env.jax import WayOfTheDragon

    for rules in (Rules(), Rules(players=5, powers="any", immunity=True, colors="random")):
        env, game = WayOfTheDragon(rules), Game(rules, skip_forced=False)

        def act(state: Any, key: Any, env: Any = env) -> Any:
            choice, dice, fresh = jax.random.split(key, 3)
            action = jax.random.categorical(choice, jnp.where(state.legal_action_mask, 0.0, -jnp.inf))
            decided = env.decide(state, action)
            roll = jax.random.categorical(dice, env.chance_logits(decided))
            thrown = env.throw(decided, roll)
            new = env.init(fresh)
            following = jax.tree.map(lambda a, b: jnp.where(decided.terminated, a, b), new, thrown)
            return action, roll, decided, thrown, following

        play = jax.jit(jax.vmap(act))
        key = jax.random.key(speed.SEED)
        state = jax.jit(jax.vmap(env.init))(jax.random.split(key, sizes.compared))
        for step in range(sizes.steps // 2):
            keys = jax.random.split(jax.random.fold_in(key, step + 1), sizes.compared)
            action, roll, decided, thrown, following = play(state, keys)
            records = env.to_records(state)
            _same(game.legal_actions(records), np.asarray(state.legal_action_mask), "masks")
            _same(game.observe(records), np.asarray(state.observation), "observations")
            game.decide(records, np.asarray(action))
            _same(records.view(np.uint8), env.to_records(decided).view(np.uint8), "records after decisions")
            _same(game.rewards(records), np.asarray(decided.rewards), "rewards")
            game.roll(records, KEEP_DICE[np.asarray(roll)])
            _same(records.view(np.uint8), env.to_records(thrown).view(np.uint8), "records after rolls")
            state = following
        decisions = sizes.steps // 2 * sizes.compared
        yield {"players": rules.players, "powers": rules.powers, "equal decisions": decisions}


def engine(sizes: Sizes) -> Iterator[Row]:
    """Compare and measure the engine on CUDA in one process, because compiling its kernel takes seconds."""
    yield from cuda_equality(sizes)
    yield from cuda_speed(sizes)
    yield from torch_training(sizes)


def cuda_equality(sizes: Sizes) -> Iterator[Row]:
    """Repeat decisions of the engine on CUDA with the engine on the processor, and compare all arrays."""
    from tools.speed.choosing import chooser
    from wotd_env import Game, Rules
    from wotd_env.cuda import SIMULATED, CudaGame

    games = 8 if SIMULATED else sizes.compared
    for rules in (Rules(), Rules(players=5, powers="any", immunity=True, colors="random")):
        ours, game = CudaGame(rules, games), Game(rules)
        choose, state = chooser(ours), game.reset(games)
        rewards, done = np.empty((games, rules.players), np.float32), np.empty(games, np.bool_)
        for _ in range(sizes.steps // 2):
            actions = choose()
            ours.step(actions)
            game.step_autoreset(state, _host(actions), rewards=rewards, done=done)
            _same(ours.records().view(np.uint8), state.view(np.uint8), "records")
            _same(_host(ours.mask), game.legal_actions(state), "masks")
            _same(_host(ours.observation), game.observe(state), "observations")
            _same(_host(ours.rewards), rewards, "rewards")
            _same(_host(ours.done), done, "ends")
        yield {"players": rules.players, "powers": rules.powers, "equal decisions": sizes.steps // 2 * games}


def cuda_speed(sizes: Sizes) -> Iterator[Row]:
    """Measure the engine on CUDA with random legal actions, which another kernel chooses."""
    from tools.speed.choosing import chooser
    from wotd_env import Rules
    from wotd_env.cuda import SIMULATED, CudaGame, cuda

    for batch in sizes.batches:
        for rules in (Rules(), Rules(players=5, powers="any")):
            game = CudaGame(rules, 8 if SIMULATED else batch)
            choose = chooser(game)

            def choose_and_step(game: Any = game, choose: Any = choose) -> None:
                game.step(choose())

            about = {"games": game.num_games, "players": rules.players, "powers": rules.powers}
            for work, call in (("choice and step", choose_and_step), ("choice", choose)):
                call()
                cuda.synchronize()
                start, count = time.perf_counter(), 0
                while time.perf_counter() < start + sizes.seconds / 4:
                    for _ in range(1 if SIMULATED else 20):
                        call()
                        count += 1
                    cuda.synchronize()
                rate = count * game.num_games / (time.perf_counter() - start)
                yield {"work": work, **about, "decisions/s": rate}


def jax_training(sizes: Sizes) -> Iterator[Row]:
    """Train with examples/jax_ppo.py for some time, and measure the strength against `greedy`."""
    import jax
    import jax.numpy as jnp

    from examples import jax_ppo
    from wotd_env import evaluate
    from wotd_env.jax import WayOfTheDragon

    updates = 1000
    settings = jax_ppo.Settings(
        num_envs=sizes.num_envs, num_steps=sizes.num_steps, minibatch_size=sizes.minibatch_size,
        total_timesteps=updates * sizes.num_envs * sizes.num_steps,
    )  # fmt: skip
    env = WayOfTheDragon(players=settings.players)
    update = jax.jit(functools.partial(jax_ppo.update, env, settings=settings))
    learner = jax_ppo.new_learner(env, settings)
    jax.block_until_ready(update(learner))  # type: ignore[no-untyped-call]
    start, count, spent = time.perf_counter(), 0, 0.0
    while spent < sizes.training:
        # The learning rate and the entropy bonus fall linearly with time, to 0 at the end of the training.
        at = jnp.int32(updates * spent / sizes.training)
        learner = jax.block_until_ready(update(learner._replace(update=at)))  # type: ignore[no-untyped-call]
        count, spent = count + 1, time.perf_counter() - start
    decisions = count * settings.num_envs * settings.num_steps
    yield {"seconds": spent, "decisions": decisions, "decisions/s": decisions / spent}
    agent = jax_ppo.policy(env, jax.device_get(learner.params))
    with jax.default_device(jax.devices("cpu")[0]):  # it compiles for each number of games, slowly for a GPU
        result = evaluate(agent, "greedy", sizes.evaluation_games, env.rules)
    yield {"share of wins against greedy": result.share, "from": result.low, "to": result.high}


def torch_training(sizes: Sizes) -> Iterator[Row]:
    """Measure the speed of examples/torch_gpu_ppo.py."""
    from examples import torch_gpu_ppo
    from wotd_env.cuda import SIMULATED

    settings = torch_gpu_ppo.Settings(
        num_envs=4 if SIMULATED else sizes.num_envs,
        num_steps=sizes.num_steps,
        minibatch_size=sizes.minibatch_size,
    )
    learner = torch_gpu_ppo.Learner(settings)
    learner.update(1.0)
    start, count, spent = time.perf_counter(), 0, 0.0
    while spent < sizes.training / 10:
        learner.update(1.0)
        count, spent = count + 1, time.perf_counter() - start
    decisions = count * settings.num_envs * settings.num_steps
    yield {"seconds": spent, "decisions": decisions, "decisions/s": decisions / spent}


Part = Callable[[Sizes], Iterator[Row]]
LIMITS: dict[Part, int] = {
    prepare: 25, engine: 40, jax_equality: 20, rollouts: 45, jax_training: 95, peers: 15,
}  # fmt: skip
"""The time limits of the parts in seconds, in order."""


# --------------------------------------------------------------------------------------------------------- running them


def measure(file: Path, small: bool = False) -> int:
    """Run all parts, write the results to a file, and return the exit status: 1 if a part failed."""
    results: Row = {"date": time.strftime("%Y-%m-%d", time.gmtime()), "small": small, "parts": {}}
    left = 0  # seconds
    for part, limit in LIMITS.items():
        limit += left
        name = part.__name__
        command = [sys.executable, "-m", "tools.speed.gpu", name, *["small"] * small]
        about: Row = {"limit": limit, "rows": []}
        results["parts"][name] = about
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=ROOT, capture_output=True, timeout=None if small else limit, check=False
            )
            output = done.stdout
            if done.returncode:
                about["failed"] = done.stderr.decode()[-1000:]
        except subprocess.TimeoutExpired as stopped:
            output = stopped.stdout or b""
            about["failed"] = f"stopped after {limit} s"
        about["rows"] = [json.loads(line) for line in output.splitlines(True) if line.endswith(b"}\n")]
        about["seconds"] = round(time.perf_counter() - start, 1)
        left = max(0, int(limit - about["seconds"]))
        files.write(file, (json.dumps(results, indent=1) + "\n").encode())
        print(f"{name}: {about['seconds']} s, {about.get('failed', 'done')}", flush=True)
        for row in about["rows"]:
            print("   ", json.dumps(row), flush=True)
    return int(any("failed" in about for about in results["parts"].values()))


def _same(ours: Any, theirs: Any, what: str) -> None:
    if not np.array_equal(ours, theirs):
        raise AssertionError(f"the {what} of the GPU differ from those of the engine")


def _host(array: Any) -> Any:
    return array.copy_to_host() if hasattr(array, "copy_to_host") else array


if __name__ == "__main__":
    name, *others = sys.argv[1:]
    (part,) = (part for part in LIMITS if part.__name__ == name)
    for row in part(SMALL if others else Sizes()):
        print(json.dumps(row), flush=True)
