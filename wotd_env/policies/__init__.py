"""Players that need no training, one file each, and the names they go by.

A policy plays batches: it is given games that wait for decisions and returns one legal action for each. Those that are
compiled also have a function `choose` over one record of `wotd_env.STATE`, for use inside compiled loops.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from wotd_env.core.policy import Policy

__all__ = ["POLICIES", "Policy", "make_policy"]


POLICIES = {
    "random": "a legal action at random",
    "first": "the legal action with the lowest number",
    "greedy": "collects the dice of its best path, moves furthest",
    "planner": "plans every turn exactly, with a hand-made value of positions",
    "mcts": "samples the turns to come in a search tree, a baseline; mcts:PLAYOUTS sets the playouts",
    "oracle": "oracle:FILE plays perfectly from a table of the solved two-player game",
    "onnx": "onnx:FILE plays the best action of a network",
    "sb3": "sb3:FILE plays the best action of a MaskablePPO model",
}
"""The names that `make_policy` knows, in words. What follows a colon is passed on to the policy."""


def make_policy(name: str | Policy, *, trust: bool = False) -> Policy:
    """Return the policy of a name.

    Args:
        name: a name of `POLICIES`, with its argument after a colon, or `module:object`, where the object is a policy
            or something that returns one when called. A policy is returned as it is.
        trust: read files that can run code when they are read, as `sb3:FILE` can; no other policy asks for it.

    Raises:
        ValueError: if there is no such policy, or it needs `trust`.
        FileNotFoundError: if the policy needs a file that is not there.
        ImportError: if it needs an extra that is not installed.
    """
    if not isinstance(name, str):
        return _checked(name, name)
    kind, _, argument = name.partition(":")
    if kind in POLICIES:
        maker = getattr(importlib.import_module(f"wotd_env.policies.{kind}"), kind.capitalize())
        if kind == "sb3":
            maker = functools.partial(maker, trust=trust)
        return _checked(maker(argument) if argument else maker(), name)
    if not argument:
        raise ValueError(f"policy must be one of {', '.join(POLICIES)} or 'module:object', got {name!r}")
    try:
        found: Any = importlib.import_module(kind)
        for attribute in argument.split("."):
            found = getattr(found, attribute)
    except (ModuleNotFoundError, AttributeError) as error:
        known = ", ".join(POLICIES)
        raise ValueError(f"policy {name!r} is none of {known}, nor 'module:object': {error}") from error
    return _checked(found() if callable(found) and not _plays(found) else found, name)


def _plays(candidate: Any) -> bool:
    return isinstance(candidate, Policy) and not isinstance(candidate, type)


def _checked(candidate: Any, name: Any) -> Policy:
    if not _plays(candidate):
        raise ValueError(f"policy {name!r} must have a method act(game, state, rng), got {candidate!r}")
    policy: Policy = candidate
    return policy
