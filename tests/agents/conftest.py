"""Fixtures shared by the tests of the learners."""

import pytest

from agents import evaluate


@pytest.fixture(autouse=True)
def skip_solving(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip solving boards at the end of a training run, which takes seconds."""
    monkeypatch.setattr(evaluate, "SMALL", -1)
