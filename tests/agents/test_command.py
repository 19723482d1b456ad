"""The command `train.py`."""

import dataclasses
import io
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from agents import command, loop, ppo, sb3, td
from agents.export import NetworkPolicy, load
from tests.helpers import ROOT
from tests.helpers.learned import some_value
from tests.helpers.training import TINY_PPO, arguments, contents, rejected, resumed, trained
from wotd_env import Game, Rules
from wotd_env.planning import learned
from wotd_env.policies import full_name


def test_train_writes_a_complete_run_folder_and_prints_milestones(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "runs" / "one"
    rules = Rules(players=3, powers="any", spaces=1)
    words = arguments(TINY_PPO, folder)
    assert command.main([*words, "--players", "3", "--powers", "any"]) == 0
    names = {path.name.split(".")[0] for path in folder.iterdir()}
    assert names == {"", "config", "checkpoint", "model", "curve", "result", "events", "game"}
    shown = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert shown[0] == f"Run folder {folder}"
    percents = [line for line in shown if "wins: random" in line]
    assert [line.split()[:3] for line in percents] == [
        ["0%", "0", "decisions,"],
        ["50%", "64", "decisions,"],
        ["100%", "128", "decisions,"],
    ]
    assert re.search(r", planner \d+%$", percents[1])
    assert "Measuring the share of games won against random, greedy, planner, with 95 % intervals." in shown
    assert re.search(r"^against planner: \d+\.\d % \(.+\) of 6 games$", "\n".join(shown), re.MULTILINE)
    assert f"Replay of a game by the trained policy: {folder / 'game.html'}" in shown
    assert (folder / "game.html").read_text().startswith("<!doctype html>")
    assert shown[-2:-1] == command.next_commands(folder, rules)
    assert re.match(r"The agent wins \d+\.\d of 100 games against planner", shown[-1])
    curve = (folder / "curve.csv").read_text().splitlines()
    assert curve[0] == "decisions,seconds,opponent,games,wins,ties,losses"
    assert len(curve) == 1 + 3 * (TINY_PPO.milestones + 1)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert '"seed": 0' in (folder / "config.json").read_text()
    assert set(json.loads((folder / "result.json").read_text())) == set(loop.REFERENCES)

    game = Game(rules)
    state = game.reset(50, seed=0)
    for player in (load(folder), NetworkPolicy(load(folder).network, sample=True)):
        actions = player.act(game, state, np.random.default_rng(0))
        assert actions.dtype == np.int64
        assert game.legal_actions(state)[np.arange(50), actions].all()


def test_a_log_file_gets_the_speed_and_the_time_left_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(command, "EARLY", 0.0)
    trained(TINY_PPO, tmp_path / "run", updates=1, milestones=1)
    out = io.StringIO()
    with resumed(tmp_path / "run", updates=4) as run:
        command.train(run, Console(file=out))
    assert (
        len(re.findall(r"^[\d,]+ decisions per second, about \d+ min left$", out.getvalue(), re.MULTILINE))
        == 1
    )
    assert "  0%" not in out.getvalue()  # milestones of the earlier run are not repeated


def test_a_run_folder_named_like_a_policy_gets_a_path_prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "td").mkdir()
    (tmp_path / "td" / "value.npz").write_bytes(learned.save(some_value(Rules())))
    play_it, grade_it = map(shlex.split, command.next_commands(Path("td"), Rules()))
    assert play_it[1:3] == ["arena", "./td"]
    assert grade_it[1:3] == ["analyze", "./td"]
    assert full_name("./td") == full_name("td:td") == f"td:{Path('td', 'value.npz')}"


