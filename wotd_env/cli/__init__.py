"""The `wotd` command. Each subcommand has its own module.

Slow imports are inside functions, so that the command starts fast.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Annotated

from wotd_env import __version__
from wotd_env.extras import MissingExtraError, needed_for
from wotd_env.process import FAILED, WRONG_USE, prepare_streams

try:
    with needed_for("the wotd command", "arena"):
        import typer

        from wotd_env.cli.common import FORFEITS, INTERRUPTED
except MissingExtraError as missing:
    raise SystemExit(str(missing)) from None

__all__ = ["FAILED", "FORFEITS", "INTERRUPTED", "WRONG_USE", "app", "main"]

app = typer.Typer(
    name="wotd",
    help="Way of the Dragon for reinforcement learning: play, watch and record games, run tournaments, solve the "
    "game.",
    epilog=f"Exit codes: 0: done; {FAILED}: failed; {WRONG_USE}: wrong usage; {FORFEITS}: done, but policies forfeited "
    f"games; {INTERRUPTED}: interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_EXAMPLES = (
    "wotd policies",
    "wotd play me planner",
    "wotd watch planner greedy --seed 7",
    "wotd serve",
    "wotd replay game.txt --out game.html",
    "wotd arena greedy planner random --games 1000",
    "wotd analyze planner greedy --spaces 1 --games 1000",
    "wotd solve --spaces 3",
    "wotd record planner greedy --games 1000 --out games.parquet",
    "wotd benchmark greedy --spaces 3",
    "wotd positions --spaces 3 --split train --out positions.parquet",
    "wotd mcp planner --spaces 1",
    "wotd speed --players 3",
    "wotd compile",
)
"""`make docs-tables` copies these examples to docs/reference/commands.md."""

for example in _EXAMPLES:
    name = example.split()[1]
    command = importlib.import_module(f"wotd_env.cli.{name}").command
    app.command(name, epilog=f"Example: `{example}`")(command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"wotd-env {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the `wotd` command."""
    prepare_streams()
    # MODULE:OBJECT can name a module in the current folder. The folder is last, so that it replaces no other module.
    here = os.getcwd()
    sys.path[:] = [*(folder for folder in sys.path if folder not in ("", here)), here]
    app()
