"""Environments for the new API stack of RLlib (extra `rllib`).

    from ray.tune.registry import register_env
    from wotd_env.adapters.rllib import multi_agent_env
    register_env("wotd", multi_agent_env)
    config = PPOConfig().environment("wotd", env_config={"players": 3})

Observations are `{"observations": float32 (D,), "action_mask": float32 (A,)}`. RLlib's modules with action masks
expect this format.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers
from gymnasium.spaces import Box, Dict, Space
from gymnasium.vector.utils import batch_space
from pettingzoo.utils import BaseWrapper

from wotd_env.envs import aec
from wotd_env.extras import needed_for

with needed_for("an environment for RLlib", "rllib"):
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv

__all__ = ["multi_agent_env", "single_agent_env"]

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"


def multi_agent_env(env_config: Mapping[str, Any]) -> PettingZooEnv:
    """Return an environment in which all seats are agents: `"player_0"`, `"player_1"` and so on.

    `env_config` contains arguments of `wotd_env.way_of_the_dragon_v0.env`, such as the fields of `wotd_env.Rules`.
    """
    return PettingZooEnv(_Renamed(aec.env(**env_config, observation_dtype="float32")))


def single_agent_env(env_config: Mapping[str, Any]) -> Any:
    """Return an environment in which one seat learns and policies play the other seats.

    Args:
        env_config: the arguments of the Gymnasium environment, such as `opponents`, `seat` and the fields of
            `wotd_env.Rules`. If `env_config` contains `num_envs`, the result is a vector environment. RLlib adds
            `num_envs` if its configuration sets `gym_env_vectorize_mode` to `VectorizeMode.VECTOR_ENTRY_POINT`.
    """
    arguments = {**env_config, "mask_in": "obs", "observation_dtype": "float32"}
    if "num_envs" not in env_config:
        env = gymnasium.make(ID, **arguments)
        return wrappers.TransformObservation(env, _rename, _renamed(env.observation_space))
    many = gymnasium.make_vec(ID, **arguments)
    space = _renamed(many.single_observation_space)
    return wrappers.vector.TransformObservation(many, _rename, batch_space(space, many.num_envs), space)


def _rename(observation: dict[str, Any]) -> dict[str, Any]:
    mask = observation["action_mask"].astype(np.float32)
    return {"observations": observation["observation"], "action_mask": mask}


def _renamed(space: Space[Any]) -> Dict:
    assert isinstance(space, Dict)
    mask = Box(0, 1, space["action_mask"].shape, np.float32)
    return Dict({"observations": space["observation"], "action_mask": mask})


class _Renamed(BaseWrapper[str, Any, int]):  # type: ignore[misc]  # PettingZoo is untyped
    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._spaces = {agent: _renamed(env.observation_space(agent)) for agent in env.possible_agents}

    def observation_space(self, agent: str) -> Dict:
        return self._spaces[agent]

    def observe(self, agent: str) -> dict[str, Any]:
        return _rename(super().observe(agent))
