"""Grades for decisions: exact for solved games of two players, estimates for all other games.

The *equity* of an action is the expected reward of the seat to act under perfect play after it: 1 is a win, -1 a loss.
The *regret* of an action is the equity of the best action minus its own equity. Regrets add up: with two players,
the mean result of a policy is the value of the start, minus its own total regret, plus its opponent's total regret.
"""

from __future__ import annotations

from wotd_env.analysis.advice import Advisor
from wotd_env.analysis.equity import (
    BLUNDER,
    ERROR,
    KINDS,
    Analysis,
    analyze,
    classify,
    define_errors,
    kinds,
    kinds_of,
    regret,
)
from wotd_env.analysis.grading import STAGES, WORST, Blunder, Grade, Grades, grade, picture
from wotd_env.analysis.recorded import Note, Review, SeatReview, review

__all__ = [
    "BLUNDER", "ERROR", "KINDS", "STAGES", "WORST", "Advisor", "Analysis", "Blunder", "Grade", "Grades",
    "Note", "Review", "SeatReview", "analyze", "classify", "define_errors", "grade", "kinds", "kinds_of",
    "picture", "regret", "review",
]  # fmt: skip
