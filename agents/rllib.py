"""PPO of Ray RLlib on one or many machines: `python train.py rllib`, also as `python -m agents.rllib`.

RLlib's current API stack does the work: *env runners* play, on any node of a Ray cluster, and *learners* learn from
what they have played. All that is special here is said in `make_config`: the environment, and a module with masks.

Either all seats of the PettingZoo environment learn, by one network, or one seat of the vector environment learns
against a policy that plays the others.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from gymnasium import VectorizeMode

from agents import checkpoint, evaluate, report, runs, trained
from agents.checkpoint import CheckpointError
from agents.export import export_onnx
from agents.network import PathNetwork
from agents.runs import CHECKPOINT, Stopped
from wotd_env import Game, Rules, make_policy
from wotd_env.adapters.ray import connect, num_cpus
from wotd_env.adapters.rllib import multi_agent_env, single_agent_env
from wotd_env.core.arguments import check_integer

try:
    import ray
    from ray.rllib.algorithms.ppo import PPOConfig
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI
    from ray.rllib.core.rl_module.rl_module import RLModuleSpec
    from ray.rllib.core.rl_module.torch import TorchRLModule
    from ray.tune.registry import register_env
except ImportError as missing:
    raise ModuleNotFoundError("PPO of RLlib needs it: pip install 'wotd-env[rllib]'") from missing

REFERENCES = ("random", "greedy", "planner")
"""The opponents that strength is measured against."""

MEASURING = 1 << 32
"""Seed of all measurements."""


@dataclass(frozen=True)
class Settings:
    """Train PPO of Ray RLlib, then measure it against random, greedy and planner.

    Ctrl-C saves the run after the update in progress; --resume goes on with it.
    """

    resume: Path | None = None
    """Run folder to go on with; its settings are the defaults then."""

    folder: Path | None = None
    """Run folder to make; by default runs/ and the time."""

    seed: int = 0
    """Of the network, the games and the choices. RLlib does not promise the same network for the same seed."""

    rules: Rules = field(default_factory=Rules)

    opponents: str = "itself"
    """Who has the other seats: itself, so that all seats of the PettingZoo environment learn, or the name of a policy,
    against which one seat of the vector environment learns."""

    decisions: int = 2_000_000
    """Decisions of the learner to train on, at least."""

    milestones: int = 20
    """Times that a measurement and a checkpoint are made, evenly spread over the training."""

    ray: str | None = None
    """Address of the Ray cluster to work on, or auto for the one that this machine is a node of; by default a new one
    here."""

    runners: int = 0
    """Processes that play, on any node; 0: this one does."""

    learners: int = 0
    """Processes that learn, on any node, each with a GPU if there are as many; 0: this one does."""

    games: int = 64
    """Games that a runner plays side by side."""

    rollout: int = 16_384
    """Decisions taken between two updates of the network, in all games."""

    batch_size: int = 1024
    """Decisions in a gradient step."""

    epochs: int = 3
    """Passes over the decisions between two updates."""

    width: int = 64
    """Units of the network's hidden layers."""

    learning_rate: float = 1e-3
    """Step size of Adam at the start; it falls linearly to 0."""

    gae_lambda: float = 0.9
    """Lambda of generalized advantage estimation, counted in decisions; there is no discount."""

    entropy: float = 0.003
    """Weight of the entropy bonus."""

    clip: float = 0.2
    """Clip range of PPO's probability ratio."""

    milestone_games: int = 500
    """Games against each of random, greedy and planner at a milestone."""

    final_games: int = 10_000
    """Games against each of random, greedy and planner after the training, at least."""

    def __post_init__(self) -> None:
        for name in ("decisions", "milestones", "games", "rollout", "batch_size", "epochs", "width"):
            check_integer(name, getattr(self, name), 1)
        for name in ("runners", "learners"):
            check_integer(name, getattr(self, name), 0)
        for name in ("milestone_games", "final_games"):
            check_integer(name, getattr(self, name), self.rules.players, why="(the number of players)")
        for name in ("gae_lambda", "clip"):
            self._check(name, 0 <= getattr(self, name) <= 1, "must be from 0 to 1")
        self._check("learning_rate", self.learning_rate > 0, "must be positive")
        self._check("entropy", self.entropy >= 0, "must not be negative")
        check_integer("seed", self.seed, 0, 2**31 - 1)
        if self.opponents != "itself":
            try:
                make_policy(self.opponents)
            except (OSError, ImportError, ValueError) as error:
                raise ValueError(f"opponents must be itself or the name of a policy: {error}") from error

    def _check(self, name: str, right: bool, what: str) -> None:
        if not right:
            raise ValueError(f"{name} {what}, got {getattr(self, name)!r}")


