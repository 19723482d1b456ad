"""The regret of each decision as its reward, for the vector environment."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper
from numpy.typing import ArrayLike, NDArray

from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.wrappers.judge import Judge, Scoring, Source, check_one_layout


class RegretReward(VectorWrapper):
    """Reward each decision with minus its regret, as `wotd_env.wrappers.RegretReward` does.

    `infos["regret"]`, `infos["equity"]` and `infos["result"]` are float64 (N,). They belong to the actions of this
    step, also if a game has ended and the next one has started (`AutoresetMode.SAME_STEP`). They are 0 in a step that
    only resets a game (`AutoresetMode.NEXT_STEP`).

    The arguments are those of `wotd_env.wrappers.RegretReward`; `env` is the vector environment of the game.
    """

    def __init__(
        self, env: VectorEnv[Any, Any, Any], source: Source = "table", *,
        scale: float = 1.0, clip: float | None = None, noise: float = 0.0, noise_seed: int = 0,
    ) -> None:  # fmt: skip
        base = env.unwrapped
        if not isinstance(base, WayOfTheDragonVectorEnv):
            raise TypeError(
                f"env must be a vector environment of Way of the Dragon, got {env!r}; for one game, use "
                "wotd_env.wrappers.RegretReward"
            )
        super().__init__(env)
        check_one_layout(base.layouts)
        self._base, self._scoring = base, Scoring(scale, clip)
        self._judge = Judge(base.game, source, noise, noise_seed)
        self._resets = np.zeros(env.num_envs, np.bool_)  # the games that the next step only resets

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; see the class for the additional infos."""
        observation, infos = self.env.reset(seed=seed, options=options)
        chosen = (options or {}).get("reset_mask")
        self._resets = self._resets & ~chosen if chosen is not None else np.zeros_like(self._resets)
        return observation, self._with(infos, *np.zeros((3, self.num_envs)))

    def step(
        self, actions: ArrayLike
    ) -> tuple[Any, NDArray[np.float64], NDArray[np.bool_], NDArray[np.bool_], dict[str, Any]]:
        """Take the actions; the rewards follow from their regrets."""
        record, resets = self._base.record, self._resets
        observation, result, terminated, truncated, infos = self.env.step(actions)
        equity, regret = self._judge(record, actions)
        equity[resets] = regret[resets] = 0.0
        if self._base.autoreset_mode == AutoresetMode.NEXT_STEP:
            self._resets = terminated | truncated
        infos = self._with(infos, regret, equity, result)
        return observation, self._scoring(regret), terminated, truncated, infos

    def _with(self, infos: dict[str, Any], regret: Any, equity: Any, result: Any) -> dict[str, Any]:
        everywhere = np.ones(self.num_envs, np.bool_)
        more = {"regret": regret, "equity": equity, "result": result}
        return infos | more | {f"_{name}": everywhere for name in more}
