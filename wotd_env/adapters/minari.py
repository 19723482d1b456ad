"""Recorded games as a Minari dataset (extra `minari`): one policy's view, as a learner in the Gymnasium environment.

    record(["planner", "greedy"], "games.parquet", games=1000)  # of wotd_env.recording
    write("games.parquet", "wotd/planner-v0", "planner")
    minari.load_dataset("wotd/planner-v0")

An episode is a game as one seat sees it: its observations and masks at each of its decisions and at the end, its
actions, and its reward, as `gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0")` gives them.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.extras import needed_for
from wotd_env.policies import POLICIES
from wotd_env.recording import Decisions, blocks

with needed_for("a Minari dataset", "minari"):
    import h5py  # noqa: F401 - what Minari writes with
    import minari
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage.local import get_dataset_path
    from PIL import Image  # noqa: F401 - so does Minari need it for HDF5

__all__ = ["check", "episodes", "write"]


def check(
    dataset_id: str, rules: Rules, policies: Sequence[str], policy: str, encoding: str = "one_hot"
) -> None:
    """Make sure, before games are recorded, that they can be written as a dataset.

    Args:
        dataset_id: of which there must be none.
        rules: of the games.
        policies: that play.
        policy: whose view the dataset will be.
        encoding: of its observations.

    Raises:
        ValueError: if they cannot.
    """
    parse_dataset_id(dataset_id)
    if (path := Path(get_dataset_path(dataset_id))).exists():
        raise ValueError(
            f"there is a Minari dataset {dataset_id} already, in {path}: take another id, or delete it"
        )
    _environment(rules, policies, policy, encoding).close()


def write(file: str | Path, dataset_id: str, policy: str, encoding: str = "one_hot") -> int:
    """Write the view of a policy in all games of a file as a dataset.

    Args:
        file: that `wotd_env.recording.record` has written.
        dataset_id: such as `"wotd/planner-v0"`; there must be none of it yet.
        policy: the name of the policy.
        encoding: of the observations.

    Returns:
        The number of episodes.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no such file, the policy plays in none of its games, or there is such a dataset.
    """
    parts = blocks(file)
    first = next(parts, None)
    if first is None:
        raise ValueError(f"{file} has no games")
    check(dataset_id, first.rules, first.policies, policy, encoding)
    path = Path(get_dataset_path(dataset_id))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that it is not said who the author is, and such
            dataset = minari.create_dataset_from_buffers(
                dataset_id,
                _all_episodes(
                    first, parts, policy, encoding
                ),  # a list is not needed, and might not fit into memory
                env=_environment(first.rules, first.policies, policy, encoding),
                algorithm_name=policy,
                description=f"Way of the Dragon: the decisions of {policy}",
            )
        return int(dataset.total_episodes)
    except BaseException:  # half a dataset is none
        shutil.rmtree(path, ignore_errors=True)
        raise


def episodes(decisions: Decisions, policy: str, encoding: str = "one_hot") -> Iterator[EpisodeBuffer]:
    """Yield the episodes of a policy, one for each seat that it has in each game.

    Args:
        decisions: of whole games, such as `wotd_env.recording.blocks` yields.
        policy: its name.
        encoding: of the observations.
    """
    game = Game(decisions.rules, encoding=encoding)
    rows = len(decisions.game)
    last = np.flatnonzero(np.diff(decisions.game, append=-1))  # the last row of each game
    final = decisions.state[last].copy()
    game.step(final, decisions.action[last])
    ending = np.searchsorted(last, np.arange(rows))  # the final position of each row's game
    seat = decisions.state["player"].astype(np.int64)
    observation = game.observe(decisions.state)
    mine = np.flatnonzero(decisions.policy == decisions.policies.index(policy))
    order = mine[np.lexsort((mine, seat[mine], decisions.game[mine]))]
    keys = np.stack([decisions.game[order], seat[order]])
    starts = np.flatnonzero(np.diff(keys, axis=1, prepend=-1).any(0))
    for part in np.split(order, starts[1:]) if len(order) else []:
        over = final[ending[part[0]]][None]
        steps = len(part)
        truncated = bool(over["truncated"][0])
        ends = np.arange(steps) == steps - 1
        yield EpisodeBuffer(
            seed=int(decisions.seed[part[0]]),
            observations=np.concatenate([observation[part], game.observe(over, seat=int(seat[part[0]]))]),
            actions=decisions.action[part],
            rewards=np.where(ends, decisions.reward[part], 0.0),
            terminations=ends & (not truncated),
            truncations=ends & truncated,
            infos={
                "action_mask": np.concatenate([decisions.mask[part], np.ones_like(decisions.mask[:1])]),
                "seat": np.full(steps + 1, seat[part[0]]),
            },
        )


def _all_episodes(
    first: Decisions, parts: Iterator[Decisions], policy: str, encoding: str
) -> Iterator[EpisodeBuffer]:
    yield from episodes(first, policy, encoding)
    for decisions in parts:
        yield from episodes(decisions, policy, encoding)


def _environment(
    rules: Rules, policies: Sequence[str], policy: str, encoding: str
) -> gymnasium.Env[Any, Any]:
    """Return the environment that a dataset is of, as its users will make it."""
    if policy not in policies:
        raise ValueError(f"policy must be one of {', '.join(policies)}, got {policy!r}")
    at = policies.index(policy)
    opponents = [*policies[at + 1 :], *policies[:at]] or [policy] * (rules.players - 1)
    for name in opponents:
        known = POLICIES.get(name.partition(":")[0])
        if known and known.needs_trust:
            raise ValueError(
                f"the environment of a Minari dataset cannot have the opponent {name!r}, which needs consent"
            )
    return gymnasium.make(
        "wotd_env:wotd_env/WayOfTheDragon-v0", opponents=opponents, encoding=encoding, **asdict(rules)
    )
