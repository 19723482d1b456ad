"""PPO of Ray RLlib on one or many machines: `python train.py rllib`.

RLlib's new API stack trains: *env runners* play, on any node of a Ray cluster, and *learners* learn from their games.
The parts of this game are in `make_config`: the environment, and a module with masks.

Either all seats of the PettingZoo environment learn with one network, or one seat of the vector environment learns
against a policy on the other seats.
"""

from __future__ import annotations

import functools
import logging
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch as th
from gymnasium import VectorizeMode

from agents import checkpoint, runs, settings, trained
from agents.export import export_onnx
from agents.network import PathNetwork
from wotd_env import Rules
from wotd_env.adapters.ray import connect, num_cpus
from wotd_env.adapters.rllib import multi_agent_env, single_agent_env
from wotd_env.core.arguments import check_integer
from wotd_env.extras import needed_for
from wotd_env.policies.sb3 import Trained

with needed_for("PPO of RLlib", "rllib"):
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.tune.registry import register_env


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Train PPO of Ray RLlib, then measure it against random, greedy and planner.

    Ctrl-C saves the run after the current update; --resume continues it.
    """

    seed: int = 0
    """Random seed. RLlib does not promise equal networks for equal seeds."""

    opponents: str = "itself"
    """Policy of the other seats, against which one seat learns. With itself all seats learn."""

    decisions: int = 2_000_000
    """Decisions of the learner to train on, at least."""

    milestones: int = 20
    """Number of milestones, evenly spread. At each one the strength is measured and a checkpoint is written."""

    ray: str | None = None
    """Address of the Ray cluster, or auto for the one of this machine; by default a new one here."""

    runners: int = 0
    """Processes that play, on any node; 0: play in this process."""

    learners: int = 0
    """Processes that learn, on any node, each with a GPU if there are enough; 0: learn in this process."""

    games: int = 64
    """Games that a runner plays side by side."""

    rollout: int = 16_384
    """Decisions in all games between two updates of the network."""

    batch_size: int = 1024
    """Decisions in a gradient step."""

    epochs: int = 3
    """Passes over the decisions in an update."""

    width: int = 64
    """Units of the network's hidden layers."""

    learning_rate: float = 1e-3
    """Learning rate of Adam at the start; it falls linearly to 0."""

    gae_lambda: float = 0.9
    """Lambda of generalized advantage estimation, per decision; there is no discount."""

    entropy: float = 0.003
    """Weight of the entropy bonus."""

    clip: float = 0.2
    """Clip range of PPO's probability ratio."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_counts("decisions", "games", "rollout", "batch_size", "epochs", "width")
        for name in ("runners", "learners"):
            check_integer(name, getattr(self, name), 0)
        self.check_shares("gae_lambda", "clip")
        self.check_positive("learning_rate")
        self.check("entropy", 0 <= self.entropy < math.inf, "must be a number that is not negative")
        each = self.rollout // max(self.learners, 1)
        self.check("batch_size", self.batch_size <= each, f"must be at most {each}, the share of a learner")


PRESETS = {"quick": Settings()}
"""The only preset."""


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]  # they are untyped
    """A `PathNetwork` as a module of RLlib; the logits of illegal actions are the smallest float."""

    network: PathNetwork

    def setup(self) -> None:
        """Make the network from the rules and the width in `model_config`."""
        self.network = PathNetwork(Rules.from_dict(self.model_config["rules"]), self.model_config["width"])

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, th.Tensor]:
        seen = batch[Columns.OBS]
        logits = self.network.forward_actor(seen["observations"])
        illegal = seen["action_mask"] == 0
        return {Columns.ACTION_DIST_INPUTS: logits.masked_fill(illegal, th.finfo(th.float32).min)}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> th.Tensor:
        """Return the values of observations (N, D), (N,)."""
        return self.network.forward_critic(batch[Columns.OBS]["observations"]).squeeze(1)


def make_config(settings: Settings, done: int = 0) -> PPOConfig:
    """Return the configuration of RLlib.

    Args:
        settings: the settings.
        done: decisions learned from so far.
    """
    itself, rules = settings.opponents == "itself", asdict(settings.rules)
    register_env("wotd-all-seats", multi_agent_env)
    register_env("wotd-one-seat", single_agent_env)
    gpus = ray.cluster_resources().get("GPU", 0)  # type: ignore[no-untyped-call]
    left = 1 - min(done / settings.decisions, 1)
    config = (
        PPOConfig()
        .environment(
            "wotd-all-seats" if itself else "wotd-one-seat",
            env_config=rules if itself else {**rules, "opponents": settings.opponents},
            disable_env_checking=True,  # the check takes illegal actions
        )
        .env_runners(
            num_env_runners=settings.runners,
            num_envs_per_env_runner=settings.games,
            gym_env_vectorize_mode=VectorizeMode.SYNC if itself else VectorizeMode.VECTOR_ENTRY_POINT,
        )
        .learners(
            num_learners=settings.learners,
            num_gpus_per_learner=int(gpus >= max(settings.learners, 1)),
        )
        .training(
            lr=[[0, settings.learning_rate * left], [max(settings.decisions - done, 1), 0.0]],
            train_batch_size_per_learner=settings.rollout // max(settings.learners, 1),
            minibatch_size=settings.batch_size,
            num_epochs=settings.epochs,
            gamma=1.0,
            lambda_=settings.gae_lambda,
            entropy_coeff=settings.entropy,
            clip_param=settings.clip,
            vf_loss_coeff=0.5,
            vf_clip_param=float("inf"),
            use_kl_loss=False,
            grad_clip=0.5,
        )
        .rl_module(
            rl_module_spec=RLModuleSpec(
                module_class=MaskedModule, model_config={"rules": rules, "width": settings.width}
            )
        )
        .debugging(seed=settings.seed + done, log_level="ERROR")
    )
    if itself:
        config.multi_agent(policies={"all"}, policy_mapping_fn=lambda agent, episode, **kwargs: "all")
    return config


# ------------------------------------------------------------------------------------------------------------- the run


class Run(runs.Run):
    """A training run of RLlib. When it is resumed, its network continues in new games.

    Raises:
        SettingError: if the policy `opponents` cannot be used.
        OSError: if there is no cluster at the address, or it has too few CPUs.
    """

    learner, unit, kind = "rllib", "decisions", Settings
    fixed = ("folder", "rules", "opponents", "width", "seed")
    packages = ("numpy", "numba", "gymnasium", "pettingzoo", "torch", "ray")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if settings.opponents != "itself":
            settings.policy("opponents")  # a wrong name is an error here, not in a process of RLlib
        connect(settings.ray)
        if not settings.ray and settings.runners + settings.learners > num_cpus():  # no other node will come
            needed = f"runners + learners = {settings.runners + settings.learners}"
            raise OSError(f"{needed} must be at most the {num_cpus()} CPUs of this machine, without --ray")
        for name in ("ray.rllib", "ray.tune"):  # they warn about themselves
            logging.getLogger(name).setLevel(logging.ERROR)
        self._done = self._before = 0

    @functools.cached_property
    def algorithm(self) -> Any:
        """RLlib's algorithm."""
        return make_config(self.settings, self._before).build_algo()

    @property
    def done(self) -> int:
        """Decisions learned from."""
        return self._done

    @property
    def total(self) -> int:
        """Decisions to learn from."""
        return int(self.settings.decisions)

    def policy(self) -> Trained:
        """Return the policy of the network's most likely actions."""
        return trained.policy_of(self.network())

    def train(self, progress: Callable[[Run], None]) -> None:
        """Train to the end, see `runs.Run.train`."""
        while True:
            self.after_update(progress)
            if self.done >= self.total:
                return
            self.algorithm.train()
            steps = ("env_runners", "num_env_steps_sampled_lifetime")
            self._done = self._before + int(self.algorithm.metrics.peek(steps, default=0))

    def network(self) -> PathNetwork:
        """Return a copy of the network."""
        (weights,) = self.algorithm.learner_group.get_weights().values()
        network = PathNetwork(self.settings.rules, self.settings.width)
        network.load_state_dict({name.removeprefix("network."): th.tensor(w) for name, w in weights.items()})
        return network

    def export(self) -> None:
        """Write the network as ONNX, for players without torch."""
        export_onnx(self.folder, self.folder / "model.onnx")

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint."""
        (optimizer,) = self.algorithm.learner_group.get_state()["learner"]["optimizer"].values()
        return {
            "decisions": self.done,
            "network": self.network().state_dict(),
            "optimizer": {
                i: {name: th.tensor(np.float32(moment)) for name, moment in moments.items()}
                for i, moments in optimizer["state"]["state"].items()
            },
        }

    def structure(self, begun: bool) -> dict[str, Any]:
        """Return the structure of `parts`, see `runs.Run.structure`; the algorithm is made later."""
        network = PathNetwork(self.settings.rules, self.settings.width)
        optimizer = checkpoint.adam_like(network.parameters()) if begun else {}
        return {"decisions": 0, "network": network.state_dict(), "optimizer": optimizer}

    def restore(self, saved: dict[str, Any]) -> None:
        """Load a checkpoint, see `runs.Run.restore`."""
        self._done = self._before = saved["decisions"]
        state = self.algorithm.learner_group.get_state()["learner"]
        ((name, optimizer),) = state["optimizer"].items()
        weights = {f"network.{name}": tensor.numpy() for name, tensor in saved["network"].items()}
        moments = {**optimizer["state"], "state": saved["optimizer"]}
        state["rl_module"] = dict.fromkeys(state["rl_module"], weights)
        state["optimizer"] = {name: {**optimizer, "state": moments}}
        self.algorithm.set_state({"learner_group": {"learner": state}})
