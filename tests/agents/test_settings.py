"""Settings in a checkpoint do not run code without consent."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from agents import checkpoint, command, ppo, sb3
from agents.runs import LEARNERS
from agents.settings import NamesNoCode, kept, names_code


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a module that an attacker has placed on the import path."""
    name = "planted_by_an_attacker"
    (tmp_path / f"{name}.py").write_text("from wotd_env.policies.planner import Planner as go\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, name, raising=False)
    return name


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_setting_in_a_checkpoint_runs_code_without_consent(
    learner: str,
    evil: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    kind = importlib.import_module(LEARNERS[learner]).Settings
    hints = get_type_hints(kind, include_extras=True)
    usual = kept(kind())
    names = [name for name, value in usual.items() if not isinstance(value, int | float | dict)]
    assert {name for name, hint in hints.items() if hint is str} <= set(names)
    for i, (name, value) in enumerate(
        (name, value) for name in names for value in (f"{evil}:go", f"deep:{evil}:go")
    ):
        folder = tmp_path / str(i)
        folder.mkdir()
        content = {"learner": learner, "settings": usual | {name: value}}
        checkpoint.save(folder / "checkpoint.pt", content)
        assert command.main(["--resume", str(folder)]) == 2
        message = capsys.readouterr().err
        assert evil not in sys.modules, (name, value)
        if hints[name] is str:
            assert f"names code that would be run: --{name} {value}" in message


def test_code_that_the_user_names_explicitly_is_run(
    evil: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    settings = kept(ppo.Settings()) | {"critic": f"{evil}:go"}
    checkpoint.save(tmp_path / "checkpoint.pt", {"learner": "ppo", "settings": settings})
    assert command.main(["--resume", str(tmp_path), "--critic", f"{evil}:go"]) == 2
    # This checkpoint contains only settings.
    assert "its content must have the keys" in capsys.readouterr().err
    assert evil in sys.modules


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("auto", False),
        ("td", False),
        ("td:value.npz", False),
        ("deep:td:value.npz", False),
        ("os:abort", True),
        ("deep:os:abort", True),
        (["td", "os:abort"], True),
        (None, False),
        (3, False),
    ],
)
def test_names_code_detects_import_paths(value: Any, code: bool):
    assert names_code(value) == code


def test_the_device_setting_is_declared_to_name_no_code():
    assert get_type_hints(sb3.Settings, include_extras=True)["device"] == NamesNoCode
