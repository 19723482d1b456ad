"""PPO by self-play: `python train.py`.

This is PPO with its usual parts: rollouts of many games side by side, the probability ratio to the policy that played
them, clipping, an entropy bonus, epochs and minibatches. One part differs. In place of generalized advantage
estimation, the turn planner computes the expected return Q(s, a) of every legal action, averaged exactly over the dice
of the rest of the turn. It needs the values of the positions between turns. A value function learned in the same run
gives them: the learner of `agents.td`, which plays its own games in a second thread. The advantages are

    A(s, a) = Q(s, a) - sum over b of old(b | s) Q(s, b),

where old is the policy that played. Since all advantages of a state are known, the objective is the expectation over
all actions instead of the sample that was played:

    mean over s of: sum over a of old(a | s) min(r A, clip(r, 1 - c, 1 + c) A) + ent_coef H(pi(. | s)),
    r = pi(a | s) / old(a | s).

An expectation over all actions in a policy gradient is known as *expected policy gradients* (Ciosek and Whiteson, 2018)
and as *mean actor-critic* (Allen et al., 2017). The clipped objective is that of Schulman et al. (2017).

Advantages keep their unit, equity: the expected result of a game, from -1 to 1. Division by their standard deviation
would enlarge them as the policy converges, and the entropy bonus would lose its effect.
"""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch as th

