"""The entries of the benchmark: their measurement, their check, and their table."""

import dataclasses
import importlib
import re
import shutil
import tomllib

import numpy as np
import pytest

from entries import __main__ as command
from entries import entry, tables
from entries.entry import TRACKS
from tests.helpers import ROOT
from wotd_env import make_policy
from wotd_env.benchmark import Result, measuring
from wotd_env.policies.random import Random
from wotd_env.reporting import Estimate


@pytest.fixture
def planner(tmp_path, monkeypatch):
    """Return the folder of a copy of an entry, which the tool then reads."""
    monkeypatch.setattr(entry, "FOLDER", tmp_path)
    return shutil.copytree(ROOT / "entries" / "planner", tmp_path / "planner")


def edit(path, old, new):
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize("name", entry.names())
def test_entries_have_no_faults(name):
    if name not in ("mcts", "planner", "template"):
        pytest.importorskip("torch", reason="needs the extra train")
    assert list(command.faults(name)) == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('title = "planner"\n', "", "title must be text, got None"),
        ('track = "players"', 'track = "speed"', "track must be one of samples, time, players"),
        ("seeds = [0]", "seeds = []", r"seeds must be integers, such as \[0, 1, 2, 3, 4\], got \[\]"),
        ("seeds = [0]", "seed = 0", "seed is unknown; the fields are title"),
        ('commit = "faa9f10"', 'commit = "main"', "commit must be what `git rev-parse HEAD` prints, got 'main'"),
        ("budgets = [1]", "budgets = [2]", r"budgets of players are \(1, 5, 60\) minutes, got 2"),
        ("budgets = [1]", "budgets = [1", "TOMLDecodeError"),
    ],
)  # fmt: skip
def test_wrong_fields_are_reported(planner, old, new, message):
    edit(planner / "entry.toml", old, new)
    with pytest.raises(AssertionError, match=message):
        assert list(command.faults("planner")) == []


@pytest.mark.parametrize(("field", "cure"), [("claim", "describe"), ("title", "name")])
def test_text_copied_from_the_template_is_reported(planner, field, cure):
    copied = tomllib.loads((ROOT / "entries" / "template" / "entry.toml").read_text())[field]
    own = getattr(entry.read("planner"), field)
    edit(planner / "entry.toml", f'{field} = "{own}"', f'{field} = """{copied}"""')
    (fault,) = command.faults("planner")
    assert f"{field} must {cure} your agent, got the {field} of the template" in fault


@pytest.mark.parametrize(
    ("file", "cure"),
    [
        ("run.py", "copy it from entries/template"),
        ("results/1-0.json", "run python -m entries planner --measure --seed 0"),
    ],
)
def test_missing_files_are_reported_with_a_cure(planner, file, cure):
    (planner / file).unlink()
    (fault,) = command.faults("planner")
    assert file in fault
    assert cure in fault


def test_foreign_result_files_are_reported(planner):
    shutil.copy(planner / "results" / "1-0.json", planner / "results" / "1-7.json")
    (fault,) = command.faults("planner")
    assert "1-7.json has no budget or seed of entry.toml" in fault


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lambda result: {"seed": 3}, "seed must be 0, got 3"),
        (lambda result: {"games": 10}, "games must be 1000, got 10"),
        (lambda result: {"training_minutes": None}, "training_minutes must be from 0 to 2, got None"),
        (lambda result: {"training_minutes": 2.5}, "training_minutes must be from 0 to 2, got 2.5"),
        (lambda result: {"positions_digest": "0"}, "is for other positions than the bundled ones"),
        (lambda result: {"actions": result.actions[:-1]}, "actions"),
        (
            lambda result: {"win_shares": {2: result.win_shares[2]}},
            "win_shares must contain games of 3 players",
        ),
        (
            lambda result: {"win_shares": better_shares(result)},
            "win_shares against greedy with 2 players must be",
        ),
        (lambda result: {"regret": {}}, "regret of all, all must be 0.0025"),
        (lambda result: {"actions": better(result)}, "regret of all, all must be 0.00"),
    ],
)
def test_results_that_break_the_protocol_are_reported(planner, changed, message):
    rewrite(planner / "results" / "1-0.json", changed)
    (fault,) = command.faults("planner")
    assert message in fault


@pytest.mark.parametrize(
    ("same", "cure"), [(True, "take random numbers from rng only"), (False, "the sources have changed")]
)
def test_results_of_another_agent_are_reported(planner, same, cure, monkeypatch):
    result = Result.read(planner / "results" / "1-0.json")
    digest = result.agent_digest if same else "0"
    monkeypatch.setattr(command, "policy_digest", lambda *_, **__: digest)
    changed = dataclasses.replace(result, actions=better(result))
    with pytest.raises(ValueError, match=rf"actions must be those of the agent, but \d+ of .*{cure}"):
        command.replay(make_policy("planner"), changed)


def test_rounding_may_change_a_few_actions():
    path = ROOT / "entries" / "planner" / "results" / "1-0.json"
    result = Result.read(path)
    equity = np.where(result.positions().mask == 1, result.positions().equity, -np.inf)
    second, best = np.argsort(equity, 1)[:, -2:].T
    actions, rows = np.array(result.actions), np.arange(len(equity))
    ties = np.flatnonzero((equity[rows, best] - equity[rows, second] < 1e-4) & (actions == best))[:10]
    actions[ties] = second[ties]
    assert ties.size == 10
    command.replay(make_policy("planner"), dataclasses.replace(result, actions=tuple(actions.tolist())))


def test_a_random_agent_repeats_its_actions(monkeypatch):
    result = measuring.measure(Random(), games=4, size=100)
    for _ in ("equal digests", "different digests"):
        command.replay(Random(), result)
        monkeypatch.setattr(command, "policy_digest", lambda *_, **__: "0")


