"""The stored transcripts are what the game plays today."""

from __future__ import annotations

import pytest

from tests.core.playthroughs import FOLDER, PLAYTHROUGHS, text


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_playthrough(name: str) -> None:
    stored = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text(name) == stored, "if the change is meant: python tests/core/playthroughs.py --regenerate"


def test_every_transcript_is_played() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PLAYTHROUGHS)
