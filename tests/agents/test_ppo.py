"""Training runs of PPO with its own critic."""

from __future__ import annotations

import dataclasses
import shutil
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from agents import command, ppo, runs
from agents.layers import Network
from agents.ppo import Decisions, Run
from tests.helpers.learned import some_value
from tests.helpers.training import TINY_PPO, VARIANTS, arguments, refusal, resumed, same, trained
from wotd_env import Game, Rules
from wotd_env.planning import learned
from wotd_env.planning.planner import plan
from wotd_env.planning.values import hand_made


def some_decisions(rules: Rules, steps: int) -> tuple[Network, Decisions]:
    """Return a network and decisions that it played."""
    th.manual_seed(3)
    network, game = Network(rules, 8, planned=True), Game(rules)
    state = game.reset(6, seed=1)
    return network, ppo.play(network, game, state, hand_made, steps, np.random.default_rng(0))


def test_decisions_contain_the_exact_expected_returns_of_the_games_played():
    rules = Rules(spaces=2)
    _, decisions = some_decisions(rules, 5)
    game = Game(rules)
    state = game.reset(6, seed=1)
    rng = np.random.default_rng(0)
    for step in range(5):
        rows = slice(6 * step, 6 * step + 6)
        np.testing.assert_array_equal(decisions.observation[rows], game.observe(state))
        np.testing.assert_array_equal(decisions.mask[rows], game.legal_actions(state))
        np.testing.assert_array_equal(decisions.q[rows], plan(game, state, hand_made)[0])
        log_old = decisions.log_probability[rows].numpy()
        game.step_autoreset(state, (log_old + rng.gumbel(size=log_old.shape)).argmax(1))
    total = decisions.log_probability.exp().sum(1)
    np.testing.assert_allclose(total, 1, rtol=1e-5)
    assert not decisions.log_probability.exp()[decisions.mask == 0].any()


@pytest.mark.parametrize(("beta", "tau"), [(0.0, 0.02), (0.05, 0.02), (0.02, 0.02)])
def test_the_best_policy_maximizes_the_objective(beta: float, tau: float):
    _, decisions = some_decisions(Rules(spaces=2), 4)
    best = ppo.best_policy(decisions, beta, tau).double()
    old = decisions.log_probability.double()
    q = decisions.q.double().nan_to_num(neginf=0)
    legal = decisions.mask != 0

    def objective(policy: th.Tensor) -> th.Tensor:
        log_policy = policy.clamp(min=1e-300).log()
        divergence = policy * (log_policy - old.masked_fill(~legal, 0))
        return (policy * q - beta * divergence - tau * policy * log_policy).sum(1)

    assert not best[~legal].any()
    np.testing.assert_allclose(best.sum(1), 1, rtol=1e-5)
    rng = np.random.default_rng(0)
    for share in (0.001, 0.01, 0.1, 1):
        other = th.from_numpy(rng.random(best.shape)) * legal
        mixed = (1 - share) * best + share * other / other.sum(1, keepdim=True)
        assert (objective(mixed) <= objective(best) + 1e-9).all()


def test_gradient_steps_lower_the_loss_and_the_regret():
    network, decisions = some_decisions(Rules(spaces=2), 40)
    optimizer = th.optim.Adam(network.parameters(), lr=3e-3)
    target = ppo.best_policy(decisions, 0.0, 0.02)
    settings = dataclasses.replace(TINY_PPO, batch_size=60)
    losses = [
        ppo.learn(network, optimizer, decisions, target, settings, np.random.default_rng(i))["loss"]
        for i in range(40)
    ]
    assert losses[-1] < 0.8 * losses[0]

    def regret(log_policy: th.Tensor) -> float:
        q = decisions.q.nan_to_num(neginf=0)
        return float((decisions.q.amax(1) - (log_policy.exp() * q).sum(1)).mean())

    with th.no_grad():
        now = ppo.log_probabilities(network, decisions.observation, decisions.mask)
    assert regret(now) < 0.8 * regret(decisions.log_probability)


def test_equal_seeds_give_equal_weights_with_any_number_of_threads(tmp_path: Path):
    one, two, other = (
        trained(TINY_PPO, tmp_path / name, threads=threads, seed=seed)
        for name, threads, seed in (("a", 1, 1), ("b", 2, 1), ("c", 1, 2))
    )
    assert same(one, two)
    assert not same(one, other)


