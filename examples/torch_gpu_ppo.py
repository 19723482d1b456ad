"""Masked PPO by self-play in PyTorch, with games, network and gradients on one NVIDIA GPU.

The games are those of `wotd_env.cuda`: each step of all games is one kernel, which writes into tensors of the GPU.
During training, no array is copied to the processor. With `--device cpu`, the same program plays on `wotd_env.Game` and
learns on the processor. The example needs PyTorch and the extra `cuda`, and works for 2 to 5 players.

    python examples/torch_gpu_ppo.py --save ppo.onnx
    python examples/torch_gpu_ppo.py --device cpu --num-envs 512 --minibatch-size 1024 --total-timesteps 1000000
"""

import argparse
import os
import shlex
import time
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import torch as th
from torch import nn

from wotd_env import Game, Rules, evaluate
from wotd_env.policies.function import FunctionPolicy


@dataclass(frozen=True)
class Settings:
    """The settings of a training run."""

    save: str = ""  # file for the trained network, such as ppo.onnx
    device: str = "cuda"  # or cpu
    seed: int = 0
    players: int = 2
    # decisions of all seats, in rollouts of num_envs * num_steps decisions
    total_timesteps: int = 104_857_600
    num_envs: int = 8192  # number of parallel games
    num_steps: int = 64  # decisions of each game in a rollout
    update_epochs: int = 3  # passes over the decisions of a rollout
    minibatch_size: int = 32_768
    learning_rate: float = 1e-3  # initial learning rate of Adam; it falls linearly to 0
    gae_lambda: float = 0.9  # lambda of generalized advantage estimation; there is no discount
    clip_coef: float = 0.2
    ent_coef: float = 0.01  # initial weight of the entropy bonus; it falls linearly to 0
    evaluation_games: int = 1000

    def __post_init__(self) -> None:
        Rules(players=self.players)  # raises ValueError for another number than 2 to 5
        if self.device not in ("cuda", "cpu"):
            raise ValueError(f"device must be cuda or cpu, got {self.device}")
        least = {"save": "", "device": "", "seed": 0, "total_timesteps": self.num_envs * self.num_steps}
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, int(isinstance(value, int)))):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


