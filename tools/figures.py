"""Write measured figures into the pages that quote them (`make docs-tables`).

A figure is measured in one place; other pages quote it as `<!-- figure: NAME -->value<!-- end -->`. The claims on the
first pages are `<!-- table: figures -->`. The sources are `benchmarks/results.json` (wall clock) and the pages
docs/results/ladder.md and docs/results/perfect-play.md.

| name | value |
| --- | --- |
| `rate CASE` | decisions, or planned turns, per second of a case of the benchmark |
| `times CASE CASE` | how many times faster the first case is |
| `share CASE CASE` | the speed of the first environment alone, in per cent of the second one's |
| `ladder POLICY POLICY` | share of games that the first policy wins in the two-player basic game, per cent |
"""

from __future__ import annotations

import functools
import json
import re
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools import pages

ROOT = Path(__file__).parents[1]


@functools.cache
def _measured() -> Any:
    return json.loads((ROOT / "benchmarks" / "results.json").read_text())


def _rate(case: str) -> float:
    return float(_measured()["cases"][case]["median"])


def rate(case: str) -> str:
    """Return the decisions per second of a case, with three digits."""
    value = float(f"{_rate(case):.3g}")
    return f"{value / 1e6:.1f} million" if value >= 1e6 else f"{value:,.0f}"


def times(fast: str, slow: str) -> str:
    """Return the ratio of two rates, with two digits."""
    ratio = _rate(fast) / _rate(slow)
    return f"{float(f'{ratio:.2g}'):,.0f}" if ratio >= 10 else f"{ratio:.2g}"


def share(ours: str, theirs: str) -> str:
    """Return the ratio of the rates of two environments alone, in per cent."""
    cases = _measured()["cases"]
    return f"{cases[ours]['inside'] / cases[theirs]['inside']:.0%}".replace("%", " %")


def ladder(policy: str, opponent: str) -> str:
    """Return the win share of a policy against another one from docs/results/ladder.md, in per cent."""
    section = (ROOT / "docs" / "results" / "ladder.md").read_text().partition("## 2 players, basic game\n")[2]
    table = section.partition("How often the row finishes ahead")[2].partition("\n\n")[2].partition("\n\n")[0]
    head, _, *rows = ([cell.strip(" `") for cell in line.split("|")[1:-1]] for line in table.splitlines())
    shares = {row[0]: dict(zip(head[1:], row[1:], strict=True)) for row in rows}
    share, error = shares[policy][opponent].split("% ±")
    return f"{float(share):.1f} % ± {float(error):.1f}"


FIGURES: dict[str, Callable[..., str]] = {"rate": rate, "times": times, "share": share, "ladder": ladder}
"""The figures by the first word of their names; the other words are the arguments."""


def figure(name: str) -> str:
    """Return the value of a figure; raise KeyError for an unknown figure, case or policy."""
    kind, *arguments = name.split()
    return FIGURES[kind](*arguments)


def figures() -> str:
    """Return the claims of the first pages with their figures; the links are relative to README.md."""
    claims = (
        f"**Solved.** The optimal value of all {_solved()[1]} positions of the two-player game is known, so every "
        "decision of an agent has an exact regret ([perfect play](docs/results/perfect-play.md), "
        "[benchmark](docs/results/benchmark.md)).",
        f"**Fast.** {rate('game-8192')} decisions per second on one thread, with dice, masks, observations and "
        f"rewards; {rate('vector-4096')} through Gymnasium against `greedy` ([speed](docs/results/speed.md)).",
        "**Strong baselines.** After five minutes of self-play, the bundled agent `td` wins "
        f"{against_perfect('td')} of 100 games against perfect play, and "
        f"{ladder('td', 'greedy').split()[0]} against `greedy` ([ladder](docs/results/ladder.md)).",
        "**At home in** Gymnasium, PettingZoo, Stable-Baselines3, RLlib, TorchRL, OpenSpiel, JAX and Ray "
        "([guides](docs/how-to/libraries.md), [tested releases](docs/reference/clients.md)).",
    )
    fill = functools.partial(textwrap.fill, width=120, break_long_words=False, break_on_hyphens=False)
    return "\n".join(fill(claim, initial_indent="- ", subsequent_indent="  ") for claim in claims)


def against_perfect(policy: str) -> str:
    """Return the share of games that a policy wins against perfect play on the largest solved board."""
    found = re.search(rf"^\| {_solved()[0]} \| `{policy}` \| ([\d.]+)%", _solution(), re.MULTILINE)
    assert found, f"docs/results/perfect-play.md has no grade of {policy}"
    return f"{float(found[1]):.1f}"


def _solution() -> str:
    return (ROOT / "docs" / "results" / "perfect-play.md").read_text()


def _solved() -> list[str]:
    """Return the row of the largest board in docs/results/perfect-play.md."""
    block = re.search(r"<!-- table: boards -->\n+(.*?)\n+<!-- end -->", _solution(), re.DOTALL)
    assert block, "docs/results/perfect-play.md has no table of boards"
    return [cell.strip() for cell in block[1].splitlines()[-1].strip("|").split("|")]


def renewed(page: Path) -> str:
    """Return the text of a page with current figures."""
    folder = page.parent.relative_to(ROOT).as_posix()
    text = pages.renew(page.read_text(), {"figures": figures().replace(f"]({folder}/", "](")})
    return re.sub(
        r"(<!-- figure: ([^>]*?) -->).*?(<!-- end -->)",
        lambda found: f"{found[1]}{figure(found[2])}{found[3]}",
        text,
    )
