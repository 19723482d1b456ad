"""Measure or check the entries of the benchmark, and write their table: `python -m tools.entries [NAME...]`.

docs/how-to/enter-the-benchmark.md describes the folder of an entry. The command runs the file `run.py` in this folder.
"""

import argparse
import importlib
import json
import math
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, NamedTuple, get_type_hints

import numpy as np

from tools import pages
from wotd_env import Rules, benchmark, files
from wotd_env.benchmark import Result, measuring
from wotd_env.benchmark.measuring import ALL, mean_regret
from wotd_env.cli.common import progress_bar
from wotd_env.policies.blamed import Blamed
from wotd_env.policies.identity import policy_digest
from wotd_env.policy import Policy
from wotd_env.process import prepare_streams

FOLDER = pages.ROOT / "entries"
TEMPLATE = tomllib.loads((FOLDER / "template" / "entry.toml").read_text())
WEIGHTS = pages.ROOT / "runs" / "entries"  # folder for weights that are too large for the repository
SEEDS = 5  # minimum number of seeds of a trained agent
CORES = 2  # number of cores for training in the tracks that limit the time
ROUNDING = 0.01
"""Share of actions and games that may differ from the stored result, because rounding depends on the machine."""


class Track(NamedTuple):
    """The protocol of a track (docs/reference/tracks.md)."""

    unit: str
    budgets: tuple[int, ...]
    players: tuple[int, ...] = (2,)  # numbers of players for which win shares are measured
    games: int = measuring.GAMES
    size: int | None = None  # number of graded positions of each kind and stage; None means all


TRACKS = {
    "samples": Track("decisions", (100_000, 1_000_000, 10_000_000)),
    "time": Track("minutes", (1, 5, 60)),
    "players": Track("minutes", (1, 5, 60), players=(3, 4, 5)),
    "offline": Track("games", (12_000,)),
    "planning": Track("simulations", (1, 3, 16, 50, 200), games=100, size=100),
}


class Entry(NamedTuple):
    """The content of `entry.toml`.

    Each annotation ends with two texts: a regular expression for the value as JSON, and a description for errors.
    """

    title: Annotated[str, '".+"', "text"]
    authors: Annotated[list[str], r'\[".+"\]', 'names, such as ["Ada Lovelace"]']
    track: Annotated[str, f'"({"|".join(TRACKS)})"', f"one of {', '.join(TRACKS)}"]
    seeds: Annotated[list[int], r"\[\d+(, \d+)*\]", "integers, such as [0, 1, 2, 3, 4]"]
    hardware: Annotated[str, '".+"', "text"]
    commit: Annotated[str, '"[0-9a-f]{7,40}"', "what `git rev-parse HEAD` prints"]
    claim: Annotated[str, '".+"', "text"]
    minutes: Annotated[  # budget -> minutes of processor time to train one seed
        dict[str, float],
        r'\{("\d+": \d+(\.\d+)?(, )?)+\}',
        "a table of budgets and minutes, such as { 100000 = 0.1 }",
    ]


def read(name: str) -> Entry:
    """Read the `entry.toml` of an entry. Raise OSError if the file is unreadable, and ValueError for a wrong field."""
    file = FOLDER / name / "entry.toml"
    values = tomllib.loads(file.read_text())
    if unknown := values.keys() - set(Entry._fields):
        raise ValueError(f"{file}: {min(unknown)} is unknown; the fields are {', '.join(Entry._fields)}")
    for field, hint in get_type_hints(Entry, include_extras=True).items():
        pattern, words = hint.__metadata__
        if not re.fullmatch(pattern, json.dumps(values.get(field), default=str)):
            raise ValueError(f"{file}: {field} must be {words}, got {values.get(field)!r}")
    entry = Entry(**values)
    track = TRACKS[entry.track]
    for budget, minutes in entry.minutes.items():
        if int(budget) not in track.budgets:
            known = f"{track.budgets} {track.unit}"
            raise ValueError(f"{file}: budgets of {entry.track} are {known}, got {budget}")
        if track.unit == "minutes" and minutes > CORES * int(budget):
            most = f"{CORES * int(budget)}, which is {budget} on {CORES} cores"
            raise ValueError(f"{file}: minutes of budget {budget} must be at most {most}, got {minutes}")
    if any(entry.minutes.values()) and len(set(entry.seeds)) < SEEDS:
        raise ValueError(
            f"{file}: seeds of a trained agent must be at least {SEEDS} numbers, got {entry.seeds}"
        )
    return entry


