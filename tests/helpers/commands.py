"""Run the `wotd` command in the process of the test."""

from typer.testing import CliRunner, Result

from wotd_env.cli import app


def wotd(command: str, *more: object, typed: str | None = None) -> Result:
    """Run `wotd` with the words of `command` and with further arguments; `typed` is the standard input."""
    return CliRunner(env={"COLUMNS": "120"}).invoke(app, [*command.split(), *map(str, more)], input=typed)
