"""Output of results: tables in the terminal, JSON and CSV files, and a picture."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from rich.table import Table

from wotd_env.arena.results import Results, Row, span
from wotd_env.files import save_figure
from wotd_env.reporting import Shown, as_table, percent, signed


def as_text(results: Results, digits: int = 1) -> list[Shown]:
    """Return tables of the results by policy, by pair of policies, and by seat.

    The table of pairs is omitted if there is only one policy. `digits` is the number of decimals in percentages.
    """
    n, names = results.tournament.rules.players, list(results.ratings)

    columns: dict[str, Callable[[Row], str]] = {
        "rating": lambda row: signed(results.ratings[row.policy], 0),
        "win share": lambda row: percent(row.share, digits),
        "luck-adjusted": lambda row: percent(row.adjusted, digits),
        "mean rank": lambda row: f"{row.rank.value:.3f} ±{row.rank.error:.3f}",
        "points ahead": lambda row: signed(row.difference, 2),
        "ties": lambda row: percent(row.ties, digits),
        "forfeits": lambda row: f"{row.forfeits:,}",
    }
    shown = {
        "luck-adjusted": results.tournament.luck is not None,
        "mean rank": n > 2,  # with two players, the win share determines the mean rank
        "forfeits": bool(results.forfeits),
    }
    columns = {heading: cell for heading, cell in columns.items() if shown.get(heading, True)}
    overall = [row for row in results.rows if row.matchup is None]
    total = Shown(
        f"{sum(map(len, results.games.values())):,} games of {n} players",
        ["policy", *columns],
        [[row.policy, *(cell(row) for cell in columns.values())] for row in overall if row.seat is None],
    )
    pairs = Shown(
        "Share of games in which the row's policy finishes ahead of the column's; ties count half",
        ["policy", *names],
        [[one, *(percent(results.ahead.get((one, other)), digits) for other in names)] for one in names],
    )
    by_seat = [row for row in overall if row.seat is not None]
    seats = Shown(
        "Win share by seat",
        ["policy", *(f"seat {seat}" for seat in range(n))],
        [[name, *(percent(row.share, digits) for row in by_seat if row.policy == name)] for name in names],
    )
    return [total, pairs, seats] if len(names) > 1 else [total, seats]


def tables(results: Results) -> list[Table]:
    """Return the results as tables for `rich` (see `as_text`)."""
    first, *others = (as_table(shown) for shown in as_text(results))
    neutral = 1 / results.tournament.rules.players
    first.caption = f"± is a 95 % interval; a win share of {100 * neutral:.1f} % means equal strength"
    if results.earlier:
        earlier = sum(results.earlier.values())
        first.caption += f"\n{earlier:,} games are from earlier runs ({span(results.earlier)})"
    return [first, *others]


FORMATS = (".json", ".csv")  # the file suffixes that `write` supports


def write(results: Results, file: str | Path) -> None:
    """Write results to a file: `to_dict()` to a .json file, `to_rows()` to a .csv file."""
    file, rows = Path(file), results.to_rows()
    if file.suffix == ".json":
        file.write_text(json.dumps(results.to_dict(), indent=1) + "\n")
    elif file.suffix == ".csv":
        with file.open("w", newline="") as out:
            writer = csv.DictWriter(out, list(rows[0]))
            writer.writeheader()
            writer.writerows(rows)
    else:
        raise ValueError(f"the file of results must end in {', '.join(FORMATS)}, got {file}")


def draw(results: Results, file: str | Path, title: str = "") -> None:
    """Draw the ratings with intervals, and a heat map of `Results.ahead`. The file's suffix selects the format."""
    from matplotlib.figure import Figure

    names = list(results.ratings)
    k = len(names)
    figure = Figure(figsize=(6 + 1.1 * k, 1.8 + 0.55 * k), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1, 1.2))
    if title:
        figure.suptitle(title)
    ratings = [results.ratings[name] for name in names]
    errors = [[r.value - r.low for r in ratings], [r.high - r.value for r in ratings]]
    left.errorbar([r.value for r in ratings], range(k), xerr=errors, fmt="o", capsize=4)
    left.set(title="rating (Elo points, 95 %)", yticks=range(k), yticklabels=names)
    left.grid(axis="x", alpha=0.3)
    left.margins(x=0.15)

    cells = np.full((k, k), np.nan)
    for i, j in itertools.permutations(range(k), 2):
        ahead = results.ahead[names[i], names[j]]
        cells[i, j] = ahead.value
        color = "black" if 0.2 < ahead.value < 0.8 else "white"
        label = f"{100 * ahead.value:.1f} %\n±{100 * ahead.error:.1f}"
        right.text(j, i, label, ha="center", va="center", color=color, fontsize=8)
    right.imshow(cells, cmap="RdBu", vmin=0, vmax=1, aspect="auto")
    right.set(title="row finishes ahead of column", xticks=range(k), xticklabels=names, ylim=(k - 0.5, -0.5))
    right.tick_params(axis="x", rotation=30)
    save_figure(figure, file)
