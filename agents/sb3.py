"""MaskablePPO of Stable-Baselines3 by self-play, rewarded only by the results of games: `python train.py sb3`.

This learner is the baseline for the others. It uses no planner, no critic of another run and no shaped rewards. It
plays one seat of each game. In some games, `greedy` or an earlier snapshot of the network plays the other seats. In the
remaining games, the current network plays the other seats.
"""

import copy
import os
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import torch as th
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import Logger
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import LinearSchedule, set_random_seed
from stable_baselines3.common.vec_env import VecEnv
from torch import nn

from agents import checkpoint, runs, settings
from agents.export import NetworkPolicy
from agents.layers import Network
from agents.selfplay import SelfPlayVecEnv
from agents.settings import Count, NamesNoCode, NotNegative, Positive, SettingError, Share
from wotd_env import Rules
from wotd_env.core.arguments import check_integer


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Train MaskablePPO of Stable-Baselines3 by self-play, rewarded by results only: a baseline for other algorithms.

    Ctrl-C saves the run after the current update; --resume continues it.
    """

    preset: Literal["quick"] = "quick"
    """Defaults of the other settings: quick takes 6 minutes on one core."""

    updates: Count = 116
    """Updates of the network; each plays games and takes gradient steps."""

    games: Count = 256
    """Games played side by side."""

    steps: Count = 64
    """Decisions of the learner per game and update."""

    past: Share = 0.25
    """Share of the games against snapshots; another snapshot is drawn after every update."""

    greedy: Share = 0.0
    """Share of the games against greedy. The other games are against the current network."""

    width: Count = 64
    """Units of the network's hidden layers."""

    learning_rate: Positive = 1e-3
    """Initial learning rate of Adam; it falls linearly to 0."""

    batch_size: int = 1024
    """Decisions in a gradient step."""

    epochs: Count = 3
    """Passes over the decisions in an update."""

    gae_lambda: Share = 0.9
    """Lambda of generalized advantage estimation, per decision."""

    entropy: NotNegative = 0.003
    """Weight of the entropy bonus."""

    clip: Share = 0.2
    """Clip range of PPO's probability ratio."""

    threads: Count = 1
    """Threads of torch. Another number changes the order of sums, and so the network."""

    device: NamesNoCode = "cpu"
    """Device of the network: cpu, cuda or another device of torch. Another device gives another network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check("greedy", self.past + self.greedy <= 1, f"must be at most 1 - past = {1 - self.past:g}")
        rollout = self.games * self.steps
        check_integer("batch_size", self.batch_size, 2, why="to normalize advantages")
        self.check("batch_size", rollout % self.batch_size == 0, f"must divide games * steps = {rollout}")


PRESETS = {"quick": Settings()}


class ActorCritic(nn.Module):
    """The network of `agents.layers` with a value head, in the form that SB3's policies expect."""

    def __init__(self, rules: Rules, width: int) -> None:
        super().__init__()
        self.network, self.value = Network(rules, width), nn.Linear(2 * width, 1)

    def forward(self, observation: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return the logits (N, A) and the value (N, 1) of observations, float (N, D)."""
        logits, game = self.network(observation)
        return logits, self.value(game)

    def forward_actor(self, observation: th.Tensor) -> th.Tensor:
        """Return the logits (N, A) of observations, float (N, D)."""
        return self.forward(observation)[0]

    def forward_critic(self, observation: th.Tensor) -> th.Tensor:
        """Return the value (N, 1) of observations, float (N, D)."""
        return self.forward(observation)[1]


class PathPolicy(MaskableActorCriticPolicy):
    """SB3's maskable policy with an `ActorCritic` in place of its MLPs."""

    def __init__(self, *args: Any, rules: Rules, width: int, **kwargs: Any) -> None:
        self.rules, self.width = rules, width
        super().__init__(*args, **kwargs)

    def _build(self, lr_schedule: Schedule) -> None:
        self.mlp_extractor = ActorCritic(self.rules, self.width)  # type: ignore[assignment]
        self.action_net = self.value_net = nn.Identity()  # type: ignore[assignment]
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]


