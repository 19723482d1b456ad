"""Ray Tune: a sweep trains, ranks and continues runs of train.py."""

import importlib
import json
import shlex
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ray.tune", exc_type=ImportError)
pytest.importorskip("sb3_contrib")

from agents.loop import LEARNERS, RESULT
from examples import ray_tune
from tests.helpers.training import TINY_TD, arguments, contents, settings_in, started


@pytest.mark.slow
@pytest.mark.usefixtures("small_ray")
@pytest.mark.filterwarnings("default")  # Ray's own warnings are not errors
def test_a_sweep_ranks_trials_and_continues_them(run_example: Callable[[str, str], str], tmp_path: Path):
    folder = tmp_path / "the sweep"
    against = "greedy"  # an option that --resume does not take from the checkpoint
    words = [*arguments(replace(TINY_TD, replay=8), folder), "--trials", "2", "--against", against]
    printed = run_example("ray_tune", shlex.join(words)).splitlines()
    runs = sorted(folder.glob("learning_rate=*"))
    assert len(runs) == 2

    # A trial is a run of train.py with the drawn settings.
    for run in runs:
        drawn = dict(part.split("=") for part in run.name.split(","))
        assert drawn.keys() == ray_tune.RANGES["td"].keys()
        values = {name: type(getattr(TINY_TD, name))(value) for name, value in drawn.items()}
        assert replace(settings_in(run), resume=None) == replace(TINY_TD, folder=run, **values)

    # The strongest trial is named.
    best = shlex.split(printed[-1])[-1]
    assert strength(Path(best)) == max(map(strength, runs))

    # A finished trial is not repeated. An interrupted trial is resumed.
    one, other = runs
    before, trained = contents(one), contents(other)["value.npz"]
    settings = replace(settings_in(other), resume=None, against=against)
    for file in other.iterdir():
        file.unlink()
    with started(settings, other):
        pass
    run_example("ray_tune", shlex.join(words))
    assert contents(one) == before
    assert contents(other)["value.npz"] == trained


def test_a_folder_is_for_one_sweep(run_example: Callable[[str, str], str], tmp_path: Path):
    (tmp_path / "sweep.txt").write_text("td --seed=0")
    with pytest.raises(
        SystemExit, match="has a sweep of td --seed=0; choose another --folder, got td --seed=1"
    ):
        run_example("ray_tune", f"td --seed 1 --folder {tmp_path}")


@pytest.mark.parametrize("option", ["--learning-rate", "--learning_rate=0.1", "--resume"])
def test_a_setting_of_the_trials_is_no_option(
    run_example: Callable[[str, str], str], tmp_path: Path, option: str
):
    with pytest.raises(SystemExit, match=r"the sweep sets --(learning-rate|resume): omit this option"):
        run_example("ray_tune", f"td --folder {tmp_path} {option} 0.1")
    assert not any(tmp_path.iterdir())


def strength(folder: Path) -> float:
    """Return the win share of a training run against `greedy`."""
    return float(json.loads((folder / RESULT).read_text())["greedy"]["share"])


def test_every_learner_accepts_all_values_of_its_ranges():
    assert ray_tune.RANGES.keys() == LEARNERS.keys()
    for name, ranges in ray_tune.RANGES.items():
        settings = importlib.import_module(LEARNERS[name]).PRESETS["quick"]
        for _ in range(20):  # a value that is not allowed raises
            replace(settings, **{key: drawn.sample() for key, drawn in ranges.items()})
