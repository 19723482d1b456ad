"""Recorded games: written, read, and annotated with the grades of their decisions."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wotd_env.analysis.equity import BLUNDER, ERROR, KINDS, analyze, kinds, lost
from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game, IllegalActionError, show_dice
from wotd_env.core.rules import Phase, Rules
from wotd_env.solver import Table
from wotd_env.solver.table import check_table

__all__ = ["Note", "annotate", "read_game", "write_game"]


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


def write_game(file: str | Path, rules: Rules, seed: int, actions: ArrayLike) -> None:
    """Record a game: its rules, the seed of its `Game.reset`, and the actions of both seats, as JSON."""
    content = {"rules": asdict(rules), "seed": int(seed), "actions": np.asarray(actions).tolist()}
    Path(file).write_text(json.dumps(content) + "\n")


def read_game(file: str | Path) -> tuple[Rules, int, list[int]]:
    """Return the rules, seed and actions of a recorded game.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no record of a game.
    """
    try:
        content = json.loads(Path(file).read_text())
        rules, seed = Rules.from_dict(content["rules"]), check_integer("seed", content["seed"], 0, 2**64 - 1)
        last = num_actions(rules.players) - 1
        return rules, seed, [check_integer("action", action, 0, last) for action in content["actions"]]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ValueError(
            f"{file} must be a recorded game, JSON with rules, seed and actions, got: {error}"
        ) from error


def annotate(file: str | Path, table: Table) -> list[Note]:
    """Grade every decision of a recorded game.

    Raises:
        FileNotFoundError, TypeError, ValueError: as `read_game` and `analyze` do, or if an action is not legal.
    """
    check_table(table)
    rules, seed, actions = read_game(file)
    game = Game(rules)
    state = game.reset(1, seed=seed)
    notes = []
    for number, action in enumerate(actions):
        if state["phase"][0] == Phase.OVER:
            raise ValueError(f"{file}: the game is over after {number} actions, but has {len(actions)}")
        before = state.copy()
        try:
            game.step(state, [action])
        except IllegalActionError as error:
            raise ValueError(f"{file}: action {number}: {error}") from error
        analysis = analyze(game, before, table)
        best = int(analysis.best[0])
        notes.append(
            Note(
                turn=int(before["turn"][0]),
                seat=int(before["player"][0]),
                kind=KINDS[int(kinds(game, before)[0])],
                dice=show_dice(before["dice"][0]),
                action=action,
                equity=float(analysis.equity[0]),
                regret=float(lost(analysis, np.array([action]))[0]),
                best=best,
                words=game.describe_action(before, action),
                best_words=game.describe_action(before, best),
            )
        )
    return notes
