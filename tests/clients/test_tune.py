"""Ray Tune: sweeps of train.py."""

import dataclasses
import importlib
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("ray.tune", exc_type=ImportError)

from agents import loop, tune
from agents.evaluate import FINAL
from agents.loop import LEARNERS
from tests.helpers.learned import some_value
from tests.helpers.training import TINY_TD, arguments, contents, settings_in, started, trained
from wotd_env.planning import learned

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("small_ray"),
    pytest.mark.filterwarnings("default"),  # Ray's own warnings are not errors
]


def test_a_sweep_trains_ranks_and_resumes_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder, again = tmp_path / "sweep", tmp_path / "again"
    assert tune.main([*arguments(TINY_TD, folder), "--trials", "2"]) == 0
    one, other = sorted(folder.glob("learning_rate=*"))
    shown = capsys.readouterr().out

    # A trial equals a training run of train.py with the same settings.
    drawn = dict(part.split("=") for part in one.name.split(","))
    assert drawn.keys() == tune.RANGES["td"].keys()
    values = {name: type(getattr(TINY_TD, name))(value) for name, value in drawn.items()}
    alone = trained(TINY_TD, tmp_path / "alone", **values)
    assert same_network(alone.folder, one)
    result = json.loads((one / "result.json").read_text())
    assert result["planner"] == loop.strengths(alone, TINY_TD.final_games, FINAL)["planner"]._asdict()

    # The strongest trial is named.
    best = shown.split("The strongest is the run")[1].split()[0]
    assert strength(Path(best)) == max(strength(one), strength(other))

    # A finished trial is not repeated; an interrupted one is resumed.
    shutil.copytree(one, again / one.name)
    with started(dataclasses.replace(settings_in(other), resume=None), again / other.name):
        pass
    assert tune.main([*arguments(TINY_TD, again), "--trials", "2"]) == 0
    assert {path.name for path in again.glob("learning_rate=*")} == {one.name, other.name}
    assert contents(again / one.name) == contents(one)
    assert same_network(again / other.name, other)


def same_network(one: Path, other: Path) -> bool:
    """Return whether two training runs have equal networks."""
    networks = (learned.load(folder / "value.npz").network for folder in (one, other))
    return all(map(np.array_equal, *networks))


def strength(folder: Path) -> float:
    """Return the win share of a training run against `planner`."""
    counts = json.loads((folder / "result.json").read_text())["planner"]
    return float(counts["wins"] / counts["games"])


def test_trials_find_policies_by_relative_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "first.npz").write_bytes(learned.save(some_value(TINY_TD.rules, width=TINY_TD.width)))
    words = [*arguments(TINY_TD, tmp_path / "sweep"), "--trials", "1", "--init", "td:first.npz"]
    assert tune.main(words) == 0


def test_invalid_arguments_raise_an_error_that_names_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    run = trained(TINY_TD, tmp_path / "run", updates=1, milestones=1)
    assert tune.main(["--resume", str(run.folder)]) == 2
    assert "--resume is not for sweeps" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tune.main(["td", "--trials", "0"])
    assert "trials must be an integer of at least 1, got 0" in " ".join(capsys.readouterr().err.split())


def test_every_learner_accepts_all_values_of_its_ranges():
    assert tune.RANGES.keys() == LEARNERS.keys()
    for name, ranges in tune.RANGES.items():
        settings = importlib.import_module(LEARNERS[name]).PRESETS["quick"]
        for _ in range(20):  # a value that is not allowed raises
            dataclasses.replace(settings, **{key: drawn.sample() for key, drawn in ranges.items()})
