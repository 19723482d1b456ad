"""Ray Tune: a sweep of the settings of a learner of train.py, on one machine or a cluster.

A *trial* is a run of train.py with settings drawn from `RANGES`, and all trials have the same seed. The run folder of a
trial is in the folder of the sweep, and is named after the drawn settings. The same command continues an interrupted
sweep; a larger `--trials` adds trials. All nodes of a cluster need the checkout and the folder under the same paths.

    pip install --editable ".[train,tune]"
    python examples/ray_tune.py td --trials 30 --folder runs/sweep
    python examples/ray_tune.py ppo --folder runs/three --spaces 3              # other options are those of train.py
    RAY_ADDRESS=HOST:PORT python examples/ray_tune.py td --folder runs/sweep    # on a cluster
"""

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import tyro
from ray import tune
from ray.tune.search.basic_variant import BasicVariantGenerator

from wotd_env import files

ROOT = Path(__file__).resolve().parent.parent
RANGES = {
    "ppo": {
        "learning_rate": tune.loguniform(1e-3, 1e-2),
        "ent_coef": tune.loguniform(3e-3, 5e-2),
        "clip_coef": tune.loguniform(0.05, 0.5),
        "update_epochs": tune.randint(1, 5),
    },
    "td": {
        "learning_rate": tune.loguniform(1e-3, 1e-2),
        "td_lambda": tune.uniform(0.5, 1.0),
        "explore": tune.loguniform(0.01, 0.2),
        "replay": tune.randint(2, 17),
    },
    "sb3": {
        "learning_rate": tune.loguniform(5e-4, 5e-3),
        "ent_coef": tune.loguniform(3e-3, 1e-1),
        "gae_lambda": tune.uniform(0.8, 1.0),
        "n_epochs": tune.randint(1, 7),
    },
}


@dataclass(frozen=True)
class Settings:
    """Train with settings drawn from ranges, and rank the runs by strength. Other options are those of train.py."""

    learner: tyro.conf.Positional[Literal["ppo", "td", "sb3"]] = "ppo"
    folder: Path = Path("runs/sweep")
    """Folder of the sweep."""
    trials: int = 16
    cpus: int = 2
    """Processor cores of a trial."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("trials", "cpus", "seed"):
            if not (value := getattr(self, name)) >= (low := 0 if name == "seed" else 1):
                raise ValueError(f"{name} must be at least {low}, got {value}")


def sweep(settings: Settings, options: list[str]) -> Path:
    """Run the missing trials; return the run folder of the strongest."""
    folder, here = settings.folder.resolve(), Path.cwd()
    own = {"--" + name.replace("_", "-") for name in ("resume", *RANGES[settings.learner])}
    if taken := own.intersection(word.partition("=")[0].replace("_", "-") for word in options):
        sys.exit(f"the sweep sets {min(taken)}: omit this option, or change RANGES in this script")
    record, about = folder / "sweep.txt", shlex.join([settings.learner, f"--seed={settings.seed}", *options])
    folder.mkdir(parents=True, exist_ok=True)
    if not record.exists():
        files.write(record, about.encode())
    elif (other := record.read_text(errors="replace")) != about:
        sys.exit(f"{folder} has a sweep of {other}; choose another --folder, got {about}")

    def trial(drawn: dict[str, Any]) -> None:
        values = {name: format(value, ".3g") for name, value in drawn.items()}
        run = folder / ",".join(f"{name}={value}" for name, value in values.items())
        result = run / "result.json"
        if not result.exists():
            words = [settings.learner, "--seed", str(settings.seed), "--folder", str(run)]
            for name, value in values.items():
                words += ["--" + name.replace("_", "-"), value]
            if (run / "checkpoint.safetensors").exists():
                words = ["--resume", str(run)]
            command = [sys.executable, str(ROOT / "train.py"), *words, *options]
            done = subprocess.run(command, cwd=here, capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(f"{shlex.join(command)} failed:\n{done.stderr}")
        opponent, games = list(json.loads(result.read_text()).items())[-1]
        tune.report({"strength": games["share"], "opponent": opponent, "folder": str(run)})

    search = BasicVariantGenerator(random_state=settings.seed)  # draws the same settings again
    results = tune.Tuner(
        tune.with_resources(trial, {"cpu": settings.cpus}),
        param_space=RANGES[settings.learner],
        tune_config=tune.TuneConfig(
            metric="strength", mode="max", search_alg=search, num_samples=settings.trials
        ),
        run_config=tune.RunConfig(
            name="tune", storage_path=str(folder), failure_config=tune.FailureConfig(fail_fast=True)
        ),
    ).fit()
    finished = [each.metrics for each in results if "strength" in each.metrics]
    for each in sorted(finished, key=lambda each: -each["strength"]):
        print(f"{each['strength']:.1%} against {each['opponent']}: {Path(each['folder']).name}")
    if len(finished) < settings.trials:
        sys.exit(
            f"{len(finished)} of {settings.trials} trials are finished; the same command continues the sweep"
        )
    return Path(results.get_best_result().metrics["folder"])


if __name__ == "__main__":
    best = shlex.quote(str(sweep(*tyro.cli(Settings, return_unknown_args=True))))
    print(f"wotd arena {best} greedy\nwotd benchmark {best}")
