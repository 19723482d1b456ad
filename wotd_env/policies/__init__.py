"""Policies that are ready to use, one file each, and their names.

A policy plays batches: it gets games at their decisions and returns one legal action for each. To add one, write its
file and its row in `POLICIES`. Policies that compiled loops can play also have a function over one record of
`wotd_env.STATE`, see `wotd_env.policies.scripts`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wotd_env.policies.opened import watch
from wotd_env.policy import Policy, check_plays

if TYPE_CHECKING:
    from wotd_env.core.rules import Rules

__all__ = [
    "POLICIES",
    "Named",
    "Policy",
    "Script",
    "check_policy",
    "full_name",
    "make_policy",
    "script_of",
    "strongest",
]


class Script(IntEnum):
    """The compiled policy of a seat in compiled loops."""

    OUTSIDE = 0
    """none: the loop must stop and ask the policy"""
    RANDOM = 1
    GREEDY = 2


class Named(NamedTuple):
    """A policy with a name."""

    words: str
    """description"""
    maker: str
    """import path of the factory: module, colon, name"""
    argument: str = ""
    """what may follow the name and a colon; it is passed to the factory"""
    needs_argument: bool = False
    needs_trust: bool = False
    """reading its file can run code, so the factory takes the user's consent as `trust`"""
    script: Script = Script.OUTSIDE
    """the compiled policy that plays the same"""


POLICIES = {
    "random": Named("a legal action at random", "wotd_env.policies.random:Random", script=Script.RANDOM),
    "first": Named("the legal action with the lowest number", "wotd_env.policies.first:First"),
    "greedy": Named(
        "collects the dice of its best path, then takes the largest lead; does not look ahead",
        "wotd_env.policies.greedy:Greedy",
        script=Script.GREEDY,
    ),
    "planner": Named(
        "plans every turn exactly, with a hand-made value of positions", "wotd_env.policies.planner:Planner"
    ),
    "mcts": Named(
        "samples the next turns in a search tree, a baseline; mcts:PLAYOUTS sets the playouts",
        "wotd_env.policies.mcts:Mcts",
        argument="PLAYOUTS",
    ),
    "oracle": Named(
        "oracle:FILE plays perfectly from a table of the solved two-player game",
        "wotd_env.policies.oracle:Oracle",
        argument="FILE",
    ),
    "td": Named(
        "plans every turn exactly, with the bundled learned value; td:FILE uses the one in a file",
        "wotd_env.policies.td:Td",
        argument="FILE",
    ),
    "ppo": Named("the best action of a bundled network that PPO trained", "wotd_env.policies.ppo:Ppo"),
    "deep": Named(
        "plans two turns exactly, with the bundled learned value; deep:NAME uses that of td:FILE, planner, FILE, ...",
        "wotd_env.policies.deep:Deep",
        argument="NAME",
    ),
    "onnx": Named(
        "onnx:FILE plays the best action of a network",
        "wotd_env.policies.onnx:Onnx",
        argument="FILE",
        needs_argument=True,
    ),
    "sb3": Named(
        "sb3:FILE plays the best action of a MaskablePPO model; sb3:ENCODING:FILE sets its encoding",
        "wotd_env.policies.sb3:load",
        argument="FILE",
        needs_argument=True,
        needs_trust=True,
    ),
}
"""The policies that `make_policy` knows, by name."""


RUN_FILES = {"value.npz": "td", "model.onnx": "onnx"}
"""The files in a run folder of train.py that contain a policy, and the names of these policies."""

FILES = {".npz": "td", ".onnx": "onnx", ".zip": "sb3"}
"""The policy that reads a file, by the ending of the file."""

STRONGEST = ("oracle", "deep", "deep:planner")
"""Policies of the package that play all rules together, the strongest first."""


def full_name(name: str) -> str:
    """Return the name of a policy; a run folder of train.py becomes the name of the policy in it.

    Raises:
        ValueError: if the folder contains no policy.
    """
    # os.path.isdir returns False if the name is too long to be a path, where Path raises.
    if not name or name in POLICIES or not os.path.isdir(name):
        return name
    folder = Path(name)
    for file, kind in RUN_FILES.items():
        if (folder / file).is_file():
            return f"{kind}:{folder / file}"
    raise ValueError(
        f"the folder {name} contains no policy: it has none of {', '.join(RUN_FILES)}. The command "
        f"`python -m agents.export {name}` writes the policy of an unfinished PPO run"
    )