from agents import settings, td
from agents.checkpoint import adam, step, tensors_of
from agents.export import NetworkPolicy, to_onnx
from agents.network import Network
from agents.settings import Count, NotNegative, Positive, Share
from wotd_env import Game, files
from wotd_env.core.checks import check_states
from wotd_env.core.state import States
from wotd_env.envs.layouts import LayoutGame
from wotd_env.planning.planner import Value, plan


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Train a policy network by PPO in self-play. The turn planner computes the advantages of all actions.

    Ctrl-C saves the run after the current update; --resume continues it.
    """

    # Defaults of the other settings: quick takes 5 minutes on two cores, standard 40.
    preset: Literal["quick", "standard"] = "quick"
    updates: Count = 450  # Updates of the network; each plays games and takes gradient steps.
    num_envs: Count = 512  # Games that the network plays side by side.
    num_steps: Count = 16  # Decisions per game and update.
    width: Count = 64  # Units of the policy network's hidden layers.
    learning_rate: Positive = 3e-3  # Initial learning rate of Adam; it falls to a fiftieth by cosine decay.
    minibatch_size: Count = 512  # Decisions in a gradient step.
    update_epochs: Count = 2  # Passes over the decisions in an update.
    clip_coef: Share = 0.2  # Clip range of the probability ratio.
    # Weight of the entropy bonus at the start, in equity; it falls linearly to a tenth.
    ent_coef: NotNegative = 0.012
    # Turns that the learner of the value function plays per update. Its other settings are those of a preset of td.
    critic_turns: Count = 16_384


PRESETS = {"quick": Settings(), "standard": Settings(preset="standard", updates=4000, milestones=40)}


def log_probabilities(network: Network, observation: th.Tensor, mask: th.Tensor) -> th.Tensor:
    """Return the log probabilities of all actions, (N, A); illegal actions have large negative numbers."""
    logits: th.Tensor = network(observation.float())[0]
    return logits.masked_fill(mask == 0, -1e9).log_softmax(1)


class Rollout(NamedTuple):
    """The N decisions of an update: observations of D numbers, A actions."""

    observation: th.Tensor  # int8 (N, D)
    mask: th.Tensor  # int8 (N, A): the legal actions
    log_old: th.Tensor  # float32 (N, A): log old(a | s)
    advantage: th.Tensor  # float32 (N, A): A(s, a) in equity; 0 for illegal actions
    over: th.Tensor  # bool (N,): whether the game ended


def play(
    network: Network, game: Game, state: States, value: Value, steps: int, rng: np.random.Generator
) -> Rollout:
    """Play `steps` decisions in each of G games. Update `state` in place, and return the G * steps decisions.

    Every game of `state`, STATE (G,), must be at a decision. `value` values the positions between turns.
    """
    played = []
    for _ in range(steps):
        observation, mask = (th.from_numpy(x) for x in (game.observe(state), game.legal_actions(state)))
        with th.no_grad():
            log_old = log_probabilities(network, observation, mask)
        returns = th.from_numpy(plan(game, state, value)[0])  # -inf for illegal actions
        expected = (log_old.exp() * returns.nan_to_num(neginf=0)).sum(1, keepdim=True)
        # The argmax of the log probabilities plus Gumbel noise is a draw from the policy.
        actions = (log_old.numpy() + rng.gumbel(size=returns.shape)).argmax(1)
        game.step_autoreset(state, actions, done=(over := np.empty(len(state), np.bool_)))
        advantage = (returns - expected).nan_to_num(neginf=0)
        played.append(Rollout(observation, mask, log_old, advantage, th.from_numpy(over)))
    return Rollout(*map(th.cat, zip(*played, strict=True)))


def learn(
    network: Network, optimizer: th.optim.Optimizer, rollout: Rollout, settings: Settings, ent_coef: float,
    rng: np.random.Generator,
) -> dict[str, float]:  # fmt: skip
    """Take the gradient steps of an update; return named means for TensorBoard."""
    logged = []
    for _ in range(settings.update_epochs):
        order = th.from_numpy(rng.permutation(len(rollout.mask)))
        for chosen in order.split(settings.minibatch_size):  # type: ignore[no-untyped-call]
            observation, mask, log_old, advantage, _ = (part[chosen] for part in rollout)
            log_pi = log_probabilities(network, observation, mask)
            # infinity times 0 would be NaN
            log_ratio = (log_pi - log_old).masked_fill(mask == 0, 0).clamp(max=20)
            old, ratio = log_old.exp(), log_ratio.exp()
            clipped = ratio.clamp(1 - settings.clip_coef, 1 + settings.clip_coef)
            gain = (old * th.min(ratio * advantage, clipped * advantage)).sum(1).mean()
            entropy = -(log_pi.exp() * log_pi).sum(1).mean()
            loss = -gain - ent_coef * entropy
            norm = step(optimizer, loss)
            with th.no_grad():
                kl = -(old * log_ratio).sum(1).mean()
                share = (old * (clipped != ratio)).sum(1).mean()
                logged.append(th.stack([loss, entropy, kl, share, norm]))
    names = "loss", "entropy", "approx_kl", "clipfrac", "gradient_norm"
    numbers = dict(zip(names, th.stack(logged).mean(0).tolist(), strict=True))
    if ended := int(rollout.over.sum()):
        numbers["episode_length"] = len(rollout.over) / ended
    numbers["regret"] = float(rollout.advantage.amax(1).mean())  # the best advantage is the regret of old
    return numbers


class Learner:
    """Learns a policy by PPO. Everything random in an update follows from the seed and its number."""

    unit: ClassVar[str] = "decisions"
    fixed: ClassVar[tuple[str, ...]] = (
        "preset", "rules", "layouts", "seed", "num_envs", "num_steps", "width", "critic_turns",
    )  # fmt: skip

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.per_update = settings.num_envs * settings.num_steps
        self.critic = td.Learner(critic_settings(settings))
        self.second = ThreadPoolExecutor(1)  # in which the critic learns
        th.manual_seed(settings.seed)
        self.game = LayoutGame(settings.rules, settings.training_layouts())
        self.network = Network(settings.rules, settings.width)
        self.optimizer = adam(list(self.network.parameters()), settings.learning_rate)
        # The seeds of the critic's games start at seed << 32. The network's games must have other seeds.
        self.state = self.game.reset(settings.num_envs, seed=(settings.seed << 32) + (1 << 31))

    def policy(self) -> NetworkPolicy:
        """Return the policy that plays the network's most likely actions."""
        return NetworkPolicy(self.network)

    def update(self, number: int) -> dict[str, float]:
        """Play and learn once; at the same time, update the value function."""
        settings, done = self.settings, number / self.settings.updates
        value = self.critic.value  # both threads use the weights from before the update
        of_critic = self.second.submit(self.critic.update, number)
        rng = np.random.default_rng([settings.seed, number])
        rate = self.optimizer.param_groups[0]["lr"] = td.falling(settings.learning_rate, done)
        rollout = play(self.network, self.game, self.state, value, settings.num_steps, rng)
        ent_coef = settings.ent_coef * (1 - 0.9 * done)
        numbers = learn(self.network, self.optimizer, rollout, settings, ent_coef, rng)
        critic = {f"critic_{name}": value for name, value in of_critic.result().items()}
        return critic | numbers | {"learning_rate": rate}

    def tensors(self) -> dict[str, th.Tensor]:
        """Return the live tensors that a checkpoint keeps."""
        critic = {f"critic.{name}": tensor for name, tensor in self.critic.tensors().items()}
        state = th.from_numpy(self.state.view(np.uint8))
        return tensors_of(self.network, self.optimizer) | critic | {"state": state}

    def check(self) -> None:
        """Raise ValueError if tensors from a checkpoint contain impossible values."""
        check_states(self.settings.rules, self.state)
        self.critic.check()

    def export(self, folder: Path) -> None:
        """Write the network to `model.onnx`."""
        files.write(folder / "model.onnx", to_onnx(self.network))


def critic_settings(settings: Settings) -> td.Settings:
    """Return the settings of the value function: a preset of `td`, scaled to `critic_turns` turns per update."""
    preset = td.PRESETS["quick" if settings.rules.players == 2 else "many"]
    games = max(settings.critic_turns // preset.turns, 1)
    batches = max(preset.batches * games // preset.games, 1)
    same = {name: getattr(settings, name) for name in ("seed", "rules", "layouts", "updates")}
    return dataclasses.replace(preset, games=games, batches=batches, **same)