PRESETS = {"quick": Settings()}
"""There is but one; train.py takes it."""

FIXED = ("folder", "rules", "opponents", "width", "seed")
"""Settings that cannot change when a run is resumed."""


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]  # they are untyped
    """A `PathNetwork` as RLlib has it: from observations to logits, those of illegal actions the smallest there are."""

    network: PathNetwork

    def setup(self) -> None:
        """Make the network; `model_config` has the rules and the width."""
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
    """Return what RLlib is to do.

    Args:
        settings: the settings.
        done: decisions that have been learnt from already.
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
            disable_env_checking=True,  # it would take illegal actions
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


class Run:
    """A training and its run folder, which has the files of PPO's, see `agents.training`.

    Args:
        settings: the settings; `folder` is set.
        done: decisions that have been learnt from already.

    Attributes:
        algorithm: RLlib's.
        done: decisions learnt from.
        curve: a row for each measurement: decisions, seconds, opponent, games, wins, ties, losses.
        seconds: processor time that this process has spent so far.
        stop: set it to have the training saved and stopped after the next update.
        unit: what it learns from.
    """

    unit = "decisions"

    def __init__(self, settings: Settings, done: int = 0) -> None:
        assert settings.folder is not None
        self.settings, self.folder = settings, settings.folder
        self.game = Game(settings.rules)
        self.references = {name: make_policy(name) for name in REFERENCES}
        connect(settings.ray)
        if not settings.ray and settings.runners + settings.learners > num_cpus():  # no other node will come
            needed = f"runners + learners = {settings.runners + settings.learners}"
            raise OSError(f"{needed} must be at most the {num_cpus()} CPUs of this machine, without --ray")
        for name in ("ray.rllib", "ray.tune"):  # they warn of themselves
            logging.getLogger(name).setLevel(logging.ERROR)
        self.algorithm = make_config(settings, done).build_algo()
        self.done = self._began = done
        self.curve: list[tuple[int, float, str, int, int, int, int]] = []
        self.milestone = -1  # the last one that was passed; -1 before the network is first measured
        self.seconds = 0.0
        self.stop = False

    @classmethod
    def begin(cls, settings: Settings) -> Run:
        """Make the run folder, with a first checkpoint in it.

        Raises:
            FileExistsError: if there is something in it.
            OSError: if it cannot be made, or there is no cluster at the address.
        """
        assert settings.folder is not None
        runs.make_folder(settings.folder)
        run = cls(settings)
        run.save()
        run._write_config()
        return run

    @classmethod
    def resume(cls, settings: Settings) -> Run:
        """Go on with the run in `settings.resume`: with its network, but in new games.

        Raises:
            CheckpointError: if its checkpoint cannot be used, or does not fit the settings; no file is changed.
            OSError: if the folder cannot be written to, or there is no cluster at the address.
        """
        assert settings.resume is not None
        path = settings.resume / CHECKPOINT
        saved = checkpoint.load(path)
        runs.check_unchanged(settings, runs.read_settings(Settings, path, saved), FIXED)
        try:
            _check(saved, settings)
        except ValueError as error:
            raise CheckpointError(f"{path} cannot be used: {error}. {checkpoint.CURE}") from error
        run = cls(settings, saved["decisions"])
        run._restore(saved)
        run.save()
        run._write_config()
        return run

    @property
    def total(self) -> int:
        """Decisions to learn from."""
        return self.settings.decisions

    def train(self, progress: Callable[[Run], None]) -> None:
        """Train up to the number of decisions set.

        Args:
            progress: called after every update of the network.

        Raises:
            Stopped: if `stop` was set; the checkpoint is written then.
            OSError: if a file cannot be written; the last checkpoint is intact.
        """
        began = time.process_time() - self.seconds
        while True:
            self.seconds = time.process_time() - began
            self._after_update()
            progress(self)
            if self.done >= self.total:
                return
            self.algorithm.train()
            steps = ("env_runners", "num_env_steps_sampled_lifetime")
            self.done = self._began + int(self.algorithm.metrics.peek(steps, default=0))

    def _after_update(self) -> None:
        """Do what is due: a milestone, or the end on request."""
        reached = self._milestones_reached()
        if reached > self.milestone:
            self.milestone = reached
            for name, counts in self.measure(self.settings.milestone_games).items():
                self.curve.append((self.done, self.seconds, name, *counts))
            self.save()
        elif self.stop:
            self.save()
        if self.stop:
            raise Stopped

    def _milestones_reached(self) -> int:
        return min(self.done, self.total) * self.settings.milestones // self.total

    def network(self) -> PathNetwork:
        """Return a copy of the network."""
        (weights,) = self.algorithm.learner_group.get_weights().values()
        network = PathNetwork(self.settings.rules, self.settings.width)
        network.load_state_dict({name.removeprefix("network."): th.tensor(w) for name, w in weights.items()})
        return network

    def measure(self, games: int) -> dict[str, evaluate.Counts]:
        """Play at least so many games, by the network's most likely actions, against each of the references."""
        player = trained.player(self.network())
        return {
            name: evaluate.measure(self.game, player, other, games, MEASURING)
            for name, other in self.references.items()
        }

    def finish(self) -> dict[str, evaluate.Counts]:
        """Measure the result of the training, and leave it as ONNX, for players without torch."""
        export_onnx(self.folder, self.folder / "model.onnx")
        return self.measure(self.settings.final_games)

    # ------------------------------------------------------------------------------------------------ the folder

    def _write_config(self) -> None:
        """Write down what the run is made with."""
        packages = ("numpy", "numba", "gymnasium", "pettingzoo", "torch", "ray")
        runs.write_config(self.folder, self.settings, packages)

    def save(self) -> None:
        """Write the checkpoint, the network and the curve; each file is the old or the new one at any time.

        Raises:
            OSError: naming the file that cannot be written.
        """
        network = self.network()
        (optimizer,) = self.algorithm.learner_group.get_state()["learner"]["optimizer"].values()
        content = {
            "learner": "rllib",
            "settings": runs.plain(self.settings),
            "decisions": self.done,
            "seconds": self.seconds,
            "curve": self.curve,
            "network": network.state_dict(),
            "optimizer": {
                i: {name: th.tensor(np.float32(moment)) for name, moment in moments.items()}
                for i, moments in optimizer["state"]["state"].items()
            },
        }
        checkpoint.save(self.folder / CHECKPOINT, content)
        trained.save_network(self.folder / "model.zip", network)
        checkpoint.write(self.folder / "curve.csv", report.curve(self.curve, self.unit).encode())

    def _restore(self, saved: dict[str, Any]) -> None:
        """Take over a checkpoint that is known to be right."""
        state = self.algorithm.learner_group.get_state()["learner"]
        ((name, optimizer),) = state["optimizer"].items()
        weights = {f"network.{name}": tensor.numpy() for name, tensor in saved["network"].items()}
        moments = {**optimizer["state"], "state": saved["optimizer"]}
        state["rl_module"] = dict.fromkeys(state["rl_module"], weights)
        state["optimizer"] = {name: {**optimizer, "state": moments}}
        self.algorithm.set_state({"learner_group": {"learner": state}})
        self.curve, self.seconds = saved["curve"], saved["seconds"]
        if self.curve:
            self.milestone = self._milestones_reached()


