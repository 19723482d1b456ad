"""Measure learners on layouts of dead pieces that they were not trained on.

    python -m tools.generalization            # trains, and renews docs/results/generalization.md
    python -m tools.generalization positions  # solves layouts, and draws the bundled positions

A run that is in docs/results/generalization.json is not repeated. Ctrl-C loses only the runs in progress. Every run
takes 1 to 4 minutes on one core.
"""

import copy
import itertools
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray

from agents.loop import module_of
from entries.sb3_maskable_ppo.run import baseline
from tools import pages
from tools.process_reward import finished, over_seeds, run_missing
from wotd_env import Game, Rules, benchmark, make_policy, solver
from wotd_env.benchmark import Positions, measuring, positions
from wotd_env.benchmark.generalization import BOARDS, TEST, TRAIN, by_split, graded
from wotd_env.core.layouts import dead_of
from wotd_env.core.state import States
from wotd_env.policies.planner import Planner
from wotd_env.policy import Policy
from wotd_env.reporting import markdown

PAGE = pages.ROOT / "docs" / "results" / "generalization.md"
RESULTS = PAGE.with_suffix(".json")
SIZE = 134  # positions of each kind and stage, about 2,000 of each layout
EMPTY = "empty board"  # what other runs are trained on
SEEDS = range(5)
DECISIONS = 1_000_000  # budget of a training run
OF_TURN = 2.5  # decisions counted for a turn of `td`; a turn has 2.2 on average
SETTINGS: dict[str, dict[str, Any]] = {
    "td": {"games": 256, "updates": int(DECISIONS / OF_TURN / (256 * 16))},
    "ppo": {"num_envs": 128, "critic_turns": 2048, "updates": int(DECISIONS / (128 * 16 + OF_TURN * 2048))},
    "sb3": {"total_timesteps": 491_520, "num_envs": 64},  # the other seat decides as often
    "mlp": {},
}


class Run(NamedTuple):
    """One training run."""

    spaces: int
    learner: str
    layouts: str  # TRAIN or EMPTY
    seed: int

    def __str__(self) -> str:
        return ", ".join(map(str, self))


def train(run: Run) -> Policy:
    """Train, and return a policy for all layouts."""
    unseen = run.layouts == TRAIN
    rules = BOARDS[run.spaces] if unseen else Rules(spaces=run.spaces)
    with tempfile.TemporaryDirectory() as folder:
        if run.learner == "mlp":
            own = copy.copy(baseline)
            own.rules, own.weights = rules, Path(folder)
            own.layouts = benchmark.layouts("train", run.spaces) if unseen else None
            own.train(DECISIONS, run.seed)
            policy: Any = own.load(DECISIONS, run.seed)
        else:
            module = module_of(run.learner)
            given = SETTINGS[run.learner] | {"rules": rules, "seed": run.seed, "folder": Path(folder)}
            settings = replace(module.PRESETS["quick"], layouts="train" if unseen else "any", **given)
            learner = module.Learner(settings)
            for number in range(settings.updates):
                learner.update(number)
            policy = learner.policy()
    return policy if unseen else without_dead_pieces(policy, rules)


def without_dead_pieces(policy: Any, rules: Rules) -> Policy:
    """Return a policy for all layouts that gets no dead pieces as input, like in its training. It knows its actions."""
    if isinstance(policy, Planner):
        value: Any = policy.value  # a LearnedValue
        board = Game(rules)
        return Planner(lambda game, states: value.unchecked(board, states))
    dead = Game(rules, encoding=policy.encoding).observation_layout.get("dead", slice(0))

    def hide(_: th.nn.Module, inputs: tuple[th.Tensor]) -> None:
        inputs[0][:, dead] = 0

    policy.network.register_forward_pre_hook(hide)
    policy.network.rules = BOARDS[rules.spaces]
    return policy  # type: ignore[no-any-return]


def measure(run: Run) -> tuple[Run, list[float]]:
    """Train once. Return the mean regrets in training and in test layouts, in thousandths, and processor seconds."""
    started = time.process_time()
    policy = train(run)
    seconds = time.process_time() - started
    return run, [*regrets(policy, run.spaces), seconds]


def regrets(policy: Policy, spaces: int) -> list[float]:
    """Return the mean regrets in the positions of training layouts and of test layouts, in thousandths."""
    graded = benchmark.load(rules=BOARDS[spaces])
    actions, _ = measuring.act(policy, graded, seed=0)
    means = measuring.mean_regret(graded, graded.regret(actions))
    return [1000 * means[split]["all"].value for split in (TRAIN, TEST)]