def strongest(rules: Rules) -> str:
    """Return the name of the strongest policy of the package for some rules.

    The exact solution counts only if its table is in the cache folder.
    """
    from wotd_env.solver import cache_file

    for name in STRONGEST:
        try:
            check_plays(make_policy(name), rules)
            if name != "oracle" or cache_file(rules.spaces).exists():
                return name
        except (ValueError, OSError, ImportError):  # not for these rules, no table, or an extra is missing
            pass
    raise AssertionError("the last policy plays all rules")


def make_policy(name: str | Policy, *, trust: bool = False) -> Policy:
    """Return the policy with a name.

    Args:
        name: a name of `POLICIES`, with its argument after a colon; a run folder of train.py; or `module:object`,
            where the object is a policy, or returns one when called. A policy object is returned unchanged.
        trust: read files that can run code when they are read. Only `sb3:FILE` needs it.

    Raises:
        ValueError: if there is no such policy, its argument is missing or wrong, or it needs `trust`.
        FileNotFoundError: if the file of the policy does not exist.
        ImportError: if the policy needs an extra that is not installed.
    """
    if not isinstance(name, str):
        return check_policy(name, name)
    kind, _, argument = full_name(name).partition(":")
    if kind in POLICIES:
        known = POLICIES[kind]
        if argument and not known.argument:
            raise ValueError(f"policy {kind!r} takes nothing after a colon, got {name!r}")
        if known.needs_argument and not argument:
            raise ValueError(f"policy {kind!r} needs its {known.argument}: '{kind}:{known.argument}'")
        given = [argument] if argument else []
        consent = {"trust": trust} if known.needs_trust else {}
        try:
            return check_policy(name, _find(known.maker)(*given, **consent))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ValueError(f"policy {name!r} cannot be made: {error}") from error
    if not argument or kind.startswith("."):  # there is no package for a relative name
        raise ValueError(
            f"policy must be one of {', '.join(POLICIES)}, a run folder or 'module:object', got {name[:80]!r}"
            + _hint(name)
        )
    with watch(kind):
        try:
            found = _find(name)
        except (ModuleNotFoundError, AttributeError) as error:
            names = ", ".join(POLICIES)
            raise ValueError(
                f"policy {name[:80]!r} is neither one of {names} nor 'module:object': {error}"
            ) from error
        if callable(found) and not _acts(found):
            if not _takes_nothing(found):
                raise ValueError(
                    f"{name!r} must be a policy, or return one when called without arguments, got {found!r}"
                )
            found = found()
    return check_policy(name, found)


def _hint(name: str) -> str:
    """Return the correct name, as the end of an error, if a name is that of a file without the name of its policy."""
    kind = FILES.get(os.path.splitext(name)[1])
    return f": write '{kind}:{name}' for the policy in this file" if kind else ""


def check_policy(name: Any, candidate: Any) -> Policy:
    """Return the candidate if it is a policy.

    Args:
        name: name of the candidate in the error.
        candidate: any object.

    Raises:
        ValueError: if it is not a policy; a class is not a policy.
    """
    if not _acts(candidate):
        raise ValueError(f"policy {name!r} must have a method act(game, state, rng), got {candidate!r}")
    policy: Policy = candidate
    return policy


def script_of(policy: Policy) -> Script:
    """Return the compiled policy that plays the same as a policy."""
    return _SCRIPTS.get(f"{type(policy).__module__}:{type(policy).__qualname__}", Script.OUTSIDE)


_SCRIPTS = {known.maker: known.script for known in POLICIES.values()}


def _acts(candidate: Any) -> bool:
    return isinstance(candidate, Policy) and not isinstance(candidate, type)


def _takes_nothing(maker: Callable[..., Any]) -> bool:
    """Return whether an object can be called without arguments, as far as its signature is known."""
    try:
        signature = inspect.signature(maker)
    except ValueError:  # some callables written in C have none
        return True
    try:
        signature.bind()
    except TypeError:
        return False
    return True


def _find(name: str) -> Any:
    """Return an object by its name `module:object`; the object may be an attribute of another one."""
    module, _, attributes = name.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found
