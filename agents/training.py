"""Training by self-play: settings, the loop, and what it leaves in the run folder.

MaskablePPO learns from the decisions of all seats of a game where each of them stands for itself (`gamma` 0), and of
one seat otherwise; then the other seats are played by the network as it is. In a share of the games earlier snapshots
of it, or `greedy`, play all seats but one. A run has equally spaced *milestones*. At each of them the network is added
to the pool of snapshots, its strength is measured, and a checkpoint is written; the first one is written before
anything else:

    checkpoint.pt     all that `--resume` needs
    model.zip         the best snapshot so far as SB3 saves it, see `agents.trained`
    model.onnx        the same when the training has come to its end; the run folder goes by it as a policy
    config.json       settings and versions, to be read by people
    curve.csv, .png   strength against `random`, `greedy` and `planner` at every milestone
    result.json       the final table
    events.out.*      TensorBoard: losses, speed, results by opponent
    .lock             keeps a second training out
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

from agents import checkpoint, runs, trained
from agents.checkpoint import CheckpointError
from agents.evaluate import Counts
from agents.export import export_onnx
from agents.network import PathPolicy
from agents.runs import policy_of
from agents.selfplay import SelfPlayVecEnv
from wotd_env import STATE, Phase, Rules, models
from wotd_env.core.arguments import check_integer
from wotd_env.core.checks import check_states
from wotd_env.planning.planner import Value
from wotd_env.policies.planner import Planner
from wotd_env.policies.sb3 import Trained
from wotd_env.policy import Policy

LEAST_ENTROPY = 1 / 30
"""What is left of the entropy bonus at the end."""


def value_of(name: str, rules: Rules) -> Value | None:
    """Return the value that credits are measured by, see `Settings.credit`; None for none.

    Raises:
        ValueError: if there is no such policy, it does not plan, or it is for other rules.
    """
    if name == "none":
        return None
    if name == "auto":
        try:
            models.find("td", rules)
            name = "td"
        except ValueError:
            name = "planner"
    policy = policy_of("credit", name, rules)
    if not isinstance(policy, Planner):
        raise ValueError(f"credit must be a policy that plans, as planner and td:FILE do, got {name!r}")
    return policy.value


def device_of(name: str) -> th.device:
    """Return a device that is known to work.

    Raises:
        ValueError: if it does not.
    """
    try:
        number = th.zeros((), device=name)
        number.item()
    except Exception as error:  # torch has a kind of its own for every cause
        why = str(error).splitlines()[0]
        raise ValueError(f"device must be cpu or one that torch can use here, got {name!r}: {why}") from error
    return number.device


@dataclass(frozen=True)
class Settings(runs.Settings):
    """Train MaskablePPO by self-play, then measure it against random, greedy and planner.

    Ctrl-C saves the run after the update in progress; --resume goes on with it.
    """

    policies = ("credit",)

    preset: Literal["quick", "standard", "rules"] = "quick"
    """Defaults of the others: quick and rules take 5 minutes of one core, standard an hour; rules learns by results."""

    decisions: int = 400_000
    """Decisions of the learner to train on."""

    games: int = 256
    """Games played side by side."""

    steps: int = 16
    """Decisions taken in each game between two updates of the network."""

    past: float = 0.0
    """Share of the games against snapshots; the snapshot is drawn anew after every update."""

    greedy: float = 0.0
    """Share of the games against greedy. The rest is played against the network as it is."""

    width: int = 64
    """Units of the network's hidden layers."""

    planned: bool = True
    """Score holds and moves by the ends of the turn: the turn planner is a layer of the network, without powers."""

    credit: str = "auto"
    """Policy by whose value decisions are paid at once; none: by the result; auto: td if the package has a model."""

    gamma: float = 0.0
    """Discount from one decision to the next: 0 suits credits, which are paid at once, and 1 the result at the end."""

    learning_rate: float = 3e-3
    """Step size of Adam at the start; it falls linearly to 0."""

    batch_size: int = 256
    """Decisions in a gradient step."""

    epochs: int = 5
    """Passes over the decisions between two updates."""

    gae_lambda: float = 0.0
    """Lambda of generalized advantage estimation, counted in decisions; without effect where gamma is 0."""

    entropy: float = 0.15
    """Weight of the entropy bonus at the start; it falls linearly to a thirtieth."""

    clip: float = 0.2
    """Clip range of PPO's probability ratio."""

    final_games: int = 4000
    """Games against each of random, greedy and planner after the training, at least."""

    threads: int = 1
    """Threads of the network's arithmetic; with another number its sums, and so the network, are other ones."""

    device: str = "cpu"
    """Where the network learns: cpu, cuda or what else torch has; on another device it becomes another network."""

    def __post_init__(self) -> None:
        super().__post_init__()
        presets = ("quick", "standard", "rules")
        self.check("preset", self.preset in presets, "must be quick, standard or rules")
        self.check_counts("decisions", "games", "steps", "width", "epochs", "threads")
        self.check_shares("past", "greedy", "gamma", "gae_lambda", "clip")
        self.check_positive("learning_rate")
        self.check("entropy", 0 <= self.entropy < math.inf, "must be a number that is not negative")
        if self.resume is None:
            value_of(self.credit, self.rules)
            device_of(self.device)
        why = (
            "must be positive without credits, because only the end of a game pays then (preset rules has 1)"
        )
        self.check("gamma", self.gamma > 0 or self.credit != "none", why)
        self.check("greedy", self.past + self.greedy <= 1, f"must leave room for past = {self.past}")
        rollout = self.games * self.steps
        check_integer("batch_size", self.batch_size, 2, why="to normalise advantages")
        self.check("batch_size", rollout % self.batch_size == 0, f"must divide games * steps = {rollout}")


