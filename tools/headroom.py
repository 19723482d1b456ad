"""Compare the best agents of each track with `random`, `greedy` and perfect play (`make docs-tables`)."""

from pathlib import Path

from entries.entry import TRACKS
from entries.tables import Row
from tools.figures import table_of
from wotd_env import Rules, files
from wotd_env.reporting import markdown

WITHOUT, WITH = "best without the planner", "best with the planner"
COLORS = {"random": "grey", "greedy": "C0", WITHOUT: "C1", WITH: "C2"}  # the columns of the table
PLANNERS = ("planner", "td", "ppo")  # agents that use the turn planner, in training or in games

Headroom = dict[str, dict[str, tuple[float, str]]]


def headroom(rows: list[Row]) -> Headroom:
    """Return the mean regrets in thousandths as a dict: track -> column -> (regret, agent).

    The sources are the rows of the tables of entries, and the tables of results on pages.
    """
    found: Headroom = {}

    def add(track: str, name: str, regret: float, planner: bool, title: str = "") -> None:
        column = name if name in COLORS else WITH if planner else WITHOUT
        best = found.setdefault(track, {})
        if column not in best or regret < best[column][0]:
            best[column] = regret, title or f"`{name}`"

    full = [row for row in table_of("benchmark", "results") if row["plain spaces"] == str(Rules().spaces)]
    for row in rows:
        track = row.entry.track
        if TRACKS[track].players == (2,) and TRACKS[track].rules == Rules():
            for each in full:
                if (name := each["agent"]) in ("random", "greedy"):
                    add(f"`{track}`", name, _mean(each["all"]), False)
            add(f"`{track}`", row.name, row.mean("mean regret")[0], row.entry.planner, row.entry.title)
    for each in table_of("benchmark", "rollouts"):
        if (name := each["agent"]) != "noise" and each["players"].isdigit():
            add(f"`players`, {each['players']} players", name, _mean(each["all"]), name in PLANNERS)
    for each in table_of("generalization", "results"):
        name, track = each["agent"], f"`generalization`, {each['plain spaces']} plain spaces"
        add(track, name, _mean(each["test layouts"]), name in PLANNERS)
    return found


def _mean(cell: str) -> float:
    """Return the mean of a cell such as "2.57 ±0.29"."""
    return float(cell.split()[0])


def table(found: Headroom) -> str:
    """Return the table of the page."""
    rows = []
    for track, best in found.items():
        cells = (f"{best[name][0]:.2f}" for name in ("random", "greedy"))
        agents = ("{:.2f}, {}".format(*best[name]) if name in best else "" for name in (WITHOUT, WITH))
        rows.append((track, *cells, *agents))
    return markdown(("track", *COLORS), rows, right=(1, 2))


def draw(found: Headroom, file: Path) -> None:
    """Draw the regrets of all tracks on a logarithmic scale."""
    from matplotlib.figure import Figure

    figure = Figure((9, 0.45 * len(found) + 1.6), layout="constrained")
    axes = figure.add_subplot()
    for height, best in enumerate(reversed(found.values())):
        regrets = [regret for regret, _ in best.values()]
        axes.plot([min(regrets), max(regrets)], [height, height], color="lightgrey", linewidth=2, zorder=1)
    for column, color in COLORS.items():
        points = [(best[column][0], i) for i, best in enumerate(reversed(found.values())) if column in best]
        axes.scatter(*zip(*points, strict=True), color=color, label=column, zorder=2)
        below = column == "greedy"  # so that its numbers do not cover those of a similar agent
        for regret, height in points:
            number = f"{regret:.0f}" if regret >= 10 else f"{regret:.2g}"
            away = (0, -14 if below else 6)
            axes.annotate(number, (regret, height), away, textcoords="offset points", ha="center", size=8)
    axes.margins(y=0.1)
    axes.set_yticks(range(len(found)), [track.replace("`", "") for track in reversed(found)])
    axes.set(
        xscale="log",
        xlabel="mean regret of a decision, thousandths of equity (perfect play: 0, left of the scale)",
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, frameon=False)
    files.save_figure(figure, file)
