"""Positions of the smallest board, drawn once."""

import pytest

from wotd_env import benchmark


@pytest.fixture(scope="session")
def drawn(table, tmp_path_factory):
    """Return a file of positions and its positions."""
    file = tmp_path_factory.mktemp("positions") / "test.parquet"
    return file, benchmark.draw(table, file, size=4)
