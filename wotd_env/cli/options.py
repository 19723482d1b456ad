"""Options that several subcommands share, mainly the options of the rules."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, fields
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wotd_env.core.rules import POWER_MODES, Rules

if TYPE_CHECKING:
    from wotd_env.core.state import States


def option(words: str, default: str | bool = True) -> Any:
    """Return an option with a help text. If the command computes the default, `default` describes it in words."""
    return typer.Option(help=words, show_default=default)


def flag(name: str, words: str) -> Any:
    """Return an option that takes no value and is off by default."""
    return typer.Option(name, help=words)


Seed = Annotated[int, option("Seed of all dice and of all random policies.")]
Position = Annotated[
    str | None, option("Start from this position, a line as `wotd watch` prints it; it contains the rules.")
]
Policies = Annotated[list[str], typer.Argument(help="One policy for each seat, or one for all seats.")]
Delay = Annotated[float, option("Pause after each turn, in seconds.")]
Quiet = Annotated[bool, flag("--quiet", "Hide the progress bar.")]
Trust = Annotated[
    bool, flag("--trust", "Allow policy files that can run code when they are loaded, such as sb3:FILE.")
]

_RULES: dict[str, tuple[Any, str]] = {
    "players": (int, "Seats, 2 to 5."),
    "spaces": (int, "Plain spaces on each path, 0 to 10."),
    "powers": (str, f"Powers of the animals: {', '.join(POWER_MODES)}."),
    "immunity": (bool, "Pieces on the path of their own color cannot be swapped."),
    "dead_pieces": (int, "Number of dead pieces, which block spaces; they have unused colors."),
    "colors": (str | None, "Colors of the seats, such as water,fire; or random."),
    "start": (str, "Starting player: dragons (most dragons rolled), loser (of the last game), or a seat."),
    "max_turns": (int, "Turns until a game is truncated; then nobody wins."),
}
"""Field of `Rules` -> type and help text of its option."""


def rules_options(*names: str, **settled: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Replace the parameter `rules` of a command with an option for each field of `Rules`, or for each of `names`.

    The command gets `rules` as a dict from field to value: the arguments of `Rules`, unchecked. If the command computes
    the default of a field, `settled` maps this field to a help text for the default. The dict then contains the field
    only if its option is given.
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
        # Typer reads the options from both attributes, `__signature__` and `__annotations__`.
        with_options.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return with_options

    return decorate


def check_no_rules(context: typer.Context, rules: dict[str, Any], option: str) -> None:
    """Raise ValueError if an option of the rules is given together with `option`, which contains the rules."""
    for name in given_options(context, rules):
        given = f"--{name.replace('_', '-')}"
        raise ValueError(f"{given} cannot be combined with {option}, which contains the rules")


def start_of(
    context: typer.Context, rules: dict[str, Any], position: str | None, seats: Sequence[str], seed: int
) -> tuple[Rules, States | None]:
    """Return the rules of a game, and the position given with --position, STATE (1,), or None without this option."""
    if position is None:
        rules.setdefault("players", max(2, len(seats)))
        return Rules(**rules), None
    from wotd_env import Game, notation

    check_no_rules(context, rules, "--position")
    game_rules, state = notation.parse_position(position)
    if not state["rng"][0]:  # the text of a position can lack a random stream
        state["rng"] = Game(game_rules).reset(1, seed=seed)["rng"]
    return game_rules, state


def given_options(context: typer.Context, names: Iterable[str]) -> list[str]:
    """Return the `names` of the options that are given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in names}
    return [name for name, source in sources.items() if source and source.name == "COMMANDLINE"]


def _option(field: Field[Any], settled: str | None) -> inspect.Parameter:
    kind, words = _RULES[field.name]
    names = [f"--{field.name.replace('_', '-')}"] if kind is bool else []
    shown = typer.Option(*names, help=words, rich_help_panel="Rules", show_default=settled or True)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=None if settled else field.default,
        annotation=Annotated[kind | None if settled else kind, shown],
    )


def _read(name: str, value: Any) -> Any:
    """Convert the value of an option to the value of its field of `Rules`."""
    if name == "colors" and value and value != "random":
        return tuple(value.split(","))
    if name == "start" and value.isdecimal():
        return int(value)
    return value
