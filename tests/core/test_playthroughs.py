"""Games match their stored transcripts."""

import pytest

from tests.core.playthroughs import FOLDER, PLAYTHROUGHS, text


@pytest.mark.parametrize("name", PLAYTHROUGHS)
def test_games_match_the_stored_transcripts(name: str) -> None:
    stored = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text(name) == stored, "if the change is intended: python tests/core/playthroughs.py --regenerate"


def test_every_stored_transcript_belongs_to_a_playthrough() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(PLAYTHROUGHS)
