"""The command `train.py`."""

from __future__ import annotations

import ast
import dataclasses
import io
import itertools
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
import torch as th
from rich.console import Console
from rich.progress import Progress
from typer.testing import CliRunner

from agents import command, export, report
from agents import folder as folders
from agents.ppo import Settings
from agents.trained import load
from tests.helpers import ROOT
from tests.helpers.learned import some_value
from tests.helpers.training import (
    TINY_PPO,
    arguments,
    contents,
    refusal,
    trained,
)
from wotd_env import Game, Rules, make_policy
from wotd_env.cli import app as wotd
from wotd_env.planning import learned
from wotd_env.policies import full_name
from wotd_env.policies.sb3 import Trained
from wotd_env.policy import check_rules

GREEDY, RANDOM, FIRST = (make_policy(name) for name in ("greedy", "random", "first"))


def test_the_command_leaves_a_complete_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "runs" / "one"
    assert command.main([*arguments(TINY_PPO, folder), "--players", "3", "--powers", "any"]) == 0
    names = {path.name.split(".")[0] for path in folder.iterdir()}
    assert names == {"", "config", "checkpoint", "model", "curve", "result", "events"}
    assert (folder / "model.onnx").is_file()
    shown = capsys.readouterr().out
    assert "random" in shown
    assert "greedy" in shown
    assert [line.strip() for line in shown.splitlines()][-1:] == report.what_next(
        folder, Rules(players=3, powers="any")
    )
    curve = (folder / "curve.csv").read_text().splitlines()
    assert curve[0] == "decisions,cpu_seconds,opponent,games,wins,ties,losses"
    assert len(curve) == 1 + 3 * (TINY_PPO.milestones + 1)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert '"seed": 0' in (folder / "config.json").read_text()

    game = Game(Rules(players=3, powers="any"))
    state = game.reset(50, seed=0)
    for player in (load(folder), load(folder / "model.zip"), Trained(load(folder).network, sample=True)):
        actions = player.act(game, state, np.random.default_rng(0))
        assert actions.dtype == np.int64
        assert game.legal_actions(state)[np.arange(50), actions].all()
    with pytest.raises(
        FileNotFoundError, match=r"no model .*: name a run folder of PPO, .* td is a policy by its name"
    ):
        load(tmp_path)


def test_what_has_to_be_installed_first_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    assert (
        command.main([*arguments(TINY_PPO, tmp_path / "run"), "--decisions", "256", "--milestones", "1"]) == 0
    )
    install, play_it, grade_it = (shlex.split(line) for line in capsys.readouterr().out.splitlines()[-3:])
    assert install[1:] == ["-m", "pip", "install", "--editable", f"{ROOT}[arena]"]
    assert [play_it[1], grade_it[1]] == ["arena", "analyze"]


def test_a_finished_run_plays_by_the_commands_that_are_named_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    rules = Rules(spaces=3, immunity=True, colors=("fire", "wood"))
    run = trained(TINY_PPO, tmp_path / "a run", rules=rules, decisions=256, milestones=1)
    with pytest.raises(ValueError, match=r"holds no policy.*agents\.export"):
        make_policy(str(run.folder))
    run.finish()
    monkeypatch.chdir(tmp_path)
    (play_it,) = map(shlex.split, report.what_next(Path("a run"), rules))
    assert Path(play_it[0]).name == "wotd"
    few = ["--games", "4", "--workers", "0", "--file", str(tmp_path / "arena.sqlite"), "--quiet"]
    result = CliRunner().invoke(wotd, [*play_it[1:], *few])
    assert result.exit_code == 0, result.output
    file = run.folder / "model.onnx"
    file.unlink()
    assert export.main([str(run.folder)]) == 0
    assert capsys.readouterr() == (f"{file}\n", "")
    with pytest.raises(ValueError, match=r"made for Rules\(.*spaces=3.*, not for Rules\(.*spaces=7"):
        check_rules(make_policy(str(run.folder)), Rules(immunity=True, colors=("fire", "wood")))
    with pytest.raises(ValueError, match=r"made for Rules\(.*spaces=3.*, not for Rules\(.*spaces=7"):
        check_rules(load(run.folder), Rules(immunity=True, colors=("fire", "wood")))

    exported, network = make_policy(f"onnx:{file}"), load(run.folder).network
    session = onnxruntime.InferenceSession(file)
    state = run.game.reset(100, seed=9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        observation, mask = run.game.observe(state), run.game.legal_actions(state)
        (logits,) = session.run(["logits"], {"observation": observation, "action_mask": mask})
        with th.no_grad():
            expected = network.mlp_extractor.forward_actor(th.from_numpy(observation).float()).numpy()
        np.testing.assert_allclose(logits[mask == 1], expected[mask == 1], atol=1e-5)
        assert (logits[mask == 0] < -1e30).all()
        np.testing.assert_array_equal(exported.act(run.game, state, rng), logits.argmax(1))
        run.game.step(state, RANDOM.act(run.game, state, rng))


def test_a_folder_that_is_called_like_a_policy_is_the_policy_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "td").mkdir()
    (tmp_path / "td" / "value.npz").write_bytes(learned.save(some_value(Rules())))
    play_it, grade_it = map(shlex.split, report.what_next(Path("td"), Rules()))
    assert play_it[1:3] == ["arena", "./td"]
    assert grade_it[1:3] == ["analyze", "./td"]
    assert full_name("./td") == f"td:{Path('td', 'value.npz')}"


