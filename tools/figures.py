"""Write measured figures into the pages that quote them (`make docs-tables`).

The sources are tools/speed/results.json, docs/results/benchmark.md and docs/results/perfect-play.md. Other pages quote
a figure as `<!-- figure: NAME -->value<!-- end -->`. README.md and docs/index.md also have a list of claims with
figures, at `<!-- table: figures -->`. The names of figures are:

| name | value |
| --- | --- |
| `rate CASE` | speed of a case in tools/speed/cases.py: decisions, or planned turns, per second |
| `times CASE CASE` | speed of the first case divided by the speed of the second |
| `share CASE CASE` | the same ratio in percent |
| `wins POLICY POLICY` | win share of the first policy against the second, a reference, on the full board, in percent |
| `perfect POLICY` | number of games out of 100 that a policy wins against perfect play |
| `positions` | positions of the largest solved board |
"""

import functools
import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools import pages
from wotd_env import Rules


@functools.cache
def _cases() -> Any:
    return json.loads((pages.ROOT / "tools" / "speed" / "results.json").read_text())["cases"]


def rate(case: str) -> str:
    """Return the decisions per second of a case, with three significant digits."""
    value = float(f"{_cases()[case]['median']:.3g}")
    return f"{value / 1e6:.1f} million" if value >= 1e6 else f"{value:,.0f}"


def times(fast: str, slow: str) -> str:
    """Return the speed of case `fast` divided by the speed of case `slow`, with two significant digits."""
    ratio = _cases()[fast]["median"] / _cases()[slow]["median"]
    return f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def share(ours: str, theirs: str) -> str:
    """Return the speed of case `ours` in percent of the speed of case `theirs`."""
    return f"{100 * _cases()[ours]['median'] / _cases()[theirs]['median']:.0f} %"


def wins(policy: str, opponent: str) -> str:
    """Return the win share of `policy` against `opponent` in percent, with its margin, from the benchmark page."""
    rows = table_of("benchmark", "results")
    board = str(Rules().spaces)
    (row,) = (row for row in rows if (row["plain spaces"], row["agent"]) == (board, policy))
    share, error = row[opponent].split(" % ±")
    return f"{float(share):.1f} % ± {float(error):.1f}"


def table_of(page: str, name: str) -> list[dict[str, str]]:
    """Return the rows of the first table of a generated part of a page in docs/results."""
    text = (pages.ROOT / "docs" / "results" / f"{page}.md").read_text()
    found = re.search(rf"<!-- table: {name} -->.*?\n((?:\|[^\n]*\n)+)", text, re.DOTALL)
    assert found, f"docs/results/{page}.md has no table {name}"
    head, _, *rows = ([cell.strip(" `") for cell in line.split("|")[1:-1]] for line in found[1].splitlines())
    return [dict(zip(head, row, strict=True)) for row in rows]


def figures() -> str:
    """Return the claims of README.md and docs/index.md with their figures; the links are relative to README.md."""
    claims = (
        f"**Solved.** The optimal values of all {positions()} positions of the two-player game without powers are "
        "known, so every decision has an exact regret ([perfect play](docs/results/perfect-play.md)).",
        f"**Fast.** {rate('game-8192-checked')} decisions per second on one thread, with random actions, checks, "
        f"masks, observations and rewards; {rate('vector-4096')} decisions through Gymnasium against `greedy` "
        "([speed](docs/results/speed.md)).",
        "**Strong baselines.** After five minutes of self-play, the bundled agent `td` wins "
        f"{perfect('td')} of 100 games against [perfect play](docs/results/perfect-play.md#strength-of-policies), and "
        f"{wins('td', 'greedy').split()[0]} against `greedy` ([benchmark](docs/results/benchmark.md)).",
        "**Works with** Gymnasium, PettingZoo, Stable-Baselines3, RLlib, TorchRL, OpenSpiel, JAX and Ray "
        "([guides](docs/how-to/libraries.md), [tested releases](docs/reference/clients.md)).",
    )
    fill = functools.partial(textwrap.fill, width=120, break_long_words=False, break_on_hyphens=False)
    return "\n".join(fill(claim, initial_indent="- ", subsequent_indent="  ") for claim in claims)


def _solved() -> dict[str, str]:
    return table_of("perfect-play", "boards")[-1]


def perfect(policy: str) -> str:
    """Return the share of games that a policy wins against perfect play on the largest solved board."""
    place = _solved()["plain spaces"], policy
    grades = table_of("perfect-play", "policies")
    (row,) = (row for row in grades if (row["plain spaces"], row["policy"]) == place)
    return f"{float(row['win share by regret, %'].split()[0]):.1f}"


def positions() -> str:
    """Return the number of positions of the largest solved board."""
    return _solved()["positions"]


FIGURES: dict[str, Callable[..., str]] = {
    "rate": rate, "times": times, "share": share, "wins": wins, "perfect": perfect, "positions": positions,
}  # fmt: skip


def figure(name: str) -> str:
    """Return the value of a figure; raise KeyError for an unknown figure, case or policy."""
    kind, *arguments = name.split()
    return FIGURES[kind](*arguments)


def renewed(page: Path) -> str:
    """Return the text of a page with current figures."""
    folder = page.parent.relative_to(pages.ROOT).as_posix()
    text = pages.renew(page.read_text(), {"figures": figures().replace(f"]({folder}/", "](")})
    return re.sub(
        r"(<!-- figure: ([^>]*?) -->).*?(<!-- end -->)",
        lambda found: f"{found[1]}{figure(found[2])}{found[3]}",
        text,
    )
