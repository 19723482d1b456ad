"""The regret of each decision as its reward, for the PettingZoo environment."""

from __future__ import annotations

from typing import Any

from pettingzoo.utils import AECEnv, BaseWrapper

from wotd_env.envs.aec import raw_env
from wotd_env.envs.common import as_integer
from wotd_env.wrappers.judge import Judge, Scoring, Source


class RegretReward(BaseWrapper):  # type: ignore[misc]  # PettingZoo is untyped
    """Reward each decision with minus its regret, as `wotd_env.wrappers.RegretReward` does.

    After a step, `rewards` of the agent that acted is its reward, and the rewards of the other agents are 0.
    Every `infos[agent]` contains `"regret"` and `"equity"`, the equity before the action, which are 0 for agents that
    have not acted in this step, and `"result"`, the reward of the wrapped environment, which is 0 until the end.

    The arguments are those of `wotd_env.wrappers.RegretReward`; `env` is `way_of_the_dragon_v0.env()` or `raw_env()`.
    """

    def __init__(
        self, env: AECEnv, source: Source = "table", *,
        scale: float = 1.0, clip: float | None = None, noise: float = 0.0, noise_seed: int = 0,
    ) -> None:  # fmt: skip
        super().__init__(env)
        base = env.unwrapped
        if not isinstance(base, raw_env):
            raise TypeError(f"env must be an AEC environment of Way of the Dragon, got {env!r}")
        self._scoring = Scoring(scale, clip)
        self._judge = Judge(base.game, source, noise, noise_seed)

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Reset the environment."""
        self.env.reset(seed=seed, options=options)
        self.rewards = dict.fromkeys(self.env.agents, 0.0)
        self._cumulative_rewards = dict(self.rewards)
        self._update_infos()

    def step(self, action: Any) -> None:
        """Take the action of the selected agent."""
        agent = self.env.agent_selection
        ended = self.env.terminations[agent] or self.env.truncations[agent]
        record = self.env.unwrapped.record
        self.env.step(action)
        self.rewards = dict.fromkeys(self.env.agents, 0.0)
        self._cumulative_rewards = {each: self._cumulative_rewards[each] for each in self.env.agents}
        self._update_infos()
        if ended:  # the step has only removed the agent
            return
        equity, regret = self._judge(record, [as_integer(action)])
        self.rewards[agent] = self._cumulative_rewards[agent] = float(self._scoring(regret)[0])
        self.infos[agent] |= {"regret": float(regret[0]), "equity": float(equity[0])}

    def _update_infos(self) -> None:
        more = {"regret": 0.0, "equity": 0.0}
        results = self.env.rewards
        self.infos = {
            each: self.env.infos[each] | more | {"result": float(results.get(each, 0.0))}
            for each in self.env.agents
        }
