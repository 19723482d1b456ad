"""A Stable-Baselines3 `VecEnv` that wraps the Gymnasium vector environment (extra `train`).

    from sb3_contrib import MaskablePPO
    from wotd_env.adapters.sb3 import SB3VecEnv
    MaskablePPO("MlpPolicy", SB3VecEnv(64, players=3)).learn(100_000)

Self-play against the current model:

    opponent = Learner()
    model = opponent.model = MaskablePPO("MlpPolicy", SB3VecEnv(64, opponents=opponent))
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np
from gymnasium.vector import AutoresetMode
from numpy.typing import NDArray

from wotd_env.core.game import Game
from wotd_env.core.state import States
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.extras import needed_for
from wotd_env.policies.random import Random
from wotd_env.policies.sb3 import Trained

with needed_for("SB3VecEnv", "train"):
    from stable_baselines3.common.monitor import Monitor
    from stable_baselines3.common.vec_env import VecEnv
    from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvObs, VecEnvStepReturn

if TYPE_CHECKING:
    from sb3_contrib import MaskablePPO

__all__ = ["Learner", "SB3VecEnv"]


class SB3VecEnv(VecEnv):
    """A `VecEnv` of N games. It is faster than SB3's `DummyVecEnv` and gives the same results.

    When a game ends, its info contains the dict `"episode"`, in the format of SB3's `Monitor`: `"r"` is the return,
    `"l"` is the number of the learner's decisions, and `"t"` is the time in seconds since the environment was made. The
    infos contain no masks, because MaskablePPO gets the masks from the method `action_masks`. The other infos are those
    of `WayOfTheDragonEnv`. `set_attr("opponents", ...)` replaces the opponents of the next games.

    Args:
        num_envs: the number of games, N.
        **options: arguments of `wotd_env.envs.vector.WayOfTheDragonVectorEnv` except `autoreset_mode`.

    Attributes:
        env: the vector environment.
    """

    def __init__(self, num_envs: int = 1, **options: Any) -> None:
        self.env = WayOfTheDragonVectorEnv(num_envs, autoreset_mode=AutoresetMode.SAME_STEP, **options)
        super().__init__(self.env.num_envs, self.env.single_observation_space, self.env.single_action_space)
        self._made = time.perf_counter()
        self._lengths = np.zeros(self.num_envs, np.int64)
        self._names: list[str] = []  # the keys of the infos of running games
        self._running: list[dict[str, Any]] = []  # these infos of each game

    def reset(self) -> VecEnvObs:
        """Start new games with the stored seeds and options, see the methods `seed` and `set_options`.

        Raises:
            ValueError: if the options of the environments differ.
        """
        options = self._options[0]
        if any(other != options for other in self._options):
            raise ValueError("options must be the same for all environments")
        observation, info = self.env.reset(seed=self._seeds, options=options or None)
        self._lengths[:] = 0
        self._names = [name for name in info if not name.startswith("_") and name != "action_mask"]
        self._running = [self._info(info, i) for i in range(self.num_envs)]
        self.reset_infos = [info.copy() for info in self._running]
        self._reset_seeds()
        self._reset_options()
        return observation  # type: ignore[no-any-return]

    def step_async(self, actions: NDArray[np.int64]) -> None:
        """Store the actions, (N,), for `step_wait`."""
        self._actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """Step with the stored actions. Return observations, rewards float32 (N,), dones bool (N,) and infos."""
        observation, rewards, terminated, truncated, info = self.env.step(self._actions)
        cut = (truncated & ~terminated).tolist()
        infos: list[dict[str, Any]] = [
            {"TimeLimit.truncated": limit, **running}
            for limit, running in zip(cut, self._running, strict=True)
        ]
        done = terminated | truncated
        self._lengths += 1
        seconds = round(time.perf_counter() - self._made, 6)
        for i in np.flatnonzero(done).tolist():
            infos[i] |= self._info(info["final_info"], i)
            self._running[i] = self._info(info, i)
            infos[i]["terminal_observation"] = info["final_obs"][i]
            # Rewards before the end are 0, so the last reward is the return.
            infos[i]["episode"] = {"r": float(rewards[i]), "l": int(self._lengths[i]), "t": seconds}
        self._lengths[done] = 0
        return observation, rewards.astype(np.float32), done, infos

    def _info(self, infos: dict[str, Any], i: int) -> dict[str, Any]:
        return {name: infos[name][i] for name in self._names}

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return each environment's row of an attribute of `env`, or the value of an attribute without rows."""
        return self._rows(getattr(self.env, attr_name), indices)

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute of `env`, which all environments share, such as `opponents`.

        Raises:
            ValueError: if `indices` does not contain all environments.
        """
        if len(set(self._get_indices(indices))) < self.num_envs:
            raise ValueError(
                f"indices must contain all {self.num_envs} environments, because they share the attribute "
                f"{attr_name!r}, got {indices!r}: leave out indices"
            )
        setattr(self.env, attr_name, value)

    def env_method(
        self, method_name: str, *args: Any, indices: VecEnvIndices = None, **kwargs: Any
    ) -> list[Any]:
        """Call a method of `env` once. Return each environment's row of the result, or a result without rows."""
        return self._rows(getattr(self.env, method_name)(*args, **kwargs), indices)

    def _rows(self, value: Any, indices: VecEnvIndices) -> list[Any]:
        many = isinstance(value, tuple) or (isinstance(value, np.ndarray) and value.ndim > 0)
        rows = many and len(value) == self.num_envs
        return [value[i] if rows else value for i in self._get_indices(indices)]

    def env_is_wrapped(self, wrapper_class: Any, indices: VecEnvIndices = None) -> list[bool]:
        """Return True for SB3's `Monitor`, because the infos contain its statistics."""
        return [wrapper_class is Monitor for _ in self._get_indices(indices)]

    def action_masks(self) -> NDArray[np.int8]:
        """Return the legal actions, int8 (N, A)."""
        return self.env.action_masks()

    def get_images(self) -> list[Any]:
        """Return the picture of every game if the render mode is `"rgb_array"`."""
        return list(self.env.render() or [])

    def close(self) -> None:
        """Close the window if there is one."""
        self.env.close()


class Learner:
    """An opponent that samples actions from the current policy of a MaskablePPO model.

    Args:
        encoding: the encoding of the model's observations.

    Attributes:
        model: the model, or None for random play.
    """

    model: MaskablePPO | None = None

    def __init__(self, encoding: str = "one_hot") -> None:
        self._encoding = encoding

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        if self.model is None:
            return Random().act(game, state, rng)
        return Trained(self.model.policy, True, "the learner", self._encoding).act(game, state, rng)
