"""Write docs/reference/commands.md, every `wotd` command with its options, from the help texts (`make docs-tables`)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import typer

from tools import pages
from wotd_env.cli import app

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "commands.md"

INTRODUCTION = """\
# The `wotd` command

The command is part of the extra `arena` ([how to install it](../how-to/install.md)). `wotd COMMAND --help` shows the
same text in the terminal, and `wotd --version` the version. {exits}

Long commands show their progress, and Ctrl-C interrupts them. Run the same command again to continue a tournament
(`arena`), a table (`solve`) or recorded games (`record`). `wotd play --resume` continues a game.
"""

RULES = """\
## Options of the rules

Commands that play games take these options; [the rules](rules.md) explain them.
"""


def page() -> str:
    """Return the text of the page."""
    group: Any = typer.main.get_command(app)
    parts = [INTRODUCTION.format(exits=group.epilog)]
    parts += [_section(name, command) for name, command in group.commands.items()]
    shared = [option for option in group.commands["arena"].params if _is_rule(option)]
    parts.append(f"{RULES}\n{_options(shared)}\n")
    return "\n".join(parts)


def _section(name: str, command: Any) -> str:
    example = command.epilog.removeprefix("Example: ").strip("`")
    parts = [f"## wotd {name}", inspect.cleandoc(command.help), f"```sh\n{example}\n```"]
    own = [parameter for parameter in command.params if not _is_rule(parameter) and parameter.name != "help"]
    rules = [parameter for parameter in command.params if _is_rule(parameter)]
    own += [rule for rule in rules if isinstance(rule.show_default, str)]  # it depends on the command
    if own:
        parts.append(_options(own))
    if rules:
        words = ", ".join(f"`{rule.opts[0]}`" for rule in rules)
        parts.append(f"Rules: {words}, see [options of the rules](#options-of-the-rules).")
    return "\n\n".join(parts) + "\n"


def _is_rule(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == "Rules"


def _options(parameters: Iterable[Any]) -> str:
    rows = []
    for parameter in parameters:
        option = parameter.param_type_name == "option"
        names = ", ".join(f"`{name}`" for name in parameter.opts) if option else f"`{parameter.name.upper()}`"
        rows.append((names, _cell(parameter.help), _default(parameter)))
    return pages.table("option | effect | default", rows)


def _default(parameter: Any) -> str:
    """Return the default of an option as the help shows it."""
    if isinstance(parameter.show_default, str):
        return _cell(parameter.show_default)
    if parameter.required:
        return "must be given"
    none = parameter.default is None or isinstance(parameter.default, bool)
    return "" if none else f"`{parameter.default}`"


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
