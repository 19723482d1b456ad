"""Grades for decisions: exact ones of the two-player basic game, estimates of all other games.

The *equity* of an action is the result to expect (1 a win, -1 a loss) for the seat to act if both play perfectly from
there on; the *regret* of an action is what it gives away against the best one. Regrets add up: a
policy's mean result is the value of the start to it, less the regrets of its game, plus those of its opponent's.
"""

from __future__ import annotations

from wotd_env.analysis.advice import Advisor
from wotd_env.analysis.equity import BLUNDER, ERROR, KINDS, Analysis, analyze, kinds, regret
from wotd_env.analysis.grading import STAGES, WORST, Blunder, Grade, Grades, grade
from wotd_env.analysis.pictures import picture
from wotd_env.analysis.recorded import Note, Review, SeatReview, annotate, review

__all__ = [
    "BLUNDER",
    "ERROR",
    "KINDS",
    "STAGES",
    "WORST",
    "Advisor",
    "Analysis",
    "Blunder",
    "Grade",
    "Grades",
    "Note",
    "Review",
    "SeatReview",
    "analyze",
    "annotate",
    "grade",
    "kinds",
    "picture",
    "regret",
    "review",
]
