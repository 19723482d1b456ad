"""Grades of decisions: exact in solved games of two players, estimated in all other games.

The *equity* of an action is the expected reward of the seat to act if all seats play perfectly after the action. The
reward of a win is 1. With two players, the reward of a loss is -1. The *regret* of an action is the equity of the best
action minus the equity of this action. The *total regret* of a policy is the sum of its regrets in a game. With two
players, the regrets explain the mean reward of a policy:

    mean reward = equity at the start + mean total regret of the opponent - mean total regret of the policy
"""

from wotd_env.analysis.equity import (
    BLUNDER,
    ERROR,
    KINDS,
    Advisor,
    Analysis,
    analyze,
    classify,
    define_errors,
    kinds,
    kinds_of,
    regret,
)
from wotd_env.analysis.grading import TENTHS, WORST, Blunder, Grade, Grades, grade, picture
from wotd_env.analysis.recorded import Note, Review, SeatReview, review

__all__ = [
    "BLUNDER", "ERROR", "KINDS", "TENTHS", "WORST", "Advisor", "Analysis", "Blunder", "Grade", "Grades",
    "Note", "Review", "SeatReview", "analyze", "classify", "define_errors", "grade", "kinds", "kinds_of",
    "picture", "regret", "review",
]  # fmt: skip
