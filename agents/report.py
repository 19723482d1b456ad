"""What a training run shows: its learning curve as CSV and as a picture, the final table, and the next commands."""

from __future__ import annotations

import csv
import io
import shlex
import shutil
import sys
from collections.abc import Iterable
from dataclasses import fields, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from rich.table import Table

from agents.evaluate import FINAL, Counts
from wotd_env import Rules
from wotd_env.intervals import proportion_confint
from wotd_env.policies import POLICIES

COLUMNS = ("cpu_seconds", "opponent", "games", "wins", "ties", "losses")
"""The columns of curve.csv after the first, which is the unit of learning."""

GRADED = 2000
"""Games against perfect play that grade a finished run."""


def curve(rows: Iterable[tuple[Any, ...]], unit: str) -> str:
    """Return the learning curve as CSV.

    Args:
        rows: the measurements, see `agents.runs.Measurement`.
        unit: the unit of learning, such as "decisions".
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow((unit, *COLUMNS))
    writer.writerows((done, f"{seconds:.1f}", *rest) for done, seconds, *rest in rows)
    return out.getvalue()


def draw_curve(rows: Iterable[tuple[Any, ...]], unit: str, players: int) -> bytes:
    """Return a picture (PNG) of the learning curve: the shares of games won with their 95 % intervals."""
    from matplotlib.figure import Figure  # takes most of a second to import

    figure = Figure((8, 4.5), layout="constrained")
    axes = figure.add_subplot(
        xlabel=f"{unit} of the learner (millions)",
        ylabel="games won",
        ylim=(0, 1),
        title="Strength in training",
    )
    table = list(rows)
    for opponent in dict.fromkeys(row[2] for row in table):
        points = [
            (row[0] / 1e6, row[4] / row[3], *proportion_confint(row[4], row[3]))
            for row in table
            if row[2] == opponent
        ]
        done, share, low, high = zip(*points, strict=True)
        (line,) = axes.plot(done, share, label=f"against {opponent}")
        axes.fill_between(done, low, high, color=line.get_color(), alpha=0.25, linewidth=0)
    axes.axhline(1 / players, color="grey", linewidth=0.8, linestyle=":")
    axes.yaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
    axes.grid(alpha=0.3)
    if table:
        axes.legend(loc="lower right")
    picture = io.BytesIO()
    figure.savefig(picture, dpi=150)
    return picture.getvalue()


def table(results: dict[str, Counts], players: int) -> Table:
    """Return the final table: the shares of games won, tied and lost, with their 95 % intervals."""
    out = Table(
        title=f"The trained network, {players} players, all seats equally often, 95 % intervals",
        title_justify="left",
    )
    out.add_column("against")
    for column in ("games", "won, %", "tied, %", "lost, %"):
        out.add_column(column, justify="right")
    for opponent, counts in results.items():
        out.add_row(opponent, f"{counts.games:,}", *(in_percent(count, counts.games) for count in counts[1:]))
    return out


def in_percent(count: int, total: int) -> str:
    """Return a share in percent with its interval: `53.1 (52.4-53.8)`."""
    low, high = proportion_confint(count, total)
    return f"{100 * count / total:.1f} ({100 * low:.1f}-{100 * high:.1f})"


def grade(folder: Path, rules: Rules) -> str:
    """Return the strength of a finished run against perfect play in one line; empty if there is no table of its board.

    The opponent plays perfectly, so the share of games won is one half less half of the regret of the run.
    """
    from wotd_env import analysis, solver

    if not solved(rules) or not _has_arena() or not (file := solver.cache_file(rules.spaces)).is_file():
        return ""
    try:
        graded = analysis.grade(
            policy_name(folder), solver.load(file), GRADED, seed=FINAL, opponent=f"oracle:{file}"
        ).all
    except (ValueError, OSError) as error:  # a damaged table must not fail a finished training
        return f"No comparison with perfect play: {' '.join(str(error).split())}"
    return (
        f"Against perfect play it would win {graded.share_against_perfect:.2f} % "
        f"±{graded.share_against_perfect_error:.2f} of its games; "
        f"its regret is {graded.regret:.5f} a decision (95 % interval, {GRADED:,} games)."
    )


def solved(rules: Rules) -> bool:
    """Return whether the game with these rules has an exact solution."""
    return (
        rules.players == 2 and replace(rules, spaces=Rules.spaces, start="dragons", max_turns=1000) == Rules()
    )


def _has_arena() -> bool:
    """Return whether the extra `arena` is installed, which has the commands and reads tables and ONNX files."""
    return all(map(find_spec, ("typer", "choix", "onnxruntime", "platformdirs")))


def what_next(folder: Path, rules: Rules) -> list[str]:
    """Return the commands that measure a finished run, for a shell in the current folder."""
    lines = []
    if not _has_arena():
        extra = f"{Path(__file__).parent.parent}[arena]"
        lines.append(command(Path.cwd(), "python", "-m", "pip", "install", "--editable", extra))
    name = policy_name(folder)
    lines.append(command(Path.cwd(), "wotd", "arena", name, "greedy", "planner", *options(rules)))
    if solved(rules):
        lines.append(command(Path.cwd(), "wotd", "analyze", name, "--spaces", str(rules.spaces)))
    return lines


def policy_name(folder: Path) -> str:
    """Return the policy name of a run folder. A folder named like a policy gets a leading `./`."""
    return f"./{folder}" if str(folder) in POLICIES else str(folder)


def command(where: Path, program: str, *arguments: str | Path) -> str:
    """Return a command line that starts a program of this Python's environment, for a shell in the folder `where`."""
    path = Path(sys.executable)
    path = path if program == "python" else path.with_name(program)
    if shutil.which(program) != str(path):
        program = str(path.relative_to(where) if path.is_relative_to(where) else path)
    return shlex.join([program, *map(str, arguments)])


def options(rules: Rules) -> list[str]:
    """Return the command-line options for these rules."""
    words = []
    for field in fields(rules):
        if (value := getattr(rules, field.name)) != field.default:
            words.append(f"--{field.name.replace('_', '-')}")
            if value is not True:
                words.append(",".join(value) if isinstance(value, tuple) else str(value))
    return words
