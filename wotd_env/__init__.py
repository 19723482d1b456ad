"""Way of the Dragon: the board game for 2 to 5 players as a reinforcement-learning environment."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import gymnasium
import pettingzoo

from wotd_env.core.actions import Action
from wotd_env.core.rules import Phase, Power, Rules
from wotd_env.core.state import STATE
from wotd_env.core.words import describe_action

if TYPE_CHECKING:
    from wotd_env import notation, symmetry, way_of_the_dragon_v0
    from wotd_env.core.checks import IllegalActionError
    from wotd_env.core.game import Game, GameSpec
    from wotd_env.evaluation import evaluate
    from wotd_env.kernels import compile_kernels
    from wotd_env.policies import make_policy
    from wotd_env.policy import Policy

__version__ = "0.1.0"

__all__ = [
    "STATE", "Action", "Game", "GameSpec", "IllegalActionError", "Phase", "Policy", "Power", "Rules",
    "compile_kernels", "describe_action", "evaluate", "make_policy", "notation", "symmetry", "way_of_the_dragon_v0",
]  # fmt: skip

# The entry points are strings, so that `import wotd_env` does not import the environments and stays fast.
gymnasium.register(
    "wotd_env/WayOfTheDragon-v0",
    entry_point="wotd_env.envs.single:WayOfTheDragonEnv",
    vector_entry_point="wotd_env.envs.vector:WayOfTheDragonVectorEnv",
)
if hasattr(pettingzoo, "register"):  # `register` exists since PettingZoo 1.27
    pettingzoo.register(
        "aec", "wotd_env/way_of_the_dragon_v0", entry_point="wotd_env.way_of_the_dragon_v0:env"
    )

# These names are imported at first use, because importing modules with compiled kernels is slow.
_LAZY = {
    "IllegalActionError": "wotd_env.core.checks",
    **dict.fromkeys(("Game", "GameSpec"), "wotd_env.core.game"),
    "Policy": "wotd_env.policy",
    "compile_kernels": "wotd_env.kernels",
    "evaluate": "wotd_env.evaluation",
    "make_policy": "wotd_env.policies",
}


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in ("notation", "symmetry", "way_of_the_dragon_v0"):
        return importlib.import_module(f"wotd_env.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, "__version__"})