def all_runs() -> list[Run]:
    """Return all runs by seed: on the board of the tracks, with two plain spaces."""
    order = itertools.product(SEEDS, SETTINGS, (TRAIN, EMPTY))
    return [Run(2, learner, layouts, seed) for seed, learner, layouts in order]


def shared(spaces: int, state: States) -> NDArray[np.bool_]:
    """Return which positions have the same future as a position in a training layout, bool (N,).

    Pieces never move back, so the dead pieces behind both pieces of a path do not matter.
    """
    train = {tuple(sorted(dead_of(layout).tolist())) for layout in benchmark.layouts("train", spaces)}
    every = range(0, 2 << spaces, 2)  # the dead pieces that a path can have

    @cache
    def alike(dead: int, one: int, other: int) -> list[int]:
        low = min(one, other) + 1
        return [bits for bits in every if not (bits ^ dead) >> low and not (bits >> one | bits >> other) & 1]

    columns = zip(
        state["dead"].tolist(), state["pieces"][:, 0].tolist(), state["pieces"][:, 1].tolist(), strict=True
    )
    futures = (itertools.product(*map(alike, *row)) for row in columns)
    return np.array([any(tuple(sorted(dead)) in train for dead in each) for each in futures], np.bool_)


class Findings:
    """The tables of the page."""

    def positions(self) -> str:
        """Return the table of the layouts and positions."""
        rows = []
        for rules in BOARDS.values():
            graded = benchmark.load(rules=rules)
            for name, here in by_split(rules, graded.state).items():
                state = graded.state[here]
                same = f"{100 * shared(rules.spaces, state).mean():.1f} %" if name == TEST else ""
                layouts = len(benchmark.layouts("test" if name == TEST else "train", rules.spaces))
                count = len(np.unique(state["dead"], axis=0))
                rows.append((rules.spaces, name, layouts, count, f"{len(state):,}", same))
        head = "plain spaces | split | layouts | graded layouts | positions | also in training layouts"
        return markdown(head, rows, right=range(2, 6))

    def results(self) -> str:
        """Return the table of the learners, and of policies that do not learn."""
        head = f"plain spaces | agent | trained on | seeds | {TRAIN} | {TEST} | test minus training | minutes"
        found = defaultdict(list)
        for rules in BOARDS.values():
            for name in ("random", "greedy", "planner"):
                found[rules.spaces, name, ""] = [[*regrets(make_policy(name), rules.spaces), 0.0]]
        known = finished(RESULTS)
        for run in all_runs():
            if str(run) in known:
                found[run[:3]].append(known[str(run)])
        rows = []
        for (spaces, name, layouts), numbers in found.items():
            train, test, seconds = np.array(numbers).T
            of_seeds = [over_seeds(each, 1) for each in (train, test, test - train)]
            rows.append((spaces, f"`{name}`", layouts, len(train), *of_seeds, f"{seconds.mean() / 60:.1f}"))
        return markdown(head, rows, right=range(3, 8))


def draw_positions(rules: Rules, size: int = SIZE) -> None:
    """Solve the graded layouts, draw positions of each, and write the bundled file."""
    parts, tables = [], []
    with tempfile.TemporaryDirectory() as folder:
        for seed, layout in enumerate(graded(rules.spaces)):  # another seed gives other games
            of_layout = replace(rules, dead_pieces=layout)
            table = solver.solve(of_layout, solver.cache_file(of_layout))
            parts.append(benchmark.draw(table, Path(folder, "drawn.parquet"), size=size, seed=seed))
            tables.append(table.header["sha256"])
            print(f"{layout}: {len(parts[-1].game):,} positions", flush=True)
    columns: Any = map(np.concatenate, zip(*(part[2:] for part in parts), strict=True))
    positions.write(
        Positions(rules, "test", *columns),
        positions.bundled_file(rules, "test"),
        {"size": size, "tables": tables},
    )


def main() -> None:
    """Draw positions, or train the missing runs and renew the page."""
    if sys.argv[1:] == ["positions"]:
        for rules in BOARDS.values():
            draw_positions(rules)
    elif sys.argv[1:]:
        sys.exit(__doc__)
    else:
        with suppress(KeyboardInterrupt):
            run_missing(measure, all_runs(), RESULTS)
        pages.write(PAGE, Findings())


if __name__ == "__main__":
    main()