def _check(saved: dict[str, Any], settings: Settings) -> None:
    """Make sure that a checkpoint fits the settings.

    Raises:
        ValueError: naming the part that does not fit.
    """
    network = PathNetwork(settings.rules, settings.width)
    parameters = enumerate(network.parameters())
    adam = {i: {"step": th.tensor(0.0), "exp_avg": p.data, "exp_avg_sq": p.data} for i, p in parameters}
    parts = {
        "learner": "",
        "decisions": 0,
        "seconds": 0.0,
        "network": network.state_dict(),
        "optimizer": adam,
    }
    if saved.get("decisions") == 0:
        parts["optimizer"] = {}
    checkpoint.check("its content", dict.fromkeys(saved), dict.fromkeys((*parts, "settings", "curve")))
    for name, like in parts.items():
        checkpoint.check(name, saved[name], like)
    if saved["decisions"] < 0 or saved["seconds"] < 0:
        raise CheckpointError("decisions and seconds must not be negative")
    if any((m["exp_avg_sq"] < 0).any() or m["step"] < 1 for m in saved["optimizer"].values()):
        raise CheckpointError("optimizer has squares or steps that are negative")
    if type(saved["curve"]) is not list:
        raise CheckpointError("curve must be a list")
    for i, row in enumerate(saved["curve"]):
        checkpoint.check(f"curve[{i}]", row, (0, 0.0, "", 0, 0, 0, 0))
        done, seconds, opponent, games, *counts = row
        if min(done, seconds, *counts) < 0 or opponent not in REFERENCES or not 0 < games == sum(counts):
            raise CheckpointError(f"curve[{i}] is no measurement: {row}")


def read_settings(folder: Path) -> Settings:
    """Return the settings of an earlier run, to go on with it.

    Raises:
        CheckpointError: if its checkpoint cannot be used.
    """
    path = folder / CHECKPOINT
    return runs.read_settings(Settings, path, checkpoint.load(path))


if __name__ == "__main__":
    from train import main

    sys.exit(main(["rllib", *sys.argv[1:]]))
