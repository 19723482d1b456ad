"""The tables of docs/ that are generated from the code and from the help texts (`make docs-tables`)."""

import inspect
import json
import re
import tomllib
from collections.abc import Iterable
from typing import Any

import numpy as np
import typer

from entries.tables import tracks
from tools import pages
from tools.wasm.exports import EXPORTS, MEMORY, TUPLES
from wotd_env import STATE, Game, Phase, Rules, describe_action
from wotd_env.cli import app
from wotd_env.core import actions, observation
from wotd_env.core.actions import Action
from wotd_env.core.config import CONFIG
from wotd_env.core.dice import UNROLLED
from wotd_env.core.observation import DIE_TOKEN, GAME_TOKEN, PATH_TOKEN, PIECE_TOKEN, TOKEN_WIDTH
from wotd_env.core.rules import ABOUT, NUMBERED
from wotd_env.reporting import markdown

PLAYERS = range(2, 6)


def state() -> str:
    """Return the table of the fields of a state."""
    meaning = {
        "rng": "the game's own random stream: the state of a 64-bit generator",
        "dead": "by path; bit t set: a dead piece stands on space t",
        "turn": "turns finished so far; a turn in which a player ends the game is not counted",
        "player": "seat to act; at OVER the seat that acted last",
        "phase": ", ".join(f"{phase.value} {phase.name}" for phase in Phase),
        "rolls_left": "re-rolls left that cost no power",
        "dice": "faces, ascending; at CHANCE the kept dice first, then -1 for each die to be rolled",
        "pieces": "[seat, path] -> space; unused seats stay 0",
        "color": "color of each seat; then the unused colors, whose animals are the dead pieces",
        "used": "bit k set: seat k has used its power",
        "perfection": "1: this turn has earned the extra turn of R8",
        "players": "number of seats; 0 if unknown, as in records that are made by hand",
        "expired": "1: ended by R16",
    }
    rows = []
    for name, kind, offset in fields_of(STATE):
        if not name.startswith("_"):
            rows.append((offset, f"`{name}`", kind, meaning[name]))
    return markdown("byte | field | type | meaning", rows, right=[0])


def rules() -> str:
    """Return the table of the fields of `Rules`."""
    rows = []
    for name, about in ABOUT.items():
        default = getattr(Rules, name)
        values = dict.fromkeys([default, *about.choices])
        texts = [f"`{json.dumps(value)}`" if isinstance(value, str) else str(value) for value in values]
        if about.least is not None:
            texts.append("a seat" if about.most is None else f"{about.least} to {about.most}")
        if name == "colors":
            texts.append("a tuple of elements")
        ruling = f" ([{about.ruling}](rulings.md))" if about.ruling else ""
        rows.append((f"`{name}`", "; ".join(texts), about.words + ruling))
    return markdown("argument | values, the default first | meaning", rows)


def fields_of(record: Any) -> list[tuple[str, str, int]]:
    """Return name, type and offset of each field of a record."""
    fields = [(name, record[name], record.fields[name][1]) for name in record.names]
    return [(name, f"{kind.base} {kind.shape or ''}".strip(), offset) for name, kind, offset in fields]


def wasm_exports() -> str:
    """Return the table of the exported functions of wotd.wasm."""
    given = {
        name: [argument for argument in export.arguments.split() if argument not in {*MEMORY, *TUPLES}]
        for name, export in EXPORTS.items()
    }
    rows = [(f"`{name}({', '.join(given[name])})`", export.words) for name, export in EXPORTS.items()]
    return markdown("function | effect, and result if there is one", rows)


def wasm_memory() -> str:
    """Return the table of the exported memory of wotd.wasm."""
    kinds = {"config": "CONFIG", "states": "STATE", "network": "bytes"}
    rows = [
        (
            f"`{name}`",
            f"{kinds.get(name) or np.dtype(kind)} {shape[shape[0] == 1 :] or ''}".strip(),
            MEMORY_WORDS[name],
        )
        for name, (kind, shape) in MEMORY.items()
    ]
    return markdown("memory | type | contents", rows)


def wasm_config() -> str:
    """Return the table of the fields of `config` that a host writes."""
    rows = [
        (offset, f"`{name}`", kind, CONFIG_WORDS.get(name, "as in `Rules`"))
        for name, kind, offset in fields_of(CONFIG)
        if name != "limits"
    ]
    return markdown("byte | field | type | value", rows, right=[0])


MEMORY_WORDS = {
    "config": "the rules, see below",
    "states": "the [record](../reference/state.md) of the game",
    "mask": "1 for legal actions",
    "observation": "an observation in the encoding of `config`",
    "scores": "the points of every seat",
    "rewards": "the reward of every seat; 0 before the end",
    "action_values": "the expected return of every action for the seat to act; -inf for illegal ones",
    "roll_off": "five faces by seat",
    "network": "a file of `tools.wasm.weights`, without its first line",
}
CONFIG_WORDS = {
    "dead_pieces": "number of dead pieces on random spaces; 0 with a layout",
    "dead": "the dead pieces of a layout, as in the record",
    "powers": "0 none, 1 own, 2 any",
    "colors": "colors of the seats, then all other colors",
    "random_colors": "1 for new colors in each game",
    "start": "a seat, -1 for `dragons`, -2 for `loser`",
    "skip_forced": "1 to take decisions with one legal action automatically",
    "encoding": ", ".join(f"{i} {name}" for i, name in enumerate(observation.ENCODINGS)),
}


