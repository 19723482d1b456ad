"""Shared by the tests of the learners."""

import pytest

from agents import evaluate


@pytest.fixture(autouse=True)
def nothing_is_solved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards are not solved at the end of a training run, because that takes seconds."""
    monkeypatch.setattr(evaluate, "SMALL", -1)
