"""Pages that are written in part: Markdown tables, and the places in a page where they stand.

A table stands between `<!-- table: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

__all__ = ["renew", "table"]


def table(head: Iterable[object], rows: Iterable[Iterable[object]], right: Iterable[int] = ()) -> str:
    """Return a Markdown table.

    Args:
        head: the headings of its columns.
        rows: the cells of each row.
        right: the columns, from 0 on, that are aligned to the right, as numbers are.
    """
    lines = [list(head), *map(list, rows)]
    numbers = set(right)
    lines.insert(1, ["---:" if column in numbers else "---" for column in range(len(lines[0]))])
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def renew(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return the text of a page with the tables written anew whose names are given, each by calling its function."""

    def renewed(block: re.Match[str]) -> str:
        begin, name, old, end = block.groups()
        return f"{begin}{tables[name]()}{end}" if name in tables else f"{begin}{old}{end}"

    pattern = r"(<!-- table: (\w+) -->\n+)(.*?)(\n+<!-- end -->)"
    return re.sub(pattern, renewed, page, flags=re.DOTALL)
