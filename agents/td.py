"""TD(lambda) by self-play on whole turns: `python train.py td`.

A small network learns the value of positions between turns. Given these values, the turn planner computes the expected
value of every turn exactly, and plays the turn. So dice, holds and moves need no learning, and the targets have no
noise from dice. For a turn from position s to position s',

    target(s) = plan(s) + lambda * (target(s') - value(s')),

where `value` is the network, and `plan(s)` is the planner's exact expectation of `value(s')`. For lambda = 1 the target
is the result of the game minus the luck of its dice. In the last turn of a game, in the last turn of an update, and in
a turn that ends with a random move, the target is just `plan(s)`.

An *update* takes gradient steps on the turns of the last `Settings.replay` updates (`Learner.learn`). At the same time
it plays new turns in all games (`self_play`). The weights are averaged over the gradient steps. The network with the
averaged weights plays the games, computes the targets, and is the result of the run. An update plays with the averaged
weights from the end of the previous update. So the same settings give the same weights with any number of threads.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple, cast

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from agents import settings
from agents.checkpoint import adam, step, tensors_of
from agents.settings import Count, Positive, Share
from wotd_env import Game, Phase, Rules, files
from wotd_env.core.checks import check_states
from wotd_env.core.rules import win_share
from wotd_env.core.state import States
from wotd_env.envs.layouts import LayoutGame
from wotd_env.planning import learned
from wotd_env.planning.learned import HIDDEN, Features, LearnedValue
from wotd_env.planning.plans import CHUNK
from wotd_env.planning.playing import Turns, play_turns, sample_turns
from wotd_env.planning.vectors import BLOCK
from wotd_env.policies.planner import Planner
from wotd_env.policies.td import Td
from wotd_env.policy import Policy


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Learn the value of positions by TD(lambda) through the exact turn planner, in self-play.

    Ctrl-C saves the run after the current update; --resume continues it.
    """

    # Defaults of the other settings: quick takes 5 minutes on two cores, standard an hour; many is for 3+ players.
    preset: Literal["quick", "standard", "many"] = "quick"
    updates: Count = 600  # Updates of the network; each plays games and takes gradient steps.
    games: Count = 2048  # Games played side by side.
    turns: Count = 16  # Turns played per game and update.
    explore: Share = 0.05  # Share of the turns that end with a random move.
    # Weight of the later turns in a target: 0 uses the next position only, 1 the rest of the game.
    td_lambda: Share = 0.8
    replay: Count = 8  # Number of recent updates whose turns are used for learning.
    batches: Count = 64  # Gradient steps per update.
    batch_size: Count = 2048  # Turns in a gradient step.
    learning_rate: Positive = 3e-3  # Initial learning rate of Adam; it falls to a fiftieth by cosine decay.
    average: Share = 0.995  # Decay of the average of the weights, per gradient step.
    width: int = 64  # Units of the network's first layer, a multiple of 32.
    # Policy whose weights initialize the network: td, td:FILE, or a run folder of td. By default they are random.
    init: str = "none"
    threads: Count = 1  # Threads that play games. Another thread learns at the same time.
    # Policy of all seats but one: the run then learns a best response to this policy. By default all seats learn.
    against: str = "none"
    # Address of the Ray cluster that plays the games, or auto for the one on this machine. By default none.
    ray: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        fits = 0 < self.width <= 4096 and self.width % BLOCK == 0
        self.check("width", fits, f"must be a multiple of {BLOCK}, at most 4096")
        self.check("ray", self.ray is None or self.against == "none", "must not be set for a best response")
        self.check(
            "ray", self.ray is None or self.layouts == "any", "cannot be combined with training layouts"
        )


PRESETS = {
    "quick": Settings(),
    "standard": Settings(preset="standard", updates=7000, milestones=40),
    # With more seats, more turns lie between a decision and its effect, so lambda is larger. `replay` is smaller than
    # in `quick`, so that targets from earlier networks are dropped sooner.
    "many": Settings(preset="many", updates=100, games=512, turns=64, td_lambda=0.96, replay=2, batches=128),
}


class ValueNetwork(nn.Module):
    """The network of `wotd_env.planning.learned` in torch; it maps features to logits of the chances to win."""

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
        """Return the logits (N, n) of positions with the active features `active`, int32 (N, K)."""
        x = self.rows(active).relu()
        logits: th.Tensor = self.output(th.cat((x, self.hidden(x).relu()), 1))
        return logits

    def value(self) -> LearnedValue:
        """Return a copy of the network as a value function for the planner."""
        hidden, output = self.hidden, self.output
        weights = self.rows.weight, hidden.weight.T, hidden.bias, output.weight, output.bias
        copies = (weight.detach().numpy().copy() for weight in weights)
        return LearnedValue(self.rules, learned.Weights(*copies))

    def load(self, weights: learned.Weights) -> None:
        """Load the weights of a value function."""
        rows, hidden, hidden_bias, output, output_bias = map(th.from_numpy, weights)
        names = {"rows.weight": rows, "hidden.weight": hidden.T, "hidden.bias": hidden_bias}
        self.load_state_dict({**names, "output.weight": output, "output.bias": output_bias})


