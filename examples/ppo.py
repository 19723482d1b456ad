"""Masked PPO by self-play: one network plays all seats of many games and learns from the results or from regrets.

The example uses the batch engine (`Game.step_autoreset`). The advantages are computed separately for each seat, and the
network treats the five paths alike. The example works for 2 to 5 players.

    python examples/ppo.py --save ppo.onnx
    python examples/ppo.py --spaces 1 --reward table   # the reward of a decision is minus its exact regret
    python examples/ppo.py --help         # all settings
"""

import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import torch as th
import tyro
from numpy.typing import NDArray
from torch import nn
from torch.distributions import Categorical

from wotd_env import Game, Rules, evaluate
from wotd_env.policies.function import FunctionPolicy
from wotd_env.wrappers import Judge

Array = NDArray[Any]
Reward = Literal["result", "table", "td", "planner"]


@dataclass(frozen=True)
class Settings:
    """Train a network with masked PPO in self-play, and measure it against greedy and random."""

    save: str = ""
    """File for the trained network, such as ppo.onnx."""
    seed: int = 0
    players: int = 2
    spaces: int = 7
    """Plain spaces of each path."""
    reward: Reward = "result"
    """"result" of the game, or the judge whose regrets are the rewards: table (exact), td or planner (estimates)."""
    noise: float = 0.0
    """Standard deviation of an error in the judge's equities."""
    total_timesteps: int = 3_276_800
    """Decisions of all seats, in rollouts of `num_envs` * `num_steps` decisions."""
    num_envs: int = 512
    """Number of parallel games."""
    num_steps: int = 64
    """Decisions of each game in a rollout."""
    update_epochs: int = 3
    """Passes over the decisions of a rollout."""
    minibatch_size: int = 1024
    learning_rate: float = 1e-3
    """Learning rate of Adam at the start; it falls linearly to 0."""
    gae_lambda: float = 0.9
    """Lambda of generalized advantage estimation. There is no discount."""
    clip_coef: float = 0.2
    ent_coef: float = 0.01
    """Weight of the entropy bonus at the start; it falls linearly to 0."""
    evaluation_games: int = 1000

    def __post_init__(self) -> None:
        Rules(players=self.players, spaces=self.spaces)  # raises ValueError for impossible rules
        least = dict.fromkeys(("seed", "spaces", "noise"), 0) | dict.fromkeys(("save", "reward"), "")
        least["total_timesteps"] = self.num_envs * self.num_steps
        for name, value in vars(self).items():
            if not value >= (low := least.get(name, int(isinstance(value, int)))):
                raise ValueError(f"{name} must be at least {low}, got {value}")
        if os.path.isdir(self.save) or not os.path.isdir(os.path.dirname(self.save) or "."):
            raise ValueError(f"save must be a file in an existing folder, got {self.save}")


