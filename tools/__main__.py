"""Write the generated parts of README.md and docs/, and their pictures (`make docs-tables`)."""

from pathlib import Path

from agents import evaluate
from entries import entry
from entries import tables as of_entries
from tools import figures, pages, tables
from wotd_env import Game, Rules, make_policy
from wotd_env.rendering.cases import CASES, draw_case

RULES_FOLDER = pages.ROOT / "docs" / "reference" / "rules"
ENTRIES_FILE = pages.ROOT / "docs" / "results" / "entries.svg"
GAME_FILE = pages.ROOT / "docs" / "game.gif"  # animation at the top of README.md
SHOWN = 61  # number of positions in the animation, which shows the end of a game


def cases() -> dict[Path, str]:
    """Return the pictures of docs/reference/rules.md: file -> SVG text."""
    return {RULES_FOLDER / f"{name}.svg": draw_case(name) + "\n" for name in CASES}


def main() -> None:
    """Write all pages and pictures."""
    rows = of_entries.rows(entry.names())
    contents = tables.all_tables() | {"entries": of_entries.tables(rows)}
    for page in pages.PAGES:
        page.write_text(pages.renew(figures.renewed(page), contents))
    of_entries.draw(rows, ENTRIES_FILE)
    for file, picture in cases().items():
        file.write_text(picture)
    played = evaluate.replay(Game(Rules(players=4)), make_policy("td"), seed=5)
    played.states, played.actions = played.states[-SHOWN:], played.actions[-SHOWN:]
    played.save(GAME_FILE, width=480)


if __name__ == "__main__":
    main()
