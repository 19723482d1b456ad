"""Estimates with 95 % intervals, and tables of text in the terminal, in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from rich.table import Table


class Estimate(NamedTuple):
    """An estimate with its 95 % interval."""

    value: float
    low: float
    high: float

    @classmethod
    def around(cls, value: float, error: float) -> Estimate:
        """Return the estimate whose interval extends by `error` to both sides."""
        return cls(value, value - error, value + error)

    @property
    def error(self) -> float:
        """Half the width of the interval."""
        return (self.high - self.low) / 2


def plain_spaces(count: int) -> str:
    """Return a number of plain spaces in words."""
    return f"{count} plain space{'' if count == 1 else 's'}"


def percent(share: Estimate | None, digits: int = 1) -> str:
    """Format a share and its error in percent. The result is empty if `share` is None."""
    return "" if share is None else f"{100 * share.value:.{digits}f} % ±{100 * share.error:.{digits}f}"


def signed(estimate: Estimate, digits: int, unit: float = 1) -> str:
    """Format an estimate and its error, e.g. "+0.25 ±0.03". Both numbers are multiplied by `unit`."""
    return f"{unit * estimate.value:+.{digits}f} ±{unit * estimate.error:.{digits}f}"


def thousandths(regret: Estimate | None, digits: int = 2) -> str:
    """Format a mean regret and its upper error in thousandths. The result is empty if `regret` is None."""
    if regret is None:
        return ""
    return f"{1000 * regret.value:.{digits}f} ±{1000 * (regret.high - regret.value):.{digits}f}"


class Shown(NamedTuple):
    """A table as text."""

    title: str
    columns: list[str]
    rows: list[list[str]]


def as_table(shown: Shown) -> Table:
    """Return a table for `rich`."""
    from rich.table import Column, Table  # in the extra arena

    numbers = (Column(name, justify="right", overflow="fold") for name in shown.columns[1:])
    table = Table(
        Column(shown.columns[0], overflow="fold"), *numbers, title=shown.title, title_justify="left"
    )
    for row in shown.rows:
        table.add_row(*row)
    return table


Cells = str | Iterable[object]  # the cells of a row: a sequence, or text with `|` between the cells


def markdown(head: Cells, rows: Iterable[Cells], right: Iterable[int] = ()) -> str:
    """Return a Markdown table; `right` contains the indices of the right-aligned columns."""
    first, *others = (
        cells if isinstance(cells, str) else " | ".join(map(str, cells)) for cells in (head, *rows)
    )
    numbers = set(right)
    rule = ("---:" if column in numbers else "---" for column in range(first.count("|") + 1))
    return "\n".join(f"| {line} |" for line in (first, " | ".join(rule), *others))


def as_markdown(shown: Iterable[Shown]) -> str:
    """Return tables as Markdown."""
    tables = (markdown(each.columns, each.rows, right=range(1, len(each.columns))) for each in shown)
    return "\n\n".join(f"{each.title}\n\n{table}" for each, table in zip(shown, tables, strict=True))


def as_latex(shown: Iterable[Shown]) -> str:
    """Return tables as LaTeX code, which needs the LaTeX package booktabs."""
    texts = []
    for table in shown:
        head, *body = (" & ".join(map(_latex, cells)) + r" \\" for cells in (table.columns, *table.rows))
        title, columns = table.title.replace("\n", ". "), "l" + "r" * (len(table.columns) - 1)
        begin = [f"% {title}", rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule"]
        texts.append("\n".join([*begin, *body, r"\bottomrule", r"\end{tabular}"]))
    return "\n\n".join(texts)


def _latex(cell: str) -> str:
    for special in "\\{}&%$#_":
        cell = cell.replace(special, r"\textbackslash " if special == "\\" else f"\\{special}")
    return cell.replace("±", r"$\pm$")