class Network(nn.Module):
    """A network for policy and value of the seat to act. The paths share weights, because the rules treat them alike.

    A layer scores each pair (face, number of kept dice). The logit of a hold is the sum of six scores, one per face.
    """

    bits: th.Tensor

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

    def forward(self, observation: th.Tensor, mask: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Return logits (N, A) and values (N,) for observations, int8 (N, D), and action masks, int8 (N, A)."""
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

        faces = (dice.argmax(2).cumsum(1)[:, None] <= th.arange(5)[:, None]).sum(2)  # sorted faces of dice
        kept = (self.bits[:, :, None] * (faces[:, None, :, None] == th.arange(6))).sum(2)  # (N, hold, face)
        scores = th.cat((by_path[:, :, :6], rest[:, None, :6]), 1)  # (N, face, number kept)
        holds = scores.gather(2, kept.transpose(1, 2)).sum(1)
        moves, swaps = by_path[:, :, 6:9].transpose(1, 2).flatten(1), by_path[:, :, 9:].flatten(1)
        return th.cat((holds, moves, rest[:, 6:14], swaps), 1).masked_fill(mask == 0, -1e9), rest[:, 14]

    def policy(self) -> FunctionPolicy:
        """Return the policy that plays the most likely actions."""
        choose = th.no_grad()(lambda *seen: self(*map(th.from_numpy, seen))[0].argmax(1).numpy())
        return FunctionPolicy(choose, batched=True)

    def save(self, file: str) -> None:
        """Write the network to an ONNX file, which plays as the policy `onnx:FILE`."""
        sizes, names = (self.game.observation_size, self.game.num_actions), ["observation", "action_mask"]
        rows = {0: th.export.Dim("rows")}
        th.onnx.export(
            self.eval(), tuple(th.ones(2, size, dtype=th.int8) for size in sizes), file, input_names=names,
            output_names=["logits", "value"], dynamic_shapes=(rows, rows), external_data=False, verbose=False,
        )  # fmt: skip


class Rollout(NamedTuple):
    """The decisions of T steps in N games, as arrays (T, N, ...)."""

    observation: Array
    mask: Array
    action: Array
    log_prob: Array
    value: Array
    advantage: Array


class SelfPlay:
    """Many games in which one network plays all seats. Without a judge, it is rewarded with the results."""

    def __init__(self, game: Game, games: int, seed: int, judge: Judge | None = None) -> None:
        self.game, self.state, self.judge = game, game.reset(games, seed=seed), judge
        self.observation, self.mask = game.observe(self.state), game.legal_actions(self.state)

    def play(self, network: Network, steps: int, gae_lambda: float) -> Rollout:
        """Play `steps` decisions in every game, and return them with their advantages."""
        game, state = self.game, self.state
        size, players, everyone = len(state), game.rules.players, np.arange(len(state))
        rewards, done = np.empty((size, players), np.float32), np.empty(size, np.bool_)
        seen = np.empty((steps, size, game.observation_size), np.int8)
        mask = np.empty((steps, size, game.num_actions), np.int8)
        action, actor = np.empty((steps, size), np.int64), np.empty((steps, size), np.int64)
        log_prob, value = np.empty((2, steps, size), np.float32)
        reward = np.zeros((steps, size), np.float32)  # the actor's reward up to its next decision
        final = np.zeros((steps, size), np.bool_)  # whether this decision is the actor's last one in the game
        last = np.full((size, players), -1)  # step of each seat's last decision in the running game, or -1
        for t in range(steps):
            seen[t], mask[t], actor[t] = self.observation, self.mask, state["player"]
            with th.no_grad():
                logits, estimate = network(th.from_numpy(seen[t]), th.from_numpy(mask[t]))
                policy: Any = Categorical(logits=logits, validate_args=False)
                chosen = policy.sample()
            action[t], log_prob[t], value[t] = chosen, policy.log_prob(chosen), estimate
            last[everyone, actor[t]] = t
            if self.judge:
                reward[t] = -self.judge(state, action[t]).regret
            game.step_autoreset(state, action[t], self.observation, self.mask, rewards, done)
            # At the end of a game, credit the reward of each seat to the seat's last decision.
            ended, seat = np.nonzero(done[:, None] & (last >= 0))
            if not self.judge:
                reward[last[ended, seat], ended] = rewards[ended, seat]
            final[last[ended, seat], ended] = True
            last[done] = -1
        if self.judge:  # minus the regret is the advantage of perfect play, so later rewards do not count
            return Rollout(seen, mask, action, log_prob, value, reward - value)
        # A_t = d_t + gae_lambda * A_t',  d_t = r_t + V(s_t') - V(s_t), where t' is the next decision of the same seat
        ahead = np.zeros((size, players), np.float32)
        with th.no_grad():
            masks = th.from_numpy(self.mask)
            views = (th.from_numpy(game.observe(state, seat=seat)) for seat in range(players))
            value_ahead = np.stack([network(view, masks)[1].numpy() for view in views], 1)
        advantage = np.empty_like(value)
        for t in reversed(range(steps)):
            at, goes_on = (everyone, actor[t]), ~final[t]
            delta = reward[t] + goes_on * value_ahead[at] - value[t]
            advantage[t] = ahead[at] = delta + gae_lambda * goes_on * ahead[at]
            value_ahead[at] = value[t]
        return Rollout(seen, mask, action, log_prob, value, advantage)


def learn(
    network: Network, optimizer: th.optim.Optimizer, rollout: Rollout, settings: Settings, left: float
) -> None:
    """Take the gradient steps of one update; `left` is the remaining share of the training run."""
    observation, mask, action, before, value, advantage = (th.from_numpy(x).flatten(0, 1) for x in rollout)
    target = value + advantage
    advantage = (advantage - advantage.mean()) / advantage.std()
    for _ in range(settings.update_epochs):
        for i in th.split(th.randperm(len(action)), settings.minibatch_size):
            logits, estimate = network(observation[i], mask[i])
            policy: Any = Categorical(logits=logits, validate_args=False)
            # L = -E[min(r A, clip(r, 1 - c, 1 + c) A)] + 1/2 E[(V - target)^2] - beta E[H], r = pi(a|s) / pi_old(a|s)
            ratio = (policy.log_prob(action[i]) - before[i]).exp()
            clipped = ratio.clamp(1 - settings.clip_coef, 1 + settings.clip_coef)
            gain = th.min(ratio * advantage[i], clipped * advantage[i]).mean()
            error = (estimate - target[i]).square().mean()
            loss = -gain + 0.5 * error - settings.ent_coef * left * policy.entropy().mean()
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 0.5)
            optimizer.step()


def report(network: Network, update: int, seconds: float, settings: Settings) -> None:
    """Print the strength of a network after `seconds` of processor time."""
    against = (
        evaluate(network.policy(), name, settings.evaluation_games, network.game.rules).share
        for name in ("greedy", "random")
    )
    print(f"update {update}, {seconds:.0f} s of processor time: ", end="")
    print("{:.1%} against greedy, {:.1%} against random".format(*against), flush=True)


def train(settings: Settings, measure: Callable[[Network, int, float, Settings], None] = report) -> Network:
    """Train a network and return it. Call `measure` ten times."""
    th.set_num_threads(1)  # with one thread, the same seed gives the same weights
    th.manual_seed(settings.seed)
    game = Game(players=settings.players, spaces=settings.spaces)
    judge = (
        None if settings.reward == "result" else Judge(game, settings.reward, settings.noise, settings.seed)
    )
    network, started, measuring = Network(game), time.process_time(), 0.0
    optimizer = th.optim.Adam(network.parameters(), eps=1e-5)
    games = SelfPlay(game, settings.num_envs, settings.seed << 32, judge)
    updates = settings.total_timesteps // (settings.num_envs * settings.num_steps)
    for update in range(updates):
        left = 1 - update / updates
        optimizer.param_groups[0]["lr"] = settings.learning_rate * left
        rollout = games.play(network, settings.num_steps, settings.gae_lambda)
        learn(network, optimizer, rollout, settings, left)
        if 10 * (update + 1) // updates > 10 * update // updates:
            before = time.process_time()
            measure(network, update + 1, before - started - measuring, settings)
            measuring += time.process_time() - before
    return network


if __name__ == "__main__":
    settings = tyro.cli(Settings)
    trained = train(settings)
    if settings.save:
        trained.save(settings.save)
        policy = shlex.quote(f"onnx:{settings.save}")
        players, spaces = f"--players {settings.players}", f"--spaces {settings.spaces}"
        print(f"wotd arena {policy} greedy {players} {spaces}\nwotd benchmark {policy} {players}")
