"""The generated parts of docs/reference/commands.md: every `wotd` command with its options, from the help texts."""

import inspect
import re
from collections.abc import Iterable
from typing import Any

import typer

from tools import pages
from wotd_env.cli import app


def exits() -> str:
    """Return the sentence on the exit codes."""
    return str(_group().epilog)


def commands() -> str:
    """Return a section for each command."""
    return "\n\n".join(_section(name, command) for name, command in _group().commands.items())


def options() -> str:
    """Return the table of the options of the rules."""
    return _options(option for option in _group().commands["arena"].params if _is_rule(option))


def _group() -> Any:
    return typer.main.get_command(app)


def _section(name: str, command: Any) -> str:
    example = command.epilog.removeprefix("Example: ").strip("`")
    parts = [f"## wotd {name}", inspect.cleandoc(command.help), f"```sh\n{example}\n```"]
    own = [parameter for parameter in command.params if not _is_rule(parameter) and parameter.name != "help"]
    rules = [parameter for parameter in command.params if _is_rule(parameter)]
    # List a rule with the command's own options if its default depends on the command.
    own += [rule for rule in rules if isinstance(rule.show_default, str)]
    if own:
        parts.append(_options(own))
    if rules:
        words = ", ".join(f"`{rule.opts[0]}`" for rule in rules)
        parts.append(f"Rules: {words}, see [options of the rules](#options-of-the-rules).")
    return "\n\n".join(parts)


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
