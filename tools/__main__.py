"""Write the generated parts of README.md and docs/, and their pictures (`make docs-tables`).

`WRITERS` lists the other commands that write results and generated files.
"""

from pathlib import Path

from agents import evaluate
from entries import entry
from entries import tables as of_entries
from tools import figures, headroom, pages, tables
from wotd_env import Game, Rules, make_policy
from wotd_env.rendering.cases import CASES, draw_case
from wotd_env.rendering.scene import HEIGHT, WIDTH
from wotd_env.reporting import markdown

RULES_FOLDER = pages.ROOT / "docs" / "reference" / "rules"
ENTRIES_FILE = pages.ROOT / "docs" / "results" / "entries.svg"
HEADROOM_FILE = ENTRIES_FILE.with_name("headroom.svg")
TURN_FILE = pages.ROOT / "docs" / "turn.svg"  # picture of a turn in README.md and docs/
GAME_FILE = pages.ROOT / "docs" / "game.gif"  # animation at the top of README.md
SHOWN = 61  # number of positions in the animation, which shows the end of a game

WRITERS = (
    # command | written files | changes after which it must run
    ("python -m tools.wasm", "the engine as WebAssembly", "rules, engine, planner"),
    ("python tests/core/playthroughs.py --regenerate", "tests/core/playthroughs", "rules"),
    ("make solution", "docs/results/perfect-play.md", "rules, solver"),
    ("python -m tools.powers", "docs/results/powers.md", "rules, solver"),
    ("python -m tools.layouts", "docs/results/layouts.md", "rules, solver"),
    ("python -m tools.guarantees", "docs/results/guarantees.md", "rules, solver"),
    ("make ladder", "docs/results/ladder.md, and the ratings of `wotd policies`", "rules, policies"),
    (
        "python -m tools.benchmark",
        "tables of policies in docs/results/benchmark.md",
        "rules, policies, positions",
    ),
    ("python -m entries --measure", "results of the entries", "rules, learners"),
    ("python -m tools.panel", "docs/how-to/language-models.md", "rules, policies, text"),
    ("python -m tools.process_reward", "docs/results/process-reward.md", "rules, solver, examples/ppo.py"),
    ("python -m tools.generalization", "docs/results/generalization.md", "rules, learners, positions"),
    ("python -m tools.models", "docs/results/models.md", "bundled networks"),
    ("python -m tools.puzzles", "puzzles of `wotd serve`", "rules, policies"),
    ("make speed", "docs/results/speed.md", "engine, interfaces"),
    ("make test-clients", "docs/reference/clients.md", "interfaces, other libraries"),
    ("make docs-tables", "generated tables, quoted figures and pictures of README.md and docs/", "anything"),
)
"""The commands that write results and generated files, in the order in which they are run."""


def writers(changed: str = "") -> str:
    """Return the table of `WRITERS`, or of the writers that a change of `changed` concerns."""
    rows = [
        (f"`{command}`", *words)
        for command, *words in WRITERS
        if words[1] == "anything" or changed in words[1]
    ]
    return markdown(("command", "writes", "after changes of"), rows)


def contents() -> dict[str, str]:
    """Return the generated tables by name."""
    of_pages = {"writers": writers(), "rule_writers": writers("rules")}
    rows = of_entries.rows(entry.names())
    of_rows = {"entries": of_entries.tables(rows), "headroom": headroom.table(headroom.headroom(rows))}
    return tables.all_tables() | of_pages | of_rows


def cases() -> dict[Path, str]:
    """Return the pictures of docs/reference/rules.md: file -> SVG text."""
    return {RULES_FOLDER / f"{name}.svg": draw_case(name) + "\n" for name in CASES}


def turn() -> str:
    """Return the picture of a turn as SVG: a hold and, to the right of it, the move that follows."""
    hold, move = (
        draw_case(name).replace("<svg ", f'<svg x="{column * WIDTH}" ', 1)
        for column, name in enumerate(("hold", "enter"))
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * WIDTH} {HEIGHT}" role="img">'
    return f"{head}<title>A turn: a hold, then a move</title>{hold}{move}</svg>\n"


def main() -> None:
    """Write all pages and pictures."""
    generated = contents()
    for page in pages.PAGES:
        page.write_text(pages.renew(figures.renewed(page), generated))
    rows = of_entries.rows(entry.names())
    of_entries.draw(rows, ENTRIES_FILE)
    headroom.draw(headroom.headroom(rows), HEADROOM_FILE)
    for file, picture in (cases() | {TURN_FILE: turn()}).items():
        file.write_text(picture)
    played = evaluate.replay(Game(Rules(players=4)), make_policy("td"), seed=5)
    played.states, played.actions = played.states[-SHOWN:], played.actions[-SHOWN:]
    played.save(GAME_FILE, width=480)


if __name__ == "__main__":
    main()
