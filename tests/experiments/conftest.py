"""Shared by the tests of the experiments."""

from tests.agents.conftest import skip_solving as skip_solving
