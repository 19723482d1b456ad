"""No name from a file runs code of others without consent, in whatever form it is written."""

import sys
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wotd_env import Rules, make_policy, models, recording
from wotd_env.cli import WRONG_USE, app
from wotd_env.policies import runs_code

CODE = [
    "stranger:x",
    "stranger:x.y",
    "deep:stranger:x",
    "deep:deep:stranger:x",
    f"{'deep:' * 50}stranger:x",
    "Deep:stranger:x",
    "DEEP:stranger:x",
    " deep:stranger:x",
    "deep: stranger:x",
    "deep:\tstranger:x",
    "deep:./stranger:x",
    "deep:\u017ftranger:x",
    "\uff44eep:stranger:x",
    "package.stranger:x",
    "deep:package.stranger:x",
    "stranger :x",
    "no_such_module:x",
    "sb3:model.zip",
    "sb3:compact:model.zip",
    "deep:sb3:model.zip",
]
DATA = [
    "td", "deep", "deep:td", "deep:planner", "mcts:5", "oracle:0.wotd", "onnx:stranger:x", "td:stranger:x",
    "deep:td:stranger:x", "deep:run", "run", "run/", "./run", "mcts:stranger:x", "planner:stranger:x", "stranger", "?",
    "", ":", "stranger:", "odd:x", "deep:odd:x", "deep:run:x", "deep:value.npz", "file:x/..", "a\0b", "\ud800",
]  # fmt: skip
"""Names of folders and files of data, and names of no policy; `odd:x` and `deep:run:x` are run folders."""


@pytest.fixture(autouse=True)
def planted(tmp_path, monkeypatch):
    """Make a folder with modules and with run folders the current folder, and find modules in it."""
    for folder in ("package", "file:x", "stranger:x.folder"):
        (tmp_path / folder).mkdir()
    for file in ("stranger.py", "package/stranger.py", "\u017ftranger.py"):
        (tmp_path / file).write_text("from wotd_env.policies.planner import Planner as x\n")
    value = models.find("td", Rules()).read_bytes()
    for folder in ("run", "odd:x", "deep:run:x"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "value.npz").write_bytes(value)
    (tmp_path / "value.npz").write_bytes(value)
    (tmp_path / "model.zip").write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)
    yield
    for module in set(sys.modules) - before:
        if "tranger" in module or module == "package":
            del sys.modules[module]


def code_ran() -> bool:
    return any("tranger" in module for module in sys.modules)


@pytest.mark.parametrize("name", CODE, ids=ascii)
def test_names_that_can_run_code_need_consent(name):
    assert runs_code(name)


@pytest.mark.parametrize("name", DATA, ids=ascii)
def test_names_that_need_no_consent_run_no_code(name):
    assert not runs_code(name)
    with suppress(ValueError, OSError):
        make_policy(name)
    assert not code_ran()


def test_the_planted_module_runs_without_protection():
    make_policy("deep:stranger:x")
    assert code_ran()


def test_deep_of_deep_is_refused_before_it_runs_code():
    with pytest.raises(ValueError, match="needs a policy with a value"):
        make_policy("deep:deep:stranger:x")
    assert not code_ran()


@pytest.mark.parametrize("name", [name for name in CODE if "\t" not in name], ids=ascii)
def test_a_recorded_game_runs_no_code(name):
    position = "|...../|...../|...../|...../|..... wf(meo) 1 A keep 2 wwfmd"
    Path("game.txt").write_text(f'[Position "{position}"]\n[A "me"]\n[B "{name}"]\n', encoding="utf-8")
    result = CliRunner().invoke(app, ["play", "--resume", "game.txt"], input="quit\n")
    assert result.exit_code == WRONG_USE
    assert "needs --trust to run code" in result.stderr
    assert not code_ran()


def test_the_conversion_of_a_recording_runs_no_code(tmp_path, monkeypatch):
    pytest.importorskip("minari")
    from wotd_env.adapters.minari import write

    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "datasets"))
    recording.record(["stranger:x", "first"], "games.parquet", 2, Rules(spaces=0))
    del sys.modules["stranger"]
    with pytest.raises(ValueError, match="names the policy 'stranger:x', which can run code"):
        write("games.parquet", "wotd/first-v0", "first")
    assert not code_ran()