class Samples(NamedTuple):
    """Training data: positions before a turn, with n players and K active features. The first axes are arbitrary."""

    active: NDArray[np.int32]  # (..., K)
    chances: NDArray[np.float32]  # (..., n): the targets: chances to win, first that of the seat to act


Play = Callable[[Game, States, LearnedValue, NDArray[np.bool_]], Turns]
"""Function that plays one turn in every game and updates the games in place, as `play_turns` does."""


def self_play(
    game: Game,
    state: States,
    value: LearnedValue,
    at_random: NDArray[np.bool_],
    td_lambda: float,
    play: Play = play_turns,
) -> Samples:
    """Play T turns in each of N games. Update `state` in place; return the samples of the turns, (T, N, ...).

    Args:
        game: the engine with the rules.
        state: STATE (N,), games before the first roll of a turn. A finished game is followed by a new one.
        value: the value function that plays and computes the targets.
        at_random: bool (T, N), whether each turn ends with a random move. `play` may set entries to False.
        td_lambda: lambda in the targets.
        play: the function that plays a turn in every game.
    """
    n, turns = game.rules.players, len(at_random)
    active = np.empty((turns, len(state), value.features.active), np.int32)
    player = np.empty((turns, len(state)), np.int64)
    continues = np.empty((turns, len(state), 1), np.float32)
    after, target = np.empty((2, turns, len(state), n), np.float32)
    for t in range(turns):
        active[t] = value.features.write(game, state)
        player[t] = state["player"]
        target[t], after[t] = play(game, state, value, at_random[t])  # plan(s) and value(s')
        over = state["phase"] == Phase.OVER
        game.reset(state, where=over, roll=False)
        continues[t, :, 0] = ~(over | at_random[t])
    for t in range(turns - 2, -1, -1):
        target[t] += td_lambda * continues[t] * (target[t + 1] - after[t])
    from_player = (player[:, :, None] + np.arange(n)) % n
    return Samples(active, win_share(np.take_along_axis(target, from_player, 2), n))


def against(policy: Policy, seat: NDArray[np.int64], rng: np.random.Generator) -> Play:
    """Return a function for best responses to a fixed policy. It plays one turn in every game.

    The learner has the seat `seat`, (N,), of each game, and plans its turns. The turns of the other seats are sampled
    from the policy, without the luck of their rolls (`sample_turns`).
    """

    def play(game: Game, state: States, value: LearnedValue, at_random: NDArray[np.bool_]) -> Turns:
        own = state["player"] == seat
        at_random &= own
        shape = len(state), game.rules.players
        turns = Turns(np.empty(shape, np.float32), np.empty(shape, np.float32))
        for games in (np.flatnonzero(own), np.flatnonzero(~own)):
            part = state[games]
            if own[games].all():
                played = play_turns(game, part, value, at_random[games])
            else:
                played = sample_turns(game, part, value, policy, rng)
            state[games], turns.before[games], turns.after[games] = part, played.before, played.after
        return turns

    return play