class CpuGame:
    """Games on the processor, with the interface of `wotd_env.cuda.CudaGame`."""

    def __init__(self, rules: Rules, num_games: int) -> None:
        self.game = game = Game(rules)
        self.observation = np.empty((num_games, game.observation_size), np.int8)
        self.mask = np.empty((num_games, game.num_actions), np.int8)
        self.rewards = np.empty((num_games, rules.players), np.float32)
        self.done, self.player = np.empty(num_games, np.bool_), np.empty(num_games, np.int64)
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Start all games."""
        self.state = self.game.reset(len(self.player), seed=seed)
        self.observation[:], self.mask[:] = self.observe(), self.game.legal_actions(self.state)
        self.player[:] = self.state["player"]

    def step(self, actions: Any) -> None:
        """Take the actions, restart finished games, and fill the arrays."""
        self.game.step_autoreset(
            self.state, np.asarray(actions), self.observation, self.mask, self.rewards, self.done
        )
        self.player[:] = self.state["player"]

    def observe(self, seat: int | None = None) -> Any:
        """Return the observations of a seat, int8 (N, D)."""
        return self.game.observe(self.state, seat)


def new_games(settings: Settings) -> tuple[Any, str]:
    """Return the games, and the device of the tensors that share their memory."""
    rules = Rules(players=settings.players)
    if settings.device == "cpu":
        return CpuGame(rules, settings.num_envs), "cpu"
    from wotd_env.cuda import SIMULATED, CudaGame

    return CudaGame(rules, settings.num_envs), "cpu" if SIMULATED else "cuda"


class Network(nn.Module):
    """A network for policy and value of the seat to act. The paths share weights, because the rules treat them alike.

    A layer scores each pair (face, number of kept dice). The logit of a hold is the sum of six scores, one per face.
    """

    bits: th.Tensor
    numbers: th.Tensor

    def __init__(self, game: Game, width: int = 64) -> None:
        super().__init__()
        self.game, self.layout, self.players = game, game.observation_layout, game.rules.players
        sizes = {name: part.stop - part.start for name, part in self.layout.items()}
        path = (sizes["pieces"] + sizes["dead"]) // 5 + 6
        whole = game.observation_size - 5 * path
        pairs = self.players * (self.players - 1) // 2
        self.path_in, self.whole_in = nn.Linear(path, width), nn.Linear(whole, width)
        self.middle = nn.Linear(2 * width + whole, 2 * width)
        self.path_middle, self.whole_middle = nn.Linear(width, width), nn.Linear(2 * width, width)
        self.path_out = nn.Linear(width, 6 + 3 + pairs)  # scores of kept dice, three kinds of moves, swaps
        self.whole_out = nn.Linear(2 * width, 6 + 8 + 1)  # scores of kept dragons, other actions, the value
        for head in (self.path_out, self.whole_out):
            nn.init.orthogonal_(head.weight, 0.1)
            nn.init.zeros_(head.bias)
        self.register_buffer("bits", th.arange(32)[:, None] >> th.arange(5) & 1)  # [hold, die]: 1 if kept
        self.register_buffer("numbers", th.arange(6))

    def forward(self, observation: th.Tensor, mask: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return log-probabilities (N, A) and values (N,) for observations, int8 (N, D), and masks, int8 (N, A)."""
        size, layout, seen = observation.shape[0], self.layout, observation.float()
        pieces = seen[:, layout["pieces"]].view(size, self.players, 5, -1).transpose(1, 2).flatten(2)
        dead = seen[:, layout["dead"]].view(size, 5, self.game.rules.spaces)
        dice = seen[:, layout["dice"]].view(size, 6, 6)  # (face, number of dice), one-hot
        paths = th.cat((pieces, dead, dice[:, :5]), 2)
        whole = th.cat((dice[:, 5], seen[:, layout["dice"].stop :]), 1)
        x = (self.path_in(paths) + self.whole_in(whole)[:, None]).relu()  # (N, path, width)
        y = self.middle(th.cat((x.mean(1), x.amax(1), whole), 1)).relu()
        x = (self.path_middle(x) + self.whole_middle(y)[:, None]).relu()
        by_path, rest = self.path_out(x), self.whole_out(y)

        faces = (dice.argmax(2).cumsum(1)[:, None] <= self.numbers[:5, None]).sum(2)  # sorted faces of dice
        kept = (self.bits[:, :, None] * (faces[:, None, :, None] == self.numbers)).sum(2)  # (N, hold, face)
        scores = th.cat((by_path[:, :, :6], rest[:, None, :6]), 1)  # (N, face, number kept)
        holds = scores.gather(2, kept.transpose(1, 2)).sum(1)
        moves, swaps = by_path[:, :, 6:9].transpose(1, 2).flatten(1), by_path[:, :, 9:].flatten(1)
        logits = th.cat((holds, moves, rest[:, 6:14], swaps), 1).masked_fill(mask == 0, -1e9)
        return logits.log_softmax(1), rest[:, 14]

    def policy(self) -> FunctionPolicy:
        """Return the policy that plays the most likely actions."""
        device = self.bits.device
        choose = th.no_grad()(
            lambda *seen: self(*(th.from_numpy(x).to(device) for x in seen))[0].argmax(1).cpu().numpy()
        )
        return FunctionPolicy(choose, batched=True)

    def save(self, file: str) -> None:
        """Write the network to an ONNX file, which plays as the policy `onnx:FILE`."""
        sizes, names = (self.game.observation_size, self.game.num_actions), ["observation", "action_mask"]
        rows = {0: th.export.Dim("rows")}
        th.onnx.export(
            self.cpu().eval(), tuple(th.ones(2, size, dtype=th.int8) for size in sizes), file, input_names=names,
            output_names=["logits", "value"], dynamic_shapes=(rows, rows), external_data=False, verbose=False,
        )  # fmt: skip


class Rollout(NamedTuple):
    """The decisions of T steps in N games, as tensors (T, N, ...) of the device."""

    observation: th.Tensor
    mask: th.Tensor
    action: th.Tensor
    log_prob: th.Tensor
    value: th.Tensor
    advantage: th.Tensor