POSITION = "space of the piece; 0 is off the board"
MEANING = {
    "pieces": POSITION,
    "colors": "color of the seat",
    "dead": "1 if a dead piece stands on the plain space, 1 to S",
    "dice": "number of dice that show the face; dice to be rolled count for no face",
    "rolls_left": "re-rolls left that cost no power",
    "phase": ", ".join(f"{phase.value} {phase.name}" for phase in Phase),
    "player": "seat to act",
    "perfection": "1 if this turn has earned the extra turn of R8",
    "deadline": f"{observation.DEADLINE} minus the turns left before the turn limit, at least 0",
    "powers": "1 if the seat still has a power",
}
"""Meaning of those parts of an observation that several encodings share."""

MEANINGS = {
    "one_hot": MEANING | {"powers": "1 if the seat still has the power"},
    "compact": MEANING | {"powers": '1 if the seat still has its power, or (`powers="any"`) any power'},
    "tokens": {
        "game": "one token",
        "dice": 'a token for each die, in the order of `state["dice"]`',
        "paths": "a token for each path",
        "pieces": "a token for each piece",
    },
    "features": {
        **MEANING,
        "pieces": "space of the observer's piece; 0 is off the board",
        "rivals": "space of the other seats' furthest piece",
        "free": "empty spaces among the five ahead of the observer's piece; 0 on a numbered space",
        "goals": "destination of the observer's piece with these dice; 0 if it cannot move or another seat acts",
        "points": "points of the seat",
        "numbered": "pieces of the seat on numbered spaces",
        "progress": "sum of the spaces of the seat's pieces",
        "powers": "1 if the seat still has a power; only with powers",
        "power": "1 if the observer still has the power; only with powers",
        "home": "1 for the path of the observer's color; only with immunity",
    },
}

ONE_HOT = {
    "one_hot": ("pieces", "dice", "rolls_left", "phase", "player", "colors"),
    "features": ("phase", "player"),
}
"""Encoding -> its parts that are one-hot on their last axis."""


def parts(encoding: str) -> str:
    """Return the table of the parts of an observation, with their indices for each number of players."""
    options: dict[str, Any] = {"powers": "own", "immunity": True} if encoding == "features" else {}
    rules = [Rules(players=n, **options) for n in PLAYERS]
    layouts = [observation.layout(of_n, encoding) for of_n in rules]
    rows: list[tuple[object, ...]] = []
    for name in layouts[0]:
        spans = ((of_n[name].start, of_n[name].stop - 1) for of_n in layouts)
        indices = (f"{first}..{last}" if first < last else f"{first}" for first, last in spans)
        rows.append((f"`{name}`", *indices, _form(rules[0], encoding, name) + MEANINGS[encoding][name]))
    sizes = [list(of_n.values())[-1].stop for of_n in layouts]
    rows.append(("*size*", *sizes, ""))
    return markdown(("part", *(f"{n} players" for n in PLAYERS), "meaning"), rows)


def _form(rules: Rules, encoding: str, name: str) -> str:
    """Return the format of a part, e.g. "[seat, path, space], one-hot: " or "0..2: "."""
    part = observation.parts(rules, encoding)[name]
    axes = [axis for axis in part.axes if axis != "number"]
    words = [f"[{', '.join(axes)}]"] if axes else []
    highest = int(part.highest.max())
    if name in ONE_HOT.get(encoding, ()):
        words.append("one-hot")
    elif encoding != "tokens" and highest > 1 and name != "phase":
        words.append(f"0..S+{NUMBERED}" if highest == rules.spaces + NUMBERED else f"0..{highest}")
    return f"{', '.join(words)}: " if words else ""


def token() -> str:
    """Return the table that describes the numbers in each kind of token."""
    rows = [
        (GAME_TOKEN, "game", "phase", "rolls left", "seat to act", "perfection", "deadline"),
        (DIE_TOKEN, "die", f"face, {UNROLLED}: still to be rolled", "", "", "", ""),
        (PATH_TOKEN, "path", "path", "1: dead piece on space 1", "on space 2", "on space 3", "... up to S"),
        (PIECE_TOKEN, "piece", "path", "space", "seat", "color of the seat", "1: the seat still has a power"),
    ]
    return markdown(("number 0", "kind", *(f"number {i}" for i in range(1, TOKEN_WIDTH))), rows)


def action() -> str:
    """Return the table of the actions that are the same for every number of players."""
    phases = {0: Phase.KEEP, Action.MOVE_ON: Phase.MOVE, Action.END_TURN: Phase.EXTRA}
    holds = f"0..{Action.STOP_ROLLING - 1} | {Phase.KEEP.name} | keep die i if bit i is set, re-roll the rest"
    rows = [holds]
    for number in range(Action.STOP_ROLLING, Action.FIRST_SWAP):
        phase = phases[max(first for first in phases if first <= number)]
        rows.append(f"{number} | {phase.name} | {describe_action(number)}")
    return markdown("number | phase | action", rows)


