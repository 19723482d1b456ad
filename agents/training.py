"""Training by self-play: settings, the loop, and what it leaves in the run folder.

MaskablePPO learns one seat of every game; the other seats are played by the network itself, by earlier snapshots of
it, and by `greedy`. A run has equally spaced *milestones*. At each of them the network is added to the pool of
snapshots, its strength is measured, and a checkpoint is written; the first one is written before anything else:

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
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch as th
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
from stable_baselines3.common.utils import LinearSchedule, set_random_seed

from agents import checkpoint, evaluate, report, runs, trained
from agents.checkpoint import CheckpointError
from agents.export import export_onnx
from agents.network import PathPolicy
from agents.runs import CHECKPOINT, Stopped
from agents.selfplay import SelfPlayVecEnv
from wotd_env import STATE, Game, Phase, Rules, make_policy, models
from wotd_env.core.arguments import check_integer
from wotd_env.core.checks import check_states
from wotd_env.core.policy import Policy, check_rules
from wotd_env.core.state import States
from wotd_env.planning.planner import Value
from wotd_env.policies.planner import Planner
from wotd_env.policies.sb3 import Trained

REFERENCES = ("random", "greedy", "planner")
"""The opponents that strength is measured against."""

LEAST_ENTROPY = 1 / 30
"""What is left of the entropy bonus at the end."""

MEASURING = 1 << 32
"""Seed of all measurements; the games of a training have smaller ones."""


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
    policy = make_policy(name)
    check_rules(policy, rules)
    if not isinstance(policy, Planner):
        raise ValueError(f"credit must be a policy that plans, as planner and td:FILE do, got {name!r}")
    return policy.value


@dataclass(frozen=True)
class Settings:
    """Train MaskablePPO by self-play, then measure it against random, greedy and planner.

    Ctrl-C saves the run after the update in progress; --resume goes on with it.
    """

    preset: Literal["quick", "standard", "rules"] = "quick"
    """Defaults of all other settings: quick takes up to 5 minutes on two cores, standard an hour; rules learns from the
    rules of the game alone, without credits and plans, in 5 minutes."""

    resume: Path | None = None
    """Run folder to go on with; its settings are the defaults then."""

    folder: Path | None = None
    """Run folder to make; by default runs/ and the time."""

    seed: int = 0
    """Same seed, settings and machine: same network."""

    rules: Rules = field(default_factory=Rules)

    decisions: int = 850_000
    """Decisions of the learner to train on."""

    milestones: int = 10
    """Times that a snapshot, a measurement and a checkpoint are made, evenly spread over the training."""

    games: int = 256
    """Games played side by side; the learner has one seat in each."""

    steps: int = 16
    """Decisions taken in each game between two updates of the network."""

    past: float = 0.0
    """Share of the games against snapshots; the snapshot is drawn anew after every update."""

    greedy: float = 0.0
    """Share of the games against greedy. The rest is played against the network as it is."""

    width: int = 64
    """Units of the network's hidden layers."""

    planned: bool = True
    """Score holds and moves by the ends of the turn, with the turn planner as a layer of the network."""

    credit: str = "auto"
    """Policy whose value of positions pays each decision at once what it changes of the result to expect, the luck of
    the dice left out: planner, td, td:FILE or a run folder of td; none for the result of the game, at its end; auto
    for td where the package has a model for the rules, and planner elsewhere."""

    gamma: float = 0.0
    """Discount from one decision to the next: 0 suits credits, which are paid at once, and 1 the result at the end."""

    learning_rate: float = 3e-3
    """Step size of Adam at the start; it falls linearly to 0."""

    batch_size: int = 512
    """Decisions in a gradient step."""

    epochs: int = 3
    """Passes over the decisions between two updates."""

    gae_lambda: float = 0.0
    """Lambda of generalized advantage estimation, counted in decisions."""

    entropy: float = 0.15
    """Weight of the entropy bonus at the start; it falls linearly to a thirtieth. What a hold gives away is so little
    that without it the policy is sure of a choice before it knows the better one."""

    clip: float = 0.2
    """Clip range of PPO's probability ratio."""

    milestone_games: int = 500
    """Games against each of random, greedy and planner at a milestone."""

    final_games: int = 4000
    """Games against each of random, greedy and planner after the training, at least."""

    threads: int = 2
    """Threads of the network's arithmetic."""

    def __post_init__(self) -> None:
        self._check(
            "preset", self.preset in ("quick", "standard", "rules"), "must be quick, standard or rules"
        )
        for name in ("decisions", "milestones", "games", "steps", "width", "epochs", "threads"):
            check_integer(name, getattr(self, name), 1)
        for name in ("milestone_games", "final_games"):
            check_integer(name, getattr(self, name), self.rules.players, why="(the number of players)")
        for name in ("past", "greedy", "gamma", "gae_lambda", "clip"):
            self._check(name, 0 <= getattr(self, name) <= 1, "must be from 0 to 1")
        self._check("learning_rate", self.learning_rate > 0, "must be positive")
        self._check("entropy", self.entropy >= 0, "must not be negative")
        check_integer("seed", self.seed, 0, 2**32 - 1)
        value_of(self.credit, self.rules)
        self._check("greedy", self.past + self.greedy <= 1, f"must leave room for past = {self.past}")
        rollout = self.games * self.steps
        check_integer("batch_size", self.batch_size, 2, why="to normalise advantages")
        self._check("batch_size", rollout % self.batch_size == 0, f"must divide games * steps = {rollout}")

    def _check(self, name: str, right: bool, what: str) -> None:
        if not right:
            raise ValueError(f"{name} {what}, got {getattr(self, name)!r}")


