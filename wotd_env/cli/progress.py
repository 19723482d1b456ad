"""The progress bar of long commands."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column


@contextmanager
def progress_bar(unit: str, quiet: bool = False) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar; yield the function f(done, total) that updates the bar."""
    columns = (
        BarColumn(None, table_column=Column(min_width=8, ratio=1)),
        MofNCompleteColumn(table_column=Column(no_wrap=True)),
        TextColumn("{task.description}{task.fields[rate]}, {task.fields[word]}", markup=False),
        TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
    )
    with Progress(*columns, console=Console(stderr=True), disable=quiet, expand=True) as bar:
        short = unit if len(unit) <= 24 else f"{unit[:23]}…"  # keeps the bar within 80 columns
        task = bar.add_task(short, total=None, rate="", word="left")
        first: list[float] = []  # `done` and time at the first call; the rate leaves out earlier work

        def move(done: int, total: int) -> None:
            now = time.monotonic()
            if not first:
                first[:] = done, now
            rate = (done - first[0]) / (now - first[1]) if done > first[0] and now > first[1] else 0
            shown = f", {rate:,.0f}/s" if rate >= 1 else ""
            word = "took" if done >= total else "left"  # describes the time in the last column
            bar.update(task, completed=done, total=total, rate=shown, word=word)

        yield move