def swap() -> str:
    """Return the table of the swaps, by number of players."""
    rows = []
    for n in PLAYERS:
        pairs = actions.pairs(n)
        step = f"{pairs}e" if pairs > 1 else "e"
        seats = enumerate(actions.PAIRS[n, :pairs], Action.FIRST_SWAP)
        swaps = [f"{first} + {step}: {one}-{two}" for first, (one, two) in seats]
        rows.append((n, actions.num_actions(n), ", ".join(swaps)))
    return markdown("players | actions | swaps on path e, by seats", rows)


def reward() -> str:
    """Return the table of the rewards, by number of players and number of winners."""
    rows = []
    for n in PLAYERS:
        game = Game(Rules(players=n))
        # At most n - 1 seats win, because the seat that ends the game never shares the win.
        states = game.reset(n - 1, seed=0)
        states["phase"] = Phase.OVER
        states["pieces"][:, n - 1] = game.rules.spaces + 1  # all five pieces on numbered space 1: five points
        for winners, state in enumerate(states, 1):
            for seat in range(winners):
                state["pieces"][seat, [seat, seat + 1]] = game.rules.spaces + 5, game.rules.spaces + 3
        rewards = [f"{reward[0]:.4g}" for reward in game.rewards(states)]
        rows.append((n, *rewards, *[""] * (max(PLAYERS) - n), f"{game.rewards(states)[0, n - 1]:.4g}"))
    return markdown("players | the winner | each of 2 | each of 3 | each of 4 | every other seat", rows)


def layers() -> str:
    """Return the table of the layers of packages, top layer first, from the import contract in pyproject.toml."""
    tools = tomllib.loads((pages.ROOT / "pyproject.toml").read_text())["tool"]
    (contract,) = (
        each for each in tools["importlinter"]["contracts"] if each.get("containers") == ["wotd_env"]
    )
    names = [layer.replace("(", "").replace(")", "").split(" | ") for layer in contract["layers"]]
    rows = [(number, ", ".join(f"`{name}`" for name in layer)) for number, layer in enumerate(names, 1)]
    return markdown("layer | packages and modules", rows, right=[0])


COMMANDS: Any = typer.main.get_command(app)


def commands() -> str:
    """Return a section for each subcommand, from its help text."""
    parts = []
    for name, command in COMMANDS.commands.items():
        example = command.epilog.removeprefix("Example: ").strip("`")
        parts += [f"## wotd {name}", _as_code(inspect.cleandoc(command.help)), f"```sh\n{example}\n```"]
        rules = [parameter for parameter in command.params if _is_rule(parameter)]
        own = [each for each in command.params if not _is_rule(each) and each.name != "help"]
        # A rule whose default depends on the command is listed with the command's own options.
        own += [rule for rule in rules if isinstance(rule.show_default, str)]
        if own:
            parts.append(_options(own))
        if rules:
            words = ", ".join(f"`{rule.opts[0]}`" for rule in rules)
            parts.append(f"Rules: {words}, see [options of the rules](#options-of-the-rules).")
    return "\n\n".join(parts)


def options() -> str:
    """Return the table of the options of the rules."""
    return _options(option for option in COMMANDS.commands["arena"].params if _is_rule(option))


def _is_rule(parameter: Any) -> bool:
    return getattr(parameter, "rich_help_panel", None) == "Rules"


def _as_code(text: str) -> str:
    """Put backquotes around the options in a help text. Text between backquotes stays unchanged."""
    parts = text.split("`")
    parts[::2] = [re.sub(r"(?<![\w-])--[a-z][a-z-]*", r"`\g<0>`", part) for part in parts[::2]]
    return "`".join(parts)


def _options(parameters: Iterable[Any]) -> str:
    rows = []
    for parameter in parameters:
        option = parameter.param_type_name == "option"
        names = ", ".join(f"`{name}`" for name in parameter.opts) if option else f"`{parameter.name.upper()}`"
        if isinstance(parameter.show_default, str):
            default = parameter.show_default
        elif parameter.required:
            default = "must be given"
        else:
            none = parameter.default is None or isinstance(parameter.default, bool)
            default = "" if none else f"`{parameter.default}`"
        cells = (
            _as_code(re.sub(r"\s+", " ", text).replace("|", "\\|")) for text in (parameter.help, default)
        )
        rows.append((names, *cells))
    return markdown("option | effect | default", rows)


WASM = wasm_exports, wasm_memory, wasm_config


def all_tables() -> dict[str, str]:
    """Return all tables as a dict: name -> Markdown text."""
    makers = (layers, rules, state, token, action, swap, reward, commands, options, tracks, *WASM)
    tables = {make.__name__: make() for make in makers} | {"exits": COMMANDS.epilog}
    return tables | {name: parts(name) for name in MEANINGS}