def test_an_interrupted_run_resumes_to_the_same_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    whole = trained(TINY_PPO, tmp_path / "whole")
    update = Run.update

    def interrupted(self: Run, *arguments: Any) -> dict[str, float]:
        if self.updates == 2:
            signal.raise_signal(signal.SIGINT)
        return update(self, *arguments)

    folder = tmp_path / "parts"
    with monkeypatch.context() as patch:
        patch.setattr(Run, "update", interrupted)
        assert command.main(arguments(TINY_PPO, folder)) == 130
    assert f"--resume {folder}" in capsys.readouterr().out
    assert Run.resume(Run.read_settings(folder)).updates == 3
    assert command.main(["--resume", str(folder)]) == 0
    assert same(whole, Run.resume(Run.read_settings(folder)))


def test_a_finished_run_can_be_extended(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run", updates=2, milestones=1)
    run.finish()
    again = resumed(run)
    assert again.done == again.total
    assert all((run.folder / name).is_file() for name in runs.OF_THE_END)
    more = resumed(run, updates=3)
    assert more.updates == 2
    assert not any((run.folder / name).exists() for name in runs.OF_THE_END)  # results of the shorter run
    more.train(lambda run: None)
    assert more.updates == 3
    assert Run.read_settings(run.folder).updates == 3


def test_a_shortened_run_is_measured_at_its_new_end(tmp_path: Path):
    run = Run(dataclasses.replace(TINY_PPO, folder=tmp_path / "run", milestones=1)).begin()
    with pytest.raises(runs.Stopped):
        run.train(lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    assert {row.done for row in run.curve} == {0}
    less = resumed(run, updates=run.updates)
    less.train(lambda run: None)
    assert {row.done for row in less.curve} == {0, run.done}


def test_tensorboard_shows_losses_and_strength_at_milestones(tmp_path: Path):
    run = trained(TINY_PPO, tmp_path / "run")
    shown = EventAccumulator(str(run.folder)).Reload()
    points = shown.Scalars("strength/wins_against_random")
    expected = [(row.done, np.float32(row.wins / row.games)) for row in run.curve if row.opponent == "random"]
    assert [(point.step, point.value) for point in points] == expected
    for name in ("train/loss", "train/regret", "train/critic_loss", "train/learning_rate"):
        assert len(shown.Scalars(name)) == TINY_PPO.updates, name


def test_resuming_needs_the_file_of_a_given_critic(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(TINY_PPO.rules)))
    settings = dataclasses.replace(TINY_PPO, critic=f"td:{file}", folder=tmp_path / "run")
    run = Run(settings).begin()
    assert run.critic is None
    file.unlink()
    message = refusal(run.folder, capsys)
    assert f"the run in {run.folder} cannot be resumed: critic must name a policy for the rules" in message
    assert "value.npz" in message


@pytest.mark.parametrize("rules", VARIANTS[1:], ids=str)
def test_every_variant_trains(tmp_path: Path, rules: Rules):
    rules = dataclasses.replace(rules, max_turns=20)  # the games at milestones take most of the time
    run = trained(TINY_PPO, tmp_path / "run", rules=rules, updates=2, milestones=1)
    assert run.curve[-1].done == run.total
    assert Run.read_settings(run.folder).rules == rules


def test_an_interrupted_start_can_be_repeated(tmp_path: Path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".lock").write_bytes(b"")
    (folder / f".part-{'1' * 32}-checkpoint.pt").write_bytes(b"half")
    run = Run(dataclasses.replace(TINY_PPO, folder=folder, updates=2, milestones=1)).begin()
    assert not list(folder.glob(".part*"))
    with pytest.raises(FileExistsError, match=r"already contains a run; resume it with --resume"):
        Run(dataclasses.replace(TINY_PPO, folder=folder)).begin()

    # A run that is resumed before its first update learns the same weights.
    copy = shutil.copytree(folder, tmp_path / "copy")
    run.train(lambda run: None)
    other = Run.resume(Run.read_settings(copy))
    other.train(lambda run: None)
    assert same(run, other)


@pytest.mark.slow
def test_ppo_learns_to_beat_random_and_greedy_play(tmp_path: Path):
    run = trained(
        TINY_PPO,
        tmp_path / "run",
        rules=Rules(spaces=2),
        updates=40,
        milestones=1,
        games=256,
        steps=16,
        batch_size=256,
        width=64,
        epochs=2,
        critic_turns=16_384,
        milestone_games=1000,
    )
    random, greedy, _ = (row.wins / row.games for row in run.curve[-3:])
    assert random > 0.95
    assert greedy > 0.5
