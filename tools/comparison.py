"""`make comparison`: train by several methods, grade them against perfect play, and write docs/results/training.md.

The runs are in runs/comparison. The same command continues after an interruption and keeps finished runs. Each run
uses one core; commands with different --methods may run in parallel. A command with all methods writes the page; other
commands print their table. Runs with other settings are refused: remove runs/comparison after a change of a learner.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback

from agents import sb3
from agents.checkpoint import CheckpointError
from agents.evaluate import FINAL
from agents.runs import LEARNERS, Stopped, continued, stopping
from agents.settings import kept
from tools import pages
from wotd_env import Game, Rules, analysis, files, solver
from wotd_env.adapters.sb3 import SB3VecEnv
from wotd_env.policies.oracle import Oracle
from wotd_env.policies.sb3 import Trained
from wotd_env.policy import Policy

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "results"
PAGE, PICTURE = "training.md", "comparison.svg"


class Method(NamedTuple):
    """A method of training: a learner of `train.py` with its preset quick."""

    words: str
    learner: str
    changes: dict[str, Any]  # settings that differ from the preset
    masked: bool = True  # otherwise illegal actions can be chosen and lose the game


PLANNER, GREEDY = {"critic": "planner"}, {"past": 0.0, "greedy": 1.0}
METHODS = {
    "td": Method("TD(lambda), self-play", "td", {}),
    "ppo": Method("PPO, self-play", "ppo", {}),
    "ppo-planner": Method("PPO, self-play, the critic is the value of `planner`", "ppo", PLANNER),
    "ppo-off": Method("PPO, self-play, without planned scores", "ppo", {"planned": False}),
    "sb3": Method("MaskablePPO of SB3, self-play", "sb3", {}),
    "sb3-greedy": Method("MaskablePPO of SB3 against `greedy`", "sb3", GREEDY),
    "sb3-unmasked": Method("PPO of SB3 against `greedy`, without masks", "sb3", GREEDY, masked=False),
}


class Scale(NamedTuple):
    """The amounts of training and grading."""

    seeds: int
    games: int  # that grade each point
    changes: dict[str, dict[str, Any]]  # settings of the learners


# One thread each: several threads would spend processor time waiting for each other.
ONE_THREAD = {"milestones": 30, "threads": 1}
FULL = Scale(3, 1000, {"td": ONE_THREAD, "ppo": ONE_THREAD, "sb3": {"milestones": 15}})
TINY = {"games": 16, "batch_size": 32, "threads": 1}
TINY_LEARNERS = {
    "td": TINY | {"updates": 3, "turns": 4, "batches": 3, "milestones": 3},
    "ppo": TINY | {"updates": 2, "steps": 4, "width": 8, "critic_turns": 64, "milestones": 2},
    "sb3": TINY | {"updates": 2, "steps": 16, "width": 8, "milestones": 2},
}
QUICK = Scale(2, 20, TINY_LEARNERS)


class Point(NamedTuple):
    """A graded point of a curve."""

    seconds: float  # of processor time
    share: float  # of games won against perfect play, percent
    error: float  # half the width of the 95 % interval


def settings_of(method: Method, scale: Scale, spaces: int, seed: int, folder: Path) -> Any:
    """Return the settings of a run."""
    preset = importlib.import_module(LEARNERS[method.learner]).PRESETS["quick"]
    changes = method.changes | scale.changes[method.learner]
    rules = Rules(spaces=spaces)
    # The learner's own measurements are not used here, and would count as training time.
    return replace(preset, rules=rules, seed=seed, folder=folder, milestone_games=rules.players, **changes)


class Curve:
    """The points of a run, stored in a file. A file of other settings is a CheckpointError."""

    def __init__(self, file: Path, table: solver.Table, games: int, settings: Any) -> None:
        self.file, self.table, self.games = file, table, games
        self.made = json.loads(json.dumps({"games": games, "settings": kept(settings)}))
        stored: dict[str, Any] = {"points": [], "done": False} | self.made
        if file.is_file():
            stored = json.loads(file.read_text())
        if any(stored.get(name) != value for name, value in self.made.items()):
            raise CheckpointError(f"{file} belongs to other settings; remove it and {settings.folder}")
        self.points, self.done = [Point(*point) for point in stored["points"]], stored["done"]

    def add(self, seconds: float, policy: Policy) -> None:
        """Add the grade of a policy after some processor time."""
        opponent = f"oracle:{self.table.file}"
        graded = analysis.grade(policy, self.table, self.games, seed=FINAL, opponent=opponent).all
        self.points.append(Point(seconds, graded.share_against_perfect, graded.share_against_perfect_error))
        self.save()

    def save(self) -> None:
        """Write the file."""
        content = {"points": self.points, "done": self.done, **self.made}
        files.write(self.file, json.dumps(content).encode())


def train_masked(method: Method, settings: Any, curve: Curve, console: Console) -> None:
    """Start or resume a run of `train.py`, and finish it; Ctrl-C raises Stopped after the current update."""

    def progress(run: Any) -> None:
        if run.milestone >= len(curve.points):
            curve.add(run.seconds, run.policy())

    kind = importlib.import_module(LEARNERS[method.learner]).Run
    with continued(kind, settings) as run, stopping(run, console.print):
        run.train(progress)


class _Graded(BaseCallback):
    """Adds points to a curve, evenly spread over the training. Their seconds exclude the earlier grading."""

    def __init__(self, curve: Curve, settings: sb3.Settings, total: int) -> None:
        super().__init__()
        self.curve, self.began = curve, time.process_time()
        self.milestones, self.total = settings.milestones, total

    def _on_step(self) -> bool:
        return True

    def _on_rollout_start(self) -> None:
        assert isinstance(self.model, MaskablePPO)
        if self.num_timesteps * self.milestones >= len(self.curve.points) * self.total:
            seconds = time.process_time() - self.began
            self.curve.add(seconds, Trained(self.model.policy))
            self.began = time.process_time() - seconds

    _on_training_end = _on_rollout_start


def train_unmasked(settings: sb3.Settings, curve: Curve) -> None:
    """Train the network of sb3 from the start, in the vector environment, where an illegal action loses."""
    curve.points.clear()
    total = settings.updates * settings.games * settings.steps
    envs = SB3VecEnv(settings.games, opponents="greedy", spaces=settings.rules.spaces)
    model = sb3.make_model(settings, envs)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*a game is lost by an illegal action")
        model.learn(total, _Graded(curve, settings, total), use_masking=False)


def section(curves: dict[str, list[list[Point]]], scale: Scale, spaces: int) -> str:
    """Return the table of the last points, and the picture."""
    rows = []
    for name, runs in curves.items():
        ends = [points[-1] for points in runs]
        shares = [end.share for end in ends]
        minutes = sum(end.seconds for end in ends) / len(ends) / 60
        rows.append(
            f"{METHODS[name].words} | {len(runs)} | {minutes:.1f} | {sum(shares) / len(shares):.2f} % "
            f"| {min(shares):.2f} to {max(shares):.2f} % | ±{max(end.error for end in ends):.2f}"
        )
    head = "trained by | seeds | minutes | share | least and largest | of one seed"
    table = pages.table(head, rows, right=(1, 2, 3, 4, 5))
    picture = f"![Share against perfect play over processor time]({PICTURE})"
    return (
        f"Board with {spaces} plain spaces, {scale.games:,} games for each point. Minutes are of processor time, "
        "without grading. The last column is the widest 95 % interval of a single run. A share is one half minus "
        f"half of the regret of a game, so it may be negative if nearly every game is lost.\n\n{table}\n\n{picture}"
    )


def draw(curves: dict[str, list[list[Point]]], file: Path) -> None:
    """Draw the curves, a line for each run."""
    figure = Figure((8, 5.5), layout="constrained")
    axes = figure.add_subplot(xscale="log", ylim=(-2, 51))
    axes.set(xlabel="seconds of processor time", ylabel="share against perfect play, %")
    for color, (name, runs) in enumerate(curves.items()):
        for i, points in enumerate(runs):
            seconds, shares, _ = zip(*points[1:], strict=True)  # the first point is the untrained network
            label = METHODS[name].words.replace("`", "") if i == 0 else None
            axes.plot(seconds, shares, color=f"C{color}", linewidth=1.2, label=label)
    axes.axhline(50, color="grey", linewidth=0.8, linestyle=":")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, fontsize=8, frameon=False)
    files.save_figure(figure, file)


def compare(
    names: Sequence[str], scale: Scale, spaces: int, folder: Path, console: Console
) -> dict[str, list[list[Point]]]:
    """Train by all methods and seeds that are not finished; return the curves."""
    table = Oracle().table(Game(Rules(spaces=spaces)))
    folder.mkdir(parents=True, exist_ok=True)
    curves: dict[str, list[list[Point]]] = {}
    for seed in range(scale.seeds):
        for name in names:
            method, run = METHODS[name], folder / f"{name}-{seed}"
            settings = settings_of(method, scale, spaces, seed, run)
            curve = Curve(run.with_suffix(".json"), table, scale.games, settings)
            if not curve.done:
                console.print(f"{name}, seed {seed}")
                if method.masked:
                    train_masked(method, settings, curve, console)
                else:
                    train_unmasked(settings, curve)
                curve.done = True
                curve.save()
            curves.setdefault(name, []).append(curve.points)
    return curves


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return its exit code: 0, 2 for a missing table, 130 if interrupted."""
    parser = argparse.ArgumentParser(prog="python -m tools.comparison", description=__doc__)
    add, every = parser.add_argument, list(METHODS)
    add("--quick", action="store_true", help="take seconds instead of hours; the results mean nothing")
    add("--spaces", type=int, default=Rules.spaces, help=f"the board (default {Rules.spaces})")
    add("--seeds", type=int, help=f"runs of each method (default {FULL.seeds})")
    add("--methods", nargs="+", choices=every, default=every, metavar="NAME", help=f"of {' '.join(every)}")
    add("--into", type=Path, help="read and write all files in this folder")
    options = parser.parse_args(arguments)
    if options.seeds is not None and options.seeds < 1:
        parser.error(f"--seeds must be at least 1, got {options.seeds}")
    scale = QUICK if options.quick else FULL
    scale = scale._replace(seeds=options.seeds or scale.seeds)
    docs = options.into or FOLDER
    folder = (options.into or ROOT / "runs") / "comparison"
    folder /= f"{options.spaces}-{'quick' if options.quick else 'full'}"
    console = Console(stderr=True)
    try:
        curves = compare(options.methods, scale, options.spaces, folder, console)
    except (ValueError, OSError) as error:
        print(f"tools.comparison: error: {error}", file=sys.stderr)
        return 2
    except (Stopped, KeyboardInterrupt):
        print("Interrupted; continue with the same command.", file=sys.stderr)
        return 130
    whole = set(options.methods) == set(every) and not options.quick and options.spaces == Rules.spaces
    if not whole and not options.into:
        print(section(curves, scale, options.spaces))
        return 0
    page = docs / PAGE
    draw(curves, docs / PICTURE)
    page.write_text(pages.renew(page.read_text(), {"comparison": section(curves, scale, options.spaces)}))
    print(f"wrote {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
