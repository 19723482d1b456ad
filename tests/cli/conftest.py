"""Commands run in an empty folder."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def temporary_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
