"""Measure or check the entries of the benchmark: `python -m entries [NAME...]`.

docs/how-to/enter-the-benchmark.md describes the folder of an entry. The command runs the file `run.py` in this folder.
`make docs-tables` writes the tables of the entries.
"""

import argparse
import importlib
import math
import os
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from entries import entry
from entries.entry import TRACKS, Track, read, results
from wotd_env import benchmark, files
from wotd_env.benchmark import Result, measuring
from wotd_env.benchmark.measuring import mean_regret
from wotd_env.cli.common import progress_bar
from wotd_env.policies.blamed import Blamed
from wotd_env.policies.identity import policy_digest
from wotd_env.policy import Policy
from wotd_env.process import prepare_streams
from wotd_env.reporting import thousandths

TEMPLATE = tomllib.loads((entry.FOLDER / "template" / "entry.toml").read_text())
SEEDS = 5  # minimum number of seeds of a trained agent
CORES = 2  # number of cores for training in the tracks that limit the time
ROUNDING = 0.01
"""Share of actions and games that may differ from the stored result, because rounding depends on the machine."""


def measure(name: str, budget: int | None = None, seed: int | None = None) -> None:
    """Train and measure the agents of an entry, by default with all budgets and seeds; write the result files.

    Raises:
        ValueError: if `entry.toml` does not contain the budget or the seed.
    """
    declared = read(name)
    chosen = [
        each for each in results(name, declared) if budget in (None, each[0]) and seed in (None, each[1])
    ]
    if not chosen:
        known = f"budgets {declared.budgets} and seeds {declared.seeds}"
        raise ValueError(
            f"budget and seed must be in entry.toml of {name}, with {known}, got {budget} and {seed}"
        )
    module, track = importlib.import_module(f"entries.{name}.run"), TRACKS[declared.track]
    for budget, seed, path in chosen:
        path.parent.mkdir(exist_ok=True)
        with measuring.without_compilation(lambda: sum(os.times()[:4])) as seconds:
            if hasattr(module, "train"):
                module.train(budget, seed)
            minutes = round(seconds() / 60, 3)
        agent = module.load(budget, seed)
        with progress_bar(f"games of {path.name}") as progress:
            result = benchmark.measure(
                agent, track.rules, games=track.games, size=track.size, seed=seed, progress=progress
            )
        files.write(path, replace(result, training_minutes=minutes).to_json().encode())
        regret = f"mean regret {thousandths(result.score)} thousandths of equity"
        print(f"{path.name}: {minutes:.2f} minutes of training, {regret}", flush=True)


def faults(name: str) -> Iterator[str]:
    """Yield every fault of an entry, with its cure."""
    folder = entry.FOLDER / name
    try:
        declared = read(name)
        if not (folder / "run.py").is_file():
            raise ValueError(f"{folder / 'run.py'} is missing: copy it from entries/template")
        for field, cure in (("claim", "describe"), ("title", "name")):
            if name != "template" and getattr(declared, field) == TEMPLATE[field]:
                raise ValueError(f"{field} must {cure} your agent, got the {field} of the template")
        module = importlib.import_module(f"entries.{name}.run")
        if hasattr(module, "train") and len(set(declared.seeds)) < SEEDS:
            raise ValueError(
                f"seeds of a trained agent must be at least {SEEDS} numbers, got {declared.seeds}"
            )
    except Exception as error:  # run.py can raise any exception
        yield f"{name}: {type(error).__name__}: {error}"
        return
    wanted = {path for _, _, path in results(name, declared)}
    for path in sorted({*(folder / "results").glob("*.json")} - wanted):
        yield f"{path} has no budget or seed of entry.toml: add them, or remove it"
    for budget, seed, path in results(name, declared):
        try:
            result = Result.read(path)
            check(result, TRACKS[declared.track], budget, seed)
            if (agent := module.load(budget, seed)) is not None:
                replay(agent, result)
        except FileNotFoundError as error:
            yield f"{error}: run python -m entries {name} --measure --seed {seed}"
        except ValueError as error:
            yield f"{path}: {error}"
        except Exception as error:
            yield f"{path}: {type(error).__name__}: {error}"


def check(result: Result, track: Track, budget: int, seed: int) -> None:
    """Raise ValueError if a result breaks the protocol, or if its regrets do not match its actions."""
    again = "measure it again"
    fixed = {"seed": seed, "rules": track.rules, "size": track.size, "games": track.games}
    for field, value in fixed.items():
        if (found := getattr(result, field)) != value:
            raise ValueError(f"{field} must be {value}, got {found}: {again}")
    minutes, most = result.training_minutes, CORES * budget if track.unit == "minutes" else math.inf
    if minutes is None or not 0 <= minutes <= most:
        raise ValueError(f"training_minutes must be from 0 to {most}, got {minutes}: {again}")
    if missing := set(track.players) - result.win_shares.keys():
        cure = f"make the agent play them, and {again}"
        raise ValueError(f"win_shares must contain games of {min(missing)} players: {cure}")
    positions = result.positions()
    for kind, by_stage in mean_regret(positions, positions.regret(np.array(result.actions))).items():
        for stage, mean in by_stage.items():
            stored = result.regret.get(kind, {}).get(stage, (math.nan,))
            if not np.allclose(mean, stored, rtol=1e-9):
                by_actions = f"must be {mean.value} according to the actions, got {stored[0]}"
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
    row = measuring.meet(
        result.agent, agent, reference, replace(result.rules, players=players), result.games, result.seed
    )
    if abs(row.share.value - share.value) > max(ROUNDING, 2 / result.games):
        which = f"win_shares against {reference} with {players} players"
        raise ValueError(f"{which} must be {row.share.value} when measured again, got {share.value}: {cure}")


def main(arguments: list[str] | None = None) -> int:
    """Measure or check entries, by default all, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m entries", description=__doc__)
    parser.add_argument("name", nargs="*", help="folders in entries/ (default: all)")
    parser.add_argument("--measure", action="store_true", help="train and measure instead")
    parser.add_argument("--budget", type=int, help="measure only this budget")
    parser.add_argument("--seed", type=int, help="measure only this seed")
    options = parser.parse_args(arguments)
    if unknown := set(options.name) - set(entry.names()):
        parser.error(f"{min(unknown)} has no entry.toml in entries/; there are {', '.join(entry.names())}")
    names = options.name or entry.names()
    if options.measure:
        try:
            for name in names:
                measure(name, options.budget, options.seed)
        except ValueError as error:
            parser.error(str(error))
        return 0
    found = [fault for name in names for fault in faults(name)]
    print("\n".join(found) or "The entries have no faults.")
    return int(bool(found))


if __name__ == "__main__":
    prepare_streams()
    sys.exit(main())
