"""Notation: positions as lines, decisions as short words, games as text (docs/reference/notation.md).

The text of an unfinished game:

    [Position "A......|...../.......|...../.......|...../.......|...../.......|..... wf(meo) 1 A keep 2 wfmmd"]
    [Seed "7"]
    [A "planner"]
    [B "greedy"]
    [Result "*"]
    [Points "0-0"]

    1. A [wfmmd] mm [mmmeo] mmm [wmmme] m3
    2. B [wweod]
"""

from wotd_env.core.position import parse_position, position
from wotd_env.notation.games import RecordedGame, parse_game, read_game, record_game, write_game
from wotd_env.notation.words import action_text, legal_words, parse_action

__all__ = [
    "RecordedGame", "action_text", "legal_words", "parse_action", "parse_game", "parse_position", "position",
    "read_game", "record_game", "write_game",
]  # fmt: skip
