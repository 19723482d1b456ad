"""Wrappers of the environments: the exact regret of each decision as its reward.

`RegretReward` wraps the Gymnasium environment, `vector.RegretReward` the vector environment, and `aec.RegretReward` the
PettingZoo environment.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs

from wotd_env.envs.common import as_integer
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.wrappers.judge import Judge, Scoring, Source, Verdict, check_one_layout

__all__ = ["Judge", "RegretReward", "Verdict"]


class RegretReward(gymnasium.Wrapper[Any, Any, Any, Any], RecordConstructorArgs):
    """Reward each decision with minus its regret: the equity that it loses, whatever the dice do next.

        env = RegretReward(gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=1))

    In a solved game of two players, minus the regret is the advantage of the action under perfect play. So a policy
    that maximizes each reward separately plays perfectly, even with `gamma=0`, and the rewards contain no luck. The sum
    of the regrets of a game has no fixed bound. A random player loses about 8 of equity in a game, with a standard
    deviation of 4, while the result of a game is -1 or 1. Set `clip` if a learner needs bounded rewards.

    Every info contains `"regret"` and `"equity"`, the equity before the action, in units of the result of a game, and
    `"result"`, the reward of the wrapped environment, which is 0 until the end. At a reset, all three are 0.

    An illegal action costs as much as a certain loss. Against an opponent that plays imperfectly, a bad player loses
    more than that in a whole game, so without discount it is rewarded for ending the game at once. Use `gamma=0`, or
    the opponent `oracle`, to avoid this.

    Args:
        env: the Gymnasium environment of the game, with any opponents.
        source: `"table"` for the solved table in the cache folder, which is exact; a table of `wotd_env.solver.load`;
            or `"td"` or another policy that plans with a value function, for estimates where no table exists.
        scale: factor of the reward.
        clip: largest absolute value of a reward, after scaling; by default there is no limit.
        noise: standard deviation of a normal error in the equity of each action, to study imperfect judges. The same
            position has the same errors.
        noise_seed: seed of these errors.

    Raises:
        TypeError: if `env` is not an environment of this game.
        ValueError: for an invalid argument, or rules without a solution.
        FileNotFoundError: if there is no table; the message has the command that makes it.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], source: Source = "table", *,
        scale: float = 1.0, clip: float | None = None, noise: float = 0.0, noise_seed: int = 0,
    ) -> None:  # fmt: skip
        RecordConstructorArgs.__init__(
            self, source=source, scale=scale, clip=clip, noise=noise, noise_seed=noise_seed
        )
        base = env.unwrapped
        if not isinstance(base, WayOfTheDragonEnv):
            raise TypeError(
                f"env must be an environment of Way of the Dragon, got {env!r}; for many games at once, use "
                "wotd_env.wrappers.vector.RegretReward"
            )
        super().__init__(env)
        check_one_layout(base.layouts)
        self._base, self._scoring = base, Scoring(scale, clip)
        self._judge = Judge(base.game, source, noise, noise_seed)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Reset the environment; see the class for the additional infos."""
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | _entries(0.0, 0.0, 0.0)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take an action; its reward follows from its regret."""
        record = self._base.record
        observation, result, terminated, truncated, info = self.env.step(action)
        equity, regret = self._judge(record, [as_integer(action)])
        info = info | _entries(regret[0], equity[0], result)
        return observation, float(self._scoring(regret)[0]), terminated, truncated, info


def _entries(regret: Any, equity: Any, result: Any) -> dict[str, np.float64]:
    return {"regret": np.float64(regret), "equity": np.float64(equity), "result": np.float64(result)}
