"""Recorded games, annotated with the grades of their decisions."""

from __future__ import annotations

from typing import NamedTuple

from wotd_env.analysis.equity import BLUNDER, ERROR, KINDS, analyze, kinds, lost
from wotd_env.core.game import Game, show_dice
from wotd_env.core.notation import RecordedGame
from wotd_env.solver import Table
from wotd_env.solver.table import check_table

__all__ = ["Note", "annotate"]


class Note(NamedTuple):
    """A decision of a recorded game with its grade."""

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


def annotate(recorded: RecordedGame, table: Table) -> list[Note]:
    """Grade every decision of a recorded game that was not forced.

    Raises:
        TypeError, ValueError: as `analyze` does.
        IllegalActionError: if an action of the game is not legal.
    """
    check_table(table)
    game = Game(recorded.rules)
    states = recorded.states[:-1]
    game.check(states, recorded.actions)
    asked = game.legal_actions(states).sum(1) > 1
    states, actions = states[asked], recorded.actions[asked]
    analysis = analyze(game, states, table)
    regret, kind = lost(analysis, actions), kinds(game, states)
    notes = []
    for i, action in enumerate(actions.tolist()):
        state, best = states[i : i + 1], int(analysis.best[i])
        notes.append(
            Note(
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