class Learner:
    """The state of a training run. One network plays all seats of all games."""

    def __init__(self, settings: Settings) -> None:
        th.manual_seed(settings.seed)
        self.settings = settings
        self.games, self.device = new_games(settings)
        self.games.reset(settings.seed << 32)
        # These tensors share the memory of the games, so each step changes them.
        self.observation, self.mask, self.player, self.rewards, self.done = (
            th.as_tensor(getattr(self.games, name), device=self.device)
            for name in ("observation", "mask", "player", "rewards", "done")
        )
        self.network = Network(self.games.game).to(self.device)
        self.optimizer = th.optim.Adam(self.network.parameters(), settings.learning_rate, eps=1e-5)

    @th.no_grad()
    def play(self) -> Rollout:
        """Play `num_steps` decisions in every game, and return them with their advantages."""
        settings, network = self.settings, self.network
        seen, actors, rewards, ends = [], [], [], []
        for _ in range(settings.num_steps):
            observation, mask = self.observation.clone(), self.mask.clone()
            actors.append(self.player.clone()[:, None])
            log_probs, value = network(observation, mask)
            action = th.multinomial(log_probs.exp(), 1)
            seen.append((observation, mask, action[:, 0], log_probs.gather(1, action)[:, 0], value))
            self.games.step(action[:, 0])
            rewards.append(self.rewards.clone())
            ends.append(self.done.clone()[:, None])

        # A_t = r_t + V(s_t') - V(s_t) + gae_lambda * A_t', where t' is the next decision of the same seat. In the loop,
        # backwards in time, `reward`, `following` and `trail` contain r_t, V(s_t') and A_t' of each seat.
        views = [
            th.as_tensor(self.games.observe(seat), device=self.device) for seat in range(settings.players)
        ]
        following = th.stack([network(view, self.mask)[1] for view in views], 1)
        reward, trail, advantages = th.zeros_like(following), th.zeros_like(following), []
        for (*_, value), at, result, end in zip(
            reversed(seen), reversed(actors), reversed(rewards), reversed(ends), strict=True
        ):
            reward = th.where(end, result, reward)
            following, trail = following.masked_fill(end, 0), trail.masked_fill(end, 0)
            advantage = reward.gather(1, at) + following.gather(1, at) - value[:, None]
            advantage += settings.gae_lambda * trail.gather(1, at)
            reward = reward.scatter(1, at, 0)
            following, trail = following.scatter(1, at, value[:, None]), trail.scatter(1, at, advantage)
            advantages.append(advantage[:, 0])
        columns = (th.stack(column) for column in zip(*seen, strict=True))
        return Rollout._make((*columns, th.stack(advantages[::-1])))

    def update(self, left: float) -> float:
        """Play a rollout, take its gradient steps, and return the last loss; `left` is the remaining share."""
        settings, network = self.settings, self.network
        observation, mask, action, before, value, advantage = (x.flatten(0, 1) for x in self.play())
        target = value + advantage
        advantage = (advantage - advantage.mean()) / advantage.std()
        self.optimizer.param_groups[0]["lr"] = settings.learning_rate * left
        for _ in range(settings.update_epochs):
            for i in th.split(th.randperm(len(action), device=self.device), settings.minibatch_size):
                log_probs, estimate = network(observation[i], mask[i])
                # L = -E[min(r A, clip(r, 1 - c, 1 + c) A)] + 1/2 E[(V - target)^2] - beta E[H], r = pi(a|s) / pi_old
                ratio = (log_probs.gather(1, action[i, None])[:, 0] - before[i]).exp()
                clipped = ratio.clamp(1 - settings.clip_coef, 1 + settings.clip_coef)
                gain = th.min(ratio * advantage[i], clipped * advantage[i]).mean()
                error = (estimate - target[i]).square().mean()
                entropy = -(log_probs.exp() * log_probs).sum(1).mean()
                loss = -gain + 0.5 * error - settings.ent_coef * left * entropy
                self.optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(network.parameters(), 0.5)
                self.optimizer.step()
        return float(loss.detach())  # waits for the GPU


def train(settings: Settings) -> Network:
    """Train a network, print its progress up to ten times, and return it."""
    learner, spent = Learner(settings), 0.0
    updates = settings.total_timesteps // (settings.num_envs * settings.num_steps)
    for done in range(1, updates + 1):
        started = time.perf_counter()
        learner.update(1 - (done - 1) / updates)
        spent += time.perf_counter() - started
        if 10 * done // updates > 10 * (done - 1) // updates:
            agent, games = learner.network.policy(), (settings.evaluation_games, learner.network.game.rules)
            shares = [evaluate(agent, name, *games).share for name in ("greedy", "random")]
            rate = done * settings.num_envs * settings.num_steps / spent
            print(f"update {done}, {spent:.0f} s, {rate:,.0f} decisions a second: ", end="")
            print("{:.1%} against greedy, {:.1%} against random".format(*shares), flush=True)
    return learner.network


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Train with masked PPO in self-play on a GPU.")
    for each in fields(Settings):
        parser.add_argument(f"--{each.name.replace('_', '-')}", type=type(each.default), default=each.default)
    try:
        settings = Settings(**vars(parser.parse_args()))
    except ValueError as error:
        parser.error(str(error))
    trained = train(settings)
    if settings.save:
        trained.save(settings.save)
        policy, players = shlex.quote(f"onnx:{settings.save}"), f"--players {settings.players}"
        print(f"wotd arena {policy} greedy {players}\nwotd benchmark {policy} {players}")
