"""Fixtures of the tests of the arena."""

from __future__ import annotations

import pytest

from tests.helpers.tournaments import TOURNAMENT
from wotd_env.arena import Results, run


@pytest.fixture(scope="session")
def reference() -> Results:
    """Return the results of a tournament with random policies and several blocks, played in this process."""
    return run(TOURNAMENT)