PRESETS = {
    "quick": Settings(),
    "standard": Settings(preset="standard", decisions=6_000_000, milestones=40),
    "rules": Settings(
        preset="rules",
        decisions=1_900_000,
        milestones=20,
        steps=64,
        past=0.25,
        planned=False,
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
    """Return a network that has learnt nothing, and the way in which it learns in `env`, see `Settings`.

    The next `env.reset()` begins games that no other seed has. From here on torch works by as many threads as are set,
    because sums depend on their number, and on a GPU in an order that does not change.
    """
    th.set_num_threads(settings.threads)
    device = device_of(settings.device)
    if device.type != "cpu":
        th.use_deterministic_algorithms(True)
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # CUDA asks for it then
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
        policy_kwargs={"rules": settings.rules, "width": settings.width, "planned": settings.planned},
        seed=settings.seed,
        device=device,
    )
    # SB3 has seeded it by the seed itself, and then game i + 1 of one seed would be game i of the next.
    env.seed(settings.seed << 32)
    return model


def entropy(settings: Settings, decisions: int) -> float:
    """Return the weight of the entropy bonus after a number of decisions."""
    return settings.entropy * max(1 - decisions / settings.decisions, LEAST_ENTROPY)


class Run(runs.Run):
    """A training and its run folder.

    Args:
        settings: the settings; `folder` is set.

    Attributes:
        model: the learner.
        env: the games it learns from.
        pool: the weights of all snapshots.
    """

    learner, unit, kind = "ppo", "decisions", Settings
    fixed = ("preset", "folder", "rules", "games", "width", "planned", "seed")
    part_names = ("decisions", "updates", "network", "optimizer", "pool", "state", "seat", "starts")
    packages = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        # The opponents are set below: most of them are made of the model.
        self.env = SelfPlayVecEnv(
            self.game,
            [self.references["random"]] * settings.games,
            settings.seed,
            value_of(settings.credit, settings.rules),
        )
        self.model = make_model(settings, self.env)
        self.past = copy.deepcopy(self.model.policy)
        self.pool: list[dict[str, th.Tensor]] = []

        past = round(settings.games * settings.past)
        greedy = min(round(settings.games * settings.greedy), settings.games - past)
        # Where the future does not count, each decision stands for itself, whichever seat has made it.
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
        """Decisions learnt from."""
        return int(self.model.num_timesteps)

    @property
    def total(self) -> int:
        """Decisions to learn from."""
        return int(self.settings.decisions)

    def player(self) -> Trained:
        """Return what plays the network's most likely actions."""
        return Trained(self.model.policy)

    def train(self, progress: Callable[[Run], None]) -> None:
        """Train up to the number of decisions set, see `runs.Run.train`."""
        left = max(self.settings.decisions - self.model.num_timesteps, 0)
        with _one_error():
            self.model.set_logger(configure(str(self.folder), ["tensorboard"]))
            try:
                self.model.learn(left, _AfterUpdates(self, progress), reset_num_timesteps=False)
            finally:
                self.model.logger.close()

    def after_update(self, progress: Callable[[Run], None]) -> None:
        """Do what is due; then make ready for the next update."""
        super().after_update(progress)
        self.model.ent_coef = entropy(self.settings, self.model.num_timesteps)
        # Whatever is drawn up to the next update, by any generator, follows from the seed and the decisions so far.
        rng = np.random.default_rng([self.settings.seed, self.model.num_timesteps])
        set_random_seed(int(rng.integers(1 << 32)))
        if self.settings.past:
            self.past.load_state_dict(self.pool[rng.integers(len(self.pool))])
        self.env.rng = rng

    def pass_milestone(self) -> None:
        """Add the network to the pool, and measure it."""
        self.pool.append(self.weights())
        super().pass_milestone()
        for *_, name, games, wins, _, _ in self.curve[-len(self.references) :]:
            self.model.logger.record(f"strength/wins_against_{name}", wins / games)
        self.model.logger.dump(self.model.num_timesteps)

    def finish(self, progress: Callable[[str, int], None] = lambda name, over: None) -> dict[str, Counts]:
        """Measure the best snapshot of the finished training, and leave it as ONNX, for players without torch."""
        self.model.policy.load_state_dict(self.pool[self.best])
        export_onnx(self.folder, self.folder / "model.onnx")
        return super().finish(progress)

    @property
    def best(self) -> int:
        """The number of the snapshot to keep, see `runs.best`, by games against the strongest of the references."""
        name = list(self.references)[-1]
        return runs.best(
            [(games, wins, ties) for *_, other, games, wins, ties, _ in self.curve if other == name]
        )

    def save_network(self) -> None:
        """Write the best snapshot."""
        now = self.weights()
        if self.pool:
            self.model.policy.load_state_dict(self.pool[self.best])
        trained.save(self.folder / "model.zip", self.model)
        self.model.policy.load_state_dict(now)

    def weights(self) -> dict[str, th.Tensor]:
        """Return a copy of the network's weights, in main memory whatever the device."""
        return {name: weights.cpu().clone() for name, weights in self.model.policy.state_dict().items()}

    def parts(self) -> dict[str, Any]:
        """Return what a checkpoint holds of this learner alone, in main memory."""
        moments = self.model.policy.optimizer.state_dict()["state"]
        return {
            "decisions": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "network": self.weights(),
            "optimizer": {i: {name: x.cpu() for name, x in of_one.items()} for i, of_one in moments.items()},
            "pool": self.pool,
            "state": th.from_numpy(self.env.state.view(np.uint8)),
            "seat": th.from_numpy(self.env.seat),
            "starts": th.from_numpy(np.asarray(self.model._last_episode_starts)),
        }

    def check(self, saved: dict[str, Any]) -> None:
        """Make sure that a checkpoint fits this run, see `runs.Run.check`."""
        own = self.parts()
        begun = saved["decisions"] != 0
        for name in self.part_names:
            if name not in ("optimizer", "pool"):
                checkpoint.check(name, saved[name], own[name])
        runs.check_adam(saved["optimizer"], map(th.Tensor.cpu, self.model.policy.parameters()), begun)
        runs.check_list("pool", saved["pool"], own["network"], begun)
        for name in self.references:
            if [row[2:3] for row in saved["curve"]].count((name,)) != len(saved["pool"]):
                raise CheckpointError(
                    f"curve must have a measurement against {name} for each snapshot in pool"
                )
        for name in ("decisions", "updates"):
            if saved[name] < 0:
                raise CheckpointError(f"{name} must not be negative, got {saved[name]}")
        state = saved["state"].contiguous().numpy().view(STATE)
        check_states(self.settings.rules, state)
        if not np.isin(state["phase"], (Phase.KEEP, Phase.MOVE, Phase.EXTRA)).all():
            raise CheckpointError("state has games that wait for no decision")
        if (state["player"] != saved["seat"].numpy()).any():
            raise CheckpointError("seat must be that of the player to act in every game")

    def restore(self, saved: dict[str, Any]) -> None:
        """Take over a checkpoint, see `runs.Run.restore`."""
        optimizer = self.model.policy.optimizer
        groups = optimizer.state_dict()["param_groups"]
        self.model.policy.load_state_dict(saved["network"])
        optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.model.num_timesteps, self.model._n_updates = saved["decisions"], saved["updates"]
        self.pool = saved["pool"]
        self.env.state[:] = saved["state"].contiguous().numpy().view(STATE)
        self.env.seat[:] = saved["seat"].numpy()
        self.model._last_obs = self.game.observe(self.env.state)
        self.model._last_episode_starts = saved["starts"].numpy()


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
    """Keep the thread that writes for TensorBoard from printing an error that it raises in this thread too."""
    hook, others = threading.excepthook, set(threading.enumerate())
    threading.excepthook = lambda args: None if args.exc_type is OSError else hook(args)
    try:
        yield
    finally:
        for thread in set(threading.enumerate()) - others:  # it is about to end
            thread.join(timeout=1)
        threading.excepthook = hook
