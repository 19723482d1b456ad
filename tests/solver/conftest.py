"""Fixtures of solved tables, made once per test session and never changed."""

import pytest

from wotd_env import solver


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session", params=[0, 1])
def table(request, folder):
    return solver.solve(request.param, folder / f"{request.param}.wotd", threads=1)


@pytest.fixture(scope="session")
def whole(folder):
    """Return the table of the smallest board."""
    return solver.solve(0, folder / "whole.wotd")
