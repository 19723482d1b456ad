"""Fixtures for tests of the server. Late imports let test modules skip themselves without the extra `web`."""

from collections.abc import Iterator

import httpx
import pytest


@pytest.fixture(autouse=True)
def dice(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Derive the dice of each test from its name."""
    from tests.helpers.server import dice_of
    from wotd_env.web.tables import Tables

    monkeypatch.setattr(Tables, "random", staticmethod(dice_of(request.node.name)))


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A client of a server with patient limits."""
    from tests.helpers.server import running

    with running(tmp_path_factory.mktemp("tables") / "tables.sqlite") as client:
        yield client
