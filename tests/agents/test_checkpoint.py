"""Damaged and changed checkpoints, and interrupted training runs."""

from __future__ import annotations

import errno
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from agents import checkpoint, command, runs
from agents.checkpoint import CheckpointError
from agents.sb3 import Run
from tests.helpers import ROOT
from tests.helpers.training import (
    TINY_SB3,
    arguments,
    change_checkpoint,
    contents,
    flip,
    in_games,
    no_room,
    put,
    refusal,
    same,
    trained,
)
from wotd_env import files


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run folder. Tests must not modify it."""
    folder: Path = trained(
        TINY_SB3, tmp_path_factory.mktemp("finished") / "run", updates=1, milestones=1, past=0.5
    ).folder
    return folder


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip, "checkpoint.pt is damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:-999]), "checkpoint.pt is damaged"),
        (lambda file: file.write_bytes(b""), "checkpoint.pt is damaged"),
        (
            lambda file: file.write_text("nothing of the kind"),
            "checkpoint.pt is damaged, or not a checkpoint of train.py",
        ),
        (
            lambda file: file.write_bytes((file.parent / "curve.csv").read_bytes()),
            "checkpoint.pt is damaged, or not",
        ),
        (
            lambda file: checkpoint.save(file, {"format": "another"}),
            "not a checkpoint of this version of train.py",
        ),
        (
            lambda file: checkpoint.save(file, {"settings": TINY_SB3}),
            "checkpoint.pt is damaged, or not a checkpoint of train.py",
        ),
        (lambda file: (file.unlink(), file.mkdir()), "the checkpoint cannot be read"),
        (lambda file: file.unlink(), "there is no checkpoint"),
    ],
)
def test_an_unreadable_checkpoint_is_reported_and_left_unchanged(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], damage, words: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    damage(folder / "checkpoint.pt")
    if (folder / "checkpoint.pt").is_dir():
        with pytest.raises(CheckpointError, match=words):
            Run.read_settings(folder)
    else:
        message = refusal(folder, capsys)
        assert words in message
        assert "Restore a copy" in message or "in an empty folder" in message


LIKE = {"tensor": th.zeros(2, 3), "list": [], "any": {}, "whole": 1, "part": 0.5}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (put(th.zeros(2), "tensor"), "tensor must be ('torch.float32', (2, 3)"),
        (put(th.zeros(2, 3).double(), "tensor"), "tensor must be"),
        (put(th.zeros(2, 3, device="meta"), "tensor"), "tensor must be"),
        (put(th.zeros(2, 3).to_sparse(), "tensor"), "tensor must be"),
        (put(3, "tensor"), "tensor must be of type Tensor, got 3"),
        (put({}, "list"), "list must be of type list"),
        (put("1", "whole"), "whole must be of type int, got '1'"),
        (put(1, "more"), "must have the keys tensor, list, any, whole, part, got the keys"),
        (lambda content: content.pop("whole"), "must have the keys"),
    ],
)
def test_check_compares_types_keys_and_shapes(change: Callable[[Any], Any], words: str):
    saved = {"tensor": th.ones(2, 3), "list": [1, 2], "any": {1: 2}, "whole": 7, "part": 1}
    checkpoint.check("content", saved, LIKE)
    change(saved)
    with pytest.raises(CheckpointError, match=re.escape(words)):
        checkpoint.check("content", saved, LIKE)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (in_games("player", 7), "game 2: player must be from 0 to 1"),
        (in_games("pieces", 100), "game 2: pieces must be"),
        (put(th.zeros(64, dtype=th.uint8), "state"), "state must be ('torch.uint8', (512,)"),
        (put(th.zeros(3), "network", "path.weight"), "network.path.weight must be"),
        (put({"path.weight": th.zeros(3)}, "pool", 0), "pool.0 must have the keys"),
        (lambda c: c["optimizer"].pop(0), "optimizer must have the keys"),
        (put("many", "updates"), "updates must be of type int, got 'many'"),
        (put({"done": 256}, "curve", 0), "missing 6 required"),
        (lambda c: c.pop("starts"), "its content must have the keys"),
        (lambda c: c.pop("settings"), "settings must be of type dict, got None"),
        (put("many", "settings", "games"), "settings.games must be of type int, got 'many'"),
        (put(-3, "settings", "games"), "games must be an integer from 1 to 1000000, got -3"),
        (put(10**9, "settings", "games"), "games must be an integer from 1 to 1000000, got 1000000000"),
        (put(10**9, "settings", "width"), "width must be an integer from 1 to 4096, got 1000000000"),
        (put("slow", "settings", "preset"), "preset must be quick, got 'slow'"),
        (put({"players": 9}, "settings", "rules"), "players must be an integer from 2 to 5, got 9"),
        (put(None, "settings", "rules"), "rules must be a dict with keys among players, "),
        (put(3, "settings", "rules", "players"), "network."),
    ],
)
def test_every_part_of_a_checkpoint_is_validated_before_use(
    tmp_path: Path,
    finished: Path,
    capsys: pytest.CaptureFixture[str],
    change: Callable[[Any], Any],
    words: str,
):
    folder = shutil.copytree(finished, tmp_path / "run")
    change_checkpoint(folder, change)
    message = refusal(folder, capsys)
    assert words in message
    assert "checkpoint.pt cannot be used: " in message
    assert "Restore a copy" in message


def test_permission_errors_are_not_reported_as_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(self: Run) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "opponent.npz")

    monkeypatch.setattr(Run, "pass_milestone", refuse)
    assert command.main(arguments(TINY_SB3, tmp_path / "run")) == 2
    message = capsys.readouterr().err
    assert "opponent.npz" in message
    assert "Fix that, then resume with: " in message


def test_resuming_needs_only_the_checkpoint_file(tmp_path: Path, finished: Path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "config.json").write_text("{")
    (folder / "curve.csv").unlink()
    (folder / f".part-{'1' * 32}-curve.csv").write_text("left behind by a kill")
    Run.resume(Run.read_settings(folder))
    assert (folder / "curve.csv").read_bytes() == (finished / "curve.csv").read_bytes()
    assert json.loads((folder / "config.json").read_text())["settings"]["width"] == TINY_SB3.width
    assert not list(folder.glob(".part*"))


@pytest.mark.slow
def test_a_damaged_checkpoint_is_always_refused(tmp_path: Path, finished: Path):
    data, rng = (finished / "checkpoint.pt").read_bytes(), np.random.default_rng(0)
    for i in range(1000):
        damaged, at = bytearray(data), rng.integers(len(data))
        if i % 3 == 0:
            damaged[at] ^= 1 << rng.integers(8)
        elif i % 3 == 1:
            damaged[at : at + 512] = bytes(byte ^ 0x55 for byte in damaged[at : at + 512])
        else:
            damaged = damaged[:at]
        (tmp_path / "checkpoint.pt").write_bytes(damaged)
        with pytest.raises(CheckpointError) as error:
            checkpoint.load(tmp_path / "checkpoint.pt")
        assert "\n" not in str(error.value)


def test_a_second_training_run_in_a_folder_is_refused(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
):
    folder = shutil.copytree(finished, tmp_path / "run")
    with runs.locked(folder):
        assert "another training run uses" in refusal(folder, capsys)
    empty = tmp_path / "new"
    empty.mkdir()
    unfinished = f"{files.PART}checkpoint"  # written by the training that holds the lock
    (empty / unfinished).touch()
    with runs.locked(empty):
        assert command.main(arguments(TINY_SB3, empty)) == 2
        assert "another training run uses" in capsys.readouterr().err
    assert contents(empty) == {".lock": b"", unfinished: b""}
    assert command.main(["--resume", str(folder)]) == 0


def test_rules_width_and_folder_cannot_change_on_resume(finished: Path, capsys: pytest.CaptureFixture[str]):
    assert "rules cannot change when the run in" in refusal(finished, capsys, "--players", "3")
    message = refusal(finished, capsys, "--width", "9")
    assert f"width cannot change when the run in {finished} is resumed: it is 8" in message
    other = finished.parent / "other"
    assert "folder cannot change when the run in" in refusal(finished, capsys, "--folder", str(other))
    assert not other.exists()


def test_a_failed_resume_keeps_the_results_of_the_run(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
):
    folder = shutil.copytree(finished, tmp_path / "run")
    for name in runs.OF_THE_END:
        (folder / name).write_text("{}")
    before = contents(folder)
    with no_room(0):
        code = command.main(["--resume", str(folder), "--updates", "16"])
    assert code == 1
    assert "checkpoint.pt" in capsys.readouterr().err
    assert contents(folder) | {".lock": b""} == before | {".lock": b""}


@pytest.mark.parametrize("size", [0, 1000])
def test_a_run_can_start_again_after_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
):
    with no_room(size):
        code = command.main(arguments(TINY_SB3, tmp_path))
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert str(tmp_path / "checkpoint.pt") in message
    assert contents(tmp_path) == {".lock": b""}
    runs.make_folder(tmp_path)


def test_a_run_can_be_resumed_after_a_full_disk(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    folder, whole = shutil.copytree(finished, tmp_path / "run"), shutil.copytree(finished, tmp_path / "whole")
    longer = ("--updates", "2", "--milestones", "2")
    write_config, size = Run.write_config, (folder / "checkpoint.pt").stat().st_size // 2
    resource = pytest.importorskip("resource")

    def fill(run: Run) -> None:  # the last step of resuming a run
        write_config(run)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

    with no_room(2**30), monkeypatch.context() as patch:
        patch.setattr(Run, "write_config", fill)
        code = command.main(["--resume", str(folder), *longer])
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert message.count("\n") == 1
    assert "File too large" in message
    assert f"The last checkpoint in {folder} is intact" in message
    assert not list(folder.glob(".part*"))

    before = contents(folder)
    with no_room(size):  # the disk is still full
        code = command.main(["--resume", str(folder)])
    assert code == 1
    assert str(folder / "checkpoint.pt") in capsys.readouterr().err
    assert contents(folder) == before

    for each in (folder, whole):
        assert command.main(["--resume", str(each), *longer]) == 0
    assert same(*(Run.resume(Run.read_settings(each)) for each in (folder, whole)))


@pytest.mark.slow
def test_killed_or_restarted_training_runs_learn_the_same_weights(tmp_path: Path):
    pytest.importorskip("fcntl")  # missing on systems without fork
    command = [sys.executable, "-m", "tests.helpers.training_kills", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["kills"] >= 100
    assert not result["wrong"]
