"""PPO by self-play, with a critic that is learned in the same run: `python train.py`.

The *critic* is the value network of `agents.td`. It values the positions between turns. Given these values, the turn
planner computes the expected return Q(s, a) of every legal action exactly. PPO usually estimates the advantage of the
chosen action from one noisy return. Here the advantages of all actions are exact expectations,

    A(s, a) = Q(s, a) - sum over b of old(b | s) Q(s, b),

where old is the policy that played the games. In a state s, PPO's objective with a KL penalty is

    J(pi) = sum over a of pi(a | s) A(s, a) - beta KL(pi || old) + tau H(pi),

where H is the entropy. The policy m that maximizes J is known in closed form:

    m(a | s) = old(a | s)^(beta / (beta + tau)) exp(A(s, a) / (beta + tau)) / normalization.

The loss is the cross-entropy of pi with m. With the loss -J, the network would learn rarely played actions slowly,
because the gradient of J is proportional to pi(a | s). The unit of A, beta and tau is equity, the expected result of a
game, from -1 to 1.

In an *update* the network plays all seats of its games (`play`), then takes gradient steps (`learn`). The critic plays
and learns at the same time, in a second thread. Both threads use the critic's weights from before the update, so equal
settings give equal weights with any number of threads.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
import torch as th

from agents import runs, settings, td
from agents.layers import Network
from agents.settings import Count, NotNegative, Positive
from wotd_env import Game
from wotd_env.core.state import States
from wotd_env.planning.planner import Value, plan
from wotd_env.policies.planner import Planner


@dataclass(frozen=True)
class Settings(settings.Settings):
    """Train a policy network by PPO in self-play, with a critic that is learned in the same run.

    Ctrl-C saves the run after the current update; --resume continues it.
    """

    preset: Literal["quick", "standard"] = "quick"
    """Defaults of the other settings: quick takes 4 to 7 minutes on two cores, standard 35 to 60."""

    updates: Count = 150
    """Updates of the network; each plays games and takes gradient steps."""

    games: Count = 512
    """Games that the network plays side by side."""

    steps: Count = 16
    """Decisions per game and update."""

    width: Count = 64
    """Units of the policy network's hidden layers."""

    learning_rate: Positive = 3e-3
    """Initial learning rate of Adam; it falls to a fiftieth by cosine decay."""

    batch_size: Count = 512
    """Decisions in a gradient step."""

    epochs: Count = 2
    """Passes over the decisions in an update."""

    entropy: Positive = 0.012
    """Weight of the entropy (tau) at the start, in equity; it falls linearly to a tenth."""

    penalty: NotNegative = 0.012
    """Weight of the KL penalty (beta) at the start, in equity; it falls linearly to a tenth."""

    planned: bool = True
    """Score actions also by the ends of the turn, see agents/layers.py."""

    critic: str = "learn"
    """Policy whose value function is the critic, such as td or td:FILE. By default this run learns the critic."""

    critic_turns: Count = 32_768
    """Turns that the critic plays per update. The other settings of the critic are those of a preset of td."""

    threads: Count = 2
    """Threads: the network learns in one, the critic in the other."""


PRESETS = {"quick": Settings(), "standard": Settings(preset="standard", updates=1800, milestones=40)}


def log_probabilities(network: Network, observation: th.Tensor, mask: th.Tensor) -> th.Tensor:
    """Return the log probabilities of all actions, (N, A); illegal actions have large negative numbers."""
    logits: th.Tensor = network(observation.float())[0]
    return logits.masked_fill(mask == 0, -1e9).log_softmax(1)


# ------------------------------------------------------------------------------------------------ self-play and update


class Decisions(NamedTuple):
    """The training data of an update: N decisions, A actions, observations of D numbers."""

    observation: th.Tensor  # int8 (N, D)
    mask: th.Tensor  # int8 (N, A): the legal actions
    log_probability: th.Tensor  # float32 (N, A): log old(a | s)
    q: th.Tensor  # float32 (N, A): Q(s, a), the expected return in equity; -inf for illegal actions


def play(
    network: Network, game: Game, state: States, critic: Value, steps: int, rng: np.random.Generator
) -> Decisions:
    """Play `steps` decisions in each of G games. Update `state` in place, and return the G * steps decisions.

    Every game of `state`, STATE (G,), must be at a decision.
    """
    played = []
    for _ in range(steps):
        observation, mask = (th.from_numpy(x) for x in (game.observe(state), game.legal_actions(state)))
        with th.no_grad():
            old = log_probabilities(network, observation, mask)
        q, _ = plan(game, state, critic)
        played.append(Decisions(observation, mask, old, th.from_numpy(q)))
        # The argmax of the log probabilities plus Gumbel noise is a draw from the policy.
        game.step_autoreset(state, (old.numpy() + rng.gumbel(size=q.shape)).argmax(1))
    return Decisions(*map(th.cat, zip(*played, strict=True)))


