"""Markdown tables, and the marked places of a page that a tool fills: `<!-- table: NAME -->` to `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

__all__ = ["renew", "table"]


def table(head: Iterable[object], rows: Iterable[Iterable[object]], right: Iterable[int] = ()) -> str:
    """Return a Markdown table.

    Args:
        head: the headings of the columns.
        rows: the cells of each row.
        right: the right-aligned columns, from 0.
    """
    lines = [list(head), *map(list, rows)]
    numbers = set(right)
    lines.insert(1, ["---:" if column in numbers else "---" for column in range(len(lines[0]))])
    return "\n".join(f"| {' | '.join(map(str, cells))} |" for cells in lines)


def renew(page: str, tables: Mapping[str, Callable[[], str]]) -> str:
    """Return the text of a page with the named tables replaced by the results of their functions."""

    def renewed(block: re.Match[str]) -> str:
        begin, name, old, end = block.groups()
        return f"{begin}{tables[name]()}{end}" if name in tables else f"{begin}{old}{end}"

    pattern = r"(<!-- table: (\w+) -->\n+)(.*?)(\n+<!-- end -->)"
    return re.sub(pattern, renewed, page, flags=re.DOTALL)
