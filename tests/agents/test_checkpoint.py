"""Checkpoints that are damaged, changed or interrupted."""

from __future__ import annotations

import errno
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch as th

from agents import checkpoint, command, export
from agents import folder as folders
from agents.checkpoint import CheckpointError
from agents.ppo import Run
from agents.trained import load
from tests.helpers import ROOT
from tests.helpers.training import (
    TINY_PPO,
    arguments,
    contents,
    flip,
    in_games,
    no_room,
    put,
    refusal,
    trained,
)
from wotd_env import Phase, make_policy

GREEDY, RANDOM, FIRST = (make_policy(name) for name in ("greedy", "random", "first"))


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder; not to be changed."""
    return trained(TINY_PPO, tmp_path_factory.mktemp("finished") / "run", decisions=256, milestones=1).folder


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (flip, "checkpoint.pt is damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:-999]), "checkpoint.pt is damaged"),
        (lambda file: file.write_bytes(b""), "checkpoint.pt is damaged"),
        (lambda file: file.write_text("nothing of the kind"), "checkpoint.pt is damaged, or not of train.py"),
        (
            lambda file: file.write_bytes((file.parent / "model.zip").read_bytes()),
            "checkpoint.pt is damaged, or not",
        ),
        (
            lambda file: checkpoint.save(file, {"format": "another"}),
            "no checkpoint of this version of train.py",
        ),
        (
            lambda file: checkpoint.save(file, {"settings": TINY_PPO}),
            "checkpoint.pt is damaged, or not of train.py",
        ),
        (lambda file: (file.unlink(), file.mkdir()), "the checkpoint cannot be read"),
        (lambda file: file.unlink(), "there is no checkpoint"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_named_and_nothing_is_changed(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], harm, words: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    harm(folder / "checkpoint.pt")
    if (folder / "checkpoint.pt").is_dir():
        with pytest.raises(CheckpointError, match=words):
            Run.read_settings(folder)
    else:
        message = refusal(folder, capsys)
        assert words in message
        assert "Put back a copy" in message or "in an empty folder" in message


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda c: c["state"].copy_(th.randint(0, 256, c["state"].shape, dtype=th.uint8)), "game 0: "),
        (in_games("player", 7), "game 2: player must be from 0 to 1"),
        (in_games("pieces", 100), "game 2: pieces must be"),
        (in_games("dice", -1), "game 2: dice must be"),
        (in_games("phase", Phase.OVER), "state has games that wait for no decision"),
        (put(th.zeros(64, dtype=th.uint8), "state"), "state must be ('torch.uint8', (1024,)"),
        (put(th.zeros(1024, dtype=th.int8), "state"), "state must be ('torch.uint8', (1024,)"),
        (put(th.zeros(1024, dtype=th.uint8, device="meta"), "state"), "state must be"),
        (put(th.zeros(1024, dtype=th.uint8).to_sparse(), "state"), "state must be"),
        (lambda c: c["seat"].bitwise_xor_(1), "seat must be that of the player to act"),
        (put(th.full((16,), 100, dtype=th.int8), "seat"), "seat must be that of the player to act"),
        (put(th.zeros(16), "seat"), "seat must be ('torch.int8', (16,)"),
        (put(th.zeros(16), "starts"), "starts must be ('torch.bool', (16,)"),
        (
            lambda c: weight(c).fill_(np.nan),
            "network.mlp_extractor.path.weight has values that are not finite",
        ),
        (
            lambda c: weight(c, "pool").fill_(np.inf),
            "pool[1].mlp_extractor.path.weight has values that are not",
        ),
        (
            put(th.zeros(3), "network", "mlp_extractor.path.weight"),
            "network.mlp_extractor.path.weight must be",
        ),
        (put(th.zeros(8, 8).double(), "network", "mlp_extractor.path.weight"), "path.weight must be"),
        (put(3, "network", "mlp_extractor.path.weight"), "network.mlp_extractor.path.weight must be"),
        (lambda c: c["network"].pop("mlp_extractor.path.weight"), "network must have the keys"),
        (put([], "pool"), "pool must be a list that is not empty"),
        (put({}, "pool"), "pool must be a list that is not empty"),
        (put({}, "pool", 0), "pool[0] must have the keys"),
        (put({}, "optimizer"), "optimizer must have the keys"),
        (
            lambda c: c["optimizer"][0]["exp_avg"].fill_(np.nan),
            "optimizer.0.exp_avg has values that are not finite",
        ),
        (lambda c: c["optimizer"][0]["exp_avg_sq"].fill_(-1), "optimizer has squares or steps"),
        (put(-1, "decisions"), "decisions must not be negative, got -1"),
        (put("many", "decisions"), "decisions must be like 0, got 'many'"),
        (put(None, "updates"), "updates must be like"),
        (put(np.nan, "seconds"), "seconds must be like"),
        (put([], "curve"), "curve must be a list that is not empty"),
        (put((256, 1.0, "greedy", 0, 0, 0, 0), "curve", 0), "curve[0] is no measurement"),
        (put((256, 1.0, "nobody", 1, 1, 0, 0), "curve", 0), "curve[0] is no measurement"),
        (put((256, 1.0), "curve", 0), "curve[0] must be like"),
        (lambda c: c["curve"].extend(c["curve"]), "curve must have a measurement against random for each"),
        (
            lambda c: c.update(curve=[row for row in c["curve"] if row[2] == "random"]),
            "curve must have a measurement against greedy for each snapshot",
        ),
        (lambda c: c.pop("starts"), "its content must have the keys"),
        (lambda c: c.pop("settings"), "settings must have the keys"),
        (put("many", "settings", "games"), "settings.games must be like 256, got 'many'"),
        (put(-3, "settings", "games"), "games must be an integer of at least 1, got -3"),
        (put(32, "settings", "games"), "state must be"),
        (put("slow", "settings", "preset"), "preset must be quick, standard or rules, got 'slow'"),
        (put({"players": 9}, "settings", "rules"), "players must be an integer from 2 to 5, got 9"),
        (put({"dice": 9}, "settings", "rules"), "rules must be a dict with keys among players, "),
        (put(None, "settings", "rules"), "rules must be a dict with keys among players, "),
        (put(3, "settings", "rules", "players"), "network.mlp_extractor"),
    ],
)
def test_every_part_of_a_checkpoint_is_checked_before_it_is_used(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], change, part: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    content = checkpoint.load(folder / "checkpoint.pt")
    change(content)
    checkpoint.save(folder / "checkpoint.pt", content)
    message = refusal(folder, capsys)
    assert part in message
    assert "checkpoint.pt cannot be used: " in message
    assert "Put back a copy" in message


def test_an_error_that_is_no_lack_of_room_is_not_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(self: Run) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "opponent.npz")

    monkeypatch.setattr(Run, "pass_milestone", refuse)
    assert command.main(arguments(TINY_PPO, tmp_path / "run")) == 2
    message = capsys.readouterr().err
    assert "opponent.npz" in message
    assert "once that is mended, this goes on from it: " in message


def test_what_was_made_from_the_checkpoint_is_not_needed_to_go_on(tmp_path: Path, finished: Path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "config.json").write_text("{")
    (folder / "model.zip").write_bytes(b"")
    (folder / "curve.csv").unlink()
    assert command.main(["--resume", str(folder)]) == 0
    assert (folder / "curve.csv").read_bytes() == (finished / "curve.csv").read_bytes()
    assert json.loads((folder / "config.json").read_text())["settings"]["width"] == TINY_PPO.width
    for name, tensor in load(finished).network.state_dict().items():
        assert tensor.equal(load(folder).network.state_dict()[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoint.pt", "model.zip"])
def test_a_damaged_file_is_never_taken_for_another_one(tmp_path: Path, finished: Path, name: str):
    def read(file: Path) -> bytes:
        """All that is read, as bytes that can be compared."""
        content = checkpoint.load(file) if name == "checkpoint.pt" else dict(load(file).network.state_dict())
        buffer = io.BytesIO()
        th.save(content, buffer)
        return buffer.getvalue()

    data = (finished / name).read_bytes()
    expected = read(finished / name)
    rng = np.random.default_rng(0)
    refused = 0
    for i in range(1000):
        damaged, at = bytearray(data), rng.integers(len(data))
        if i % 4 == 0:
            damaged[at] ^= 1 << rng.integers(8)
        elif i % 4 == 1:
            damaged[-1 - at % 4000] ^= 1 << rng.integers(8)  # where the archives say what lies where
        elif i % 4 == 2:
            damaged[at : at + 512] = bytes(len(damaged[at : at + 512]))
        else:
            damaged = damaged[:at]
        (tmp_path / name).write_bytes(damaged)
        try:
            content = read(tmp_path / name)
        except CheckpointError as error:
            refused += "\n" not in str(error)
        else:
            assert content == expected
            refused += 1
    assert refused == 1000


def test_what_makes_a_run_another_one_cannot_change(finished: Path, capsys: pytest.CaptureFixture[str]):
    assert "rules cannot change when the run in" in refusal(finished, capsys, "--players", "3")
    message = refusal(finished, capsys, "--width", "9")
    assert f"width cannot change when the run in {finished} is resumed: it is 8" in message
    other = finished.parent / "other"
    assert "folder cannot change when the run in" in refusal(finished, capsys, "--folder", str(other))
    assert not other.exists()


def test_results_are_there_as_long_as_the_run_that_they_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = trained(TINY_PPO, tmp_path / "run")
    run.finish()
    (run.folder / folders.RESULT).write_text("{}")
    before = contents(run.folder)
    with no_room(0):
        code = command.main(["--resume", str(run.folder), "--decisions", "2048"])
    assert code == 1
    assert "checkpoint.pt" in capsys.readouterr().err
    assert contents(run.folder) | {".lock": b""} == before | {".lock": b""}


@pytest.mark.parametrize("size", [0, 1000])
def test_a_run_that_finds_no_room_to_begin_can_be_begun_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
):
    with no_room(size):
        code = command.main(arguments(TINY_PPO, tmp_path))
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert str(tmp_path / "checkpoint.pt") in message
    assert contents(tmp_path) == {".lock": b""}
    folders.make_folder(tmp_path)


@pytest.mark.parametrize("size", [0, 40_000])  # the latter is too little for a checkpoint, not for the rest
def test_a_full_disk_leaves_a_run_that_can_go_on(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], size: int
):
    folder, whole = shutil.copytree(finished, tmp_path / "run"), shutil.copytree(finished, tmp_path / "whole")
    longer = ("--decisions", "512", "--milestones", "2")
    with no_room(size, after=Run.write_config):  # the last thing when it is resumed
        code = command.main(["--resume", str(folder), *longer])
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert message.count("\n") == 1
    assert "File too large" in message
    assert f"The last checkpoint in {folder} is intact" in message
    assert not [name for name in contents(folder) if name.startswith("new-")]

    before = contents(folder)
    with no_room(size):  # still
        code = command.main(["--resume", str(folder)])
    assert code == 1
    assert str(folder / "checkpoint.pt") in capsys.readouterr().err
    assert contents(folder) == before

    assert command.main(["--resume", str(folder)]) == 0
    assert command.main(["--resume", str(whole), *longer]) == 0
    for name, tensor in load(whole).network.state_dict().items():
        assert tensor.equal(load(folder).network.state_dict()[name])


@pytest.mark.slow
def test_trainings_that_are_killed_or_begun_twice_learn_the_same(tmp_path: Path):
    pytest.importorskip("fcntl")  # as systems have that can fork
    command = [sys.executable, "-m", "tests.helpers.training_kills", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["kills"] >= 100
    assert not result["wrong"]


def test_export_names_what_is_missing(tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]):
    assert export.main([str(tmp_path / "nowhere")]) == 2
    assert "error: there is no model" in capsys.readouterr().err
    assert export.main([str(finished), str(tmp_path / "nowhere" / "model.onnx")]) == 2
    assert "error: no folder" in capsys.readouterr().err
