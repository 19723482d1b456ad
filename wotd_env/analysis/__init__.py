"""Exact grades for decisions of the two-player basic game, against a table of its solution.

The *equity* of an action is the result to expect (1 a win, -1 a loss) for the seat to act if both play perfectly from
there on; the *regret* of an action is what it gives away against the best one. Regrets add up: a
policy's mean result is the value of the start to it, less the regrets of its game, plus those of its opponent's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.actions import Action, describe_action
from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game, IllegalActionError, show_dice
from wotd_env.core.policy import Policy, ask, play_out
from wotd_env.core.rules import NUMBERED, PATHS, Phase, Rules
from wotd_env.planning.planner import plan
from wotd_env.policies import make_policy
from wotd_env.solver import Table
from wotd_env.solver.table import check_table

__all__ = [
    "KINDS",
    "Analysis",
    "Blunder",
    "Grade",
    "Grades",
    "Note",
    "analyze",
    "annotate",
    "grade",
    "kinds",
    "picture",
    "read_game",
    "regret",
    "write_game",
]

KINDS = ("first hold", "second hold", "move", "swap", "extra turn")
"""Kinds of decisions. `"swap"` is a move where calling the dragon is possible."""

ERROR = 0.01
"""A decision with at least this regret is an error: a two-hundredth of the way from a loss to a win."""
BLUNDER = 0.05
STAGES = 10  # of a game, by the progress of both players, for the picture
WORST = 20  # blunders kept
BLOCK = 4096  # games played side by side
MOST_GAMES = 10_000_000  # some 100 bytes are kept of each


class Analysis(NamedTuple):
    """What states are worth to the seats to act; N states, A actions."""

    equity: NDArray[np.float32]
    """(N,): of the state, with the best action; the result where the game is over."""
    actions: NDArray[np.float32]
    """(N, A): of every action, -inf if it is not legal."""
    best: NDArray[np.int64]
    """(N,): the best action, of equals the lowest; 0 where there is nothing to decide."""


def analyze(game: Game, state: NDArray[np.void], table: Table) -> Analysis:
    """Return the exact equities of states, STATE (N,), in any phase, of the two-player basic game.

    Raises:
        TypeError: if the table is none.
        ValueError: if the game has other rules, or another board than the table.
    """
    check_table(table)
    actions, equity = plan(game, state, table.for_seats)
    return Analysis(equity, actions, actions.argmax(1))


def regret(game: Game, state: NDArray[np.void], actions: ArrayLike, table: Table) -> NDArray[np.float32]:
    """Return what actions (N,) give away in states at their decisions, float32 (N,), 0 for the best.

    Raises:
        IllegalActionError: if an action is illegal.
        TypeError, ValueError: as by `analyze`.
    """
    game.decide(state.copy(), actions)  # raises if one is illegal
    return _regret(analyze(game, state, table), np.asarray(actions))


def _regret(analysis: Analysis, actions: NDArray[Any]) -> NDArray[np.float32]:
    rows = np.arange(len(actions))
    best, chosen = analysis.actions[rows, analysis.best], analysis.actions[rows, actions]
    lost = np.zeros_like(best)  # in a finished game
    np.subtract(best, chosen, out=lost, where=np.isfinite(best))
    return lost


def kinds(game: Game, state: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the kind of each decision, as an index into KINDS, int64 (N,)."""
    swap = game.legal_actions(state)[:, Action.FIRST_SWAP :].any(1)
    phase = state["phase"]
    hold = np.where(state["rolls_left"] == 2, 0, 1)
    return np.select([phase == Phase.KEEP, phase == Phase.MOVE], [hold, np.where(swap, 3, 2)], 4)


# --------------------------------------------------------------------------------------------------------------- grades


class Grade(NamedTuple):
    """How well one kind of decision was made."""

    kind: str
    decisions: int
    regret: float
    """mean for a decision"""
    regret_error: float
    """half the width of its 95 % interval"""
    per_game: float
    """mean of the sum over a game of one seat"""
    per_game_error: float
    """half the width of its 95 % interval"""
    errors: float
    """share of decisions that give away at least ERROR"""
    blunders: float
    """share that give away at least BLUNDER"""


