"""Double DQN with action masks on the Gymnasium vector environment, first against `random`, then against `greedy`.

The example shows where Q-learning needs masks: in the greedy action, the random action and the target. It also shows
how to use a vector environment with autoreset. The n-step targets suit a game whose only reward comes at the end.

    python examples/dqn.py --save dqn.onnx
    python examples/dqn.py --help         # all settings
"""

import os
import shlex
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np
import torch as th
import tyro
from numpy.typing import NDArray
from torch import nn

from wotd_env import Game, evaluate
from wotd_env.policies.function import FunctionPolicy

Array = NDArray[Any]

ENCODING = "features"  # a few dozen handcrafted features, which suit small networks


@dataclass(frozen=True)
class Settings:
    """Train a network with double DQN, and measure it against greedy and random."""

    save: str = ""
    """File for the trained network, such as dqn.onnx."""
    seed: int = 0
    total_timesteps: int = 768_000
    """Decisions of the learner. The opponent is `random` in the first third, and `greedy` afterwards."""
    num_envs: int = 128
    """Number of parallel games."""
    buffer_size: int = 200_000
    """Capacity of the replay buffer, in decisions."""
    batch_size: int = 1024
    learning_rate: float = 1e-3
    """Learning rate of Adam at the start; it falls linearly to 0."""
    n_step: int = 8
    """The n of the n-step targets, counted in decisions of the learner."""
    target_network_frequency: int = 100
    """Steps of the vector environment between two updates of the target network. Each step has one gradient step."""
    start_e: float = 0.3
    """Share of random actions at the start; it falls linearly in the first half of the training, to `end_e`."""
    end_e: float = 0.02
    evaluation_games: int = 1000

    def __post_init__(self) -> None:
        least = {"save": "", "seed": 0, "total_timesteps": self.num_envs, "buffer_size": self.num_envs}
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, int(isinstance(value, int)))):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


