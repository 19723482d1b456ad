"""MaskablePPO of Stable-Baselines3 by self-play, rewarded only by the results of games: `python train.py sb3`.

The parts are those of Stable-Baselines3: a `VecEnv` with a pool of opponents, a policy class, `learn` with a callback,
the logger and the progress bar. The run folder gets the model as `model.zip`, which `MaskablePPO.load` reads.

The learner plays one seat of each game. The current network, an earlier snapshot of it, or `greedy` plays the other
seats; the pool draws one of them for each game. Another snapshot is drawn for every rollout.

An *update* is the part of the training between two milestones: one call of `learn`. It starts new games and a new
random stream, so that a resumed run gives the same network as an uninterrupted one.
"""

import copy
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch as th
from gymnasium import spaces
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.policies import MaskableActorCriticPolicy
from stable_baselines3.common.logger import configure
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from stable_baselines3.common.utils import LinearSchedule, set_random_seed
from torch import nn

from agents import settings
from agents.checkpoint import fill, tensors_of
from agents.export import NetworkPolicy, to_onnx
from agents.network import Network
from agents.settings import Count, NotNegative, Positive, SettingError, Share
from wotd_env import Rules, files
from wotd_env.adapters.sb3 import SB3VecEnv
from wotd_env.core.arguments import check_integer
from wotd_env.envs.opponents import Pool
from wotd_env.policy import Policy


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Train MaskablePPO of Stable-Baselines3 by self-play, rewarded by results only: a baseline for other algorithms.

    Ctrl-C saves the run at the next milestone; --resume continues it.
    """

    # Defaults of the other settings. On one core, quick takes 5 minutes, standard an hour.
    preset: Literal["quick", "standard"] = "quick"
    # Decisions of the learner, rounded up to a whole number of rollouts between two milestones.
    total_timesteps: int = 1_966_080
    num_envs: Count = 256  # Games played side by side.
    n_steps: Count = 64  # Decisions of the learner per game and rollout.
    past: Share = 0.25  # Probability that an earlier snapshot of the network plays the other seats of a game.
    # Probability that greedy plays the other seats. In the other games, the current network does.
    greedy: Share = 0.0
    width: Count = 64  # Units of the network's hidden layers.
    learning_rate: Positive = 2e-3  # Initial learning rate of Adam; it falls linearly to 0.
    batch_size: int = 1024  # Decisions in a gradient step.
    n_epochs: Count = 3  # Passes over the decisions of a rollout.
    gae_lambda: Share = 0.9  # Lambda of generalized advantage estimation, per decision.
    ent_coef: NotNegative = 0.03  # Weight of the entropy bonus.
    clip_range: Share = 0.2  # Clip range of the probability ratio.
    # Device of the network: cpu, cuda or another device of torch. Another device gives another network.
    device: str = "cpu"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_integer("total_timesteps", self.total_timesteps, 1, 1 << 40)
        self.check("greedy", self.past + self.greedy <= 1, f"must be at most 1 - past = {1 - self.past:g}")
        rollout = self.num_envs * self.n_steps
        check_integer("batch_size", self.batch_size, 2, why="to normalize advantages")
        self.check(
            "batch_size", rollout % self.batch_size == 0, f"must divide num_envs * n_steps = {rollout}"
        )

    @property
    def updates(self) -> int:
        """Number of updates of the run."""
        return self.milestones


PRESETS = {
    "quick": Settings(),
    "standard": Settings(preset="standard", total_timesteps=12 * 1_966_080, milestones=40),
}


class PathNetwork(BaseFeaturesExtractor):
    """The network of `agents.network`. Its features are the logits of all actions, then features of the game."""

    def __init__(self, observation_space: spaces.Space[Any], rules: Rules, width: int) -> None:
        network = Network(rules, width)
        logits, game = network(th.zeros(1, *observation_space.shape or ()))
        super().__init__(observation_space, logits.shape[1] + game.shape[1])
        self.network = network

    def forward(self, observation: th.Tensor) -> th.Tensor:
        """Return features (N, A + 2 * width) of observations, float (N, D)."""
        return th.cat(self.network(observation), 1)


class Columns(nn.Module):
    """Selects columns of the features."""

    def __init__(self, first: int, last: int) -> None:
        super().__init__()
        self.first, self.last = first, last

    def forward(self, features: th.Tensor) -> th.Tensor:
        """Return the columns `first` to `last - 1`."""
        return features[:, self.first : self.last]


class PathPolicy(MaskableActorCriticPolicy):
    """SB3's maskable policy with a `PathNetwork`. The logits need no further layer, the value a linear one."""

    def __init__(
        self, seen: spaces.Space[Any], action_space: spaces.Discrete, lr_schedule: Schedule, **options: Any
    ) -> None:
        fixed = {"net_arch": [], "ortho_init": False, "features_extractor_class": PathNetwork}
        super().__init__(seen, action_space, lr_schedule, **(options | fixed))
        actions, features = int(action_space.n), self.features_extractor.features_dim
        self.action_net = Columns(0, actions)
        self.value_net = nn.Sequential(Columns(actions, features), nn.Linear(features - actions, 1))  # type: ignore[assignment]
        self.optimizer = self.optimizer_class(self.parameters(), lr=lr_schedule(1), **self.optimizer_kwargs)  # type: ignore[call-arg]


