"""The Markdown pages and their generated parts.

A generated part is the text from `<!-- table: NAME -->` to `<!-- end -->`.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for places in ("*.md", "docs/*.md", "docs/*/*.md") for page in ROOT.glob(places))

Cells = str | Iterable[object]  # the cells of a row: a sequence, or text with `|` between the cells


def table(head: Cells, rows: Iterable[Cells], right: Iterable[int] = ()) -> str:
    """Return a Markdown table; `right` contains the indices of the right-aligned columns."""
    first, *others = (
        cells if isinstance(cells, str) else " | ".join(map(str, cells)) for cells in (head, *rows)
    )
    numbers = set(right)
    rule = ("---:" if column in numbers else "---" for column in range(first.count("|") + 1))
    return "\n".join(f"| {line} |" for line in (first, " | ".join(rule), *others))


def renew(page: str, tables: Mapping[str, str]) -> str:
    """Return the text `page` with new generated parts. `tables` maps NAME to the new text of a part."""

    def renewed(block: re.Match[str]) -> str:
        begin, name, old, end = block.groups()
        return f"{begin}{tables.get(name, old)}{end}"

    pattern = r"(<!-- table: (\w+) -->\n+)((?:(?!<!-- end -->).)*?)(\n+<!-- end -->)"
    return re.sub(pattern, renewed, page, flags=re.DOTALL)
