"""PPO by self-play: settings, the run, and its connection to Stable-Baselines3.

MaskablePPO learns in one of two ways. With `gamma` 0 each decision stands for itself, and the decisions of all seats
are learned from. Otherwise one seat of each game learns, and the current network plays the other seats. In a share of
the games earlier snapshots of the network, or `greedy`, play all seats but one. A snapshot is added to the pool at
every milestone, see `agents.runs`. Equal seeds and settings give equal networks.
"""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch as th
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import LinearSchedule, set_random_seed
from stable_baselines3.common.vec_env import VecEnv

from agents import checkpoint, runs, settings
from agents.checkpoint import CheckpointError
from agents.export import export_onnx
from agents.network import PathNetwork, PathPolicy
from agents.selfplay import SelfPlayVecEnv
from agents.settings import NamesNoCode, SettingError
from wotd_env import Phase, make_policy, models
from wotd_env.core.arguments import check_integer
from wotd_env.planning.planner import Value
from wotd_env.policies.planner import Planner
from wotd_env.policies.sb3 import Trained
from wotd_env.policy import Policy

LEAST_ENTROPY = 1 / 30
"""Share of the entropy bonus that is left at the end."""


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Train MaskablePPO by self-play, then measure it against random, greedy and planner.

    Ctrl-C saves the run after the current update; --resume continues it.
    """

    preset: Literal["quick", "standard", "rules"] = "quick"
    """Defaults of the other settings: quick and rules take 5 minutes of one core, standard an hour."""

    decisions: int = 400_000
    """Decisions of the learner to train on."""

    games: int = 256
    """Games played side by side."""

    steps: int = 16
    """Decisions in each game between two updates of the network."""

    past: float = 0.0
    """Share of the games against snapshots; another snapshot is drawn after every update."""

    greedy: float = 0.0
    """Share of the games against greedy. The other games are against the current network."""

    width: int = 64
    """Units of the network's hidden layers."""

    planned: Literal["auto", "on", "off"] = "auto"
    """Score holds by the turn planner, as a layer of the network. It ignores powers; auto: off with any powers."""

    credit: str = "auto"
    """Policy whose value rewards each decision; none: reward results only; auto: the bundled td, or planner."""

    gamma: float = 0.0
    """Discount per decision: 0 with rewards for each decision, 1 with rewards for results only."""

    learning_rate: float = 3e-3
    """Learning rate of Adam at the start; it falls linearly to 0."""

    batch_size: int = 256
    """Decisions in a gradient step."""

    epochs: int = 5
    """Passes over the decisions in an update."""

    gae_lambda: float = 0.0
    """Lambda of generalized advantage estimation, per decision; no effect with gamma 0."""

    entropy: float = 0.15
    """Weight of the entropy bonus at the start; it falls linearly to a thirtieth."""

    clip: float = 0.2
    """Clip range of PPO's probability ratio."""

    final_games: int = 4000
    """Games against each of random, greedy and planner after the training, at least."""

    threads: int = 1
    """Threads of torch. Another number changes the order of sums, and so the network."""

    device: NamesNoCode = "cpu"
    """Device of the network: cpu, cuda or another device of torch. Another device gives another network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        presets = ("quick", "standard", "rules")
        self.check("preset", self.preset in presets, "must be quick, standard or rules")
        self.check("planned", self.planned in ("auto", "on", "off"), "must be auto, on or off")
        self.check_counts("decisions", "games", "steps", "width", "epochs", "threads")
        self.check_shares("past", "greedy", "gamma", "gae_lambda", "clip")
        self.check_positive("learning_rate")
        self.check("entropy", 0 <= self.entropy < math.inf, "must be a number that is not negative")
        why = "must be positive with credit none, because only the end of a game is rewarded then (preset rules: 1)"
        self.check("gamma", self.gamma > 0 or self.credit != "none", why)
        self.check("greedy", self.past + self.greedy <= 1, f"must be at most 1 - past = {1 - self.past:g}")
        rollout = self.games * self.steps
        check_integer("batch_size", self.batch_size, 2, why="to normalize advantages")
        self.check("batch_size", rollout % self.batch_size == 0, f"must divide games * steps = {rollout}")

    @property
    def plans(self) -> bool:
        """Whether the network scores holds by the turn planner."""
        return self.planned == "on" or (self.planned == "auto" and self.rules.powers != "any")

    def value(self) -> Value | None:
        """Load the value function that rewards decisions, see `credit`; None for none.

        Raises:
            SettingError: if the policy is unknown, does not plan, or is made for other rules.
        """
        if self.credit == "none":
            return None
        policy = credit_auto(self) if self.credit == "auto" else self.policy("credit")
        planner = isinstance(policy, Planner)
        self.check("credit", planner, "must be a policy that plans turns, such as planner or td:FILE")
        assert isinstance(policy, Planner)
        return policy.value


def credit_auto(settings: Settings) -> Policy:
    """Return the best bundled policy that plans by these rules: `td` if there is a model, otherwise `planner`."""
    try:
        models.find("td", settings.rules)
    except ValueError:
        return Planner()
    return make_policy("td")


def device_of(name: str) -> th.device:
    """Return a device of torch after a trial.

    Raises:
        SettingError: if it does not work.
    """
    try:
        number = th.zeros((), device=name)
        number.item()
    except Exception as error:  # torch raises almost any kind
        why = str(error).splitlines()[0]
        raise SettingError(f"device must be cpu or another device of torch, got {name!r}: {why}") from error
    return number.device


PRESETS = {
    "quick": Settings(),
    "standard": Settings(preset="standard", decisions=6_000_000, milestones=40),
    "rules": Settings(
        preset="rules",
        decisions=1_900_000,
        milestones=20,
        steps=64,
        past=0.25,
        planned="off",
        credit="none",
        gamma=1.0,
        learning_rate=1e-3,
        batch_size=1024,
        epochs=3,
        gae_lambda=0.9,
        entropy=0.003,
    ),
}


def make_model(settings: Settings, env: VecEnv) -> MaskablePPO:
    """Return an untrained network with its learning algorithm in `env`.

    The next `env.reset()` begins games that no other seed has. Sets the number of torch's threads, because sums depend
    on it. On a GPU, torch is set to deterministic operations.

    Raises:
        SettingError: if the device does not work.
    """
    th.set_num_threads(settings.threads)
    device = device_of(settings.device)
    if device.type != "cpu":
        th.use_deterministic_algorithms(True)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # CUDA needs it then
    model = MaskablePPO(
        PathPolicy,
        env,
        learning_rate=LinearSchedule(settings.learning_rate, 0.0, 1.0),
        n_steps=settings.steps,
        batch_size=settings.batch_size,
        n_epochs=settings.epochs,
        gamma=settings.gamma,
        gae_lambda=settings.gae_lambda,
        ent_coef=settings.entropy,
        clip_range=settings.clip,
        policy_kwargs={"rules": settings.rules, "width": settings.width, "planned": settings.plans},
        seed=settings.seed,
        device=device,
    )
    # SB3 seeds the games with the seed itself: game i + 1 of one seed would be game i of the next.
    env.seed(settings.seed << 32)
    return model


def entropy(settings: Settings, decisions: int) -> float:
    """Return the weight of the entropy bonus after a number of decisions."""
    return settings.entropy * max(1 - decisions / settings.decisions, LEAST_ENTROPY)


class Run(runs.Run):
    """A training run of PPO.

    Attributes:
        model: the learner.
        env: the games it learns from.
        pool: the weights of the snapshots, if they are opponents.
    """

    learner, unit, kind = "ppo", "decisions", Settings
    fixed = ("preset", "folder", "rules", "games", "width", "planned", "seed")
    packages = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        # The opponents are set below, because some of them need the model, which needs the environment.
        random = self.references["random"]
        self.env = SelfPlayVecEnv(self.game, [random] * settings.games, settings.seed, settings.value())
        self.model = make_model(settings, self.env)
        self.past = copy.deepcopy(self.model.policy)
        self.pool: list[dict[str, th.Tensor]] = []

        past = round(settings.games * settings.past)
        greedy = min(round(settings.games * settings.greedy), settings.games - past)
        # With gamma 0 each decision stands for itself, so the decisions of all seats are learned from.
        itself = Trained(self.model.policy, sample=True) if settings.gamma else None
        opponents: dict[str, tuple[Policy | None, int]] = {
            "itself": (itself, settings.games - past - greedy),
            "snapshots": (Trained(self.past, sample=True), past),
            "greedy": (self.references["greedy"], greedy),
        }
        self.env.opponents = [policy for policy, games in opponents.values() for _ in range(games)]
        self.opponents = np.repeat(list(opponents), [games for _, games in opponents.values()])
        self.model._last_obs = self.env.reset()
        self.model._last_episode_starts = np.ones(settings.games, np.bool_)

    @property
    def done(self) -> int:
        """Decisions learned from."""
        return int(self.model.num_timesteps)

    @property
    def total(self) -> int:
        """Decisions to learn from."""
        return int(self.settings.decisions)

    def policy(self) -> Trained:
        """Return the policy of the network's most likely actions."""
        return Trained(self.model.policy)

    def train(self, progress: Callable[[Run], None]) -> None:
        """Train to the end, see `runs.Run.train`."""
        left = max(self.settings.decisions - self.model.num_timesteps, 0)
        with _one_error():
            self.model.set_logger(configure(str(self.folder), ["tensorboard"]))
            try:
                self.model.learn(left, _AfterUpdates(self, progress), reset_num_timesteps=False)
            finally:
                self.model.logger.close()

    def after_update(self, progress: Callable[[Run], None]) -> None:
        """Run the due milestones, then prepare the next update."""
        super().after_update(progress)
        self.model.ent_coef = entropy(self.settings, self.model.num_timesteps)
        # All random draws up to the next update follow from the seed and the number of decisions.
        rng = np.random.default_rng([self.settings.seed, self.model.num_timesteps])
        set_random_seed(int(rng.integers(1 << 32)))
        if self.settings.past:
            network_of(self.past).load_state_dict(self.pool[rng.integers(len(self.pool))])
        self.env.rng = rng

    def pass_milestone(self) -> None:
        """Add the network to the pool, and measure it."""
        if self.settings.past:
            self.pool.append(self.weights())
        super().pass_milestone()
        for row in self.curve[-len(self.references) :]:
            self.model.logger.record(f"strength/wins_against_{row.opponent}", row.wins / row.games)
        self.model.logger.dump(self.model.num_timesteps)

    def export(self) -> None:
        """Write the network as ONNX, for players without torch."""
        export_onnx(self.folder, self.folder / "model.onnx")

    def weights(self) -> dict[str, th.Tensor]:
        """Return a copy of the network's weights in main memory."""
        return {
            name: weights.cpu().clone()
            for name, weights in network_of(self.model.policy).state_dict().items()
        }

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint."""
        moments = self.model.policy.optimizer.state_dict()["state"]
        return {
            "decisions": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "network": self.weights(),
            "optimizer": {i: {name: x.cpu() for name, x in of_one.items()} for i, of_one in moments.items()},
            "pool": self.pool,
            "state": th.from_numpy(self.env.state.view(np.uint8)),
            "starts": th.from_numpy(np.asarray(self.model._last_episode_starts)),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Load a checkpoint, see `runs.Run.restore`."""
        state = checkpoint.games(saved["state"], self.settings.rules)
        if not np.isin(state["phase"], (Phase.KEEP, Phase.MOVE, Phase.EXTRA)).all():
            raise CheckpointError("state must only contain games at a decision")
        network_of(self.model.policy).load_state_dict(saved["network"])
        checkpoint.load_adam(self.model.policy.optimizer, saved["optimizer"])
        self.model.num_timesteps, self.model._n_updates = saved["decisions"], saved["updates"]
        for i, weights in enumerate(saved["pool"]):
            checkpoint.check(f"pool.{i}", weights, self.weights())
        self.pool = saved["pool"]
        if not self.pool and saved["decisions"]:  # the run may be resumed with snapshots as new opponents
            self.pool = [saved["network"]]
        self.env.state[:] = state
        self.env.seat[:] = self.env.state["player"]  # every game waits for its learner
        self.model._last_obs = self.game.observe(self.env.state)
        self.model._last_episode_starts = saved["starts"].numpy()


