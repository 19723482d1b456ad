"""What a run shows: its learning curve as a table and as a picture, and the final table."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.table import Table

from agents.evaluate import Shares, interval

COLUMNS = ("decisions", "seconds", "opponent", "games", "wins", "ties", "losses")
"""The columns of curve.csv."""


def write_curve(path: Path, rows: Iterable[tuple[Any, ...]]) -> None:
    """Write the learning curve as CSV, one row for each measurement."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(COLUMNS)
        writer.writerows((decisions, f"{seconds:.1f}", *rest) for decisions, seconds, *rest in rows)


def draw_curve(path: Path, rows: Iterable[tuple[Any, ...]], players: int) -> None:
    """Draw the learning curve: share of games won against each opponent, with its 95 % interval."""
    from matplotlib.figure import Figure  # takes most of a second to import

    figure = Figure((8, 4.5), layout="constrained")
    axes = figure.add_subplot(
        xlabel="decisions of the learner (millions)",
        ylabel="games won",
        ylim=(0, 1),
        title="Strength in training",
    )
    table = list(rows)
    for opponent in dict.fromkeys(row[2] for row in table):
        points = [
            (row[0] / 1e6, row[4] / row[3], *interval(row[4], row[3])) for row in table if row[2] == opponent
        ]
        decisions, share, low, high = zip(*points, strict=True)
        (line,) = axes.plot(decisions, share, label=f"against {opponent}")
        axes.fill_between(decisions, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.axhline(1 / players, color="grey", linewidth=0.8, linestyle=":")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=150)


def table(results: dict[str, Shares], players: int) -> Table:
    """Return the final table: the shares of games won, tied and lost, with their 95 % intervals."""
    out = Table(
        title=f"The trained network, {players} players, all seats equally often, 95 % intervals",
        title_justify="left",
    )
    out.add_column("against")
    for column in ("games", "won, %", "tied, %", "lost, %"):
        out.add_column(column, justify="right")
    for opponent, shares in results.items():
        out.add_row(opponent, f"{shares.games:,}", *(in_percent(count, shares.games) for count in shares[1:]))
    return out


def in_percent(count: int, total: int) -> str:
    """Return a share in percent with its interval: `53.1 (52.4-53.8)`."""
    low, high = interval(count, total)
    return f"{100 * count / total:.1f} ({100 * low:.1f}-{100 * high:.1f})"
