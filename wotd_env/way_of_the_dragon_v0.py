"""Way of the Dragon as a PettingZoo environment: `way_of_the_dragon_v0.env(players=3)`."""

from wotd_env.envs.aec import env, raw_env

__all__ = ["env", "raw_env"]
