"""Self-play on a Ray cluster, for `python train.py td --ray ADDRESS`.

The games are split into slices, and the nodes of the cluster play the slices. The result does not depend on the
cluster, because a game does not depend on its slice or node. If a node dies, another node plays the slice again. Every
node needs this checkout under the same path.
"""

from collections.abc import Callable, Iterable

import numpy as np
import ray
import torch as th
from numpy.typing import NDArray

from wotd_env import Game, Rules
from wotd_env.adapters.ray import num_cpus
from wotd_env.core.state import States
from wotd_env.planning.learned import LearnedValue, Network
from wotd_env.planning.slots import CHUNK

SelfPlay = Callable[[Game, States, LearnedValue, NDArray[np.bool_], float], Iterable[th.Tensor]]


def play_slices(
    self_play: SelfPlay,
    rules: Rules,
    state: States,
    value: LearnedValue,
    at_random: NDArray[np.bool_],
    td_lambda: float,
) -> list[th.Tensor]:
    """Play turns in all games on the cluster, in place, and return the samples that `self_play` would return.

    Ray must be connected with `wotd_env.adapters.ray.connect`. `self_play` is `agents.td.self_play`.
    """
    # Two slices per CPU even out the speeds of the CPUs. Slices smaller than the planner's chunks would waste time.
    count = max(1, min(2 * num_cpus(), len(state) // CHUNK))
    games = np.array_split(np.arange(len(state)), count)
    network = ray.put(value.network)
    task = ray.remote(num_cpus=1, max_retries=-1)(_play_slice)
    played = ray.get(
        [task.remote(self_play, rules, network, state[part], at_random[:, part], td_lambda) for part in games]
    )
    for part, (after, _) in zip(games, played, strict=True):
        state[part] = after
    # Order the samples as a single process does: by turn, and within a turn by game.
    by_turn = [[part.reshape(len(at_random), -1, part.shape[1]) for part in samples] for _, samples in played]
    return [th.from_numpy(np.concatenate(column, 1)).flatten(0, 1) for column in zip(*by_turn, strict=True)]


def _play_slice(
    self_play: SelfPlay,
    rules: Rules,
    network: Network,
    state: States,
    at_random: NDArray[np.bool_],
    td_lambda: float,
) -> tuple[States, tuple[NDArray[np.generic], ...]]:
    """Return the games after their turns, and the samples as arrays."""
    state = state.copy()  # Ray's arrays are read-only
    samples = self_play(Game(rules), state, LearnedValue(rules, network), at_random, td_lambda)
    return state, tuple(column.numpy() for column in samples)