def test_a_nonempty_folder_is_refused_and_left_unchanged(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "precious").write_text("data")
    assert command.main(arguments(TINY_PPO, tmp_path)) == 2
    assert "is not empty" in capsys.readouterr().err
    assert contents(tmp_path) == {"precious": b"data"}
    assert command.main(arguments(TINY_PPO, tmp_path / "precious")) == 2
    assert "train.py: error: " in capsys.readouterr().err
    assert contents(tmp_path) == {"precious": b"data"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("--players 7", "players must be an integer from 2 to 5, got 7"),
        ("sb3 --past 0.25 --greedy 0.9", "greedy must be at most 1 - past = 0.75, got 0.9"),
        ("sb3 --total-timesteps 0", "total_timesteps must be an integer from 1 to"),
        ("sb3 --device gpu", "device must be cpu or another device of torch, got 'gpu': Expected one of"),
        ("sb3 --device meta", "device must be cpu or another device of torch, got 'meta'"),
        ("--learning-rate -1", "learning_rate must be a positive number, got -1.0"),
        ("--learning-rate inf", "learning_rate must be a positive number, got inf"),
        ("--ent-coef -1", "ent_coef must be a number that is not negative, got -1.0"),
        ("--clip-coef 2", "clip_coef must be from 0 to 1, got 2.0"),
        ("--num-steps 0", "num_steps must be an integer from 1 to 16777216, got 0"),
        (
            "--milestone-games 1",
            "milestone_games must be an integer of at least 2 (the number of players), got 1",
        ),
        ("sb3 --batch-size 1000", "batch_size must divide num_envs * n_steps = 16384, got 1000"),
        ("--start 2", "start must be an integer from 0 to 1 as a seat, got 2"),
        ("--preset slow", "slow"),
        ("--no-such-thing", "--no-such-thing"),
        ("td --explore 2", "explore must be from 0 to 1, got 2"),
        ("td --width 33", "width must be a multiple of 32, at most 4096, got 33"),
        ("td --learning-rate 0", "learning_rate must be a positive number"),
        ("td --updates 0", "updates must be an integer from 1 to 16777216, got 0"),
        ("td --init nobody", "init must name a policy for the rules at hand: policy must be one of"),
        ("td --init planner", "init must be a policy with a learned value"),
        ("td --init td --spaces 4", "no trained model of td"),
        ("td --init td --width 96", "width must be 64, as in init = td, got 96"),
        ("td --init td:nowhere.npz", "init must name a policy for the rules at hand: no file nowhere.npz"),
        ("td --preset full", "full"),
        ("td --decisions 9", "--decisions"),
        ("td --against nobody", "policy must be one of"),
        ("td --against td --spaces 4", "no trained model of td"),
        ("td --against greedy --ray auto", "ray must not be set for a best response, got 'auto'"),
        ("td --layouts train --ray auto", "ray cannot be combined with training layouts, got 'auto'"),
        ("td --spaces 1 --layouts train", "layouts needs the rules"),
        ("dqn --updates 9", "train.py: error: unknown learner 'dqn'; choose ppo, td, sb3"),
    ],
)
def test_wrong_settings_are_reported(wrong: str, words: str, capsys: pytest.CaptureFixture[str]):
    assert words in rejected(wrong.split(), capsys)


def test_too_little_memory_is_reported(capsys: pytest.CaptureFixture[str]):
    assert command.main(["td", "--games", "16777216", "--turns", "16777216"]) == 1
    assert "train.py: error: not enough memory: Unable to allocate" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "learner", "settings"),
    [([], "ppo", ppo.Settings), (["td"], "td", td.Settings), (["sb3"], "sb3", sb3.Settings)],
)
def test_help_names_the_learners_and_explains_every_setting(
    words: list[str],
    learner: str,
    settings: type,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as stop:
        command.main([*words, "--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert f"Learners: ppo, td, sb3; this is {learner}" in text
    for options in (settings, Rules):
        for name in [f.name for f in dataclasses.fields(options) if f.name != "rules"]:
            _, found, rest = text.partition(f"--{name.replace('_', '-')}")
            assert found, name
            rest = rest.removeprefix(f", --no-{name}")
            assert {*re.findall("[a-z]+", rest.split("--")[0])} - {"default"}, f"{name} is not explained"


def test_no_module_imports_the_command_file():
    """`train.py` contains only the command; shared code belongs in agents/."""
    folders = ("agents", "tools", "wotd_env", "tests")
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    assert len(files) > 100
    imports = re.compile(r"^\s*(from|import) train\b", re.MULTILINE)
    assert not [file for file in files if imports.search(file.read_text())]
