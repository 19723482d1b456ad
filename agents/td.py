"""TD(lambda) by self-play on whole turns: `python train.py td`.

A small network learns the value of the positions before a turn. Given the network, the exact turn planner returns the
value of the turn and plays it. So dice, holds and moves need no learning, and the targets have no noise from dice. For
a turn from position s to position s',

    target(s) = plan(s) + lambda * (target(s') - value(s')),

where `value` is the network, and `plan` is the planner's exact expectation of `value(s')`. For lambda = 1 the target is
the result of the game minus the luck of its dice. The target is `plan(s)` alone at the end of a game, in the last turn
of a round, and after a random move.

A *round* plays a number of turns in all games, and takes gradient steps on the turns of the last rounds. The next round
is played at the same time, by the average of the weights before these steps. That average also makes the targets, and
is the result. Equal settings give equal weights with any number of threads.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch as th
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from agents import checkpoint, runs, settings
from agents.checkpoint import CheckpointError
from agents.response import Against
from agents.targets import Play, Samples, self_play
from wotd_env import STATE, Game, Phase, Rules, files
from wotd_env.core.checks import check_states
from wotd_env.planning import learned
from wotd_env.planning.learned import HIDDEN, Features, LearnedValue
from wotd_env.planning.playing import play_turns
from wotd_env.planning.vectors import BLOCK
from wotd_env.policies.planner import Planner
from wotd_env.policies.td import Td


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Learn the value of positions by TD(lambda) through the exact turn planner, in self-play.

    Ctrl-C saves the run after the current round; --resume continues it.
    """

    preset: Literal["quick", "standard", "many"] = "quick"
    """Defaults of the other settings: quick takes 5 minutes, standard an hour; many is for 3 or more players."""

    rounds: int = 600
    """Rounds of self-play and learning."""

    games: int = 2048
    """Games played side by side."""

    turns: int = 16
    """Turns played in each game in a round."""

    explore: float = 0.05
    """Share of the turns that end with a random move."""

    td_lambda: float = 0.8
    """Weight of the later turns in a target: 0 uses the next position only, 1 the rest of the game."""

    replay: int = 8
    """Number of the last rounds that are learned from."""

    batches: int = 64
    """Gradient steps in a round."""

    batch_size: int = 2048
    """Turns in a gradient step."""

    learning_rate: float = 3e-3
    """Learning rate of Adam at the start; it falls by a cosine to a fiftieth."""

    average: float = 0.995
    """Decay of the average of the weights, per gradient step."""

    width: int = 64
    """Units of the network's first layer, a multiple of 32."""

    against: str = "itself"
    """Policy of all seats but one, to learn a best response to it. With itself the learner has all seats."""

    init: str = "none"
    """Policy whose network is the start: td, td:FILE, or a run folder of td. With none the weights are random."""

    threads: int = 2
    """Threads: one learns while the others play."""

    ray: str | None = None
    """Address of the Ray cluster that plays the games, or auto for the one of this machine. By default none."""

    def __post_init__(self) -> None:
        super().__post_init__()
        presets = ("quick", "standard", "many")
        self.check("preset", self.preset in presets, "must be quick, standard or many")
        self.check_counts("rounds", "games", "turns", "replay", "batches", "batch_size", "threads")
        self.check_shares("explore", "td_lambda", "average")
        self.check_positive("learning_rate")
        if self.against != "itself":
            self.check("ray", self.ray is None, "must not be set when against is a policy")
        self.check("width", self.width > 0 and self.width % BLOCK == 0, f"must be a multiple of {BLOCK}")

    def initial(self) -> learned.Network:
        """Load the weights of the policy `init`.

        Raises:
            SettingError: if the policy is unknown, or has no learned value for these rules and of this width.
        """
        policy = self.policy("init")
        td = isinstance(policy, Td)
        self.check("init", td, "must be a policy with a learned value, such as td or td:FILE")
        assert isinstance(policy, Td)
        network = policy.learned(self.rules).network
        width = network.rows.shape[1]
        self.check("width", self.width == width, f"must be {width}, as in init = {self.init}")
        return network


PRESETS = {
    "quick": Settings(),
    "standard": Settings(preset="standard", rounds=7000, milestones=40),
    # With more seats and longer games, more turns lie between a position and its consequences. So lambda is larger, and
    # old targets, which an earlier network made, are dropped sooner.
    "many": Settings(preset="many", rounds=100, games=512, turns=64, td_lambda=0.96, replay=2, batches=128),
}


# ------------------------------------------------------------------------------------------------------------- network