def test_a_second_training_in_a_folder_is_an_error(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
):
    folder = shutil.copytree(finished, tmp_path / "run")
    with folders.locked(folder):
        assert "another training is at work in" in refusal(folder, capsys)
    empty = tmp_path / "new"
    empty.mkdir()
    with folders.locked(empty):
        assert command.main(arguments(TINY_PPO, empty)) == 2
        assert "another training is at work in" in capsys.readouterr().err
    assert contents(empty) == {".lock": b""}
    assert command.main(["--resume", str(folder)]) == 0


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
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
        (["--players", "7"], "players must be an integer from 2 to 5, got 7"),
        (["--past", "0.25", "--greedy", "0.9"], "greedy must leave room for past = 0.25, got 0.9"),
        (["--credit", "greedy"], "credit must be a policy that plans"),
        (
            ["--device", "gpu"],
            "device must be cpu or one that torch can use here, got 'gpu': Expected one of",
        ),
        (["--device", "meta"], "device must be cpu or one that torch can use here, got 'meta'"),
        (
            ["--credit", "td:nowhere.npz"],
            "credit must name a policy for the rules at hand: no file nowhere.npz",
        ),
        (["--credit", "td", "--spaces", "6"], "credit must name a policy for the rules at hand: no trained"),
        (["--credit", "none"], "gamma must be positive without credits"),
        (["--learning-rate", "-1"], "learning_rate must be a positive number, got -1.0"),
        (["--learning-rate", "inf"], "learning_rate must be a positive number, got inf"),
        (["--entropy", "inf"], "entropy must be a number that is not negative, got inf"),
        (["--steps", "0"], "steps must be an integer of at least 1, got 0"),
        (
            ["--milestone-games", "1"],
            "milestone_games must be an integer of at least 2 (the number of players), got 1",
        ),
        (["--batch-size", "1000"], "batch_size must divide games * steps = 4096, got 1000"),
        (["--start", "2"], "start must be an integer from 0 to 1 as a seat, got 2"),
        (["--preset", "slow"], "slow"),
        (["--no-such-thing"], "--no-such-thing"),
    ],
)
def test_wrong_settings_are_named(wrong: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        command.main(wrong)
    assert stop.value.code == 2
    output = capsys.readouterr()
    assert words in " ".join((output.out + output.err).replace("│", "").split())


def test_help_lists_and_explains_every_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as stop:
        command.main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for options in (Settings, Rules):
        for name in [f.name for f in dataclasses.fields(options) if f.name != "rules"]:
            _, found, rest = text.partition(f"--{name.replace('_', '-')}")
            assert found, name
            rest = rest.removeprefix(f", --no-{name}")
            assert len(rest.split("--")[0].split()) > 3, f"{name} is not explained"


def test_the_last_measurement_shows_how_far_it_is_with_every_opponent(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run")
    out = io.StringIO()
    command.measure(run, Console(file=out, width=80, force_terminal=True, color_system=None))
    for name in run.references:
        assert re.search(rf"100 % .*games against {name} ", out.getvalue()), name


def test_the_line_of_progress_says_everything_in_80_characters():
    out = io.StringIO()
    console = Console(file=out, width=80)
    progress = Progress(*command.columns(), console=console, expand=True)
    text = "12,345 decisions/s, wins: greedy 54%, planner 48%"
    progress.update(progress.add_task("training", total=100, text=text), completed=9)
    console.print(progress.get_renderable())
    (line,) = out.getvalue().splitlines()
    assert line.startswith("  9 % ")
    assert line.endswith(f"{text} 0:00:00 left -:--:--")


def test_settings_are_explained_in_one_line_because_the_help_keeps_line_breaks():
    for file in (ROOT / "agents").glob("*.py"):
        classes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]
        for field, text in (pair for node in classes for pair in itertools.pairwise(node.body)):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                assert "\n" not in ast.literal_eval(text.value), f"{file.name}: {ast.unparse(field)}"
