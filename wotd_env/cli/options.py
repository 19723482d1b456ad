"""Options that several commands have, above all those of the rules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import Field, fields
from typing import Annotated, Any

import typer

from wotd_env.core.rules import POWER_MODES, Rules

__all__ = ["Quiet", "Seed", "Trust", "check_no_rules", "rules_options"]

Seed = Annotated[int, typer.Option(help="All dice and all random policies follow from it.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress bar.")]
Trust = Annotated[
    bool,
    typer.Option("--trust", help="Read files of policies that can run code: sb3:FILE of somebody you trust."),
]

_RULES: dict[str, tuple[Any, str]] = {
    "players": (int, "Seats, 2 to 5."),
    "spaces": (int, "Plain spaces on each path, 0 to 10."),
    "powers": (str, f"Powers of the animals: {', '.join(POWER_MODES)}."),
    "immunity": (bool, "Pieces on paths of their own colour are never swapped."),
    "dead_pieces": (int, "Pieces of unused colours that stand in the way."),
    "colors": (str | None, "Colours of the seats, such as water,fire, or random."),
    "start": (str, "Who begins: dragons, loser, or a seat."),
    "max_turns": (int, "Turns after which a game is truncated: nobody has won."),
}
"""The type and the help of the option for every field of `Rules`."""


def rules_options(*names: str, **settled: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of `Rules`, in place of its parameter `rules`.

    As `rules` the command is given a dict, field -> value, that `Rules` takes and checks.

    Args:
        *names: the fields; all by default.
        **settled: field -> its default in words. If it is not given it is not in the dict, and the command settles it.
    """
    options = {
        field.name: _option(field, settled.get(field.name))
        for field in fields(Rules)
        if not names or field.name in names
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            values = {name: given.pop(name) for name in options}
            rules = {name: _read(name, value) for name, value in values.items()}
            command(**given, rules={name: rules[name] for name in rules if rules[name] is not None})

        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "rules"]
        parameters = [*own, *options.values()]
        # Typer reads both.
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate


def check_no_rules(context: typer.Context, rules: dict[str, Any], option: str) -> None:
    """Make sure that no rule is given beside an option that brings its rules.

    Raises:
        ValueError: if there is one.
    """
    for name in rules:
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} is a rule, and {option} brings its rules")


def _option(field: Field[Any], settled: str | None) -> inspect.Parameter:
    """Return the option of a field as a parameter of a command."""
    kind, words = _RULES[field.name]
    flag = [f"--{field.name.replace('_', '-')}"] if kind is bool else []
    option = typer.Option(*flag, help=words, rich_help_panel="Rules", show_default=settled or True)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if settled else field.default,
        annotation=Annotated[kind | None if settled else kind, option],
    )


def _read(name: str, value: Any) -> Any:
    """Return the value of a field from that of its option."""
    if name == "colors" and value and value != "random":
        return tuple(value.split(","))
    if name == "start" and value.isdecimal():
        return int(value)
    return value