class Network(nn.Module):
    """The network of `wotd_env.planning.learned` in torch: from features to logits of the chances to win.

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
        """Return a copy of the network as a value function for the planner."""
        hidden, output = self.hidden, self.output
        weights = self.rows.weight, hidden.weight.T, hidden.bias, output.weight, output.bias
        return LearnedValue(
            self.rules, learned.Network(*(weight.detach().numpy().copy() for weight in weights))
        )

    def load(self, weights: learned.Network) -> None:
        """Load the weights of a value function."""
        rows, hidden, hidden_bias, output, output_bias = map(th.from_numpy, weights)
        names = {"rows.weight": rows, "hidden.weight": hidden.T, "hidden.bias": hidden_bias}
        self.load_state_dict({**names, "output.weight": output, "output.bias": output_bias})


# ------------------------------------------------------------------------------------------------------------- the run


class Run(runs.Run):
    """A training run of TD(lambda). It leaves `value.npz`, the network, see `wotd_env.planning.learned`.

    Attributes:
        network: the network that learns.
        averaged: the average of its weights, which plays.
        samples: the samples of the last rounds, the newest last.
        rounds: number of rounds learned from.
    """

    learner, unit, kind = "td", "turns", Settings
    fixed = ("preset", "folder", "rules", "seed", "games", "turns", "width", "against", "init")

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        th.set_num_threads(1)  # the order of sums would depend on the number of threads
        th.manual_seed(settings.seed)
        if settings.ray:
            from wotd_env.adapters.ray import connect

            connect(settings.ray)
        self.game = Game(settings.rules, num_threads=max(1, settings.threads - 1))
        if settings.against != "itself":
            self.references = {settings.against: settings.policy("against")}
        self.network = Network(settings.rules, settings.width)
        if settings.init != "none" and settings.resume is None:
            self.network.load(settings.initial())
        self.averaged = AveragedModel(
            self.network,
            multi_avg_fn=get_ema_multi_avg_fn(settings.average),  # type: ignore[no-untyped-call]
        )
        self.optimizer = th.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        self.state = self.game.reset(settings.games, seed=settings.seed << 32, roll=False)
        self.samples: list[Samples] = []
        self.rounds = 0

    @property
    def done(self) -> int:
        """Turns learned from."""
        return self.rounds * int(self.settings.games * self.settings.turns)

    @property
    def total(self) -> int:
        """Turns to learn from."""
        return int(self.settings.rounds * self.settings.games * self.settings.turns)

    @property
    def value(self) -> LearnedValue:
        """The learned value function, by the averaged weights."""
        network = self.averaged.module
        assert isinstance(network, Network)
        return network.value()

    def policy(self) -> Planner:
        """Return the policy that plans turns by the learned value."""
        return Planner(self.value)

    def train(self, progress: Callable[[Run], None]) -> None:
        """Train to the last round, see `runs.Run.train`."""
        with ThreadPoolExecutor(1) as beside:
            while True:
                self.after_update(progress)
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
                self.samples = [*self.samples, newest][-self.settings.replay :]
                self.rounds += 1

    def _play(self, number: int, value: LearnedValue) -> Samples:
        """Play a round."""
        settings = self.settings
        rng = np.random.default_rng([settings.seed, number])
        at_random = rng.random((settings.turns, settings.games)) < settings.explore
        if settings.ray:
            from agents.cluster import play_slices

            return play_slices(settings.rules, self.state, value, at_random, settings.td_lambda)
        play: Play = play_turns
        if settings.against != "itself":
            seat = np.arange(settings.games) % settings.rules.players
            play = Against(
                self.references[settings.against], seat, np.random.default_rng([settings.seed, number, 2])
            )
        return self_play(self.game, self.state, value, at_random, settings.td_lambda, play)

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

    @property
    def final_games(self) -> int:
        """Games of the final measurement; ten times as many for a best response, whose strength is the purpose."""
        return super().final_games * (1 if self.settings.against == "itself" else 10)

    def save_network(self) -> None:
        """Write the network."""
        files.write(self.folder / "value.npz", learned.save(self.value))

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint."""
        return {
            "rounds": self.rounds,
            "network": self.network.state_dict(),
            "averaged": self.averaged.state_dict(),
            "optimizer": self.optimizer.state_dict()["state"],
            "samples": [tuple(samples) for samples in self.samples],
            "state": th.from_numpy(self.state.view(np.uint8)),
        }

    def structure(self, begun: bool) -> dict[str, Any]:
        """Return the structure of `parts`, see `runs.Run.structure`."""
        like, turns = self.parts(), self.settings.games * self.settings.turns
        like["optimizer"] = checkpoint.adam_like(self.network.parameters()) if begun else {}
        active, players = Features.of(self.settings.rules).active, self.settings.rules.players
        like["samples"] = [(th.zeros(turns, active, dtype=th.int32), th.zeros(turns, players))]
        return like

    def check(self, saved: dict[str, Any]) -> None:
        """Check the samples and games of a checkpoint, see `runs.Run.check`."""
        features = Features.of(self.settings.rules)
        for i, (seen, _) in enumerate(saved["samples"]):
            if (seen < 0).any() or (seen >= features.total).any():
                raise CheckpointError(f"samples[{i}] contains feature indices out of range")
        state = saved["state"].contiguous().numpy().view(STATE)
        check_states(self.settings.rules, state)
        if (state["phase"] != Phase.CHANCE).any() or (state["dice"] >= 0).any():
            raise CheckpointError("state must only contain games before the first roll of a turn")

    def restore(self, saved: dict[str, Any]) -> None:
        """Load a checkpoint, see `runs.Run.restore`."""
        self.network.load_state_dict(saved["network"])
        self.averaged.load_state_dict(saved["averaged"])
        groups = self.optimizer.state_dict()["param_groups"]
        self.optimizer.load_state_dict({"state": saved["optimizer"], "param_groups": groups})
        self.rounds = saved["rounds"]
        self.samples = [Samples(*samples) for samples in saved["samples"]]
        self.state[:] = saved["state"].contiguous().numpy().view(STATE)