class Blunder(NamedTuple):
    """A decision that gave much away."""

    regret: float
    state: NDArray[np.void]
    """STATE (1,), with which `analyze` and `Game` can go on"""
    action: int
    best: int
    game_seed: int
    """of the game, in which seat 0 began"""
    moves: tuple[int, ...]
    """all actions before this one, of both seats"""

    def __str__(self) -> str:
        return (
            f"{self.regret:.3f} given away with dice {show_dice(self.state['dice'][0])}: "
            f"{describe_action(self.action)}; best: {describe_action(self.best)}"
        )


@dataclass(frozen=True)
class Grades:
    """A policy's grades.

    Attributes:
        spaces: plain spaces of the board.
        games: games played.
        kinds: a grade for each kind of decision, and for all together, which is the last one.
        worst: the worst decisions, the worst first.
        stages: mean regret of a decision by stage of the game, float (STAGES,); nan where there was none.
        result: the policy's mean result, 1 a win; where it played itself, that of the seat that began.
        result_error: half the width of its 95 % interval.
    """

    spaces: int
    games: int
    kinds: tuple[Grade, ...]
    worst: tuple[Blunder, ...]
    stages: NDArray[np.float64]
    result: float
    result_error: float

    @property
    def all(self) -> Grade:
        """The grade for all decisions."""
        return self.kinds[-1]

    def as_dict(self) -> dict[str, Any]:
        """Return everything but the worst decisions for JSON."""
        return {
            "spaces": self.spaces,
            "games": self.games,
            "result": self.result,
            "result_error": self.result_error,
            "kinds": [grade._asdict() for grade in self.kinds],
            "stages": [None if np.isnan(mean) else float(mean) for mean in self.stages],
        }


def grade(
    policy: str | Policy,
    table: Table,
    games: int = 10_000,
    seed: int = 0,
    opponent: str | Policy | None = None,
    progress: Callable[[int, int], None] | None = None,
    max_turns: int = 1000,
) -> Grades:
    """Let a policy play and grade each of its decisions.

    Args:
        policy: what to grade, or its name, see `make_policy`.
        table: the solution of the board to play on.
        games: games to play, at most 10,000,000; the policy begins every other one.
        seed: game i has the seed `seed + i`.
        opponent: whom to play against; by default the policy itself, and then the decisions of both are graded.
        progress: is called now and then with the games finished and all games.
        max_turns: games are truncated after that many turns.

    Raises:
        TypeError: if the table is none.
        ValueError: for a wrong number of games, seed or name of a policy.
        IllegalActionError: if a policy is wrong about what is legal.
    """
    check_table(table)
    policy, opponent = make_policy(policy), None if opponent is None else make_policy(opponent)
    games = check_integer("games", games, 1, MOST_GAMES)
    seed = check_integer("seed", seed, 0, 2**64 - games)
    game = Game(Rules(spaces=table.spaces, start=0, max_turns=max_turns))
    tally = _Tally(games, 1 if opponent else 2)
    for first in range(0, games, BLOCK):
        block = min(BLOCK, games - first)
        rng = np.random.default_rng([seed, first])
        _play_block(game, table, policy, opponent, first, block, seed, rng, tally)
        if progress:
            progress(first + block, games)
    return tally.grades(table.spaces)