def make_model(settings: Settings, env: VecEnv) -> MaskablePPO:
    """Return an untrained model for `env`. `settings.seed` takes effect at the next reset of `env`.

    So that results are reproducible, the function also sets torch's number of threads and makes operations on a GPU
    deterministic. Raise SettingError if torch cannot use the device.
    """
    th.set_num_threads(settings.threads)
    try:
        (number := th.zeros((), device=settings.device)).item()
    except Exception as error:  # torch can raise any exception here
        why = str(error).splitlines()[0]
        message = f"device must be cpu or another device of torch, got {settings.device!r}: {why}"
        raise SettingError(message) from error
    if number.device.type != "cpu":
        th.use_deterministic_algorithms(True)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required for determinism
    model = MaskablePPO(
        PathPolicy,
        env,
        learning_rate=LinearSchedule(settings.learning_rate, 0.0, 1.0),
        n_steps=settings.steps,
        batch_size=settings.batch_size,
        n_epochs=settings.epochs,
        gamma=1.0,  # no discount: only the end of a game is rewarded
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy,
        clip_range=settings.clip,
        policy_kwargs={"rules": settings.rules, "width": settings.width},
        seed=settings.seed,
        device=number.device,
    )
    # With the seed s, game i would have the seed s + i, so runs with the seeds s and s + 1 would share games.
    env.seed(settings.seed << 32)
    return model


class Run(runs.Run):
    """A training run of MaskablePPO."""

    learner, unit, kind = "sb3", "decisions", Settings
    fixed: ClassVar[tuple[str, ...]] = ("preset", "folder", "rules", "games", "width", "seed")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        # `random` is a placeholder: some opponents need the model, and the model needs the environment.
        self.env = SelfPlayVecEnv(self.game, [self.references["random"]] * settings.games, settings.seed)
        self.model = make_model(settings, self.env)
        self.optimizer, self.state = self.model.policy.optimizer, self.env.state
        actor_critic: Any = self.model.policy.mlp_extractor
        self.network, self.value = actor_critic.network, actor_critic.value
        self.past = copy.deepcopy(self.network)
        self.pool: list[dict[str, th.Tensor]] = []
        past = round(settings.games * settings.past)
        greedy = min(round(settings.games * settings.greedy), settings.games - past)
        itself, snapshots = (NetworkPolicy(network, sample=True) for network in (self.network, self.past))
        kinds = (
            (settings.games - past - greedy, itself),
            (past, snapshots),
            (greedy, self.references["greedy"]),
        )
        self.env.opponents = [policy for count, policy in kinds for _ in range(count)]
        self.model.set_logger(Logger(None, []))
        _, self.callback = self.model._setup_learn(0)  # starts the games

    def update(self) -> dict[str, float]:
        """Play and learn once with SB3; return the values that SB3 logs."""
        # All random draws of the update follow from the seed and the number of decisions.
        rng = np.random.default_rng([self.settings.seed, self.done])
        set_random_seed(int(rng.integers(1 << 32)))
        if self.settings.past:
            self.past.load_state_dict(self.pool[rng.integers(len(self.pool))])
        self.env.rng = rng
        model = self.model
        model.collect_rollouts(self.env, self.callback, model.rollout_buffer, model.n_steps)
        model._update_current_progress_remaining(model.num_timesteps, self.total)
        model.train()
        self.updates += 1
        numbers = model.logger.name_to_value.items()
        return {name.removeprefix("train/"): float(value) for name, value in numbers}

    def pass_milestone(self) -> None:
        """Add a snapshot of the network to the pool of opponents, then measure the strength."""
        if self.settings.past:
            weights = self.network.state_dict().items()
            self.pool.append({name: values.cpu().clone() for name, values in weights})
        super().pass_milestone()

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint."""
        return super().parts() | {
            "steps": self.model._n_updates,
            "value": {name: weights.cpu() for name, weights in self.value.state_dict().items()},
            "pool": self.pool,
            "starts": th.from_numpy(np.asarray(self.model._last_episode_starts)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Load the learner's part of a checkpoint."""
        super().restore(saved)
        self.value.load_state_dict(saved["value"])
        self.model._n_updates, self.model.num_timesteps = saved["steps"], self.done
        for i, weights in enumerate(saved["pool"]):
            checkpoint.check(f"pool.{i}", weights, saved["network"])
        self.pool = saved["pool"]
        if not self.pool and self.updates:  # `past` was 0 until now: no snapshots were stored
            self.pool = [saved["network"]]
        self.env.seat[:] = self.state["player"]  # in every saved game, the learner's seat is to act
        self.model._last_obs = self.game.observe(self.state)
        self.model._last_episode_starts = saved["starts"].numpy()
