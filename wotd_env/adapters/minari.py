"""Conversion of recorded games to a Minari dataset with the decisions of one policy (extra `minari`).

    record(["planner", "greedy"], "games.parquet", games=1000)  # from wotd_env.recording
    write("games.parquet", "wotd/planner-v0", "planner")
    minari.load_dataset("wotd/planner-v0")

An episode contains the actions and rewards of one seat in one game. It also contains the observation and the mask of
the seat at each decision and at the end of the game. All arrays have the same format as in the environment
`gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0")`.
"""

from __future__ import annotations

import itertools
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
from wotd_env.policies import POLICIES, runs_code
from wotd_env.recording import Decisions, blocks

with needed_for("a Minari dataset", "minari"):
    import h5py  # noqa: F401 - Minari needs it to write datasets
    import minari
    from minari.data_collector import EpisodeBuffer
    from minari.dataset.minari_dataset import parse_dataset_id
    from minari.storage.local import get_dataset_path
    from PIL import Image  # noqa: F401 - Minari needs it for HDF5 files

__all__ = ["check", "episodes", "write"]


def check(
    dataset_id: str, rules: Rules, policies: Sequence[str], policy: str, encoding: str = "one_hot"
) -> None:
    """Raise ValueError if `write` would reject these arguments. Call this function before you record games."""
    parse_dataset_id(dataset_id)
    if (path := Path(get_dataset_path(dataset_id))).exists():
        raise ValueError(f"the Minari dataset {dataset_id} exists in {path}: use another id, or delete it")
    _environment(rules, policies, policy, encoding).close()


def write(
    file: str | Path, dataset_id: str, policy: str, encoding: str = "one_hot", *, trust: bool = False
) -> int:
    """Write one policy's decisions from a file of recorded games to a Minari dataset. Return the number of episodes.

    Args:
        file: a file written by `wotd_env.recording.record`.
        dataset_id: name of a new dataset, such as `"wotd/planner-v0"`.
        policy: name of the policy whose decisions are written.
        encoding: the encoding of the observations.
        trust: consent to import the modules of the policies that the file names.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file has no recorded games, if the policy plays no game in the file, if the dataset exists,
            or if the file names a policy that needs `trust=True`.
    """
    parts = blocks(file)
    first = next(parts, None)
    if first is None:
        raise ValueError(f"{file} has no games")
    if not trust and (code := [name for name in first.policies if runs_code(name)]):
        raise ValueError(
            f"{file} names the policy {code[0]!r}, which can run code: if you trust it, add trust=True"
        )
    check(dataset_id, first.rules, first.policies, policy, encoding)
    ours: list[Path] = []

    def buffers() -> Iterator[EpisodeBuffer]:  # a generator, because a list may not fit in memory
        # Minari asks for episodes after it has made the folder
        ours.append(Path(get_dataset_path(dataset_id)))
        for part in itertools.chain([first], parts):
            yield from episodes(part, policy, encoding)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # Minari warns about missing metadata
            dataset = minari.create_dataset_from_buffers(
                dataset_id,
                buffers(),
                env=_environment(first.rules, first.policies, policy, encoding),
                algorithm_name=policy,
                description=f"Way of the Dragon: the decisions of {policy}",
            )
        return int(dataset.total_episodes)
    except BaseException:
        for path in ours:  # the list is empty if another process made the dataset first
            shutil.rmtree(path, ignore_errors=True)
        raise


def episodes(decisions: Decisions, policy: str, encoding: str = "one_hot") -> Iterator[EpisodeBuffer]:
    """Yield one episode for each seat that the policy plays in a game.

    `decisions` must contain whole games, such as a block from `wotd_env.recording.blocks`.
    """
    game = Game(decisions.rules, encoding=encoding)
    last = np.flatnonzero(np.diff(decisions.game, append=-1))
    final = decisions.state[last].copy()
    game.step(final, decisions.action[last])
    seat = decisions.state["player"].astype(np.int64)
    observation = game.observe(decisions.state)
    mine = np.flatnonzero(decisions.policy == decisions.policies.index(policy))
    order = mine[np.lexsort((mine, seat[mine], decisions.game[mine]))]
    keys = np.stack([decisions.game[order], seat[order]])
    starts = np.flatnonzero(np.diff(keys, axis=1, prepend=-1).any(0))
    for part in np.split(order, starts[1:]) if len(order) else []:
        over = final[np.searchsorted(last, part[:1])]
        steps = len(part)
        ends = np.arange(steps) == steps - 1
        yield EpisodeBuffer(
            seed=int(decisions.seed[part[0]]),
            observations=np.concatenate([observation[part], game.observe(over, seat=int(seat[part[0]]))]),
            actions=decisions.action[part],
            rewards=np.where(ends, decisions.reward[part], 0.0),
            terminations=ends,
            truncations=np.zeros(steps, np.bool_),
            infos={
                "action_mask": np.concatenate([decisions.mask[part], np.ones_like(decisions.mask[:1])]),
                "seat": np.full(steps + 1, seat[part[0]]),
            },
        )


def _environment(rules: Rules, policies: Sequence[str], policy: str, encoding: str) -> Any:
    """Return the environment in which a learner takes the place of `policy` against the other policies."""
    if policy not in policies:
        raise ValueError(f"policy must be one of {', '.join(policies)}, got {policy!r}")
    at = policies.index(policy)
    opponents = [*policies[at + 1 :], *policies[:at]] or [policy] * (rules.players - 1)
    for name in opponents:
        known = POLICIES.get(name.partition(":")[0])
        if known and known.needs_trust:
            raise ValueError(f"the opponent {name!r} needs trust=True, which a Minari dataset cannot set")
    return gymnasium.make(
        "wotd_env:wotd_env/WayOfTheDragon-v0", opponents=opponents, encoding=encoding, **asdict(rules)
    )
