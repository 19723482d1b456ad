"""Fixtures shared by the tests of the learners."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents import ppo, sb3
from wotd_env.policies import oracle


@pytest.fixture(autouse=True)
def no_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip the grades at the end of a training run: there is no table, and none is solved, which takes seconds."""
    monkeypatch.setattr(oracle, "cache_file", lambda rules: tmp_path / "no table")
    monkeypatch.setattr(oracle, "AT_ONCE", -1)


@pytest.fixture(autouse=True, scope="package")
def skip_export() -> Iterator[None]:
    """Write a stand-in for `model.onnx` at the end of a training run; the exporter takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (ppo, sb3):
            patch.setattr(module, "to_onnx", lambda network: b"a network")
        yield