def network_of(policy: Any) -> PathNetwork:
    """Return the network of SB3's policy; it has all weights."""
    network = policy.mlp_extractor
    assert isinstance(network, PathNetwork)
    return network


class _AfterUpdates(BaseCallback):
    """Calls the run between updates, and logs results by opponent."""

    def __init__(self, run: Run, progress: Callable[[Run], None]) -> None:
        super().__init__()
        self.run, self.progress = run, progress
        self.gained = np.zeros(run.settings.games)
        self.ended = np.zeros(run.settings.games, np.int64)

    def _on_rollout_start(self) -> None:
        self.run.after_update(self.progress)
        self.gained[:] = self.ended[:] = 0

    def _on_training_end(self) -> None:
        self.run.after_update(self.progress)

    def _on_step(self) -> bool:
        self.gained += [info.get("result", 0.0) for info in self.locals["infos"]]
        self.ended += self.locals["dones"]
        return True

    def _on_rollout_end(self) -> None:
        for name in np.unique(self.run.opponents[self.run.opponents != "itself"]):
            games = self.run.opponents == name
            if ended := self.ended[games].sum():
                self.logger.record(f"selfplay/result_against_{name}", self.gained[games].sum() / ended)


@contextmanager
def _one_error() -> Iterator[None]:
    """Keep TensorBoard's thread from printing an error that this thread raises too."""
    hook, others = threading.excepthook, set(threading.enumerate())
    threading.excepthook = lambda args: None if args.exc_type is OSError else hook(args)
    try:
        yield
    finally:
        for thread in set(threading.enumerate()) - others:  # it is about to end
            thread.join(timeout=1)
        threading.excepthook = hook
