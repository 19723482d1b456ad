"""What positions and decisions are worth, as JSON: help in the game, and the review after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis import BLUNDER, ERROR, classify, review
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.notation import RecordedGame
from wotd_env.web import views
from wotd_env.web.agents import advisor_of, game_of

__all__ = ["Advised", "advise", "chances", "hints", "replay", "roll_off_of"]

_HINTS = 2


class Advised(NamedTuple):
    """What a position is worth to the seat to act."""

    equity: float
    actions: NDArray[np.float32]
    """(A,): the equity of every action, -inf if it is not legal"""
    source: str
    """what the equities come from, in words"""
    exact: bool
    """whether that is the exact solution"""


def advise(game: Game, states: States) -> list[Advised]:
    """Return what positions, STATE (N,), are worth."""
    advisor = advisor_of(game.rules)
    equity, actions, _ = advisor.analyze(states)
    return [
        Advised(float(one), each, advisor.source, advisor.exact)
        for one, each in zip(equity, actions, strict=True)
    ]


def chances(game: Game, state: States, equity: float, before: Sequence[float]) -> list[float]:
    """Return every seat's chance to win; shared victories count in shares.

    Equities are those of the seat to act. Of two seats the other has the rest; among more, the others share it as they
    stood before.

    Args:
        game: the rules.
        state: STATE (1,).
        equity: of the seat to act.
        before: the chances at an earlier position.
    """
    n = game.rules.players
    if game.is_over(state)[0]:
        return [(1 + (n - 1) * float(reward)) / n for reward in game.rewards(state)[0]]
    seat = int(state["player"][0])
    own = min(max((1 + (n - 1) * equity) / n, 0.0), 1.0)
    rest = sum(before) - before[seat]
    return [own if k == seat else (1 - own) * (before[k] / rest if rest else 1 / (n - 1)) for k in range(n)]


def even(game: Game) -> list[float]:
    """Return the chances where nothing is known."""
    return [1 / game.rules.players] * game.rules.players


def hints(game: Game, state: States, advised: Advised, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return the best choices, the best first, with what each gives away in chances to win."""
    best = np.argsort(-advised.actions, kind="stable")[:_HINTS]
    scale = (game.rules.players - 1) / game.rules.players
    words = {each["action"]: each["words"] for each in views.choices(game, state, names)}
    return [
        {
            "action": int(action),
            "words": words[int(action)],
            "loss": round(float(advised.actions[best[0]] - advised.actions[action]) * scale, 4),
        }
        for action in best
        if np.isfinite(advised.actions[action])
    ]


def roll_off_of(game: Game, seed: int) -> list[list[list[int] | None]] | None:
    """Return the rolls for the start that follow from a seed: rounds of five faces, None for seats that do not roll."""
    rounds = game.roll_off(seed).tolist()
    return [[dice if min(dice) >= 0 else None for dice in seats] for seats in rounds] or None


def replay(recorded: RecordedGame, graded: bool) -> dict[str, Any]:
    """Return a recorded game, to step through, and with the grades of its decisions if they are wanted."""
    game, names = game_of(recorded.rules), _names(recorded)
    steps = []
    for ply, action in enumerate(recorded.actions.tolist()):
        state, after = recorded.states[ply : ply + 1], recorded.states[ply + 1 : ply + 2]
        forced = bool(game.legal_actions(state)[0].sum() == 1)
        told = views.step(game, state, action, after, names, forced, None)
        steps.append({"ply": ply, **told, "state": views.show(game, state, names)})
    last = recorded.states[-1:]
    shown = {
        "rules": asdict(recorded.rules),
        "rules_words": views.rules_in_words(recorded.rules),
        "players": names,
        "text": str(recorded),
        "roll_off": None if recorded.seed is None else roll_off_of(game, recorded.seed),
        "graded": graded,
        "steps": steps,
        "last": views.show(game, last, names),
        "result": views.result(game, last, names),
    }
    return shown | _grades(game, recorded, names, steps) if graded else shown


def _names(recorded: RecordedGame) -> list[str]:
    """Return the names of the players, as far as they can be shown."""
    seats = enumerate(recorded.players)
    return [
        name if name.isprintable() and name.strip("? ") else f"Player {views.SEATS[seat]}"
        for seat, name in seats
    ]


def _grades(
    game: Game, recorded: RecordedGame, names: Sequence[str], steps: list[dict[str, Any]]
) -> dict[str, Any]:
    """Add to each step what it gave away, and return what there is to say of the whole game."""
    advisor = advisor_of(recorded.rules)
    reviewed = review(recorded, advisor)
    notes = {note.number: note for note in reviewed.notes}
    stood = even(game)
    for ply, step in enumerate(steps):
        state, note = recorded.states[ply : ply + 1], notes.get(ply)
        luck = float(reviewed.luck[ply])
        step["luck"] = round(luck, 4) if luck else None
        if note is None:
            step |= {"best": None, "best_words": None, "best_notation": None, "regret": None, "class": ""}
        else:
            stood = chances(game, state, note.equity, stood)
            best = views.step(game, state, note.best, state, names, False, None)
            step |= {
                "best": note.best,
                "best_words": best["words"],
                "best_notation": best["notation"],
                "regret": round(note.regret, 4),
                "class": classify(note.regret),
            }
        step["chances"] = [round(chance, 4) for chance in stood]
    last = recorded.states[-1:]
    over = last["phase"][0] == Phase.OVER
    stood = chances(game, last, 0.0 if over else float(advisor.analyze(last).equity[0]), stood)
    seats = [
        {
            "seat": number,
            "name": names[number],
            "decisions": seat.decisions,
            "errors": seat.errors,
            "blunders": seat.blunders,
            "regret": round(seat.regret, 4),
            "luck": round(seat.luck, 4),
            "result": seat.result if over else None,
            "luck_adjusted": round(seat.result - seat.luck, 4) if over else None,
        }
        for number, seat in enumerate(reviewed.seats)
    ]
    return {
        "source": reviewed.source,
        "exact": reviewed.exact,
        "error": ERROR,
        "blunder": BLUNDER,
        "last_chances": [round(chance, 4) for chance in stood],
        "seats": seats,
    }
