"""TD(lambda) by self-play on whole turns: `python train.py td`.

A small network learns what a position is worth before a turn begins. The exact turn planner makes of it what the turn
is worth, and plays it. So nothing has to be learnt about dice, holds and moves, and what is learnt is free of the noise
of the dice: of a turn from position s to position s',

    target(s) = plan(s) + lambda * (target(s') - value(s')),

where `value` is the network, and `plan` the planner's exact expectation of `value(s')`. For lambda = 1 that is the
result of the game less the luck of its dice. It is `plan(s)` alone at the end of a game, in the last turn of a round
and after an exploring move.

A *round* is a number of turns in all games, then a number of gradient steps on the turns of the last rounds. The next
round is played meanwhile, by the average of the weights as it was before these steps. That average makes the targets
and is the result. Equal settings give equal weights, whatever the number of threads.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from agents import checkpoint, evaluate, report, runs
from agents.checkpoint import CheckpointError
from agents.runs import CHECKPOINT, Stopped
from wotd_env import STATE, Game, Phase, Rules, make_policy
from wotd_env.core.arguments import check_integer
from wotd_env.core.checks import check_states
from wotd_env.core.state import States
from wotd_env.planning import learned
from wotd_env.planning.learned import HIDDEN, Features, LearnedValue
from wotd_env.planning.playing import play_turns
from wotd_env.planning.vectors import BLOCK
from wotd_env.policies.planner import Planner

REFERENCES = ("random", "greedy", "planner")
"""The opponents that strength is measured against."""

MEASURING = 1 << 63
"""Seed of all measurements; the games of a training have smaller ones."""


@dataclass(frozen=True)
class Settings:
    """Learn the value of positions by TD(lambda) through the exact turn planner, in self-play.

    Ctrl-C saves the run after the round in progress; --resume goes on with it.
    """

    preset: Literal["quick", "standard"] = "quick"
    """Defaults of all other settings: for two players quick takes up to 5 minutes on two cores, standard an hour."""

    resume: Path | None = None
    """Run folder to go on with; its settings are the defaults then."""

    folder: Path | None = None
    """Run folder to make; by default runs/ and the time."""

    seed: int = 0
    """Same seed and settings, on the same kind of machine: same network."""

    rules: Rules = field(default_factory=Rules)

    rounds: int = 600
    """Rounds of self-play and learning."""

    milestones: int = 10
    """Times that a measurement and a checkpoint are made, evenly spread over the training."""

    games: int = 2048
    """Games played side by side."""

    turns: int = 16
    """Turns played in each game in a round."""

    explore: float = 0.05
    """Share of the turns that end with a move at random."""

    td_lambda: float = 0.8
    """How much of what happens after the turn is learnt from: 0 the next position alone, 1 all the rest of the game."""

    replay: int = 8
    """Rounds whose turns are learnt from; older ones are forgotten."""

    batches: int = 64
    """Gradient steps in a round."""

    batch_size: int = 2048
    """Turns in a gradient step."""

    learning_rate: float = 3e-3
    """Step size of Adam at the start; it falls by a cosine to a fiftieth."""

    average: float = 0.995
    """How much of the average of the weights stays in a gradient step."""

    width: int = 64
    """Units of the network's first layer, a multiple of 32."""

    milestone_games: int = 500
    """Games against each of random, greedy and planner at a milestone."""

    final_games: int = 10_000
    """Games against each of random, greedy and planner after the training, at least."""

    threads: int = 2
    """Threads: one learns while the others play."""

    ray: str | None = None
    """Address of a Ray cluster that plays the games, or auto for the one that this machine is a node of; by default
    this process plays. It changes nothing but the time."""

    def __post_init__(self) -> None:
        self._check("preset", self.preset in ("quick", "standard"), "must be quick or standard")
        counts = ("rounds", "milestones", "games", "turns", "replay", "batches", "batch_size", "threads")
        for name in counts:
            check_integer(name, getattr(self, name), 1)
        check_integer("seed", self.seed, 0, 2**31 - 1)
        for name in ("milestone_games", "final_games"):
            check_integer(name, getattr(self, name), self.rules.players)
        for name in ("explore", "td_lambda", "average"):
            self._check(name, 0 <= getattr(self, name) <= 1, "must be from 0 to 1")
        self._check("learning_rate", self.learning_rate > 0, "must be positive")
        self._check("width", self.width > 0 and self.width % BLOCK == 0, f"must be a multiple of {BLOCK}")

    def _check(self, name: str, right: bool, what: str) -> None:
        if not right:
            raise ValueError(f"{name} {what}, got {getattr(self, name)!r}")


