"""Grades of a policy: each of its decisions in a sample of games is compared with the best action."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis.equity import BLUNDER, ERROR, analyze, kinds, kinds_of, regret_of
from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game
from wotd_env.core.rules import NUMBERED, PATHS, Rules
from wotd_env.core.state import States
from wotd_env.core.words import show_dice
from wotd_env.extras import needed_for
from wotd_env.files import save_figure
from wotd_env.intervals import margin_of_error, margin_of_ratio
from wotd_env.notation import position
from wotd_env.policies import make_policy
from wotd_env.policy import Policy, check_plays, play_policies
from wotd_env.solver import Table
from wotd_env.solver.table import check_solvable, check_table

TENTHS = 10  #: number of parts of a game; each covers the same share of the total progress of all pieces
WORST = 20  #: maximum number of blunders in `Grades.worst`

BLOCK = 4096


class Grade(NamedTuple):
    """The grade for one kind of decision. A field `X_error` is half the width of the 95 % interval of the field `X`."""

    kind: str
    decisions: int
    regret: float  #: mean regret of a decision
    regret_error: float
    per_game: float  #: total regret of a graded seat in a game, on average
    per_game_error: float
    errors: float  #: share of decisions with a regret of at least ERROR, including blunders
    blunders: float  #: share of decisions with a regret of at least BLUNDER

    @property
    def share_against_perfect(self) -> float:
        """Percentage of games that the policy wins against perfect play, 50 - 50 * `per_game`.

        The formula holds only if the opponent in the graded games was the policy `oracle`, which plays perfectly.
        """
        return 50 - 50 * self.per_game

    @property
    def share_against_perfect_error(self) -> float:
        """Half the width of the 95 % interval of `share_against_perfect`."""
        return 50 * self.per_game_error


class Blunder(NamedTuple):
    """A decision with a regret of at least BLUNDER."""

    regret: float
    state: States  #: STATE (1,): the position before the decision
    action: int
    best: int
    rules: Rules
    game_seed: int
    moves: tuple[int, ...]  #: all earlier actions of both seats in the game

    def __str__(self) -> str:
        game = Game(self.rules)
        action, best = (game.describe_action(self.state, action) for action in (self.action, self.best))
        dice = show_dice(self.state["dice"][0])
        return (
            f"regret {1000 * self.regret:.0f} thousandths with dice {dice}: {action}; best: {best}; "
            f'position: "{position(self.rules, self.state)}"'
        )


@dataclass(frozen=True)
class Grades:
    """A policy's grades."""

    spaces: int  #: number of plain spaces of the board
    games: int
    kinds: tuple[Grade, ...]  #: a grade for each kind of decision, then a grade for all kinds together
    worst: tuple[Blunder, ...]  #: the decisions with the largest regrets, largest regret first
    stages: NDArray[np.float64]  #: (10,): mean regret per decision in each stage, nan for an empty stage
    result: float  #: mean reward of the policy, or of the starting player if the policy played itself
    result_error: float  #: half the width of the 95 % interval of `result`

    @property
    def all(self) -> Grade:
        """The grade for all decisions."""
        return self.kinds[-1]

    def as_dict(self) -> dict[str, Any]:
        """Return the grades for JSON, without the worst decisions; infinite and nan values become None."""
        return {
            "spaces": self.spaces,
            "games": self.games,
            "result": self.result,
            "result_error": _known(self.result_error),
            "kinds": [{name: _known(x) for name, x in grade._asdict().items()} for grade in self.kinds],
            "stages": [_known(mean) for mean in self.stages.tolist()],
        }


def _known(value: Any) -> Any:
    return None if isinstance(value, float) and not np.isfinite(value) else value