def play_slices(
    rules: Rules, state: States, value: LearnedValue, at_random: NDArray[np.bool_], td_lambda: float
) -> Samples:
    """Play turns in all games on the connected Ray cluster, and update `state` in place.

    Return the same samples as `self_play`. If a node of the cluster dies, other nodes repeat its tasks.
    """
    import ray

    from wotd_env.adapters.ray import num_cpus

    # With two slices per CPU, fast CPUs wait less for slow ones. Slices smaller than the planner's chunks waste time.
    count = max(1, min(2 * num_cpus(), len(state) // CHUNK))
    games = np.array_split(np.arange(len(state)), count)
    network, task = ray.put(value.network), ray.remote(num_cpus=1, max_retries=-1)(_play_slice)
    played = ray.get(
        [task.remote(rules, network, state[part], at_random[:, part], td_lambda) for part in games]
    )
    for part, (after, _) in zip(games, played, strict=True):
        state[part] = after
    columns = zip(*(samples for _, samples in played), strict=True)
    return Samples(*(np.concatenate(parts, 1) for parts in columns))


def _play_slice(
    rules: Rules, network: learned.Weights, state: States, at_random: NDArray[np.bool_], td_lambda: float
) -> tuple[States, Samples]:
    state = state.copy()  # Ray's arrays are read-only
    return state, self_play(Game(rules), state, LearnedValue(rules, network), at_random, td_lambda)


def falling(start: float, done: float) -> float:
    """Return the learning rate after the share `done` of a training run: cosine decay from `start` to `start` / 50."""
    return float(start * (0.02 + 0.98 * (1 + np.cos(np.pi * min(done, 1))) / 2))


class Learner:
    """Learns a value function by TD(lambda). Everything random in an update follows from the seed and its number."""

    unit: ClassVar[str] = "turns"
    fixed: ClassVar[tuple[str, ...]] = (
        "preset", "rules", "layouts", "seed", "games", "turns", "replay", "width", "against",
    )  # fmt: skip

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.per_update = settings.games * settings.turns
        th.set_num_threads(1)  # so that the order of sums does not depend on the number of threads
        th.manual_seed(settings.seed)
        self.player = ThreadPoolExecutor(1)
        if settings.ray:
            from wotd_env.adapters.ray import connect

            connect(settings.ray)
        layouts = settings.training_layouts()
        self.game = LayoutGame(settings.rules, layouts, num_threads=settings.threads)
        self.opponent = None if settings.against == "none" else settings.policy("against")
        self.network = ValueNetwork(settings.rules, settings.width)
        if settings.init != "none":
            policy = settings.policy("init", Td, "a policy with a learned value, such as td or td:FILE")
            weights = policy.learned(settings.rules).network
            width = weights.rows.shape[1]
            settings.check("width", settings.width == width, f"must be {width}, as in init = {settings.init}")
            self.network.load(weights)
        average = get_ema_multi_avg_fn(settings.average)  # type: ignore[no-untyped-call]
        self.averaged = AveragedModel(self.network, multi_avg_fn=average)
        self.optimizer = adam(list(self.network.parameters()), settings.learning_rate)
        self.state = self.game.reset(settings.games, seed=settings.seed << 32, roll=False)
        # The samples of the last updates; those of update number k are in row k % replay.
        self.samples = Samples(
            np.zeros((settings.replay, self.per_update, self.value.features.active), np.int32),
            np.zeros((settings.replay, self.per_update, settings.rules.players), np.float32),
        )

    @property
    def value(self) -> LearnedValue:
        """The learned value function, with the averaged weights."""
        return cast(ValueNetwork, self.averaged.module).value()

    def policy(self) -> Planner:
        """Return the policy that plans turns with the learned value."""
        return Planner(self.value)

    def update(self, number: int) -> dict[str, float]:
        """Learn from the stored samples, and at the same time play turns for new samples."""
        value = self.value
        if number == 0:
            self.store(0, self.play(0, value))
        newest = self.player.submit(self.play, number + 1, value)
        numbers = self.learn(number)
        self.store(number + 1, newest.result())
        return numbers | {"learning_rate": self.optimizer.param_groups[0]["lr"]}

    def play(self, number: int, value: LearnedValue) -> Samples:
        """Play the turns of update `number`, and return their samples."""
        settings = self.settings
        rng = np.random.default_rng([settings.seed, number])
        at_random = rng.random((settings.turns, settings.games)) < settings.explore
        if settings.ray:
            return play_slices(settings.rules, self.state, value, at_random, settings.td_lambda)
        play: Play = play_turns
        if self.opponent:
            seat = np.arange(settings.games) % settings.rules.players
            play = against(self.opponent, seat, np.random.default_rng([settings.seed, number, 2]))
        return self_play(self.game, self.state, value, at_random, settings.td_lambda, play)

    def store(self, number: int, samples: Samples) -> None:
        """Replace the oldest samples."""
        for stored, new in zip(self.samples, samples, strict=True):
            stored[number % self.settings.replay] = new.reshape(stored.shape[1:])

    def learn(self, number: int) -> dict[str, float]:
        """Take the gradient steps of an update, on random batches of the samples; return named means."""
        settings, network, optimizer = self.settings, self.network, self.optimizer
        rng = np.random.default_rng([settings.seed, number, 1])
        count = min(number + 1, settings.replay)
        logged = []
        for i in range(settings.batches):
            done = (number + i / settings.batches) / settings.updates
            optimizer.param_groups[0]["lr"] = falling(settings.learning_rate, done)
            chosen = rng.integers(count * self.per_update, size=settings.batch_size)
            row = (number + 1 - count + chosen // self.per_update) % settings.replay
            active, chances = (th.from_numpy(x[row, chosen % self.per_update]) for x in self.samples)
            logits = network(active)
            loss = nn.functional.cross_entropy(logits, chances)
            norm = step(optimizer, loss)
            self.averaged.update_parameters(network)
            explained = 1 - (chances - logits.detach().softmax(1)).var() / chances.var()
            logged.append(th.stack([loss.detach(), norm, explained]))
        means = th.stack(logged).mean(0).tolist()
        return dict(zip(("loss", "gradient_norm", "explained_variance"), means, strict=True))

    def tensors(self) -> dict[str, th.Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        averaged = {f"averaged.{name}": weights for name, weights in self.averaged.state_dict().items()}
        arrays = {f"samples.{name}": array for name, array in self.samples._asdict().items()}
        own = {name: th.from_numpy(x) for name, x in {"state": self.state.view(np.uint8), **arrays}.items()}
        return tensors_of(self.network, self.optimizer) | averaged | own

    def check(self) -> None:
        """Raise ValueError if tensors from a checkpoint contain impossible values."""
        check_states(self.settings.rules, self.state)
        active = self.samples.active
        if not 0 <= active.min() <= active.max() < self.value.features.total:
            raise ValueError("samples.active contains feature indices out of range")

    def export(self, folder: Path) -> None:
        """Write the value function to `value.npz`."""
        files.write(folder / "value.npz", learned.save(self.value))