PRESETS = {"quick": Settings(), "standard": Settings(preset="standard", rounds=7000, milestones=40)}

FIXED = ("preset", "folder", "rules", "seed", "games", "turns", "width")
"""Settings that cannot change when a run is resumed."""


# ------------------------------------------------------------------------------------------------------------- network


class Network(nn.Module):
    """The network of `wotd_env.planning.learned`, while it learns: from features to logits of the chances to win.

    Args:
        rules: the rules of the game.
        width: units of the first layer.
    """

    def __init__(self, rules: Rules, width: int) -> None:
        super().__init__()
        self.rules = rules
        features = Features.of(rules)
        self.rows = nn.EmbeddingBag(features.total, width, mode="sum")
        self.hidden = nn.Linear(width, HIDDEN)
        self.output = nn.Linear(width + HIDDEN, rules.players)
        nn.init.normal_(self.rows.weight, std=0.75 / features.active**0.5)
        nn.init.normal_(self.output.weight, std=0.05)
        nn.init.zeros_(self.output.bias)

    def forward(self, active: th.Tensor) -> th.Tensor:
        """Return the logits (N, n) of positions with the features `active`, int32 (N, K)."""
        x = self.rows(active).relu()
        logits: th.Tensor = self.output(th.cat((x, self.hidden(x).relu()), 1))
        return logits

    def value(self) -> LearnedValue:
        """Return what is learnt so far as a value for the planner."""
        hidden, output = self.hidden, self.output
        weights = self.rows.weight, hidden.weight.T, hidden.bias, output.weight, output.bias
        return LearnedValue(
            self.rules, learned.Network(*(weight.detach().numpy().copy() for weight in weights))
        )


# ----------------------------------------------------------------------------------------------------------- self-play


class Samples(NamedTuple):
    """What a round of self-play teaches: M positions before a turn; n players, K features."""

    active: th.Tensor
    """int32 (M, K): their features"""
    chances: th.Tensor
    """float32 (M, n): the chances to win that the network should give, for the seat to act, the next, ..."""


def self_play(
    game: Game,
    state: States,
    value: LearnedValue,
    at_random: NDArray[np.bool_],
    td_lambda: float,
) -> Samples:
    """Play turns in all games, in place, and say what they teach.

    Args:
        game: the rules.
        state: STATE (N,), games before the first roll of a turn; where one ends, the next begins.
        value: what plays, and makes the targets.
        at_random: bool (T, N), which of the T turns of each game end with a move at random.
        td_lambda: lambda.
    """
    n, turns = game.rules.players, len(at_random)
    active = np.empty((turns, len(state), value.features.active), np.int32)
    player = np.empty((turns, len(state)), np.int64)
    goes_on = np.empty((turns, len(state), 1), np.float32)
    after, target = np.empty((2, turns, len(state), n), np.float32)
    for t in range(turns):
        active[t] = value.features.write(game, state)
        player[t] = state["player"]
        played = play_turns(game, state, value, at_random[t])
        over = state["phase"] == Phase.OVER
        game.reset(state, where=over, roll=False)
        goes_on[t, :, 0] = ~(over | at_random[t])
        target[t], after[t] = played
    for t in range(turns - 2, -1, -1):
        target[t] += td_lambda * goes_on[t] * (target[t + 1] - after[t])
    from_player = (player[:, :, None] + np.arange(n)) % n
    chances = (np.take_along_axis(target, from_player, 2) * (n - 1) + 1) / n
    return Samples(th.from_numpy(active).flatten(0, 1), th.from_numpy(chances).flatten(0, 1))


# ------------------------------------------------------------------------------------------------------------- the run