def _play_block(
    game: Game,
    table: Table,
    policy: Policy,
    opponent: Policy | None,
    first: int,
    block: int,
    seed: int,
    rng: np.random.Generator,
    tally: _Tally,
) -> None:
    """Play games side by side; seat 0 begins, and against an opponent the policy has seat i % 2 in game i."""
    number = first + np.arange(block)
    state = game.reset(block, seed=seed + first)
    seat = number % 2 if opponent else np.zeros(block, np.int64)
    players = (policy, opponent or policy)
    seats = np.arange(2) ^ seat[:, None] if opponent else np.zeros((block, 2), np.int64)
    history: list[NDArray[np.int16]] = []

    def choose(player: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        return ask(players[player], game, state[games], rng)

    for actions in play_out(game, state, seats, choose):
        judged = np.flatnonzero((actions >= 0) & (seats[np.arange(block), state["player"]] == 0))
        if judged.size:
            analysis = analyze(game, state[judged], table)

            def moves(i: int, judged: NDArray[np.int64] = judged) -> tuple[int, tuple[int, ...]]:
                return seed + first + int(judged[i]), tuple(int(taken[judged[i]]) for taken in history)

            tally.add(game, state[judged], actions[judged], analysis, number[judged], moves)
        history.append(actions.astype(np.int16))
    tally.results[number] = game.rewards(state)[np.arange(block), seat]


class _Tally:
    """Sums by game and kind of decision."""

    def __init__(self, games: int, seats: int) -> None:
        shape = (games, len(KINDS))
        self.seats = seats  # whose decisions are graded
        self.results = np.zeros(games)
        self.decisions = np.zeros(shape)
        self.regret = np.zeros(shape)
        self.errors = np.zeros(len(KINDS))
        self.blunders = np.zeros(len(KINDS))
        self.stage_decisions = np.zeros(STAGES)
        self.stage_regret = np.zeros(STAGES)
        self.worst: list[Blunder] = []

    def add(
        self,
        game: Game,
        state: NDArray[np.void],
        actions: NDArray[np.int64],
        analysis: Analysis,
        number: NDArray[np.int64],
        moves: Callable[[int], tuple[int, tuple[int, ...]]],
    ) -> None:
        """Note decisions of games by number; `moves(i)` is the seed of the i-th one's game, and its actions so far."""
        lost = _regret(analysis, actions)
        kind = kinds(game, state)
        np.add.at(self.decisions, (number, kind), 1)
        np.add.at(self.regret, (number, kind), lost)
        self.errors += np.bincount(kind[lost >= ERROR], minlength=len(KINDS))
        self.blunders += np.bincount(kind[lost >= BLUNDER], minlength=len(KINDS))
        stage = progress_of(state) * STAGES // (most_progress(game.rules.spaces) + 1)
        self.stage_decisions += np.bincount(stage, minlength=STAGES)
        self.stage_regret += np.bincount(stage, lost, STAGES)
        bar = self.worst[-1].regret if len(self.worst) == WORST else 0
        for i in np.argsort(-lost, kind="stable")[:WORST]:
            if lost[i] > bar and lost[i] >= BLUNDER:
                one, best = state[i : i + 1].copy(), int(analysis.best[i])
                self.worst.append(Blunder(float(lost[i]), one, int(actions[i]), best, *moves(int(i))))
        self.worst = sorted(self.worst, key=lambda blunder: -blunder.regret)[:WORST]

    def grades(self, spaces: int) -> Grades:
        """Return the grades."""
        columns = [*([k] for k in range(len(KINDS))), list(range(len(KINDS)))]
        made = [
            self._grade(name, column) for name, column in zip([*KINDS, "all decisions"], columns, strict=True)
        ]
        with np.errstate(invalid="ignore"):
            stages = self.stage_regret / self.stage_decisions
        return Grades(
            spaces=spaces,
            games=len(self.results),
            kinds=tuple(made),
            worst=tuple(self.worst),
            stages=stages,
            result=float(self.results.mean()),
            result_error=_error(self.results),
        )

    def _grade(self, name: str, columns: list[int]) -> Grade:
        decisions, lost = self.decisions[:, columns].sum(1), self.regret[:, columns].sum(1)
        count = decisions.sum()
        each = max(count, 1)
        mean = lost.sum() / each
        # Decisions of one game are not independent, so the interval of the ratio goes by games.
        error = _error(lost - mean * decisions) * len(lost) / each
        return Grade(
            kind=name,
            decisions=int(count),
            regret=float(mean),
            regret_error=float(error),
            per_game=float(lost.mean() / self.seats),
            per_game_error=_error(lost / self.seats),
            errors=float(self.errors[columns].sum() / each),
            blunders=float(self.blunders[columns].sum() / each),
        )


def _error(sample: NDArray[np.float64]) -> float:
    """Return half the width of the 95 % interval of a mean."""
    return float(1.96 * sample.std(ddof=1) / np.sqrt(len(sample))) if len(sample) > 1 else float("inf")


def progress_of(state: NDArray[np.void]) -> NDArray[np.int64]:
    """Return the sum of the spaces of all pieces, (N,)."""
    total: NDArray[np.int64] = state["pieces"].sum(axis=(1, 2), dtype=np.int64)
    return total


def most_progress(spaces: int) -> int:
    """Return the largest progress of two players."""
    return PATHS * (2 * (spaces + NUMBERED) - 1)


def picture(grades: dict[str, Grades], file: str | Path) -> None:
    """Draw the regret of policies by kind of decision and by stage of the game.

    Args:
        grades: name of a policy -> its grades.
        file: picture to write; its ending says the format.

    Raises:
        ImportError: if matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError("pictures need matplotlib: pip install 'wotd-env[arena]'") from error
    figure = Figure(figsize=(11, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    width = 0.8 / max(len(grades), 1)
    for i, (name, of) in enumerate(grades.items()):
        at = np.arange(len(KINDS)) + (i - (len(grades) - 1) / 2) * width
        each = of.kinds[: len(KINDS)]
        left.bar(at, [g.per_game for g in each], width, yerr=[g.per_game_error for g in each], label=name)
        right.plot((np.arange(STAGES) + 0.5) / STAGES * 100, of.stages, marker="o", label=name)
    left.set_xticks(np.arange(len(KINDS)), KINDS)
    left.set_ylabel("regret per game")
    left.set_title("by kind of decision")
    right.set_xlabel("progress of the game in %")
    right.set_ylabel("regret per decision")
    right.set_ylim(bottom=0)
    right.set_title("by stage of the game")
    left.legend()
    figure.savefig(Path(file), dpi=120)


# ----------------------------------------------------------------------------------------------------- recorded games


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

    def __str__(self) -> str:
        words = (
            f"turn {self.turn + 1}, seat {self.seat}, {self.dice}: "
            f"{describe_action(self.action)} ({self.equity:+.3f})"
        )
        if self.regret < ERROR:
            return words
        mark = "blunder" if self.regret >= BLUNDER else "error"
        return f"{words}  {mark}: -{self.regret:.3f}, best: {describe_action(self.best)}"


def write_game(file: str | Path, rules: Rules, seed: int, actions: ArrayLike) -> None:
    """Record a game: its rules, the seed of its `Game.reset`, and the actions of both seats, as JSON."""
    content = {"rules": asdict(rules), "seed": seed, "actions": np.asarray(actions).tolist()}
    Path(file).write_text(json.dumps(content) + "\n")


def read_game(file: str | Path) -> tuple[Rules, int, list[int]]:
    """Return the rules, seed and actions of a recorded game.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it is no record of a game.
    """
    try:
        content = json.loads(Path(file).read_text())
        actions = [int(action) for action in content["actions"]]
        if isinstance(content["rules"].get("colors"), list):
            content["rules"]["colors"] = tuple(content["rules"]["colors"])
        return Rules(**content["rules"]), int(content["seed"]), actions
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
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
    try:
        state = game.reset(1, seed=seed)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from error
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
        notes.append(
            Note(
                turn=int(before["turn"][0]),
                seat=int(before["player"][0]),
                kind=KINDS[int(kinds(game, before)[0])],
                dice=show_dice(before["dice"][0]),
                action=action,
                equity=float(analysis.equity[0]),
                regret=float(_regret(analysis, np.array([action]))[0]),
                best=int(analysis.best[0]),
            )
        )
    return notes
