"""The progress bar of long commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TimeRemainingColumn
from rich.table import Column
from rich.text import Text


@contextmanager
def progress_bar(unit: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield the function f(done, total) that updates it."""
    columns = (
        BarColumn(None, table_column=Column(min_width=8, ratio=1)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        _Rate(unit if len(unit) <= 24 else f"{unit[:23]}…", Column(no_wrap=True)),  # 80 characters in all
        TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, expand=True) as bar:
        task = bar.add_task("", total=None, rate="")
        first: list[float] = []  # done and time at the first call; earlier work does not count for the rate

        def move(done: int, total: int) -> None:
            now = time.monotonic()
            if not first:
                first[:] = done, now
            rate = (done - first[0]) / (now - first[1]) if done > first[0] and now > first[1] else 0
            bar.update(task, completed=done, total=total, rate=f", {rate:,.0f}/s" if rate >= 1 else "")

        yield move


class _Rate(ProgressColumn):
    """Unit and mean rate, followed by `left` or `took` for the time in the next column."""

    def __init__(self, unit: str, column: Column) -> None:
        super().__init__(column)
        self._unit = unit

    def render(self, task: Task) -> Text:
        return Text(f"{self._unit}{task.fields['rate']}, {'took' if task.finished else 'left'}")
