"""Fixtures of the arena tests."""

import pytest

from tests.helpers.tournaments import TOURNAMENT
from wotd_env.arena import Results, run


@pytest.fixture(scope="session")
def reference() -> Results:
    """Return the results of `TOURNAMENT`, played in this process."""
    return run(TOURNAMENT)