def grade(
    policy: str | Policy,
    table: Table,
    games: int = 10_000,
    seed: int = 0,
    *,
    opponent: str | Policy | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Grades:
    """Play games with a policy and grade each of its decisions.

    Args:
        policy: the policy to grade, or its name, see `make_policy`.
        table: the solution of the game.
        games: number of games to play, at most 10,000,000. The policy starts in games 0, 2, 4 and so on.
        seed: game i has the seed `seed + i`.
        opponent: the opponent. By default, the policy plays both seats, and the decisions of both seats are graded.
        progress: function of the number of finished games and the number of all games, called after each batch.

    Raises:
        TypeError: if the table is not a Table.
        ValueError: if the table is for three players, if the number of games, the seed or the name of a policy is
            invalid, or if a policy does not play these rules.
        IllegalActionError: if a policy chooses an illegal action.
    """
    check_solvable(check_table(table).rules)
    players = [make_policy(player) for player in (policy, opponent) if player is not None]
    games = check_integer("games", games, 1, 10_000_000)  # each game takes about 100 bytes of memory
    seed = check_integer("seed", seed, 0, 2**64 - games)
    tally = _Tally(table, players, games, seed)
    for first in range(0, games, BLOCK):
        block = range(first, min(first + BLOCK, games))
        tally.play(block)
        progress(block.stop, games)
    return tally.grades()


class _Tally:
    """Sums of the regrets of `players[0]` for each game and each kind of decision."""

    def __init__(self, table: Table, players: Sequence[Policy], games: int, seed: int) -> None:
        self.game = Game(replace(table.rules, start=0))
        for player in players:
            check_plays(player, self.game.rules)
        self.table, self.players, self.seed = table, players, seed
        self.kinds = kinds_of(self.game.rules)
        self.results = np.zeros(games)
        self.decisions, self.regret = np.zeros((2, games, len(self.kinds)))
        self.errors, self.blunders = np.zeros((2, len(self.kinds)))
        self.stage_decisions, self.stage_regret = np.zeros((2, TENTHS))
        self.worst: list[Blunder] = []

    def play(self, block: range) -> None:
        game = self.game
        state = game.reset(len(block), seed=self.seed + block.start)
        rng = np.random.default_rng([self.seed, block.start])
        rows, kinds_count = np.arange(len(block)), len(self.kinds)
        seat = np.array(block) % len(self.players)
        seats = (np.arange(2) + seat[:, None]) % len(self.players)
        most = PATHS * (2 * (game.rules.spaces + NUMBERED) - 1)  # only one piece can be on the last space
        history: list[NDArray[np.int16]] = []
        for actions in play_policies(game, state, seats, self.players, rng):
            judged = np.flatnonzero((actions >= 0) & (seats[rows, state["player"]] == 0))
            decided, numbers = state[judged], block.start + judged
            analysis = analyze(game, decided, self.table)
            regret, kind = regret_of(analysis, actions[judged]), kinds(game, decided)
            np.add.at(self.decisions, (numbers, kind), 1)
            np.add.at(self.regret, (numbers, kind), regret)
            self.errors += np.bincount(kind[regret >= ERROR], minlength=kinds_count)
            self.blunders += np.bincount(kind[regret >= BLUNDER], minlength=kinds_count)
            stage = decided["pieces"].sum(axis=(1, 2), dtype=np.int64) * TENTHS // (most + 1)
            self.stage_decisions += np.bincount(stage, minlength=TENTHS)
            self.stage_regret += np.bincount(stage, regret, TENTHS)
            bar = self.worst[-1].regret if len(self.worst) == WORST else 0
            for i in np.argsort(-regret, kind="stable")[:WORST].tolist():
                if regret[i] > bar and regret[i] >= BLUNDER:
                    one, taken, best = decided[i : i + 1].copy(), actions[judged[i]], analysis.best[i]
                    moves = tuple(int(each[judged[i]]) for each in history)
                    game_seed = self.seed + int(numbers[i])
                    self.worst.append(
                        Blunder(float(regret[i]), one, int(taken), int(best), game.rules, game_seed, moves)
                    )
            self.worst = sorted(self.worst, key=lambda blunder: -blunder.regret)[:WORST]
            history.append(actions.astype(np.int16))
        self.results[block.start : block.stop] = game.rewards(state)[rows, seat]

    def grades(self) -> Grades:
        kinds = [self._grade(kind, slice(k, k + 1)) for k, kind in enumerate(self.kinds)]
        with np.errstate(invalid="ignore"):
            stages = self.stage_regret / self.stage_decisions
        return Grades(
            spaces=self.game.rules.spaces,
            games=len(self.results),
            kinds=(*kinds, self._grade("all decisions", slice(None))),
            worst=tuple(self.worst),
            stages=stages,
            result=float(self.results.mean()),
            result_error=margin_of_error(self.results),
        )

    def _grade(self, name: str, columns: slice) -> Grade:
        decisions, regret = self.decisions[:, columns].sum(1), self.regret[:, columns].sum(1)
        count, seats = decisions.sum(), 3 - len(self.players)  # `seats`: number of graded seats per game
        each = max(count, 1)
        return Grade(
            kind=name,
            decisions=int(count),
            regret=float(regret.sum() / each),
            regret_error=margin_of_ratio(regret, decisions) if count else 0.0,
            per_game=float(regret.mean() / seats),
            per_game_error=margin_of_error(regret / seats),
            errors=float(self.errors[columns].sum() / each),
            blunders=float(self.blunders[columns].sum() / each),
        )


def picture(grades: dict[str, Grades], file: str | Path) -> None:
    """Draw charts of the regrets of policies: by kind of decision, and by stage. Equal grades give identical files.

    Args:
        grades: a dict from the name of each policy to its grades.
        file: the picture to write; its suffix selects the format.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    with needed_for("a picture", "arena"):
        from matplotlib.figure import Figure
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / max(len(grades), 1)
    names = [grade.kind for of in list(grades.values())[:1] for grade in of.kinds[:-1]]
    progress = (np.arange(TENTHS) + 0.5) / TENTHS * 100
    for i, (name, of) in enumerate(grades.items()):
        at = np.arange(len(names)) + (i - (len(grades) - 1) / 2) * width
        regrets, errors = 1000 * np.array([(g.per_game, g.per_game_error) for g in of.kinds[:-1]]).T
        left.bar(at, regrets, width, yerr=errors, label=name)
        right.plot(progress, 1000 * np.array(of.stages), marker="o", label=name)
    left.set_xticks(np.arange(len(names)), names)
    left.set(ylabel="regret of a game, thousandths of equity", title="by kind of decision")
    right.set(
        xlabel="progress of the game in %",
        ylabel="regret of a decision, thousandths of equity",
        title="by stage of the game",
    )
    right.set_ylim(bottom=0)
    left.legend()
    save_figure(figure, file)