PRESETS = {
    "quick": Settings(),
    "standard": Settings(preset="standard", decisions=8_000_000, milestones=40),
    "rules": Settings(
        preset="rules",
        decisions=1_900_000,
        milestones=20,
        steps=64,
        past=0.25,
        greedy=0.25,
        planned=False,
        credit="none",
        gamma=1.0,
        learning_rate=1e-3,
        batch_size=1024,
        gae_lambda=0.9,
        entropy=0.003,
    ),
}


FIXED = ("preset", "folder", "rules", "games", "width", "planned", "seed")
"""Settings that cannot change when a run is resumed."""


class Run:
    """A training and its run folder.

    Args:
        settings: the settings; `folder` is set.

    Attributes:
        model: the learner.
        env: the games it learns from.
        pool: the weights of all snapshots.
        curve: a row for each measurement: decisions, seconds, opponent, games, wins, ties, losses.
        seconds: processor time spent so far.
        stop: set it to have the training saved and stopped after the next update.
        unit: what it learns from.
    """

    unit = "decisions"

    def __init__(self, settings: Settings) -> None:
        assert settings.folder is not None
        th.set_num_threads(settings.threads)
        self.settings, self.folder = settings, settings.folder
        self.game = Game(settings.rules)
        self.references = {name: make_policy(name) for name in REFERENCES}
        # The opponents are set below: most of them are made of the model.
        self.env = SelfPlayVecEnv(
            self.game,
            [self.references["random"]] * settings.games,
            settings.seed,
            value_of(settings.credit, settings.rules),
        )
        self.model = MaskablePPO(
            PathPolicy,
            self.env,
            learning_rate=LinearSchedule(settings.learning_rate, 0.0, 1.0),
            n_steps=settings.steps,
            batch_size=settings.batch_size,
            n_epochs=settings.epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            ent_coef=settings.entropy,
            clip_range=settings.clip,
            policy_kwargs={
                "rules": settings.rules,
                "width": settings.width,
                "planned": settings.planned,
            },
            seed=settings.seed,
            device="cpu",
        )
        self.past = copy.deepcopy(self.model.policy)
        self.pool: list[dict[str, th.Tensor]] = []
        self.curve: list[tuple[int, float, str, int, int, int, int]] = []
        self.milestone = -1  # the last one that was passed; -1 before the network is first measured
        self.seconds = 0.0
        self.stop = False

        past, greedy = round(settings.games * settings.past), round(settings.games * settings.greedy)
        opponents: dict[str, tuple[Policy, int]] = {
            "itself": (Trained(self.model.policy, sample=True), settings.games - past - greedy),
            "snapshots": (Trained(self.past, sample=True), past),
            "greedy": (self.references["greedy"], greedy),
        }
        self.env.opponents = [policy for policy, games in opponents.values() for _ in range(games)]
        self.opponents = np.repeat(list(opponents), [games for _, games in opponents.values()])
        self.model._last_obs = self.env.reset()
        self.model._last_episode_starts = np.ones(settings.games, np.bool_)

    @classmethod
    def begin(cls, settings: Settings) -> Run:
        """Make the run folder, with a first checkpoint in it.

        Raises:
            FileExistsError: if there is something in it.
            OSError: if it cannot be made.
        """
        assert settings.folder is not None
        runs.make_folder(settings.folder)
        run = cls(settings)
        run.save()
        run._write_config()
        return run

    @classmethod
    def resume(cls, settings: Settings) -> Run:
        """Go on with the run in `settings.resume` as if it had not been interrupted.

        Raises:
            CheckpointError: if its checkpoint cannot be used, or does not fit the settings; no file is changed.
            OSError: if the folder cannot be written to.
        """
        assert settings.resume is not None
        path = settings.resume / CHECKPOINT
        saved = checkpoint.load(path)
        runs.check_unchanged(settings, runs.read_settings(Settings, path, saved), FIXED)
        run = cls(settings)
        run._restore(path, saved)
        run.save()
        run._write_config()
        return run

    # ------------------------------------------------------------------------------------------------ the run

    @property
    def done(self) -> int:
        """Decisions learnt from."""
        return self.model.num_timesteps

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
        left = max(self.settings.decisions - self.model.num_timesteps, 0)
        with _one_error():
            self.model.set_logger(configure(str(self.folder), ["tensorboard"]))
            try:
                self.model.learn(left, _AfterUpdates(self, progress), reset_num_timesteps=False)
            finally:
                self.model.logger.close()

    def after_update(self) -> None:
        """Do what is due: a milestone, or the end on request; then make ready for the next update."""
        if self._milestones_reached() > self.milestone:
            self.milestone = self._milestones_reached()
            self.pool.append(copy.deepcopy(self.model.policy.state_dict()))
            for name, counts in self.measure(self.settings.milestone_games).items():
                self.curve.append((self.model.num_timesteps, self.seconds, name, *counts))
                self.model.logger.record(f"strength/wins_against_{name}", counts.wins / counts.games)
            self.save()
        elif self.stop:
            self.save()
        if self.stop:
            raise Stopped
        left = 1 - self.model.num_timesteps / self.settings.decisions
        self.model.ent_coef = self.settings.entropy * max(left, LEAST_ENTROPY)
        # Whatever is drawn up to the next update, by any generator, follows from the seed and the decisions so far.
        rng = np.random.default_rng([self.settings.seed, self.model.num_timesteps])
        self.past.load_state_dict(self.pool[rng.integers(len(self.pool))])
        set_random_seed(int(rng.integers(1 << 32)))
        self.env.rng = rng

    def _milestones_reached(self) -> int:
        return self.model.num_timesteps * self.settings.milestones // self.settings.decisions

    def measure(self, games: int) -> dict[str, evaluate.Counts]:
        """Play at least so many games, by the network's most likely actions, against each of the references."""
        player = Trained(self.model.policy)
        return {
            name: evaluate.measure(self.game, player, other, games, MEASURING)
            for name, other in self.references.items()
        }

    def finish(self) -> dict[str, evaluate.Counts]:
        """Measure the best snapshot of the finished training, and leave it as ONNX, for players without torch."""
        self.model.policy.load_state_dict(self.pool[self.best])
        export_onnx(self.folder, self.folder / "model.onnx")
        return self.measure(self.settings.final_games)

    @property
    def best(self) -> int:
        """The number of the snapshot to keep, see `runs.best`, by games against the strongest of the references."""
        name = list(self.references)[-1]
        return runs.best(
            [(games, wins, ties) for *_, other, games, wins, ties, _ in self.curve if other == name]
        )

    # ------------------------------------------------------------------------------------------------ the folder

    def _write_config(self) -> None:
        """Write down what the run is made with."""
        packages = ("numpy", "numba", "gymnasium", "torch", "stable-baselines3", "sb3-contrib")
        runs.write_config(self.folder, self.settings, packages)

    def save(self) -> None:
        """Write the checkpoint, the model and the curve; each file is the old or the new one at any time.

        Raises:
            OSError: naming the file that cannot be written.
        """
        checkpoint.save(self.folder / CHECKPOINT, self._content())
        now = copy.deepcopy(self.model.policy.state_dict())
        if self.pool:
            self.model.policy.load_state_dict(self.pool[self.best])
        trained.save(self.folder / "model.zip", self.model)
        self.model.policy.load_state_dict(now)
        checkpoint.write(self.folder / "curve.csv", report.curve(self.curve, self.unit).encode())

    def _content(self) -> dict[str, Any]:
        """Return what a checkpoint holds: tensors and plain values."""
        return {
            "settings": runs.plain(self.settings),
            "decisions": self.model.num_timesteps,
            "updates": self.model._n_updates,
            "seconds": self.seconds,
            "curve": self.curve,
            "network": self.model.policy.state_dict(),
            "optimizer": self.model.policy.optimizer.state_dict()["state"],
            "pool": self.pool,
            "state": th.from_numpy(self.env.state.view(np.uint8)),
            "seat": th.from_numpy(self.env.seat),
            "starts": th.from_numpy(np.asarray(self.model._last_episode_starts)),
        }

    def _restore(self, path: Path, saved: dict[str, Any]) -> None:
        """Take over a checkpoint, once every part of it is known to be right."""
        try:
            state = self._checked(saved)
        except ValueError as error:
            raise CheckpointError(f"{path} cannot be used: {error}. {checkpoint.CURE}") from error
        optimizer = self.model.policy.optimizer
        groups = optimizer.state_dict()["param_groups"]
        self.model.policy.load_state_dict(saved["network"])
        optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.model.num_timesteps, self.model._n_updates = saved["decisions"], saved["updates"]
        self.pool, self.curve, self.seconds = saved["pool"], saved["curve"], saved["seconds"]
        self.milestone = self._milestones_reached() if self.pool else -1
        self.env.state[:] = state
        self.env.seat[:] = saved["seat"].numpy()
        self.model._last_obs = self.game.observe(self.env.state)
        self.model._last_episode_starts = saved["starts"].numpy()

    def _checked(self, saved: dict[str, Any]) -> States:
        """Make sure that a checkpoint fits this run; return its games, STATE (N,).

        Raises:
            ValueError: naming the part that does not fit.
        """
        own = self._content()
        parameters = enumerate(self.model.policy.parameters())
        adam = {i: {"step": th.tensor(0.0), "exp_avg": p.data, "exp_avg_sq": p.data} for i, p in parameters}
        if saved.get("decisions") == 0:
            adam = {}
        checkpoint.check("its content", dict.fromkeys(saved), dict.fromkeys(own))
        for name, like in (own | {"optimizer": adam}).items():
            if name not in ("settings", "curve", "pool"):
                checkpoint.check(name, saved[name], like)
        for name in ("decisions", "updates", "seconds"):
            if saved[name] < 0:
                raise CheckpointError(f"{name} must not be negative, got {saved[name]}")
        if any(
            (moments["exp_avg_sq"] < 0).any() or moments["step"] < 1
            for moments in saved["optimizer"].values()
        ):
            raise CheckpointError("optimizer has squares or steps that are negative")

        for name, like in {"pool": own["network"], "curve": (0, 0.0, "", 0, 0, 0, 0)}.items():
            if type(saved[name]) is not list or (not saved[name] and saved["decisions"]):
                raise CheckpointError(f"{name} must be a list with an entry for each milestone")
            for i, entry in enumerate(saved[name]):
                checkpoint.check(f"{name}[{i}]", entry, like)
        for i, (decisions, seconds, opponent, games, *counts) in enumerate(saved["curve"]):
            if (
                min(decisions, seconds, *counts) < 0
                or opponent not in REFERENCES
                or not 0 < games == sum(counts)
            ):
                raise CheckpointError(f"curve[{i}] is no measurement: {saved['curve'][i]}")

        state = saved["state"].contiguous().numpy().view(STATE)
        check_states(self.settings.rules, state)
        if not np.isin(state["phase"], (Phase.KEEP, Phase.MOVE, Phase.EXTRA)).all():
            raise CheckpointError("state has games that wait for no decision")
        if (state["player"] != saved["seat"].numpy()).any():
            raise CheckpointError("seat must be that of the player to act in every game")
        checked: States = state
        return checked


class _AfterUpdates(BaseCallback):
    """Calls the run between updates, keeps its time and logs results by opponent."""

    def __init__(self, run: Run, progress: Callable[[Run], None]) -> None:
        super().__init__()
        self.run, self.progress = run, progress
        self.began = time.process_time() - run.seconds
        self.gained = np.zeros(run.settings.games)
        self.ended = np.zeros(run.settings.games, np.int64)

    def _on_rollout_start(self) -> None:
        self._after_update()
        self.gained[:] = self.ended[:] = 0

    def _on_training_end(self) -> None:
        self._after_update()

    def _after_update(self) -> None:
        self.run.seconds = time.process_time() - self.began
        self.run.after_update()
        self.progress(self.run)

    def _on_step(self) -> bool:
        self.gained += [info.get("result", 0.0) for info in self.locals["infos"]]
        self.ended += self.locals["dones"]
        return True

    def _on_rollout_end(self) -> None:
        for name in np.unique(self.run.opponents):
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


def read_settings(folder: Path) -> Settings:
    """Return the settings of an earlier run, to go on with it.

    Raises:
        CheckpointError: if its checkpoint cannot be used.
    """
    path = folder / CHECKPOINT
    return runs.read_settings(Settings, path, checkpoint.load(path))
