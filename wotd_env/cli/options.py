"""Options that several subcommands share."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, fields
from typing import Any

import typer

from wotd_env.core.rules import ABOUT, Rules, in_words, read_value
from wotd_env.core.state import States


def option(default: Any, words: str, *flag: str, shown: str | bool = True, panel: str | None = None) -> Any:
    """Return a Typer option with a help text. An option with a `flag`, such as "--quiet", takes no value.

    If the command computes the default, `shown` describes this default in words. `panel` is the heading over the option
    in the help.
    """
    return typer.Option(default, *flag, help=words, show_default=shown, rich_help_panel=panel)


CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
"""The number of cores that this process may use."""

SEED = option(0, "Seed of all dice and of all random policies.")
POSITION = option(None, "Start from this position: a line printed by `wotd watch`. It contains the rules.")
POLICIES = typer.Argument(help="One policy for each seat, or one for all seats.")
DELAY = option(0.0, "Pause after each turn, in seconds.")
QUIET = option(False, "Hide the progress bar.", "--quiet")
TRUST = option(False, "Allow policies from files, such as sb3:FILE, to run code.", "--trust")


def rules_options(*names: str, **settled: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator that replaces the parameter `rules` of a command with options for fields of `Rules`.

    `names` are the fields that get options, by default all. The command is called with `rules`, a dict from
    field to unchecked value.

    `settled` maps a field to the description of its default in the help. The command itself computes these defaults.
    `rules` contains such a field only if its option is given.
    """
    options = {
        field.name: _option(field, settled.get(field.name))
        for field in fields(Rules)
        if not names or field.name in names
    }

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            rules = {name: given.pop(name) for name in options}
            rules = {name: read_value(name, x) if isinstance(x, str) else x for name, x in rules.items()}
            command(**given, rules={name: value for name, value in rules.items() if value is not None})

        signature = inspect.signature(command, eval_str=True)
        own = [parameter for name, parameter in signature.parameters.items() if name != "rules"]
        parameters = [*own, *options.values()]
        # Typer reads the options from both attributes, `__signature__` and `__annotations__`.
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate


def refuse(context: typer.Context, names: Iterable[str], why: str) -> None:
    """Raise ValueError if the command line has one of the options in `names`; the error message ends with `why`."""
    for name in names:
        source = context.get_parameter_source(name)
        if source and source.name == "COMMANDLINE":
            raise ValueError(f"--{name.replace('_', '-')} {why}")


def start_of(
    context: typer.Context, rules: dict[str, Any], position: str | None, seats: Sequence[str], seed: int
) -> tuple[Rules, States | None]:
    """Return the rules of a game and its start position, STATE (1,). Without --position, the position is None."""
    if position is None:
        rules.setdefault("players", max(2, len(seats)))
        return Rules(**rules), None
    from wotd_env import Game, notation

    refuse(context, rules, "cannot be combined with --position, which contains the rules")
    game_rules, state = notation.parse_position(position)
    if not state["rng"][0]:  # the text of a position can lack a random stream
        state["rng"] = Game(game_rules).reset(1, seed=seed)["rng"]
    return game_rules, state


def _option(field: Field[Any], settled: str | None) -> inspect.Parameter:
    kind: Any = str if "str" in field.type else type(field.default)
    if None in ABOUT[field.name].choices:
        kind = kind | None
    words = in_words(field.name)
    names = [f"--{field.name.replace('_', '-')}"] if kind is bool else []
    default = None if settled else field.default
    shown = option(default, f"{words[0].upper()}{words[1:]}.", *names, shown=settled or True, panel="Rules")
    annotation = kind | None if settled else kind
    return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=shown, annotation=annotation)
