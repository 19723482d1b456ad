"""Write the figures on the first pages, README.md and docs/index.md, from what was measured (`make docs-tables`).

Speed is from `benchmarks/results.json`, strength from the cards of the models in the package, exactness from the tables
of docs/solution.md.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from agents import report
from tools import pages
from wotd_env import Rules, models

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "docs" / "index.md")


def figures() -> str:
    """Return the table of figures; its links lead from the folder of README.md."""
    measured = json.loads((ROOT / "benchmarks" / "results.json").read_text())
    million = {name: f"{case['median'] / 1e6:.1f} million" for name, case in measured["cases"].items()}
    card = json.loads(models.find("td", Rules()).with_suffix(".json").read_text())
    shares = {name: report.in_percent(won["wins"], won["games"]) for name, won in card["result"].items()}
    games = {won["games"] for won in card["result"].values()}
    spaces, positions, *_, residual, value, share, _ = _solved()
    where = f"one thread, {measured['machine']}, {measured['date']}"
    rows = [
        (
            "decisions a second, 8,192 games in a batch",
            million["game-8192"],
            f"dice, masks, observations, rewards and a random choice included; {where}: "
            "[performance](docs/performance.md)",
        ),
        (
            "the same through Gymnasium, 4,096 games against `greedy`",
            million["vector-4096"],
            "the learner's decisions; the opponent's are made in between",
        ),
        (
            "games that the `td` of the package wins against `planner`",
            f"{shares['planner']} %",
            f"two players, basic game, {max(games):,} games, 95 % interval; {shares['greedy']} % against `greedy`: "
            "[models](docs/models.md)",
        ),
        (
            "positions of the two-player basic game with a known value",
            positions,
            f"{spaces} plain spaces, largest residual {residual}; who begins wins {share} (value {value}): "
            "[solution](docs/solution.md)",
        ),
    ]
    return pages.table(("", "figure", "how it was measured"), rows)


def _solved() -> list[str]:
    """Return the row of the largest board in docs/solution.md."""
    page = (ROOT / "docs" / "solution.md").read_text()
    block = re.search(r"<!-- table: boards -->\n+(.*?)\n+<!-- end -->", page, re.DOTALL)
    assert block, "docs/solution.md has no table of boards"
    return [cell.strip() for cell in block[1].splitlines()[-1].strip("|").split("|")]


def renewed(page: Path) -> str:
    """Return the text of a page with the figures as they are measured now."""
    folder = page.parent.relative_to(ROOT).as_posix()
    return pages.renew(page.read_text(), {"figures": lambda: figures().replace(f"]({folder}/", "](")})


if __name__ == "__main__":
    for file in PAGES:
        file.write_text(renewed(file))
