"""The `wotd` command: a file for each of its commands, and what they share in `common` and `options`.

Whatever takes time to import is imported inside the functions that need it, so that the command starts at once.
"""

from __future__ import annotations

import os
import sys

try:
    import typer

    from wotd_env.cli import analyze, arena, bench, compile, policies, record, replay, serve, solve, watch
    from wotd_env.cli.common import FAILED, FORFEITS, INTERRUPTED, WRONG_USE
except ModuleNotFoundError as missing:
    raise SystemExit(f"the wotd command needs {missing.name}: pip install 'wotd-env[arena]'") from None

__all__ = ["FAILED", "FORFEITS", "INTERRUPTED", "WRONG_USE", "app", "main"]

app = typer.Typer(
    name="wotd",
    help="Way of the Dragon for reinforcement learning: tournaments, games to watch, the exact solution.",
    epilog=f"Exit codes: 0 done, {FAILED} failed, {WRONG_USE} wrong use, {FORFEITS} done but policies forfeited games, "
    f"{INTERRUPTED} interrupted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for module in (policies, arena, compile, bench, watch, serve, record, replay, solve, analyze):
    app.command(module.__name__.rpartition(".")[2])(module.command)


def main() -> None:
    """Run the `wotd` command."""
    sys.path.append(os.getcwd())  # policies of the folder one is in, as MODULE:OBJECT
    app()
