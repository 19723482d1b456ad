"""Reviews of recorded games: grades of the decisions and the luck of the dice."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis.equity import BLUNDER, ERROR, KINDS, Advisor, Analysis, classify, kinds, regret_of
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS
from wotd_env.core.rules import REROLLS, Phase
from wotd_env.core.state import States
from wotd_env.core.words import show_dice
from wotd_env.notation import RecordedGame


class Note(NamedTuple):
    """A graded decision of a recorded game."""

    number: int  #: index of the decision in `RecordedGame.actions`
    turn: int
    seat: int
    kind: str
    dice: str
    action: int
    equity: float  #: equity of the state for the seat to act
    regret: float
    margin: float  #: equity of the best action minus that of the second best one
    best: int
    words: str  #: the action in words, with the destinations of pieces
    best_words: str

    def __str__(self) -> str:
        where = f"turn {self.turn + 1}, seat {SEATS[self.seat]}, {self.dice}, equity {self.equity:+.3f}"
        mark = classify(self.regret)
        graded = f"\n  {mark}: regret {1000 * self.regret:.0f} thousandths, best: {self.best_words}"
        return f"{where}: {self.words}{graded if mark else ''}"


class SeatReview(NamedTuple):
    """The errors and the luck of a seat."""

    decisions: int  #: number of decisions with more than one legal action
    regret: float  #: sum of the regrets of all decisions
    errors: int  #: number of decisions with a regret of at least ERROR, including blunders
    blunders: int  #: number of decisions with a regret of at least BLUNDER
    luck: float  #: change of this seat's expected reward, summed over the rolls of all seats
    result: float  #: the reward of the seat; 0 in an unfinished game


class Review(NamedTuple):
    """The review of a recorded game with T decisions.

    The luck of a roll is the equity after this roll minus the mean equity after all possible rolls. Both are equities
    of the seat to act.
    """

    source: str  #: the source of the equities, in words
    exact: bool
    notes: list[Note]  #: a note for every decision with more than one legal action
    luck: NDArray[np.float32]  #: (T + 1,): luck of the roll just before each position, 0 if there was no roll
    seats: list[SeatReview]


def review(recorded: RecordedGame, advisor: Advisor | None = None) -> Review:
    """Review a recorded game: grade decisions with more than one legal action, and measure the luck of every roll.

    Args:
        recorded: the game, which may be unfinished.
        advisor: the source of the equities, for the rules of this game; by default a new `Advisor`.

    Raises:
        IllegalActionError: if an action of the game is illegal.
        ValueError: if a state of the game is invalid under its rules.
    """
    game = recorded.check()
    advisor = Advisor(game) if advisor is None else advisor
    decided = recorded.states[:-1]
    asked = np.flatnonzero(game.legal_actions(decided).sum(1) > 1)
    rolled, before = _rolls(game, recorded)
    after = recorded.states[rolled]
    # The advisor may change its source between two calls, so one call computes all equities.
    equity, actions, best = advisor.analyze(np.concatenate([recorded.states[asked], before, after]))
    count, states, chosen = len(asked), decided[asked], recorded.actions[asked]
    regret = regret_of(Analysis(equity[:count], actions[:count], best[:count]), chosen)
    best_two = np.sort(actions[:count], 1)[:, -2:]
    kind, notes = kinds(game, states), []
    for i, action in enumerate(chosen.tolist()):
        state, better = states[i : i + 1], int(best[i])
        notes.append(
            Note(
                number=int(asked[i]),
                turn=int(state["turn"][0]),
                seat=int(state["player"][0]),
                kind=KINDS[int(kind[i])],
                dice=show_dice(state["dice"][0]),
                action=action,
                equity=float(equity[i]),
                regret=float(regret[i]),
                margin=float(best_two[i, 1] - best_two[i, 0]),
                best=better,
                words=game.describe_action(state, action),
                best_words=game.describe_action(state, better),
            )
        )
    was, became = equity[count:].reshape(2, len(rolled))
    luck = np.zeros(len(recorded.states), np.float32)
    luck[rolled] = became - was

    players, seats = recorded.rules.players, []
    for seat, result in enumerate(game.rewards(recorded.states[-1:])[0].tolist()):
        own = [note for note in notes if note.seat == seat]
        mine = after["player"] == seat  # zero-sum: the other seats share the opposite change equally
        seats.append(
            SeatReview(
                decisions=len(own),
                regret=sum(note.regret for note in own),
                errors=sum(note.regret >= ERROR for note in own),
                blunders=sum(note.regret >= BLUNDER for note in own),
                luck=float(np.where(mine, became - was, (was - became) / (players - 1)).sum()),
                result=result,
            )
        )
    return Review(advisor.source, advisor.exact, notes, luck, seats)


def _rolls(game: Game, recorded: RecordedGame) -> tuple[NDArray[np.int64], States]:
    """Return the indices of the positions just after a roll, (M,), and the states before these rolls, STATE (M,)."""
    before = np.concatenate([recorded.states[:1], recorded.states[:-1]])
    game.decide(before[1:], recorded.actions)
    first = before[0]
    if first["phase"] == Phase.KEEP and first["rolls_left"] == REROLLS:  # the first position follows a roll
        first["phase"], first["dice"] = Phase.CHANCE, -1
    rolled = np.flatnonzero((before["phase"] == Phase.CHANCE) & (recorded.states["phase"] != Phase.CHANCE))
    return rolled, before[rolled]
