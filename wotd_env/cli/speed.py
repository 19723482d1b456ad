"""`wotd speed`: measure the speed of every interface (see `wotd_env.speed`)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from wotd_env import speed
from wotd_env.cli.common import check_seconds, explained
from wotd_env.cli.options import option, rules_options
from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import Rules


@explained()
@rules_options("players", "powers")
def command(
    rules: dict[str, Any],
    batch: int = option(8192, "Games in a batch, for the batched interfaces."),
    threads: int = option(1, "Threads, for the batched interfaces."),
    seconds: float = option(1.0, "Wall-clock seconds per measurement."),
) -> None:
    """Measure the decisions per second of each interface on this machine, by wall clock."""
    check_integer("batch", batch, 1, 1_000_000)
    check_integer("threads", threads, 1, 1024)
    check_seconds("seconds", seconds, 0.01)
    Rules(**rules)
    console = Console()
    table = Table("interface", "games", "decisions/s", "environment only", box=SIMPLE_HEAD)
    rows: list[tuple[str, Callable[..., speed.Chunk], int]] = [
        ("Game.step_autoreset", speed.game, batch),
        ("vector environment against greedy", speed.vector, batch),
        ("Game, one game", speed.one_game, 1),
        ("Gymnasium against greedy", speed.single, 1),
        ("PettingZoo raw_env", speed.aec, 1),
        ("PettingZoo env()", partial(speed.aec, wrapped=True), 1),
    ]
    for words, loop, games in rows:
        with console.status(words):
            rates = speed.rate(loop(batch=games, threads=threads if games > 1 else 1, **rules), seconds)
        table.add_row(words, f"{games:,}", *(f"{decisions:,.0f}" for decisions in rates))
    console.print(table)