def check_device(name: str) -> th.device:
    """Return a device, and make its operations deterministic. Raise SettingError if torch cannot use it."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required for determinism
    what = f"device must be cpu or another device of torch, got {name!r}"
    try:
        (number := th.zeros((), device=name)).item()
    except Exception as error:  # torch can raise any exception here
        raise SettingError(f"{what}: {str(error).splitlines()[0]}") from error
    if number.device.type != "cpu":
        th.use_deterministic_algorithms(True)
    return number.device


class Learner:
    """Trains MaskablePPO. Everything random in an update follows from the seed and its number."""

    unit: ClassVar[str] = "decisions"
    fixed: ClassVar[tuple[str, ...]] = (
        "preset", "rules", "layouts", "seed", "total_timesteps", "milestones", "num_envs", "n_steps", "width",
    )  # fmt: skip

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        rollout = settings.num_envs * settings.n_steps
        self.per_update = -(-settings.total_timesteps // (settings.milestones * rollout)) * rollout
        th.set_num_threads(1)  # so that the order of sums does not depend on the number of cores
        # Some opponents need the model, and the model needs the environment, so the pool is set later.
        options = asdict(settings.rules)
        if layouts := settings.training_layouts():
            options |= {"dead_pieces": 0, "layouts": layouts}
        self.env = SB3VecEnv(settings.num_envs, opponents=Pool(["random"]), **options)
        self.model = MaskablePPO(
            PathPolicy,
            self.env,
            n_steps=settings.n_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.n_epochs,
            gamma=1.0,  # no discount: only the end of a game is rewarded
            gae_lambda=settings.gae_lambda,
            ent_coef=settings.ent_coef,
            clip_range=settings.clip_range,
            policy_kwargs={"features_extractor_kwargs": {"rules": settings.rules, "width": settings.width}},
            seed=settings.seed,
            device=check_device(settings.device),
        )
        fill(self.model.policy.optimizer)
        self.network: Network = self.model.policy.features_extractor.network  # type: ignore[assignment]
        self.past = copy.deepcopy(self.network)
        # The network before each update; the rows of later updates are zeros.
        weights = self.network.state_dict().items()
        self.snapshots = {name: th.zeros(settings.milestones, *each.shape) for name, each in weights}
        itself, past = (NetworkPolicy(network, sample=True) for network in (self.network, self.past))
        opponents: dict[str, str | Policy] = {"itself": itself, "past": past, "greedy": "greedy"}
        itself_share = 1 - settings.past - settings.greedy
        self.env.env.opponents = Pool(opponents, [itself_share, settings.past, settings.greedy])

    def policy(self) -> NetworkPolicy:
        """Return the policy that plays the network's most likely actions."""
        return NetworkPolicy(self.network)

    def update(self, number: int) -> dict[str, float]:
        """Call `learn` once. SB3's logger writes the numbers for TensorBoard."""
        settings, model = self.settings, self.model
        for name, weights in self.network.state_dict().items():
            self.snapshots[name][number] = weights
        rng = np.random.default_rng([settings.seed, number])
        set_random_seed(int(rng.integers(1 << 32)))

        def draw_snapshot(local: dict[str, Any], world: dict[str, Any]) -> bool:
            """Draw a snapshot for the next rollout after the last step of each rollout (a callback of SB3)."""
            if local["n_steps"] == settings.n_steps - 1:
                chosen = rng.integers(number + 1)
                self.past.load_state_dict({name: rows[chosen] for name, rows in self.snapshots.items()})
            return True

        draw_snapshot({"n_steps": settings.n_steps - 1}, {})

        # With the seed s, game i would have the seed s + i, so runs with the seeds s and s + 1 would share games.
        self.env.seed((settings.seed << 32) + number * settings.num_envs)
        model.set_env(self.env)  # the next call of learn resets the environment
        model.num_timesteps = number * self.per_update
        # SB3's remaining progress reaches 0 at the end of this update, not at the end of the run.
        end = settings.learning_rate * (1 - (number + 1) / settings.updates)
        model.lr_schedule = LinearSchedule(settings.learning_rate, end, 1.0)
        model.set_logger(configure(str(settings.folder), ["tensorboard"]))
        show = sys.stderr.isatty()
        model.learn(self.per_update, draw_snapshot, reset_num_timesteps=False, progress_bar=show)
        model.logger.close()
        return {}

    def tensors(self) -> dict[str, th.Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        snapshots = {f"snapshots.{name}": rows for name, rows in self.snapshots.items()}
        return tensors_of(self.model.policy, self.model.policy.optimizer) | snapshots

    def check(self) -> None:
        """Do nothing: no value of the tensors is impossible."""

    def export(self, folder: Path) -> None:
        """Write the network to `model.onnx`, and the model to `model.zip`."""
        files.write(folder / "model.onnx", to_onnx(self.network))
        with files.replacing(folder / "model.zip") as part:
            self.model.save(part)
