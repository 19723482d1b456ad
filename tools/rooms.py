"""Draw the rooms of the package from the import contract in pyproject.toml (`make docs-tables`)."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"
WIDTH, HEIGHT, GAP, MARGIN = 720, 44, 18, 12


def layers() -> list[list[str]]:
    """Return the rooms from the top to the bottom, those of one floor together."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [contract for contract in contracts if contract.get("containers") == ["wotd_env"]]
    return [[room.strip().strip("()") for room in floor.split("|")] for floor in contract["layers"]]


def picture() -> str:
    """Return the picture: a floor for each layer, and an arrow from each to what it uses."""
    floors = layers()
    parts = []
    for number, rooms in enumerate(floors):
        top = MARGIN + number * (HEIGHT + GAP)
        width = (WIDTH - 2 * MARGIN - GAP * (len(rooms) - 1)) / len(rooms)
        for place, room in enumerate(rooms):
            left = MARGIN + place * (width + GAP)
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" rx="8"/>')
            parts.append(f'<text x="{left + width / 2:.1f}" y="{top + HEIGHT / 2 + 5}">{room}</text>')
        if number < len(floors) - 1:
            middle, bottom = WIDTH / 2, top + HEIGHT
            parts.append(f'<path d="M{middle} {bottom + 3}v{GAP - 8}m-4 -4l4 5l4 -5"/>')
    height = 2 * MARGIN + len(floors) * (HEIGHT + GAP) - GAP
    words = "; ".join(", ".join(rooms) for rooms in floors)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}"><title>The rooms of wotd_env, each above those that it may use: {words}</title>'
        "<style>svg{--line:#57534e;--fill:#f5f0e6;--text:#1c1917}"
        "@media(prefers-color-scheme:dark){svg{--line:#a8a29e;--fill:#292524;--text:#f5f5f4}}"
        "rect{fill:var(--fill);stroke:var(--line)}path{fill:none;stroke:var(--line);stroke-width:1.5}"
        "text{fill:var(--text);font:15px ui-monospace,monospace;text-anchor:middle}</style>"
        f"{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
