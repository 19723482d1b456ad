"""Recorded games: the grades of their decisions, and the luck of their dice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis.advice import Advisor
from wotd_env.analysis.equity import BLUNDER, ERROR, KINDS, Analysis, analyze, kinds, lost
from wotd_env.core.game import Game
from wotd_env.core.rules import REROLLS, Phase
from wotd_env.core.state import States
from wotd_env.core.words import show_dice
from wotd_env.notation import RecordedGame
from wotd_env.solver import Table
from wotd_env.solver.table import check_table

__all__ = ["Note", "Review", "SeatReview", "annotate", "review"]


class Note(NamedTuple):
    """A decision of a recorded game with its grade."""

    number: int
    """of the decision in `RecordedGame.actions`"""
    turn: int
    seat: int
    kind: str
    dice: str
    action: int
    equity: float
    """of the state, for the seat to act"""
    regret: float
    best: int
    words: str
    """what the action does, with the spaces that pieces go to"""
    best_words: str
    """the same of the best action"""

    def __str__(self) -> str:
        told = f"turn {self.turn + 1}, seat {self.seat}, {self.dice}: {self.words} ({self.equity:+.3f})"
        if self.regret < ERROR:
            return told
        mark = "blunder" if self.regret >= BLUNDER else "error"
        return f"{told}  {mark}: -{self.regret:.3f}, best: {self.best_words}"


class SeatReview(NamedTuple):
    """How a seat played, and how lucky it was."""

    decisions: int
    """that were not forced"""
    regret: float
    """of all decisions together"""
    errors: int
    """decisions that gave away at least ERROR, blunders left out"""
    blunders: int
    """decisions that gave away at least BLUNDER"""
    luck: float
    """what the dice changed in the result to expect, over all rolls of all seats"""
    result: float
    """the reward; 0 in a game that goes on"""


class Review(NamedTuple):
    """A recorded game, T decisions long, with all that there is to say about it."""

    source: str
    """what the equities come from, in words"""
    exact: bool
    """whether that is the exact solution"""
    notes: list[Note]
    """a note for every decision that was not forced"""
    luck: NDArray[np.float32]
    """(T + 1,): of the roll that led to each position, for the seat that rolled; 0 where none did. It is what the
    position is worth after the roll, less the mean over all that could have been rolled."""
    seats: list[SeatReview]


def annotate(recorded: RecordedGame, table: Table) -> list[Note]:
    """Grade every decision of a recorded game that was not forced.

    Raises:
        TypeError, ValueError: as `analyze` does.
        IllegalActionError: if an action of the game is not legal.
    """
    check_table(table)
    game = Game(recorded.rules, skip_forced=False)
    asked = _asked(game, recorded)
    return _notes(game, recorded, asked, analyze(game, recorded.states[asked], table))


def review(recorded: RecordedGame, advisor: Advisor | None = None) -> Review:
    """Grade every decision of a recorded game that was not forced, and measure the luck of every roll.

    Args:
        recorded: the game, which may be unfinished.
        advisor: for the rules of the game; by default a new one.

    Raises:
        IllegalActionError: if an action of the game is not legal.
        ValueError: for records that are no games of the rules.
    """
    game = Game(recorded.rules, skip_forced=False)
    advisor = Advisor(game) if advisor is None else advisor
    asked = _asked(game, recorded)
    rolled, before = _rolls(game, recorded)
    after = recorded.states[rolled]
    # In one call, so that all is by the same source.
    equity, actions, best = advisor.analyze(np.concatenate([recorded.states[asked], before, after]))
    count = len(asked)
    notes = _notes(game, recorded, asked, Analysis(equity[:count], actions[:count], best[:count]))
    was, became = equity[count:].reshape(2, len(rolled))
    luck = np.zeros(len(recorded.states), np.float32)
    luck[rolled] = became - was

    players = recorded.rules.players
    results = game.rewards(recorded.states[-1:])[0]
    seats = []
    for seat in range(players):
        own = [note for note in notes if note.seat == seat]
        mine = after["player"] == seat  # a roll is good for one seat, and bad for the others in equal shares
        seats.append(
            SeatReview(
                decisions=len(own),
                regret=sum(note.regret for note in own),
                errors=sum(ERROR <= note.regret < BLUNDER for note in own),
                blunders=sum(note.regret >= BLUNDER for note in own),
                luck=float(np.where(mine, became - was, (was - became) / (players - 1)).sum()),
                result=float(results[seat]),
            )
        )
    return Review(advisor.source, advisor.exact, notes, luck, seats)


def _asked(game: Game, recorded: RecordedGame) -> NDArray[np.int64]:
    """Return the numbers of the decisions that were not forced."""
    states = recorded.states[:-1]
    game.check(states, recorded.actions)
    return np.flatnonzero(game.legal_actions(states).sum(1) > 1)


def _rolls(game: Game, recorded: RecordedGame) -> tuple[NDArray[np.int64], States]:
    """Return the numbers of the positions that a roll led to, (M,), and the states before it, STATE (M,)."""
    before = recorded.states.copy()
    decided = recorded.states[:-1].copy()
    game.decide(decided, recorded.actions)
    before[1:] = decided
    first = before[0]
    if first["phase"] == Phase.KEEP and first["rolls_left"] == REROLLS:  # the beginning of a turn
        first["phase"], first["dice"] = Phase.CHANCE, -1
    due = (before["phase"] == Phase.CHANCE) & (recorded.states["phase"] != Phase.CHANCE)
    rolled = np.flatnonzero(due)
    return rolled, before[rolled]


def _notes(game: Game, recorded: RecordedGame, asked: NDArray[np.int64], analysis: Analysis) -> list[Note]:
    """Return the notes on decisions, given by their numbers (M,), with the analysis of the positions."""
    states, actions = recorded.states[asked], recorded.actions[asked]
    regret, kind = lost(analysis, actions), kinds(game, states)
    notes = []
    for i, action in enumerate(actions.tolist()):
        state, best = states[i : i + 1], int(analysis.best[i])
        notes.append(
            Note(
                number=int(asked[i]),
                turn=int(state["turn"][0]),
                seat=int(state["player"][0]),
                kind=KINDS[int(kind[i])],
                dice=show_dice(state["dice"][0]),
                action=action,
                equity=float(analysis.equity[i]),
                regret=float(regret[i]),
                best=best,
                words=game.describe_action(state, action),
                best_words=game.describe_action(state, best),
            )
        )
    return notes
