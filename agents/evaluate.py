"""Measure a policy's strength; show it as a learning curve, a table and a sentence."""

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from rich.table import Table

from wotd_env import Game, Rules
from wotd_env.evaluation import match
from wotd_env.intervals import proportion_confint
from wotd_env.policy import Policy, play_policies
from wotd_env.rendering import Replay

MEASURING = 1 << 63
"""Seed of the measurements at milestones. Training games have smaller seeds."""

FINAL = MEASURING + (1 << 32)
"""Seed of the final measurement.

It differs from `MEASURING`, because users may choose settings by the results at milestones.
"""

GRADED = 2000  # number of games against perfect play after a training run
SMALL = 2  # `strength` computes a missing table for at most this many plain spaces, which takes seconds


class Counts(NamedTuple):
    """The numbers of games played, won, tied and lost."""

    games: int
    wins: int
    ties: int
    losses: int


class Measurement(NamedTuple):
    """A point of the learning curve: the results of games against one opponent at a milestone."""

    done: int  # number of decisions or turns that the network has learned from
    seconds: float  # wall-clock time of the updates so far
    opponent: str
    games: int
    wins: int
    ties: int
    losses: int


def measure(game: Game, policy: Policy, opponent: Policy, games: int, seed: int) -> Counts:
    """Return the results of `wotd_env.evaluate`, from games with the rules and threads of `game`."""
    return Counts(*match(game, policy, opponent, games, seed)[:4])


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


def draw_curve(rows: Sequence[Measurement], unit: str, players: int) -> bytes:
    """Return a PNG picture of the learning curve: the shares of games won, with 95 % intervals."""
    from matplotlib.figure import Figure  # this import is slow

    figure = Figure((8, 4.5), layout="constrained")
    axes = figure.add_subplot(title="Strength in training", ylabel="games won against")
    axes.set_xlabel(f"{unit} of the learner (millions)")
    plot_curve(axes, rows, players)
    if rows:
        axes.legend(loc="lower right")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150)
    return picture.getvalue()


def plot_curve(axes: Any, rows: Sequence[Measurement], players: int) -> None:
    """Plot the learning curve in matplotlib axes."""
    for opponent in dict.fromkeys(row.opponent for row in rows):
        points = [row for row in rows if row.opponent == opponent]
        done = [row.done / 1e6 for row in points]
        low, high = zip(*(proportion_confint(row.wins, row.games) for row in points), strict=True)
        (line,) = axes.plot(done, [row.wins / row.games for row in points], label=opponent)
        axes.fill_between(done, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.axhline(1 / players, color="grey", linewidth=0.8, linestyle=":")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.set_ylim(0, 1.03)  # a curve at 100 % stays visible
    axes.grid(alpha=0.3)


def table(results: dict[str, Counts], players: int) -> Table:
    """Return the table of the final measurement: the shares of games won, tied and lost, with 95 % intervals."""
    title = f"The trained network, {players} players, all seats equally often, 95 % intervals"
    out = Table("against", title=title, title_justify="left")
    for column in ("games", "won, %", "tied, %", "lost, %"):
        out.add_column(column, justify="right")
    for opponent, counts in results.items():
        shares = (in_percent(count, counts.games) for count in (counts.wins, counts.ties, counts.losses))
        out.add_row(opponent, f"{counts.games:,}", *shares)
    return out


def in_percent(count: int, total: int) -> str:
    """Return `count / total` in percent with its 95 % interval, e.g. `53.1 (52.4-53.8)`."""
    low, high = proportion_confint(count, total)
    return f"{100 * count / total:.1f} ({100 * low:.1f}-{100 * high:.1f})"


def strength(policy: str, rules: Rules, results: dict[str, Counts]) -> str:
    """Return the strength of a policy in words: against perfect play if possible, else against an opponent.

    The comparison with perfect play needs the extra `arena` and a table of the solved board in the cache folder.
    Without this comparison, the text is about the last opponent in `results`, which must be the strongest.
    """
    opponent, counts = list(results.items())[-1]
    share = 100 * counts.wins / counts.games
    by_games = f"The agent wins {share:.1f} of 100 games against {opponent} ({counts.games:,} games)."
    if not solved(rules):
        return by_games
    if not has_arena():
        return f"{by_games} A comparison with perfect play needs the extra arena."
    from wotd_env import analysis, solver

    file = solver.cache_file(rules)
    if not file.is_file() and rules.spaces > SMALL:
        return f"{by_games} A comparison with perfect play needs a table: wotd solve --spaces {rules.spaces}"
    try:
        table = solver.solve(rules.spaces, file)
        grades = analysis.grade(policy, table, GRADED, seed=FINAL, opponent=f"oracle:{file}").all
    except (ValueError, OSError) as error:  # a damaged table must not make a finished run fail
        return f"{by_games} No comparison with perfect play: {' '.join(str(error).split())}"
    return (
        f"The agent would win {max(grades.share_against_perfect, 0):.1f} of 100 games against perfect play "
        f"({grades.share_against_perfect:.2f} % ± {grades.share_against_perfect_error:.2f}, 95 % interval of "
        f"{GRADED:,} graded games; regret {grades.regret:.5f} per decision)."
    )


def solved(rules: Rules) -> bool:
    """Return whether the solver supports these rules."""
    return replace(rules, spaces=Rules.spaces, start="dragons", max_turns=1000) == Rules()


def has_arena() -> bool:
    """Return whether the packages of the extra `arena` are installed."""
    return all(map(find_spec, ("typer", "choix", "onnxruntime", "platformdirs")))
