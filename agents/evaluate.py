"""Show a policy's strength as a learning curve and as a sentence; show a game that it plays."""

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wotd_env import Game, Rules
from wotd_env.analysis import Grade, grade
from wotd_env.evaluation import Evaluation
from wotd_env.intervals import proportion_confint
from wotd_env.policies.oracle import Oracle
from wotd_env.policy import Policy, play_policies
from wotd_env.rendering import Replay
from wotd_env.solver.table import check_solvable

MEASURING = 1 << 63
"""Seed of the measurements at milestones. Training games have smaller seeds."""

FINAL = MEASURING + (1 << 32)
"""Seed of the final measurement.

It differs from `MEASURING`, because users may choose settings by the results at milestones.
"""

ORACLE = Oracle()
GRADED = 2000  # number of games against perfect play after a training run


class Measurement(NamedTuple):
    """A point of the learning curve: the results of games against one opponent at a milestone."""

    done: int  # number of decisions or turns that the network has learned from
    seconds: float  # wall-clock time of the updates so far
    opponent: str
    games: int
    wins: int
    ties: int
    losses: int


Curves = dict[str, list[list[Measurement]]]
"""Learning curves by their labels: the measurements of one or several runs, at the same milestones."""


def replay(game: Game, policy: Policy, seed: int = FINAL) -> Replay:
    """Return the replay of a game in which one policy plays all seats."""
    state, rng = game.reset(1, seed=seed), np.random.default_rng(seed)
    states, actions = [], []
    seats = np.zeros((1, game.rules.players), np.int64)
    for chosen in play_policies(game, state, seats, [policy], rng):
        states.append(state.copy())
        actions.append(chosen[0])
    return Replay(game, np.concatenate([*states, state]), actions)


def curve(rows: Iterable[Measurement], unit: str) -> str:
    """Return a learning curve as CSV. `unit` is the name of the first column, such as "decisions"."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow((unit, "seconds", *Measurement._fields[2:]))
    writer.writerows((row.done, f"{row.seconds:.1f}", *row[2:]) for row in rows)
    return out.getvalue()


def curves_of(rows: Iterable[Measurement]) -> Curves:
    """Return the learning curves of a run. Their labels are the opponents."""
    curves: Curves = {}
    for row in rows:
        curves.setdefault(row.opponent, [[]])[0].append(row)
    return curves


def draw_curves(curves: Curves, unit: str, players: int) -> bytes:
    """Return a PNG picture of learning curves, by the progress of the learner and by the time of training."""
    from matplotlib.figure import Figure  # this import is slow

    figure = Figure((10, 4.5), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    left.set(xlabel=f"{unit} of the learner (millions)", ylabel="games won against")
    right.set_xlabel("minutes of training")
    plot_curves(left, curves, players)
    plot_curves(right, curves, players, "seconds", 60)
    if curves:
        columns = 3 if max(map(len, curves)) < 30 else 1
        lines = right.get_legend_handles_labels()
        figure.legend(*lines, loc="outside upper center", ncols=columns)  # covers no points
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150)
    return picture.getvalue()


def plot_curves(axes: Any, curves: Curves, players: int, column: str = "done", unit: float = 1e6) -> None:
    """Plot learning curves in matplotlib axes: the mean shares of games won, with 95 % intervals."""
    for label, runs in curves.items():
        milestones = list(zip(*runs, strict=False))  # an interrupted run has fewer
        x = [np.mean([getattr(row, column) for row in rows]) / unit for rows in milestones]
        shares, low, high = zip(*map(mean_share, milestones), strict=True)
        (line,) = axes.plot(x, shares, label=label)
        axes.fill_between(x, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.axhline(1 / players, color="grey", linewidth=0.8, linestyle=":")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_ylim(0, 1.03)  # a curve at 100 % stays visible
    axes.grid(alpha=0.3)


def mean_share(rows: Sequence[Measurement]) -> tuple[float, float, float]:
    """Return the mean share of games won at a milestone, with its 95 % interval over the runs, or one run's games."""
    shares = np.array([row.wins / row.games for row in rows])
    if len(rows) == 1:
        return float(shares[0]), *proportion_confint(rows[0].wins, rows[0].games)
    from wotd_env.arena.results import mean_of  # needs the extra arena

    mean = mean_of(shares, -np.inf, np.inf).estimate()
    return mean.value, max(mean.low, 0.0), min(mean.high, 1.0)


def in_percent(count: int, total: int) -> str:
    """Return `count / total` in percent with its 95 % interval, e.g. `53.1 (52.4-53.8)`."""
    low, high = proportion_confint(count, total)
    return f"{100 * count / total:.1f} ({100 * low:.1f}-{100 * high:.1f})"


def strength(policy: str, rules: Rules, results: dict[str, Evaluation]) -> str:
    """Return the strength of a policy in words: against perfect play if possible, else against an opponent.

    Perfect play needs the table of the board, see `Oracle`. Without it, the text is about the last opponent in
    `results`, which must be the strongest.
    """
    opponent, result = list(results.items())[-1]
    by_games = (
        f"The agent wins {100 * result.share:.1f} of 100 games against {opponent} ({result.games:,} games)."
    )
    if not has_equities(rules):
        return by_games
    try:
        grades = graded(policy, rules, GRADED, FINAL)
    except (ImportError, OSError, ValueError) as error:  # must not make a finished run fail
        return f"{by_games} No comparison with perfect play: {' '.join(str(error).split())}"
    return (
        f"The agent would win {max(grades.share_against_perfect, 0):.1f} of 100 games against perfect play "
        f"({grades.share_against_perfect:.2f} % ± {grades.share_against_perfect_error:.2f}, 95 % interval of "
        f"{GRADED:,} graded games; regret {1000 * grades.regret:.2f} thousandths of equity per decision)."
    )


def graded(policy: str | Policy, rules: Rules, games: int, seed: int = MEASURING) -> Grade:
    """Grade all decisions of a policy in games against perfect play.

    Raises ImportError, OSError or ValueError if the table of the board cannot be used, see `Oracle`.
    """
    return grade(policy, ORACLE.table(Game(rules)), games, seed=seed, opponent=ORACLE).all


def has_equities(rules: Rules) -> bool:
    """Return whether the decisions of games with these rules have exact equities, once the board is solved."""
    try:
        check_solvable(rules)
    except ValueError:
        return False
    return True
