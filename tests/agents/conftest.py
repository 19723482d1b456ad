"""Fixtures shared by the tests of the learners."""

from collections.abc import Iterator

import pytest

from agents import evaluate, ppo, sb3


@pytest.fixture(autouse=True)
def skip_solving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip solving boards at the end of a training run, which takes seconds."""
    monkeypatch.setattr(evaluate, "SMALL", -1)


@pytest.fixture(autouse=True, scope="package")
def skip_export() -> Iterator[None]:
    """Write a stand-in for `model.onnx` at the end of a training run; the exporter takes seconds."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (ppo, sb3):
            patch.setattr(module, "to_onnx", lambda network: b"a network")
        yield