def test_errors_of_an_agent_are_reported(planner, monkeypatch):
    module = importlib.import_module("entries.planner.run")
    monkeypatch.setattr(module, "load", lambda budget, seed: {}[budget])
    assert list(command.faults("planner")) == [f"{planner / 'results' / '1-0.json'}: KeyError: 1"]


def test_agents_without_stored_weights_are_not_replayed(planner, monkeypatch):
    module = importlib.import_module("entries.planner.run")
    monkeypatch.setattr(module, "load", lambda budget, seed: None)
    monkeypatch.setattr(command, "replay", None)
    assert list(command.faults("planner")) == []


def test_measure_trains_measures_and_writes(planner, monkeypatch, capsys):
    shutil.rmtree(planner / "results")
    trained = []
    module = importlib.import_module("entries.planner.run")
    monkeypatch.setattr(module, "train", lambda budget, seed: trained.append((budget, seed)), raising=False)
    monkeypatch.setitem(TRACKS, "players", TRACKS["players"]._replace(games=4, size=2))
    assert command.main(["planner", "--measure", "--seed", "0", "--budget", "1"]) == 0
    assert trained == [(1, 0)]
    assert "1-0.json: 0.00 minutes of training, mean regret" in capsys.readouterr().out
    result = Result.read(planner / "results" / "1-0.json")
    assert (result.games, result.training_minutes) == (4, 0.0)
    (fault,) = command.faults("planner")
    assert "seeds of a trained agent must be at least 5 numbers, got [0]" in fault
    monkeypatch.delattr(module, "train")
    assert list(command.faults("planner")) == []
    with pytest.raises(ValueError, match=r"of planner, with budgets \[1\] and seeds \[0\], got 5 and None"):
        command.measure("planner", budget=5)


def test_tables_have_means_over_seeds_and_points_above_neutral(planner):
    path = planner / "results" / "1-0.json"
    result = Result.read(path)
    points = [100 * (share.value - 1 / 3) for share in result.win_shares[3].values()]
    assert tables.measures(result, TRACKS["players"])["3 players"][0] == pytest.approx(np.mean(points))
    perfect = {"all": {"all": Estimate(0.0, 0.0, 0.0)}}
    other = dataclasses.replace(result, seed=1, regret=result.regret | perfect)
    (planner / "results" / "1-1.json").write_text(other.to_json())
    edit(planner / "entry.toml", "seeds = [0]", "seeds = [0, 1]")
    mean = 500 * result.regret["all"]["all"].value
    rows = tables.rows(["planner"])
    assert f"| 1 | 2 | {mean:.2f} ±{12.7062 * mean:.2f} |" in tables.tables(rows)


def test_the_interquartile_mean_leaves_out_the_best_and_the_worst_of_five_seeds():
    measured = [{"mean regret": (value, 0.0)} for value in (9.0, 1.0, 2.0, 3.0, 100.0)]
    row = tables.Row("planner", entry.read("planner"), 1, measured, 0.0)
    middle, low, high = map(float, re.findall(r"[\d.]+", row.middle("mean regret")))
    assert middle == pytest.approx((2 + 3 + 9) / 3, abs=0.01)
    assert 1 <= low < middle < high <= 100
    assert row._replace(measured=measured[:1]).middle("mean regret") == ""


def test_the_picture_shows_all_entries(tmp_path):
    tables.draw(tables.rows(entry.names()), tmp_path / "entries.svg")
    assert (tmp_path / "entries.svg").stat().st_size > 10_000


def test_a_result_of_unseen_layouts_has_the_columns_of_its_track():
    track = TRACKS["generalization"]._replace(games=4, size=2)
    result = measuring.measure("greedy", track.rules, games=4, size=2)
    found = tables.measures(result, track)
    assert list(found) == ["mean regret", "in training layouts", "difference", "`planner`"]
    values = {name: value for name, (value, _) in found.items()}
    assert values["difference"] == pytest.approx(values["mean regret"] - values["in training layouts"])
    assert values["mean regret"] == 1000 * result.regret["test layouts"]["all"].value
    command.check(dataclasses.replace(result, training_minutes=0.0), track, 1_000_000, 0)


def test_a_result_of_another_board_is_refused(planner):
    result = Result.read(planner / "results" / "1-0.json")
    with pytest.raises(
        ValueError, match=r"rules must be Rules\(players=2, spaces=2.*dead_pieces=5.* measure it again"
    ):
        command.check(result, TRACKS["generalization-time"], 5, 0)


def better(result):
    """Return the actions of a result, with the best ones in the first 500 positions."""
    equity = result.positions().equity
    return (*np.nanargmax(equity[:500], 1).tolist(), *result.actions[500:])


def better_shares(result):
    """Return the win shares of a result, with a larger first one."""
    (reference, share), *_ = result.win_shares[2].items()
    larger = {reference: share._replace(value=share.value + 0.02)}
    return result.win_shares | {2: result.win_shares[2] | larger}


def rewrite(path, changed):
    result = Result.read(path)
    path.write_text(dataclasses.replace(result, **changed(result)).to_json())


def test_an_unknown_entry_is_named_with_the_known_ones(capsys):
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    known = ", ".join(entry.names())
    assert f"nothing has no entry.toml in entries/; there are {known}" in capsys.readouterr().err


def test_entries_import_nothing_of_tools():
    files = [*(ROOT / "entries").rglob("*.py")]
    assert len(files) > 15
    assert not [
        file for file in files if re.search(r"^\s*(from|import) tools\b", file.read_text(), re.MULTILINE)
    ]
