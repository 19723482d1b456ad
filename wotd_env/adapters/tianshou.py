"""The Gymnasium environment for Tianshou.

    from tianshou.env import DummyVectorEnv
    from wotd_env.adapters.tianshou import single_agent_env
    envs = DummyVectorEnv([lambda: single_agent_env(players=3)] * 8)

To train all seats, use Tianshou's `PettingZooEnv(way_of_the_dragon_v0.raw_env(observation_dtype="float32"))`.
"""

from __future__ import annotations

from typing import Any

import gymnasium
from gymnasium.spaces import Dict
from gymnasium.wrappers import TransformObservation

__all__ = ["single_agent_env"]


def single_agent_env(**arguments: Any) -> gymnasium.Env[Any, Any]:
    """Return an environment in which one seat learns and policies play the other seats.

    `arguments` are those of the Gymnasium environment, such as `opponents` and the fields of `wotd_env.Rules`.
    Observations are `{"obs": float32 (D,), "mask": bool (A,)}`.
    """
    env = gymnasium.make(
        "wotd_env:wotd_env/WayOfTheDragon-v0",
        **{"observation_dtype": "float32", **arguments, "mask_in": "obs", "mask_dtype": "bool"},
    )
    space = env.observation_space
    assert isinstance(space, Dict)
    named = Dict({"obs": space["observation"], "mask": space["action_mask"]})
    return TransformObservation(env, _rename, named)


def _rename(observation: dict[str, Any]) -> dict[str, Any]:
    return {"obs": observation["observation"], "mask": observation["action_mask"]}
