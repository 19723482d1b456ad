"""Players that are ready to use, one file each, and the names they go by.

A policy plays batches: it is given games that wait for decisions and returns one legal action for each. To add one,
write its file and its row in `POLICIES`. Those that compiled loops can play also have a function over one record of
`wotd_env.STATE`, see `wotd_env.policies.scripts`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

from wotd_env.policy import Policy

__all__ = ["POLICIES", "Named", "Policy", "Script", "check_policy", "full_name", "make_policy", "script_of"]


class Script(IntEnum):
    """What plays a seat in compiled loops."""

    OUTSIDE = 0
    """nothing compiled: the loop must stop and ask"""
    RANDOM = 1
    GREEDY = 2


class Named(NamedTuple):
    """A policy that goes by a name."""

    words: str
    """what it does"""
    maker: str
    """what makes it when it is called; its module, a colon, its name there"""
    argument: str = ""
    """what may follow the name and a colon, and is given to the maker; empty if nothing may"""
    needs_argument: bool = False
    needs_trust: bool = False
    """reading its file can run code, so the maker is told by `trust` whether the user consents"""
    script: Script = Script.OUTSIDE
    """what plays it in compiled loops"""


POLICIES = {
    "random": Named("a legal action at random", "wotd_env.policies.random:Random", script=Script.RANDOM),
    "first": Named("the legal action with the lowest number", "wotd_env.policies.first:First"),
    "greedy": Named(
        "collects the dice of its best path, then takes the largest lead; no look ahead",
        "wotd_env.policies.greedy:Greedy",
        script=Script.GREEDY,
    ),
    "planner": Named(
        "plans every turn exactly, with a hand-made value of positions", "wotd_env.policies.planner:Planner"
    ),
    "mcts": Named(
        "samples the turns to come in a search tree, a baseline; mcts:PLAYOUTS sets the playouts",
        "wotd_env.policies.mcts:Mcts",
        argument="PLAYOUTS",
    ),
    "oracle": Named(
        "oracle:FILE plays perfectly from a table of the solved two-player game",
        "wotd_env.policies.oracle:Oracle",
        argument="FILE",
    ),
    "td": Named(
        "plans every turn exactly, with a value of positions that was learnt; td:FILE takes another one",
        "wotd_env.policies.td:Td",
        argument="FILE",
    ),
    "ppo": Named("the best action of a network that PPO has trained", "wotd_env.policies.ppo:Ppo"),
    "deep": Named(
        "plans two turns exactly, with a hand-made value of positions, or with the learnt one in deep:FILE",
        "wotd_env.policies.deep:Deep",
        argument="FILE",
    ),
    "onnx": Named(
        "onnx:FILE plays the best action of a network",
        "wotd_env.policies.onnx:Onnx",
        argument="FILE",
        needs_argument=True,
    ),
    "sb3": Named(
        "sb3:FILE plays the best action of a MaskablePPO model",
        "wotd_env.policies.sb3:load",
        argument="FILE",
        needs_argument=True,
        needs_trust=True,
    ),
}
"""The policies that `make_policy` knows, by name."""


RUN_FILES = {"value.npz": "td", "model.onnx": "onnx"}
"""The files in a run folder of train.py that hold a policy, and the names of these."""


def full_name(name: str) -> str:
    """Return the name of a policy with what a run folder of train.py stands for written out.

    Raises:
        ValueError: if it is a folder without a policy in it.
    """
    # It says no where a Path raises, as that does for a name that is too long for a file.
    if not name or name in POLICIES or not os.path.isdir(name):
        return name
    folder = Path(name)
    for file, kind in RUN_FILES.items():
        if (folder / file).is_file():
            return f"{kind}:{folder / file}"
    raise ValueError(
        f"the folder {name} holds no policy: it has none of {', '.join(RUN_FILES)}. `python -m agents.export {name}` "
        "makes one of a PPO run that has not come to its end"
    )


def make_policy(name: str | Policy, *, trust: bool = False) -> Policy:
    """Return the policy of a name.

    Args:
        name: a name of `POLICIES`, with its argument after a colon; a run folder of train.py; or `module:object`,
            where the object is a policy or something that returns one when called. A policy is returned as it is.
        trust: read files that can run code when they are read, as `sb3:FILE` can; no other policy asks for it.

    Raises:
        ValueError: if there is no such policy, its argument is missing or wrong, or it needs `trust`.
        FileNotFoundError: if the policy needs a file that is not there.
        ImportError: if it needs an extra that is not installed.
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
    if not argument or kind.startswith("."):  # a relative name has nothing here that it could be relative to
        raise ValueError(
            f"policy must be one of {', '.join(POLICIES)}, a run folder or 'module:object', got {name!r}"
        )
    try:
        found = _find(name)
    except (ModuleNotFoundError, AttributeError) as error:
        names = ", ".join(POLICIES)
        raise ValueError(f"policy {name!r} is none of {names}, nor 'module:object': {error}") from error
    if callable(found) and not _acts(found):
        if not _takes_nothing(found):
            raise ValueError(
                f"{name!r} must be a policy, or return one when called without arguments, got {found!r}"
            )
        found = found()
    return check_policy(name, found)


def check_policy(name: Any, candidate: Any) -> Policy:
    """Return the candidate if it is a policy.

    Args:
        name: what the error calls it.
        candidate: any object.

    Raises:
        ValueError: if it is none; a class is none.
    """
    if not _acts(candidate):
        raise ValueError(f"policy {name!r} must have a method act(game, state, rng), got {candidate!r}")
    policy: Policy = candidate
    return policy


def script_of(policy: Policy) -> Script:
    """Return what plays a policy in compiled loops."""
    return _SCRIPTS.get(f"{type(policy).__module__}:{type(policy).__qualname__}", Script.OUTSIDE)


_SCRIPTS = {known.maker: known.script for known in POLICIES.values()}


def _acts(candidate: Any) -> bool:
    return isinstance(candidate, Policy) and not isinstance(candidate, type)


def _takes_nothing(maker: Callable[..., Any]) -> bool:
    """Return whether something can be called without arguments, as far as it says what it takes."""
    try:
        signature = inspect.signature(maker)
    except ValueError:  # some written in C say nothing
        return True
    try:
        signature.bind()
    except TypeError:
        return False
    return True


def _find(name: str) -> Any:
    """Return an object by its name `module:object`, where the object may lie in another one."""
    module, _, attributes = name.partition(":")
    found: Any = importlib.import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found