class Run:
    """A training and its run folder.

    The folder has `checkpoint.pt`, all that `--resume` needs; `value.npz`, the network, see
    `wotd_env.planning.learned`; and `config.json`, `curve.csv`, `curve.png` and `result.json` to be read.

    Args:
        settings: the settings; `folder` is set.

    Attributes:
        network: what learns.
        averaged: the average of its weights, which plays.
        samples: of the rounds that are learnt from in the next one, the newest last.
        rounds: those that have been learnt from.
        curve: a row for each measurement: turns, seconds, opponent, games, wins, ties, losses.
        seconds: processor time spent so far.
        stop: set it to have the training saved and stopped after the round in progress.
        unit: what it learns from.
    """

    unit = "turns"

    def __init__(self, settings: Settings) -> None:
        assert settings.folder is not None
        th.set_num_threads(1)  # sums of several threads would depend on their number
        th.manual_seed(settings.seed)
        if settings.ray:
            from wotd_env.adapters.ray import connect

            connect(settings.ray)
        self.settings, self.folder = settings, settings.folder
        self.game = Game(settings.rules, num_threads=max(1, settings.threads - 1))
        self.references = {name: make_policy(name) for name in REFERENCES}
        self.network = Network(settings.rules, settings.width)
        self.averaged = AveragedModel(
            self.network,
            multi_avg_fn=get_ema_multi_avg_fn(settings.average),  # type: ignore[no-untyped-call]
        )
        self.optimizer = th.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        self.state = self.game.reset(settings.games, seed=settings.seed << 32, roll=False)
        self.samples: list[Samples] = []
        self.rounds = 0
        self.curve: list[tuple[int, float, str, int, int, int, int]] = []
        self.milestone = -1  # the last one that was passed; -1 before the network is first measured
        self.seconds = 0.0
        self.stop = False

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

    @property
    def done(self) -> int:
        """Turns learnt from."""
        return self.rounds * self.settings.games * self.settings.turns

    @property
    def total(self) -> int:
        """Turns to learn from."""
        return self.settings.rounds * self.settings.games * self.settings.turns

    @property
    def value(self) -> LearnedValue:
        """What is learnt so far."""
        network = self.averaged.module
        assert isinstance(network, Network)
        return network.value()

    def train(self, progress: Callable[[Run], None]) -> None:
        """Train up to the number of rounds set.

        Args:
            progress: called after every round.

        Raises:
            Stopped: if `stop` was set; the checkpoint is written then.
            OSError: if a file cannot be written; the last checkpoint is intact.
        """
        began = time.process_time() - self.seconds
        with ThreadPoolExecutor(1) as beside:
            while True:
                self.seconds = time.process_time() - began
                self._after_round()
                progress(self)
                if self.rounds >= self.settings.rounds:
                    return
                if not self.samples:
                    self.samples.append(self._play(0, self.value))
                play = functools.partial(self._play, self.rounds + 1, self.value)
                if self.settings.threads > 1:
                    playing = beside.submit(play)
                    self._learn()
                    newest = playing.result()
                else:
                    self._learn()
                    newest = play()
                self.samples = [*self.samples[-self.settings.replay + 1 :], newest]
                self.rounds += 1

    def _play(self, number: int, value: LearnedValue) -> Samples:
        """Play a round."""
        settings = self.settings
        rng = np.random.default_rng([settings.seed, number])
        at_random = rng.random((settings.turns, settings.games)) < settings.explore
        if settings.ray:
            from agents.cluster import play_slices

            return play_slices(settings.rules, self.state, value, at_random, settings.td_lambda)
        return self_play(self.game, self.state, value, at_random, settings.td_lambda)

    def _learn(self) -> None:
        """Take the gradient steps of a round."""
        settings = self.settings
        active, chances = map(th.cat, zip(*self.samples, strict=True))
        rng = np.random.default_rng([settings.seed, self.rounds, 1])
        for batch in range(settings.batches):
            done = (self.rounds + batch / settings.batches) / settings.rounds
            falling = 0.02 + 0.98 * (1 + np.cos(np.pi * min(done, 1))) / 2
            self.optimizer.param_groups[0]["lr"] = settings.learning_rate * falling
            chosen = th.from_numpy(rng.integers(len(active), size=settings.batch_size))
            logits = self.network(active[chosen])
            loss = nn.functional.cross_entropy(logits, chances[chosen])
            self.optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimizer.step()
            self.averaged.update_parameters(self.network)

    def _after_round(self) -> None:
        """Do what is due: a milestone, or the end on request."""
        reached = self.rounds * self.settings.milestones // self.settings.rounds
        if reached > self.milestone:
            self.milestone = reached
            for name, counts in self.measure(self.settings.milestone_games).items():
                self.curve.append((self.done, self.seconds, name, *counts))
            self.save()
        elif self.stop:
            self.save()
        if self.stop:
            raise Stopped

    def measure(self, games: int) -> dict[str, evaluate.Counts]:
        """Play at least so many games against each of the references."""
        player = Planner(self.value)
        return {
            name: evaluate.measure(self.game, player, other, games, MEASURING)
            for name, other in self.references.items()
        }

    def finish(self) -> dict[str, evaluate.Counts]:
        """Measure the result of the training."""
        return self.measure(self.settings.final_games)

    # ------------------------------------------------------------------------------------------------ the folder

    def _write_config(self) -> None:
        """Write down what the run is made with."""
        runs.write_config(self.folder, self.settings, ("numpy", "numba", "torch"))

    def save(self) -> None:
        """Write the checkpoint, the network and the curve; each file is the old or the new one at any time.

        Raises:
            OSError: naming the file that cannot be written.
        """
        checkpoint.save(self.folder / CHECKPOINT, self._content())
        checkpoint.write(self.folder / "value.npz", learned.save(self.value))
        checkpoint.write(self.folder / "curve.csv", report.curve(self.curve, self.unit).encode())

    def _content(self) -> dict[str, Any]:
        """Return what a checkpoint holds: tensors and plain values."""
        return {
            "learner": "td",
            "settings": runs.plain(self.settings),
            "rounds": self.rounds,
            "seconds": self.seconds,
            "curve": self.curve,
            "network": self.network.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict()["state"],
            "samples": [tuple(samples) for samples in self.samples],
            "state": th.from_numpy(self.state.view(np.uint8)),
        }

    def _restore(self, path: Path, saved: dict[str, Any]) -> None:
        """Take over a checkpoint, once every part of it is known to be right."""
        try:
            state = self._checked(saved)
        except ValueError as error:
            raise CheckpointError(f"{path} cannot be used: {error}. {checkpoint.CURE}") from error
        self.network.load_state_dict(saved["network"])
        self.averaged.load_state_dict(saved["averaged"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.rounds, self.curve, self.seconds = saved["rounds"], saved["curve"], saved["seconds"]
        self.samples = [Samples(*samples) for samples in saved["samples"]]
        if self.curve:
            self.milestone = self.rounds * self.settings.milestones // self.settings.rounds
        self.state[:] = state

    def _checked(self, saved: dict[str, Any]) -> States:
        """Make sure that a checkpoint fits this run; return its games, STATE (N,).

        Raises:
            ValueError: naming the part that does not fit.
        """
        own, features = self._content(), Features.of(self.settings.rules)
        turns = self.settings.games * self.settings.turns
        sample = (
            th.zeros(turns, features.active, dtype=th.int32),
            th.zeros(turns, self.settings.rules.players),
        )
        adam = {
            i: {"step": th.tensor(0.0), "exp_avg": p.data, "exp_avg_sq": p.data}
            for i, p in enumerate(self.network.parameters())
        }
        checkpoint.check("its content", dict.fromkeys(saved), dict.fromkeys(own))
        if type(saved["rounds"]) is not int or saved["rounds"] < 0 or saved["seconds"] < 0:
            raise CheckpointError("rounds and seconds must be numbers that are not negative")
        begun = saved["rounds"] > 0
        for name, like in (own | {"optimizer": adam if begun else {}}).items():
            if name not in ("settings", "curve", "samples"):
                checkpoint.check(name, saved[name], like)
        if any((m["exp_avg_sq"] < 0).any() or m["step"] < 1 for m in saved["optimizer"].values()):
            raise CheckpointError("optimizer has squares or steps that are negative")
        for name, like in {"samples": sample, "curve": (0, 0.0, "", 0, 0, 0, 0)}.items():
            if type(saved[name]) is not list or bool(saved[name]) < begun:
                raise CheckpointError(f"{name} must be a list that is not empty")
            for i, entry in enumerate(saved[name]):
                checkpoint.check(f"{name}[{i}]", entry, like)
        for i, (active, _) in enumerate(saved["samples"]):
            if (active < 0).any() or (active >= features.total).any():
                raise CheckpointError(f"samples[{i}] has features that there are not")
        for i, (done, seconds, opponent, games, *counts) in enumerate(saved["curve"]):
            if min(done, seconds, *counts) < 0 or opponent not in REFERENCES or not 0 < games == sum(counts):
                raise CheckpointError(f"curve[{i}] is no measurement: {saved['curve'][i]}")
        state = saved["state"].contiguous().numpy().view(STATE)
        check_states(self.settings.rules, state)
        if (state["phase"] != Phase.CHANCE).any() or (state["dice"] >= 0).any():
            raise CheckpointError("state has games that are not before the first roll of a turn")
        checked: States = state
        return checked


def read_settings(folder: Path) -> Settings:
    """Return the settings of an earlier run, to go on with it.

    Raises:
        CheckpointError: if its checkpoint cannot be used.
    """
    path = folder / CHECKPOINT
    return runs.read_settings(Settings, path, checkpoint.load(path))