def results(name: str, entry: Entry) -> Iterator[tuple[int, int, Path]]:
    """Yield the budget, the seed and the file of each result."""
    for budget in map(int, entry.minutes):
        for seed in entry.seeds:
            yield budget, seed, FOLDER / name / "results" / f"{budget}-{seed}.json"


def measure(name: str, budget: int | None = None, seed: int | None = None) -> None:
    """Train and measure the agents of an entry, by default with all budgets and seeds; write the result files.

    Raises:
        ValueError: if `entry.toml` does not contain the budget or the seed.
    """
    entry = read(name)
    chosen = [each for each in results(name, entry) if budget in (None, each[0]) and seed in (None, each[1])]
    if not chosen:
        known = f"budgets {', '.join(entry.minutes)} and seeds {', '.join(map(str, entry.seeds))}"
        raise ValueError(
            f"budget and seed must be in entry.toml of {name}, with {known}, got {budget} and {seed}"
        )
    module, track = importlib.import_module(f"entries.{name}.run"), TRACKS[entry.track]
    for budget, seed, path in chosen:
        path.parent.mkdir(exist_ok=True)
        with measuring.without_compilation(lambda: sum(os.times()[:4])) as seconds:
            if hasattr(module, "train"):
                module.train(budget, seed)
            minutes = seconds() / 60
        agent = module.load(budget, seed)
        with progress_bar(f"games of {path.name}") as progress:
            result = benchmark.measure(
                agent, Rules(), games=track.games, size=track.size, seed=seed, progress=progress
            )
        files.write(path, result.to_json().encode())
        regret = 1000 * result.regret[ALL][ALL].value
        lost = f"mean regret {regret:.2f} thousandths of equity"
        print(f"{path.name}: {minutes:.2f} minutes of training, {lost}", flush=True)


def faults(name: str) -> Iterator[str]:
    """Yield every fault of an entry, with its cure."""
    try:
        entry = read(name)
        for file in ("run.py", "requirements.txt"):
            if not (FOLDER / name / file).is_file():
                raise ValueError(f"{FOLDER / name / file} is missing: copy it from entries/template")
        for field, cure in (("claim", "describe"), ("title", "name")):
            if name != "template" and getattr(entry, field) == TEMPLATE[field]:
                raise ValueError(f"{field} must {cure} your agent, got the {field} of the template")
        load = importlib.import_module(f"entries.{name}.run").load
    except Exception as error:  # run.py can raise any exception
        yield f"{name}: {type(error).__name__}: {error}"
        return
    wanted = {path for _, _, path in results(name, entry)}
    for path in sorted({*(FOLDER / name / "results").glob("*.json")} - wanted):
        yield f"{path} has no budget or seed of entry.toml: add them, or remove it"
    for budget, seed, path in results(name, entry):
        try:
            result = Result.read(path)
            check(result, TRACKS[entry.track], seed)
            if (agent := load(budget, seed)) is not None:
                replay(agent, result)
        except FileNotFoundError as error:
            yield f"{error}: run python -m tools.entries {name} --measure --seed {seed}"
        except ValueError as error:
            yield f"{path}: {error}"
        except Exception as error:
            yield f"{path}: {type(error).__name__}: {error}"


