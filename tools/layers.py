"""Draw the layers of the package from the import contract in pyproject.toml (`make docs-tables`)."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "layers.svg"
WIDTH, HEIGHT, GAP, MARGIN = 720, 44, 18, 12


def layers() -> list[list[str]]:
    """Return the packages of each layer, top layer first."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (contract,) = [contract for contract in contracts if contract.get("containers") == ["wotd_env"]]
    return [[name.strip().strip("()") for name in layer.split("|")] for layer in contract["layers"]]


def picture() -> str:
    """Return the picture as SVG: a row for each layer, with an arrow to the layers below."""
    rows = layers()
    parts = []
    for number, names in enumerate(rows):
        top = MARGIN + number * (HEIGHT + GAP)
        width = (WIDTH - 2 * MARGIN - GAP * (len(names) - 1)) / len(names)
        for column, name in enumerate(names):
            left = MARGIN + column * (width + GAP)
            parts.append(f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{HEIGHT}" rx="8"/>')
            parts.append(f'<text x="{left + width / 2:.1f}" y="{top + HEIGHT / 2 + 5}">{name}</text>')
        if number < len(rows) - 1:
            middle, bottom = WIDTH / 2, top + HEIGHT
            parts.append(f'<path d="M{middle} {bottom + 3}v{GAP - 8}m-4 -4l4 5l4 -5"/>')
    height = 2 * MARGIN + len(rows) * (HEIGHT + GAP) - GAP
    words = "; ".join(", ".join(names) for names in rows)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}"><title>The layers of wotd_env, each above the layers that it may import: {words}</title>'
        "<style>svg{--line:#57534e;--fill:#f5f0e6;--text:#1c1917}"
        "@media(prefers-color-scheme:dark){svg{--line:#a8a29e;--fill:#292524;--text:#f5f5f4}}"
        "rect{fill:var(--fill);stroke:var(--line)}path{fill:none;stroke:var(--line);stroke-width:1.5}"
        "text{fill:var(--text);font:15px ui-monospace,monospace;text-anchor:middle}</style>"
        f"{''.join(parts)}</svg>\n"
    )


if __name__ == "__main__":
    PICTURE.write_text(picture())