class Network(nn.Module):
    """A network that computes action values from observations in the encoding `features`.

    A layer scores each pair (face, number of kept dice). The value of a hold is the sum of six scores, one per face.
    """

    def __init__(self, game: Game, width: int = 128) -> None:
        super().__init__()
        self.dice, self.size = game.observation_layout["dice"], game.observation_size
        self.body = nn.Sequential(
            nn.Linear(game.observation_size, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()
        )
        self.scores = nn.Linear(width, 6 * 6)  # (face, number of kept dice)
        self.others = nn.Linear(width, game.num_actions - 32)
        self.bits = th.arange(32)[:, None] >> th.arange(5) & 1  # [h, i]: 1 if hold h keeps die i

    def forward(self, observation: th.Tensor) -> th.Tensor:
        """Return the values of all actions, (N, A), for observations, int8 (N, D)."""
        x = self.body(observation.float() / 5)
        counts = observation[:, self.dice].long()  # number of dice of each face
        faces = (counts.cumsum(1)[:, None] <= th.arange(5)[:, None]).sum(2)  # sorted faces of the dice
        kept = (self.bits[:, :, None] * (faces[:, None, :, None] == th.arange(6))).sum(2)  # (N, hold, face)
        holds = self.scores(x).view(-1, 6, 6).gather(2, kept.transpose(1, 2)).sum(1)
        return th.cat((holds, self.others(x)), 1)

    def masked(self, observation: Array, mask: Array) -> th.Tensor:
        """Return the values of all actions, (N, A), with -inf for illegal actions."""
        values: th.Tensor = self(th.from_numpy(observation))
        return values.masked_fill(th.from_numpy(mask) == 0, -th.inf)

    @th.no_grad()
    def best(self, observation: Array, mask: Array) -> Array:
        """Return the legal actions with the highest values, int64 (N,)."""
        return self.masked(observation, mask).argmax(1).numpy()

    def policy(self) -> FunctionPolicy:
        """Return the policy that plays the actions with the highest values."""
        return FunctionPolicy(self.best, batched=True, encoding=ENCODING)

    def save(self, file: str) -> None:
        """Write the network to an ONNX file, which plays as the policy `onnx:FILE`."""
        example = th.ones(2, self.size, dtype=th.int8)
        rows = {0: th.export.Dim("rows")}
        program = th.onnx.export(
            self.eval(), (example,), input_names=["observation"], output_names=["logits"],
            dynamic_shapes=(rows,), verbose=False,
        )  # fmt: skip
        assert program is not None
        program.model.metadata_props["wotd_encoding"] = ENCODING
        program.save(file)


def make_games(opponent: str, games: int) -> Any:
    """Return a vector environment. The step after the end of a game starts the next game (autoreset `NextStep`)."""
    name = "wotd_env:wotd_env/WayOfTheDragon-v0"
    return gymnasium.make_vec(name, num_envs=games, opponents=opponent, encoding=ENCODING)


def new_memory(size: int, game: Game) -> Array:
    """Return an empty replay buffer of `size` transitions. The field `later` is the observation n steps later."""
    seen, mask = (np.int8, game.observation_size), (np.int8, game.num_actions)
    outcome = [("action", np.int64), ("reward", np.float32), ("final", np.bool_)]
    fields = [("observation", *seen), *outcome, ("later", *seen), ("later_mask", *mask)]
    return np.zeros(size, np.dtype(fields, align=True))


def train(settings: Settings) -> Network:
    """Train a network, print its progress ten times, and return it."""
    th.set_num_threads(1)  # with one thread, the same seed gives the same weights
    th.manual_seed(settings.seed)
    rng, started, num_envs = np.random.default_rng(settings.seed), time.process_time(), settings.num_envs
    envs = make_games("random", num_envs)
    network, target = (Network(envs.game) for _ in range(2))
    target.load_state_dict(network.state_dict())
    optimizer = th.optim.Adam(network.parameters())
    memory, added = new_memory(settings.buffer_size, envs.game), 0
    recent: deque[tuple[Array, ...]] = deque(maxlen=settings.n_step)

    observation, info = envs.reset(seed=settings.seed)
    ended, steps = np.zeros(num_envs, np.bool_), settings.total_timesteps // num_envs
    for step in range(steps):
        share = step / steps
        if step == steps // 3:  # not earlier: against `greedy`, an untrained network learns nothing
            envs = make_games("greedy", num_envs)
            observation, info = envs.reset(seed=settings.seed)
            ended[:] = False
            recent.clear()
        mask = info["action_mask"]
        anything = (mask * rng.random(mask.shape)).argmax(1)  # a random legal action
        explores = rng.random(num_envs) < max(settings.end_e, settings.start_e * (1 - 2 * share))
        action = np.where(explores, anything, network.best(observation, mask))
        before, started_anew = observation, ended
        observation, reward, terminated, truncated, info = envs.step(action)
        ended = terminated | truncated
        # The step after the end of a game ignores the action and starts the next game. So this step is not stored.
        recent.append((before, action, reward, ended, ~started_anew))
        added += remember(memory, added, recent, observation, info["action_mask"])
        if added >= settings.batch_size:
            optimizer.param_groups[0]["lr"] = settings.learning_rate * (1 - share)
            rows = rng.integers(min(added, settings.buffer_size), size=settings.batch_size)
            learn(network, target, optimizer, memory[rows])
        if step % settings.target_network_frequency == 0:
            target.load_state_dict(network.state_dict())
        if 10 * (step + 1) // steps > 10 * step // steps:
            spent, games = time.process_time() - started, settings.evaluation_games
            shares = (evaluate(network.policy(), name, games).share for name in ("greedy", "random"))
            print(f"step {step + 1}, {spent:.0f} s of processor time: ", end="")
            print("{:.1%} against greedy, {:.1%} against random".format(*shares), flush=True)
    return network


def remember(
    memory: Array, added: int, recent: deque[tuple[Array, ...]], later: Array, later_mask: Array
) -> int:
    """Store the transitions that began n steps ago, and return their number.

    The reward of a transition is the sum of the n rewards since its action, without rewards after the end of the game.
    `added` is the number of transitions stored so far. If the memory is full, new transitions replace the oldest ones.
    """
    if len(recent) < (recent.maxlen or 0):
        return 0
    observation, action, _, _, valid = recent[0]
    total, final = np.zeros(len(action), np.float32), np.zeros(len(action), np.bool_)
    for _, _, reward, ended, _ in recent:
        total += np.where(final, 0, reward)
        final |= ended
    at = (added + np.arange(valid.sum())) % len(memory)
    columns = observation, action, total, final, later, later_mask
    for name, values in zip(memory.dtype.names or (), columns, strict=True):
        memory[name][at] = values[valid]
    return len(at)


def learn(network: Network, target: Network, optimizer: th.optim.Optimizer, rows: Array) -> None:
    """Take a gradient step on a batch of transitions."""
    # target y = sum of n rewards + Q'(s', argmax over legal a' of Q(s', a')), where Q' is the target network
    with th.no_grad():
        best = network.masked(rows["later"], rows["later_mask"]).argmax(1, keepdim=True)
        value = target.masked(rows["later"], rows["later_mask"]).gather(1, best).squeeze(1)
        goal = th.from_numpy(rows["reward"]) + value.where(th.from_numpy(~rows["final"]), th.zeros(()))
    values = network(th.from_numpy(rows["observation"]))
    chosen = values.gather(1, th.from_numpy(rows["action"])[:, None]).squeeze(1)
    loss = nn.functional.smooth_l1_loss(chosen, goal)
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


if __name__ == "__main__":
    settings = tyro.cli(Settings)
    trained = train(settings)
    if settings.save:
        trained.save(settings.save)
        policy = shlex.quote(f"onnx:{settings.save}")
        print(f"wotd arena {policy} greedy\nwotd benchmark {policy}")