def best_policy(decisions: Decisions, beta: float, tau: float) -> th.Tensor:
    """Return the probabilities of the policy m that the module docstring defines, float32 (N, A).

    The code uses Q instead of A. In each state their difference is a constant, which does not change the softmax.
    """
    return ((beta * decisions.log_probability + decisions.q) / (beta + tau)).softmax(1)


def learn(
    network: Network,
    optimizer: th.optim.Optimizer,
    decisions: Decisions,
    target: th.Tensor,
    settings: Settings,
    rng: np.random.Generator,
) -> dict[str, float]:
    """Take the gradient steps of an update; return the mean loss, regret and entropy for TensorBoard.

    `target` contains the probabilities of the best policy, (N, A).
    """
    losses = []
    for _ in range(settings.epochs):
        order = th.from_numpy(rng.permutation(len(target)))
        for chosen in order.split(settings.batch_size):  # type: ignore[no-untyped-call]
            log_pi = log_probabilities(network, decisions.observation[chosen], decisions.mask[chosen])
            loss = -(target[chosen] * log_pi).sum(1).mean()
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            losses.append(loss.detach())
    old = decisions.log_probability.exp()
    regret = decisions.q.amax(1) - (old * decisions.q.nan_to_num(neginf=0)).sum(1)
    entropy = -(old * decisions.log_probability).sum(1)
    means = {"loss": th.stack(losses).mean(), "regret": regret.mean(), "entropy": entropy.mean()}
    return {name: float(mean) for name, mean in means.items()}


# ------------------------------------------------------------------------------------------------------------- the run


class Run(runs.Run):
    """A training run of PPO."""

    learner, unit, kind = "ppo", "decisions", Settings
    network: Network
    fixed: ClassVar[tuple[str, ...]] = (
        "preset", "folder", "rules", "seed", "games", "steps", "width", "planned", "critic", "critic_turns",
    )  # fmt: skip

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        th.set_num_threads(1)  # so that the order of sums does not depend on the number of threads
        th.manual_seed(settings.seed)
        self.network = Network(settings.rules, settings.width, settings.planned)
        self.optimizer = th.optim.Adam(self.network.parameters(), lr=settings.learning_rate, fused=True)
        # The seeds of the critic's games start at seed << 32. The network's games must have other seeds.
        self.state = self.game.reset(settings.games, seed=(settings.seed << 32) + (1 << 31))
        self.critic: td.Run | None = None
        if settings.critic == "learn":
            self.critic = td.Run(critic_settings(settings))
        else:
            what = "learn, or a policy that plans turns, such as td or td:FILE"
            self.given: Value = settings.policy("critic", Planner, what).value

    def update(self) -> dict[str, float]:
        """Play and learn once; at the same time, update the critic."""
        settings, done = self.settings, self.updates / self.settings.updates
        value = self.critic.value if self.critic else self.given
        critic_update = self.beside(self.critic.update if self.critic else dict)
        rng = np.random.default_rng([settings.seed, self.updates])
        rate = self.optimizer.param_groups[0]["lr"] = td.falling(settings.learning_rate, done)
        decisions = play(self.network, self.game, self.state, value, settings.steps, rng)
        beta, tau = (max(1 - done, 0.1) * weight for weight in (settings.penalty, settings.entropy))
        target = best_policy(decisions, beta, tau)
        numbers = learn(self.network, self.optimizer, decisions, target, settings, rng)
        of_critic = {f"critic_{name}": value for name, value in critic_update().items()}
        self.updates += 1
        return numbers | {"learning_rate": rate} | of_critic

    def parts(self) -> dict[str, Any]:
        """Return the learner's part of a checkpoint."""
        return super().parts() | {"critic": self.critic.parts() if self.critic else None}

    def restore(self, saved: dict[str, Any]) -> None:
        """Load the learner's part of a checkpoint."""
        super().restore(saved)
        if self.critic:
            self.critic.restore(saved["critic"])


def critic_settings(settings: Settings) -> td.Settings:
    """Return the settings of the critic: a preset of `td`, scaled to `critic_turns` turns per update."""
    preset = td.PRESETS["quick" if settings.rules.players == 2 else "many"]
    games = max(settings.critic_turns // preset.turns, 1)
    batches = max(preset.batches * games // preset.games, 1)
    same = {name: getattr(settings, name) for name in ("folder", "seed", "rules", "updates")}
    return dataclasses.replace(preset, games=games, batches=batches, threads=1, **same)