def check(result: Result, track: Track, seed: int) -> None:
    """Raise ValueError if a result breaks the protocol, or if its regrets do not match its actions."""
    again = "measure it again"
    for field, value in {"seed": seed, "rules": Rules(), "size": track.size, "games": track.games}.items():
        if (found := getattr(result, field)) != value:
            raise ValueError(f"{field} must be {value}, got {found}: {again}")
    if missing := set(track.players) - result.win_shares.keys():
        cure = f"let the agent play them, and {again}"
        raise ValueError(f"win_shares must contain {min(missing)} players: {cure}")
    positions = result.positions()
    for kind, by_stage in mean_regret(positions, positions.regret(np.array(result.actions))).items():
        for stage, mean in by_stage.items():
            stored = result.regret.get(kind, {}).get(stage, (math.nan,))
            if not np.allclose(mean, stored, rtol=1e-9):
                by_actions = f"must be {mean.value} by the actions, got {stored[0]}"
                raise ValueError(f"regret of {kind}, {stage} {by_actions}: {again}")


def replay(agent: Policy, result: Result) -> None:
    """Raise ValueError if an agent does not reproduce the actions and the first win share of its stored result.

    Small differences are allowed (`ROUNDING`). A changed digest is not a fault by itself, because the digest also
    covers the sources of the package.
    """
    positions = result.positions()
    same = policy_digest(result.agent, agent, given=True) == result.agent_digest
    cure = "take random numbers from rng only" if same else "the sources have changed, measure it again"
    if same:
        positions = positions.take(np.arange(min(measuring.BATCH, len(positions.game))))
    actions, _ = measuring.act(Blamed(result.agent, agent), positions, result.seed)
    stored = np.array(result.actions[: len(actions)])
    differs = np.flatnonzero(actions != stored)
    mine, its = (float(positions.regret(each).mean()) for each in (actions, stored))
    if differs.size > ROUNDING * len(actions) or not math.isclose(mine, its, rel_tol=ROUNDING, abs_tol=1e-5):
        example = f"such as action {differs[0]}, which is {stored[differs[0]]} and not {actions[differs[0]]}"
        how_many = f"{differs.size} of {len(actions)} differ"
        raise ValueError(f"actions must be those of the agent, but {how_many}, {example}: {cure}")
    players, shares = min(result.win_shares.items())
    reference, share = next(iter(shares.items()))
    row = measuring.meet(result.agent, agent, reference, Rules(players=players), result.games, result.seed)
    if abs(row.share.value - share.value) > max(ROUNDING, 2 / result.games):
        which = f"win_shares against {reference} with {players} players"
        raise ValueError(f"{which} must be {row.share.value} by the agent, got {share.value}: {cure}")


def entries() -> list[str]:
    """Return the names of all entries."""
    return sorted(file.parent.name for file in FOLDER.glob("*/entry.toml"))


def main(arguments: list[str] | None = None) -> int:
    """Measure or check entries, by default all, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.entries", description=__doc__)
    parser.add_argument("name", nargs="*", help="folders in entries/ (default: all)")
    parser.add_argument("--measure", action="store_true", help="train and measure instead")
    parser.add_argument("--budget", type=int, help="measure only this budget")
    parser.add_argument("--seed", type=int, help="measure only this seed")
    options = parser.parse_args(arguments)
    names = options.name
    if unknown := set(names) - set(entries()):
        parser.error(f"{min(unknown)} has no entry.toml in entries/; there are {', '.join(entries())}")
    if options.measure:
        try:
            for name in names or entries():
                measure(name, options.budget, options.seed)
        except ValueError as error:
            parser.error(str(error))
        return 0
    found = [fault for name in names or entries() for fault in faults(name)]
    written = not names and not found
    if written:
        from tools import entry_tables

        entry_tables.write(entries())
    print("\n".join(found) or "The entries have no faults.")
    if written:
        print(f"wrote {entry_tables.PAGE} and {entry_tables.PICTURE}")
    return int(bool(found))


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
