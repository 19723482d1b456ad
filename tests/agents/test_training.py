"""Self-play, the network, training runs and their checkpoints."""

from __future__ import annotations

import ast
import dataclasses
import errno
import io
import itertools
import json
import re
import shlex
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnxruntime
import pytest
import torch as th
from rich.console import Console
from rich.progress import Progress
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from typer.testing import CliRunner

import train
from agents import checkpoint, export, report, runs, training
from agents.checkpoint import CheckpointError
from agents.credit import Creditor
from agents.evaluate import Counts, measure
from agents.network import PathNetwork
from agents.selfplay import SelfPlayVecEnv
from agents.trained import load
from agents.trained import player as trained_player
from agents.training import Run, Settings
from tests.helpers import ROOT
from tests.helpers.learned import some_value
from wotd_env import STATE, Game, Phase, Rules, make_policy
from wotd_env.adapters.sb3 import SB3VecEnv
from wotd_env.cli import app as wotd
from wotd_env.core.dice import HOLD_KEEP, KEEP_DICE, keep_number
from wotd_env.planning import learned
from wotd_env.planning.values import hand_made
from wotd_env.policies import Policy, full_name
from wotd_env.policies.sb3 import Trained
from wotd_env.policy import check_plays

GREEDY, RANDOM, FIRST = (make_policy(name) for name in ("greedy", "random", "first"))

VARIANTS = [
    Rules(),
    Rules(players=3, powers="any"),
    Rules(players=5, powers="own", immunity=True, colors="random"),
    Rules(players=4, dead_pieces=5, start="loser"),
]

TINY = dataclasses.replace(
    training.PRESETS["rules"],
    preset="quick",
    decisions=1024,
    milestones=2,
    games=16,
    steps=16,
    batch_size=64,
    width=8,
    milestone_games=5,
    final_games=5,
    threads=1,
)


CREDITED = {"credit": "planner", "planned": True, "gamma": 0.0, "gae_lambda": 0.0, "entropy": 0.15}


@pytest.fixture(autouse=True)
def one_thread():
    th.set_num_threads(1)


# ------------------------------------------------------------------------------------------------------------ self-play


def learner_actions(mask: np.ndarray, step: int) -> np.ndarray:
    """Some legal actions, not always the same."""
    return np.array(
        [legal[(7 * step + 3 * i) % len(legal)] for i, legal in enumerate(map(np.flatnonzero, mask))]
    )


@pytest.mark.parametrize("rules", [*VARIANTS, Rules(max_turns=30), Rules(players=3, max_turns=1)], ids=str)
def test_each_seat_gets_its_own_next_decision_and_the_rewards_in_between(rules: Rules):
    game = Game(rules)
    opponents: list[Policy] = [GREEDY, FIRST, GREEDY, FIRST, FIRST]
    env = SelfPlayVecEnv(game, opponents, seed=40)

    # The same games, each in a loop of its own; the learner's seats are the environment's draws.
    states = [game.reset(1, seed=40 + i) for i in range(len(opponents))]
    seats = env.seat.copy()

    def until_learner(i: int) -> tuple[float, bool]:
        """Play the others of game i; return the result and whether the game ended."""
        state, result, ended = states[i], 0.0, False
        while True:
            if state["phase"][0] == Phase.OVER:
                if not ended:
                    result, ended = game.rewards(state)[0, seats[i]], True
                game.reset(state, where=[True])
                seats[i] = env.seat[i]
            if state["player"][0] == seats[i]:
                return result, ended
            game.step(state, opponents[i].act(game, state, np.random.default_rng()))

    if rules.max_turns > 1:  # otherwise several games end unseen, and their draws cannot be read off
        for i in range(len(opponents)):
            until_learner(i)
    observation: Any = game.observe(env.state)
    ends = 0
    for step in range(400 if rules.max_turns > 1 else 0):
        mask = env.action_masks()
        assert mask.any(1).all()
        for i, state in enumerate(states):
            np.testing.assert_array_equal(observation[i], game.observe(state)[0])
            np.testing.assert_array_equal(mask[i], game.legal_actions(state)[0])
        actions = learner_actions(mask, step)
        observation, rewards, done, infos = env.step(actions)
        for i, state in enumerate(states):
            before = seats[i]
            game.step(state, actions[i : i + 1])
            last = game.observe(state, seat=before)[0]
            while state["phase"][0] != Phase.OVER and state["player"][0] != before:
                game.step(state, opponents[i].act(game, state, np.random.default_rng()))
                last = game.observe(state, seat=before)[0]
            result, ended = until_learner(i)
            assert (rewards[i], done[i]) == (np.float32(result), ended)
            assert ended or rewards[i] == 0
            if ended:
                assert infos[i].keys() == {"terminal_observation", "result"}
                np.testing.assert_array_equal(infos[i]["terminal_observation"], last)
            else:
                assert infos[i] == {}
            ends += ended
    assert ends or rules.max_turns == 1


@pytest.mark.parametrize("rules", [*VARIANTS, Rules(max_turns=2)], ids=str)
def test_with_all_seats_every_decision_is_the_learners_and_paid_to_its_seat(rules: Rules):
    game, creditor = Game(rules), Creditor(Game(rules), hand_made)
    env = SelfPlayVecEnv(game, [None, GREEDY, None, None], seed=40, value=hand_made)
    alone = np.array([0, 2, 3])
    state = np.concatenate([game.reset(1, seed=40 + i) for i in alone])
    ends, seats = 0, set()
    for step in range(1000):
        mask = env.action_masks()
        assert (env.seat == env.state["player"]).all()
        assert (env.state[alone] == state).all()
        seats |= set(state["player"].tolist())
        actions, acting = learner_actions(mask, step), state["player"].copy()
        _, rewards, done, infos = env.step(actions)
        credit = creditor.step(state, actions[alone])[np.arange(len(alone)), acting]
        np.testing.assert_array_equal(rewards[alone], credit)
        over = game.is_over(state)
        np.testing.assert_array_equal(done[alone], over)
        for i in np.flatnonzero(over):
            assert infos[alone[i]]["result"] == pytest.approx(game.rewards(state)[i, acting[i]])
            last = game.observe(state[i : i + 1], acting[i : i + 1])[0]
            np.testing.assert_array_equal(infos[alone[i]]["terminal_observation"], last)
        game.reset(state, where=over)
        ends += over.sum()
    assert ends
    assert seats == set(range(rules.players))


def test_turn_limits_too_short_for_the_learner_to_be_asked_do_no_harm():
    env = SelfPlayVecEnv(Game(Rules(players=3, max_turns=1)), [RANDOM] * 8)
    for step in range(50):
        assert (env.state["player"] == env.seat).all()
        _, rewards, _, _ = env.step(learner_actions(env.action_masks(), step))
        assert not rewards.any()


@pytest.mark.parametrize("players", [2, 3])
def test_wins_and_losses_both_come_through(players: int):
    env = SelfPlayVecEnv(Game(Rules(players=players)), [RANDOM] * 64, seed=1)
    results: list[float] = []
    for step in range(1500):
        _, rewards, done, _ = env.step(learner_actions(env.action_masks(), step))
        assert not rewards[~done].any()
        results += rewards[done].tolist()
    win, loss = 1.0, -1 / (players - 1)
    wins, losses = np.isclose(results, win).sum(), np.isclose(results, loss).sum()
    assert len(results) > 400
    assert wins > len(results) / 10
    assert losses > len(results) / 10
    assert wins + losses > 0.9 * len(results)  # the rest are ties and truncated games


def test_the_learner_has_every_seat_equally_often():
    env = SelfPlayVecEnv(Game(Rules(players=4)), [RANDOM] * 400, seed=2)
    share = np.bincount(env.seat, minlength=4) / 400
    assert (abs(share - 1 / 4) < 0.1).all()


def test_every_opponent_plays_its_own_games_in_batches():
    calls: dict[str, list[int]] = {"one": [], "two": []}

    class Counting:
        def __init__(self, name: str) -> None:
            self.name = name

        def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            calls[self.name].append(len(state))
            return GREEDY.act(game, state, rng)

    env = SelfPlayVecEnv(Game(), [Counting("one")] * 30 + [GREEDY] * 30)
    env.step(learner_actions(env.action_masks(), 0))
    assert max(calls["one"]) > 1
    calls["one"].clear()
    env.opponents = [GREEDY] * 30 + [Counting("two")] * 30
    for step in range(20):
        env.step(learner_actions(env.action_masks(), step))
    assert not calls["one"]
    assert 1 < max(calls["two"]) <= 30
    with pytest.raises(ValueError, match=r"opponents must be 60 policies.*got 3"):
        env.opponents = [GREEDY] * 3


class Peeking:
    """Plays the same whatever it sees, but notes the streams of the games it is shown."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self.seen |= set(state["rng"].tolist())
        return FIRST.act(game, state, rng)


class Streams(Game):
    """A game that notes the streams from which its dice come."""

    def __init__(self) -> None:
        super().__init__()
        self.real: set[int] = set()

    def step(self, state: np.ndarray, actions: Any, validate: bool = True) -> None:
        self.real |= set(state["rng"].tolist())
        super().step(state, actions, validate)


def test_opponents_do_not_see_the_dice_to_come():
    game, peeking = Streams(), Peeking()
    env = SelfPlayVecEnv(game, [peeking] * 20, seed=4)
    for step in range(10):
        env.step(learner_actions(env.action_masks(), step))
    assert len(peeking.seen) > 100
    assert not peeking.seen & (game.real | set(env.state["rng"].tolist()))


def test_who_is_measured_does_not_see_the_dice_to_come():
    game, one, other = Streams(), Peeking(), Peeking()
    measure(game, one, other, 20, seed=4)
    assert min(len(one.seen), len(other.seen)) > 100
    assert not (one.seen | other.seen) & game.real


def test_sb3_finds_all_that_it_expects_of_a_vecenv():
    env = SelfPlayVecEnv(Game(), [GREEDY] * 4, seed=3)
    assert is_masking_supported(env)
    np.testing.assert_array_equal(get_action_masks(env), env.action_masks())
    assert len(env.env_method("action_masks", indices=[1, 2])) == 2
    assert env.get_attr("render_mode") == [None] * 4
    assert not env.has_attr("no_such_thing")
    assert env.env_is_wrapped(VecMonitor) == [False] * 4  # type: ignore[arg-type]
    first = env.reset()
    assert env.observation_space.contains(first[0])
    env.seed(3)
    again = env.reset()
    env.seed(3)
    np.testing.assert_array_equal(again, env.reset())

    model = MaskablePPO("MlpPolicy", VecMonitor(env), n_steps=32, batch_size=32, n_epochs=1, device="cpu")
    model.learn(256)
    mean, _ = evaluate_policy(model, VecMonitor(env), n_eval_episodes=8)
    assert np.all(np.abs(mean) <= 1)


# ------------------------------------------------------------------------------------------------------------- network


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
@pytest.mark.parametrize("planned", [False, True])
def test_the_network_knows_every_part_of_the_observation_and_every_action(rules: Rules, planned: bool):
    game = Game(rules)
    network = PathNetwork(rules, 16, planned)
    observation = th.from_numpy(game.observe(game.reset(40, seed=0))).float().requires_grad_()
    logits, value = network(observation)
    assert logits.shape == (40, game.num_actions)
    assert value.shape == (40, 1)
    # What never changes in this phase need not matter, but no part may be left out.
    (logits.square().sum() + value.sum()).backward()
    assert observation.grad is not None
    for name, part in game.observation_layout.items():
        assert observation.grad[:, part].any(), name


def test_a_hold_is_scored_by_what_it_keeps():
    rng = np.random.default_rng(0)
    faces = np.sort(rng.integers(0, 6, (200, 5)), 1)
    counts = (faces[:, :, None] == np.arange(6)).sum(1)
    scores = rng.normal(size=(200, 8, 6)).astype(np.float32)
    dice = th.from_numpy((counts[:, :, None] == np.arange(6)).astype(np.float32))
    logits = PathNetwork(Rules(), 4).holds(dice, th.from_numpy(scores).flatten(1)).numpy()
    for i in range(200):
        for hold in range(32):
            dice_kept = KEEP_DICE[HOLD_KEEP[keep_number(faces[i].tolist()), hold]]
            kept = [int((dice_kept == face).sum()) for face in range(6)]
            features = [*kept, sum(kept), sum(k > 0 for k in kept[:5])]
            expected = sum(scores[i, feature, number] for feature, number in enumerate(features))
            np.testing.assert_allclose(logits[i, hold], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("planned", [False, True])
def test_the_network_treats_all_paths_alike(planned: bool):
    game = Game(Rules(players=3))
    network = PathNetwork(game.rules, 16, planned)
    state = game.reset(300, seed=5)
    rng = np.random.default_rng(0)
    for _ in range(30):
        game.step(state, RANDOM.act(game, state, rng))
    state = state[state["phase"] == Phase.MOVE]
    assert len(state)
    order = rng.permutation(5)  # path e of the one is path order[e] of the other
    other = state.copy()
    other["pieces"][:, :, order] = state["pieces"]
    other["color"] = np.argsort(np.argsort(order))[state["color"]]
    other["dice"] = np.sort(np.append(order, 5)[state["dice"]], 1)
    with th.no_grad():
        logits, value = network(th.from_numpy(game.observe(state)).float())
        others, value_of_other = network(th.from_numpy(game.observe(other)).float())
    np.testing.assert_allclose(value, value_of_other, atol=1e-5)
    for first, width in ((32, 1), (37, 1), (42, 1), (55, 3)):  # move, wild, jump, swaps
        one = logits[:, first : first + 5 * width].reshape(-1, 5, width)
        two = others[:, first : first + 5 * width].reshape(-1, 5, width)
        np.testing.assert_allclose(one, two[:, order], atol=1e-5)
    np.testing.assert_allclose(logits[:, 47:55], others[:, 47:55], atol=1e-5)


# ------------------------------------------------------------------------------------------------------------ strength


@pytest.mark.parametrize("players", [2, 3])
def test_evaluation_plays_all_seats_and_counts_every_game(players: int):
    game = Game(Rules(players=players, max_turns=200))
    seats: list[int] = []

    class Watching:
        def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            seats.extend(state["player"][state["turn"] < players].tolist())
            return GREEDY.act(game, state, rng)

    over: list[int] = []
    counts = measure(game, Watching(), RANDOM, 100, seed=0, progress=over.append)
    assert counts.games == -(-100 // players) * players
    assert (over[0], over[-1]) == (0, counts.games)
    assert over == sorted(over)
    assert counts.wins + counts.ties + counts.losses == counts.games
    assert set(seats) == set(range(players))
    assert counts.wins > 0.9 * counts.games
    assert counts == measure(game, GREEDY, RANDOM, 100, seed=0)
    assert measure(game, RANDOM, GREEDY, 100, seed=0).losses > 0.9 * counts.games / (players - 1) / 2


def test_truncated_games_are_ties():
    counts = measure(Game(Rules(max_turns=2)), RANDOM, RANDOM, 10, seed=0)
    assert counts == Counts(games=10, wins=0, ties=10, losses=0)


# ------------------------------------------------------------------------------------------------------------- running


def weights(run: Run) -> dict[str, np.ndarray]:
    return {name: tensor.numpy().copy() for name, tensor in run.model.policy.state_dict().items()}


def trained(folder: Path, **changes: object) -> Run:
    run = Run.begin(dataclasses.replace(TINY, folder=folder, **changes))  # type: ignore[arg-type]
    run.train(lambda run: None)
    return run


def arguments(folder: Path) -> list[str]:
    """The command line of TINY."""
    fields = [f for f in dataclasses.fields(TINY) if getattr(TINY, f.name) != f.default and f.name != "rules"]
    words = ["--folder", str(folder)]
    for field in fields:
        name, value = field.name.replace("_", "-"), getattr(TINY, field.name)
        words += (
            [f"--{name}" if value else f"--no-{name}"] if type(value) is bool else [f"--{name}", str(value)]
        )
    return words


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    "games",
    [
        lambda game: SelfPlayVecEnv(game, [make_policy("random")] * 8, 0),
        lambda game: SB3VecEnv(8, opponents="random", spaces=game.rules.spaces),
    ],
    ids=["self-play", "vector environment"],
)
def test_no_game_of_a_training_is_one_of_another_seed(games: Callable[[Game], VecEnv]):
    rules = Rules(spaces=1)
    streams: list[set[int]] = []
    for seed in 0, 1:
        env = games(Game(rules))
        training.make_model(Settings(rules=rules, seed=seed, games=8, steps=32), env)
        env.reset()
        state = env.env.record if isinstance(env, SB3VecEnv) else env.state  # type: ignore[attr-defined]
        streams.append(set(state["rng"].tolist()))
    assert len(streams[0]) == len(streams[1]) == 8
    assert not streams[0] & streams[1]


def test_same_seed_same_weights(tmp_path: Path):
    one, same, other = (trained(tmp_path / name, seed=seed) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    for name, tensor in weights(one).items():
        np.testing.assert_array_equal(tensor, weights(same)[name])
    assert any((tensor != weights(other)[name]).any() for name, tensor in weights(one).items())
    assert [row[:1] + row[2:] for row in one.curve] == [row[:1] + row[2:] for row in same.curve]


def test_a_run_that_was_interrupted_goes_on_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    whole = trained(tmp_path / "whole")

    # Ctrl-C in the middle of the second rollout, between two milestones.
    steps = 0
    step = SelfPlayVecEnv.step_async

    def interrupted(self: SelfPlayVecEnv, actions: np.ndarray) -> None:
        nonlocal steps
        steps += 1
        if steps == TINY.steps + 5:
            signal.raise_signal(signal.SIGINT)
        step(self, actions)

    folder = tmp_path / "parts"
    monkeypatch.setattr(SelfPlayVecEnv, "step_async", interrupted)
    assert train.main([*arguments(folder), "--decisions", "1024"]) == 130
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert steps == 2 * TINY.steps
    assert f"--resume {folder}" in capsys.readouterr().out
    assert (folder / "model.zip").exists()
    assert not (folder / "result.json").exists()

    assert train.main(["--resume", str(folder)]) == 0
    assert steps == TINY.decisions // TINY.games
    assert (folder / "result.json").exists()
    rest = Run.resume(dataclasses.replace(training.Run.read_settings(folder)))
    for name, tensor in weights(whole).items():
        np.testing.assert_array_equal(tensor, weights(rest)[name])
    np.testing.assert_array_equal(whole.env.state, rest.env.state)
    assert [row[:1] + row[2:] for row in whole.curve] == [row[:1] + row[2:] for row in rest.curve]


def test_on_another_device_a_network_learns_and_is_kept_alike(tmp_path: Path):
    here, there = tmp_path / "here", tmp_path / "there"
    changes = {"decisions": 512, "milestones": 1, "games": 8, "milestone_games": 2, **CREDITED}
    words = [f"--{name.replace('_', '-')}={value}" for name, value in changes.items() if name != "planned"]
    command = [sys.executable, "-m", "tests.helpers.fake_device", *arguments(there), *words, "--planned"]
    done = subprocess.run([*command, "--device", "pretended"], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    trained(here, **changes)
    saved, same = (checkpoint.load(folder / "checkpoint.pt") for folder in (here, there))
    for name in ("network", "optimizer", "pool", "state"):
        checkpoint.check(name, same[name], saved[name])  # also that it lies in main memory
    for name, tensor in saved["network"].items():
        assert tensor.equal(same["network"][name]), name
        assert tensor.equal(load(there).network.state_dict()[name]), name

    more = dataclasses.replace(Run.read_settings(there), decisions=640)
    with pytest.raises(CheckpointError, match="device must be cpu or one that torch can use here"):
        Run.resume(more)
    run = Run.resume(dataclasses.replace(more, device="cpu"))
    run.train(lambda run: None)
    assert run.done == 640


@pytest.mark.parametrize(
    ("wins", "kept"),
    [
        ([10, 250, 240, 245], 3),  # the best one is not surely better than the last
        ([10, 250, 240, 150], 2),  # ... than the last but one
        ([10, 350, 100, 90], 1),
        ([0, 0], 1),
        ([500], 0),
    ],
)
def test_the_last_snapshot_that_is_not_surely_weaker_than_the_best_is_kept(wins: list[int], kept: int):
    assert runs.best([(500, won, 0) for won in wins]) == kept
    assert runs.best([(500, 0, 2 * won) if won <= 250 else (500, won, 0) for won in wins]) == kept


def test_the_snapshot_that_is_kept_is_what_a_run_leaves(tmp_path: Path):
    run = trained(tmp_path / "run")
    strongest = list(run.references)[-1]
    games = 1000
    for kept, wins in ((0, [900, 100, 100]), (1, [100, 900, 100]), (2, [100, 890, 900])):
        run.curve = [(i, 0.0, strongest, games, won, 0, games - won) for i, won in enumerate(wins)]
        run.save()
        for name, tensor in load(run.folder).network.state_dict().items():
            assert tensor.equal(run.pool[kept][name]), (kept, name)


def test_a_finished_run_can_be_given_more_decisions(tmp_path: Path):
    run = trained(tmp_path / "run")
    run.finish()
    (run.folder / runs.RESULT).write_text("{}")
    same = Run.resume(training.Run.read_settings(run.folder))
    assert same.done == same.total
    assert all((run.folder / name).is_file() for name in runs.OF_THE_END)
    longer = dataclasses.replace(training.Run.read_settings(run.folder), decisions=2048)
    more = Run.resume(longer)
    assert more.model.num_timesteps == 1024
    assert not any((run.folder / name).exists() for name in runs.OF_THE_END)  # they were of the shorter one
    more.train(lambda run: None)
    assert more.model.num_timesteps == 2048
    assert len(more.pool) > len(run.pool)
    assert training.Run.read_settings(run.folder).decisions == 2048


def test_a_run_that_is_to_learn_less_than_it_has_is_measured_where_it_stands(tmp_path: Path):
    run = Run.begin(dataclasses.replace(TINY, folder=tmp_path / "run", milestones=1))
    with pytest.raises(runs.Stopped):
        run.train(lambda run: setattr(run, "stop", run.done > 0))
    assert 0 < run.done < run.total
    assert len(run.pool) == 1  # the network before it learns
    less = Run.resume(dataclasses.replace(training.Run.read_settings(run.folder), decisions=run.done))
    less.train(lambda run: None)
    less.finish()
    assert {row[0] for row in less.curve} == {0, run.done}
    for name, tensor in load(run.folder).network.state_dict().items():
        assert tensor.equal(less.pool[1][name]), name


def test_results_are_there_as_long_as_the_run_that_they_are_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    run = trained(tmp_path / "run")
    run.finish()
    (run.folder / runs.RESULT).write_text("{}")
    before = contents(run.folder)
    with no_room(0):
        code = train.main(["--resume", str(run.folder), "--decisions", "2048"])
    assert code == 1
    assert "checkpoint.pt" in capsys.readouterr().err
    assert contents(run.folder) | {".lock": b""} == before | {".lock": b""}


def test_tensorboard_shows_the_strength_at_every_milestone(tmp_path: Path):
    run = trained(tmp_path / "run")
    shown = EventAccumulator(str(run.folder)).Reload().Scalars("strength/wins_against_random")
    expected = [(row[0], np.float32(row[4] / row[3])) for row in run.curve if row[2] == "random"]
    assert [(point.step, point.value) for point in shown] == expected


def test_shares_of_the_games_never_add_up_to_more_than_all(tmp_path: Path):
    settings = dataclasses.replace(TINY, games=3, steps=64, past=0.5, greedy=0.5, folder=tmp_path)
    run = Run(settings)
    assert run.opponents.tolist() == ["snapshots", "snapshots", "greedy"]


def test_a_run_goes_on_when_what_paid_its_credits_has_moved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(TINY.rules)))
    settings: dict[str, Any] = CREDITED | {"credit": f"td:{file}"}
    run = Run.begin(dataclasses.replace(TINY, **settings, decisions=256, folder=tmp_path / "run"))
    file.unlink()
    message = refusal(run.folder, capsys)
    assert f"the run in {run.folder} cannot go on: credit must name a policy for the rules at hand" in message
    assert "value.npz" in message
    assert train.main(["--resume", str(run.folder), "--credit", "planner"]) == 0


def test_a_folder_that_is_called_like_a_policy_is_the_policy_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "td").mkdir()
    (tmp_path / "td" / "value.npz").write_bytes(learned.save(some_value(Rules())))
    play_it, grade_it = map(shlex.split, report.what_next(Path("td"), Rules()))
    assert play_it[1:3] == ["arena", "./td"]
    assert grade_it[1:3] == ["analyze", "./td"]
    assert full_name("./td") == f"td:{Path('td', 'value.npz')}"


@pytest.mark.parametrize("rules", VARIANTS[1:], ids=str)
@pytest.mark.parametrize("settings", [{}, CREDITED], ids=["rules", "credited"])
def test_every_variant_trains(tmp_path: Path, rules: Rules, settings: dict[str, Any]):
    run = trained(tmp_path / "run", rules=rules, decisions=512, **settings)
    assert run.curve[-1][0] == 512
    assert training.Run.read_settings(run.folder).rules == rules


def test_the_command_leaves_a_complete_run_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "runs" / "one"
    assert train.main([*arguments(folder), "--players", "3", "--powers", "any"]) == 0
    names = {path.name.split(".")[0] for path in folder.iterdir()}
    assert names == {"", "config", "checkpoint", "model", "curve", "result", "events"}
    assert (folder / "model.onnx").is_file()
    shown = capsys.readouterr().out
    assert "random" in shown
    assert "greedy" in shown
    assert [line.strip() for line in shown.splitlines()][-1:] == report.what_next(
        folder, Rules(players=3, powers="any")
    )
    curve = (folder / "curve.csv").read_text().splitlines()
    assert curve[0] == "decisions,cpu_seconds,opponent,games,wins,ties,losses"
    assert len(curve) == 1 + 3 * (TINY.milestones + 1)
    assert (folder / "curve.png").read_bytes().startswith(b"\x89PNG")
    assert '"seed": 0' in (folder / "config.json").read_text()

    game = Game(Rules(players=3, powers="any"))
    state = game.reset(50, seed=0)
    for player in (load(folder), load(folder / "model.zip"), Trained(load(folder).network, sample=True)):
        actions = player.act(game, state, np.random.default_rng(0))
        assert actions.dtype == np.int64
        assert game.legal_actions(state)[np.arange(50), actions].all()
    with pytest.raises(
        FileNotFoundError, match=r"no model .*: name a run folder of PPO, .* td is a policy by its name"
    ):
        load(tmp_path)


def test_what_has_to_be_installed_first_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(report, "find_spec", lambda name: None)
    assert train.main([*arguments(tmp_path / "run"), "--decisions", "256", "--milestones", "1"]) == 0
    install, play_it, grade_it = (shlex.split(line) for line in capsys.readouterr().out.splitlines()[-3:])
    assert install[1:] == ["-m", "pip", "install", "--editable", f"{Path(train.__file__).parent}[arena]"]
    assert [play_it[1], grade_it[1]] == ["arena", "analyze"]


def test_a_finished_run_plays_by_the_commands_that_are_named_at_the_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    rules = Rules(spaces=3, immunity=True, colors=("fire", "wood"))
    run = trained(tmp_path / "a run", rules=rules, decisions=256, milestones=1)
    with pytest.raises(ValueError, match=r"holds no policy.*agents\.export"):
        make_policy(str(run.folder))
    run.finish()
    monkeypatch.chdir(tmp_path)
    (play_it,) = map(shlex.split, report.what_next(Path("a run"), rules))
    assert Path(play_it[0]).name == "wotd"
    few = ["--games", "4", "--workers", "0", "--file", str(tmp_path / "arena.sqlite"), "--quiet"]
    result = CliRunner().invoke(wotd, [*play_it[1:], *few])
    assert result.exit_code == 0, result.output
    file = run.folder / "model.onnx"
    file.unlink()
    assert export.main([str(run.folder)]) == 0
    assert capsys.readouterr() == (f"{file}\n", "")
    with pytest.raises(ValueError, match=r"made for Rules\(.*spaces=3.*, not for Rules\(.*spaces=7"):
        check_plays(make_policy(str(run.folder)), Rules(immunity=True, colors=("fire", "wood")))
    with pytest.raises(ValueError, match=r"made for Rules\(.*spaces=3.*, not for Rules\(.*spaces=7"):
        check_plays(load(run.folder), Rules(immunity=True, colors=("fire", "wood")))

    exported, network = make_policy(f"onnx:{file}"), load(run.folder).network
    session = onnxruntime.InferenceSession(file)
    state = run.game.reset(100, seed=9)
    rng = np.random.default_rng(0)
    for _ in range(20):
        observation, mask = run.game.observe(state), run.game.legal_actions(state)
        (logits,) = session.run(["logits"], {"observation": observation, "action_mask": mask})
        with th.no_grad():
            expected = network.mlp_extractor.forward_actor(th.from_numpy(observation).float()).numpy()
        np.testing.assert_allclose(logits[mask == 1], expected[mask == 1], atol=1e-5)
        assert (logits[mask == 0] < -1e30).all()
        np.testing.assert_array_equal(exported.act(run.game, state, rng), logits.argmax(1))
        run.game.step(state, RANDOM.act(run.game, state, rng))


# ---------------------------------------------------------------------------------------------------------- bad input


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x55
    path.write_bytes(data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder; not to be changed."""
    return trained(tmp_path_factory.mktemp("finished") / "run", decisions=256, milestones=1).folder


def refusal(folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """Resume a run, which must fail with one line and change nothing; return that line."""
    before = contents(folder)
    assert train.main(["--resume", str(folder), *options]) == 2
    message = capsys.readouterr().err
    assert message.startswith("train.py: error: ")
    assert message.count("\n") == 1
    assert str(folder) in message
    assert contents(folder) | {".lock": b""} == before | {".lock": b""}
    return message


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (flip, "checkpoint.pt is damaged"),
        (lambda file: file.write_bytes(file.read_bytes()[:-999]), "checkpoint.pt is damaged"),
        (lambda file: file.write_bytes(b""), "checkpoint.pt is damaged"),
        (lambda file: file.write_text("nothing of the kind"), "checkpoint.pt is damaged, or not of train.py"),
        (
            lambda file: file.write_bytes((file.parent / "model.zip").read_bytes()),
            "checkpoint.pt is damaged, or not",
        ),
        (
            lambda file: checkpoint.save(file, {"format": "another"}),
            "no checkpoint of this version of train.py",
        ),
        (
            lambda file: checkpoint.save(file, {"settings": TINY}),
            "checkpoint.pt is damaged, or not of train.py",
        ),
        (lambda file: (file.unlink(), file.mkdir()), "the checkpoint cannot be read"),
        (lambda file: file.unlink(), "there is no checkpoint"),
    ],
)
def test_a_checkpoint_that_cannot_be_read_is_named_and_nothing_is_changed(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], harm, words: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    harm(folder / "checkpoint.pt")
    if (folder / "checkpoint.pt").is_dir():
        with pytest.raises(CheckpointError, match=words):
            training.Run.read_settings(folder)
    else:
        message = refusal(folder, capsys)
        assert words in message
        assert "Put back a copy" in message or "in an empty folder" in message


def weight(content: dict[str, Any], part: str = "network") -> th.Tensor:
    """A tensor of weights in a checkpoint."""
    weights = content["pool"][1] if part == "pool" else content[part]
    tensor: th.Tensor = weights["mlp_extractor.path.weight"]
    return tensor


def in_games(field: str, value: Any) -> Callable[[dict[str, Any]], None]:
    """What changes a field of the third game of a checkpoint."""

    def change(content: dict[str, Any]) -> None:
        content["state"].numpy().view(STATE)[field][2] = value

    return change


def put(value: Any, *where: Any) -> Callable[[dict[str, Any]], None]:
    """What changes one value of a checkpoint."""

    def change(content: Any) -> None:
        for key in where[:-1]:
            content = content[key]
        content[where[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda c: c["state"].copy_(th.randint(0, 256, c["state"].shape, dtype=th.uint8)), "game 0: "),
        (in_games("player", 7), "game 2: player must be from 0 to 1"),
        (in_games("pieces", 100), "game 2: pieces must be"),
        (in_games("dice", -1), "game 2: dice must be"),
        (in_games("phase", Phase.OVER), "state has games that wait for no decision"),
        (put(th.zeros(64, dtype=th.uint8), "state"), "state must be ('torch.uint8', (1024,)"),
        (put(th.zeros(1024, dtype=th.int8), "state"), "state must be ('torch.uint8', (1024,)"),
        (put(th.zeros(1024, dtype=th.uint8, device="meta"), "state"), "state must be"),
        (put(th.zeros(1024, dtype=th.uint8).to_sparse(), "state"), "state must be"),
        (lambda c: c["seat"].bitwise_xor_(1), "seat must be that of the player to act"),
        (put(th.full((16,), 100, dtype=th.int8), "seat"), "seat must be that of the player to act"),
        (put(th.zeros(16), "seat"), "seat must be ('torch.int8', (16,)"),
        (put(th.zeros(16), "starts"), "starts must be ('torch.bool', (16,)"),
        (
            lambda c: weight(c).fill_(np.nan),
            "network.mlp_extractor.path.weight has values that are not finite",
        ),
        (
            lambda c: weight(c, "pool").fill_(np.inf),
            "pool[1].mlp_extractor.path.weight has values that are not",
        ),
        (
            put(th.zeros(3), "network", "mlp_extractor.path.weight"),
            "network.mlp_extractor.path.weight must be",
        ),
        (put(th.zeros(8, 8).double(), "network", "mlp_extractor.path.weight"), "path.weight must be"),
        (put(3, "network", "mlp_extractor.path.weight"), "network.mlp_extractor.path.weight must be"),
        (lambda c: c["network"].pop("mlp_extractor.path.weight"), "network must have the keys"),
        (put([], "pool"), "pool must be a list that is not empty"),
        (put({}, "pool"), "pool must be a list that is not empty"),
        (put({}, "pool", 0), "pool[0] must have the keys"),
        (put({}, "optimizer"), "optimizer must have the keys"),
        (
            lambda c: c["optimizer"][0]["exp_avg"].fill_(np.nan),
            "optimizer.0.exp_avg has values that are not finite",
        ),
        (lambda c: c["optimizer"][0]["exp_avg_sq"].fill_(-1), "optimizer has squares or steps"),
        (put(-1, "decisions"), "decisions must not be negative, got -1"),
        (put("many", "decisions"), "decisions must be like 0, got 'many'"),
        (put(None, "updates"), "updates must be like"),
        (put(np.nan, "seconds"), "seconds must be like"),
        (put([], "curve"), "curve must be a list that is not empty"),
        (put((256, 1.0, "greedy", 0, 0, 0, 0), "curve", 0), "curve[0] is no measurement"),
        (put((256, 1.0, "nobody", 1, 1, 0, 0), "curve", 0), "curve[0] is no measurement"),
        (put((256, 1.0), "curve", 0), "curve[0] must be like"),
        (lambda c: c["curve"].extend(c["curve"]), "curve must have a measurement against random for each"),
        (
            lambda c: c.update(curve=[row for row in c["curve"] if row[2] == "random"]),
            "curve must have a measurement against greedy for each snapshot",
        ),
        (lambda c: c.pop("starts"), "its content must have the keys"),
        (lambda c: c.pop("settings"), "settings must have the keys"),
        (put("many", "settings", "games"), "settings.games must be like 256, got 'many'"),
        (put(-3, "settings", "games"), "games must be an integer of at least 1, got -3"),
        (put(32, "settings", "games"), "state must be"),
        (put("slow", "settings", "preset"), "preset must be quick, standard or rules, got 'slow'"),
        (put({"players": 9}, "settings", "rules"), "players must be an integer from 2 to 5, got 9"),
        (put({"dice": 9}, "settings", "rules"), "rules must be a dict with keys among players, "),
        (put(None, "settings", "rules"), "rules must be a dict with keys among players, "),
        (put(3, "settings", "rules", "players"), "network.mlp_extractor"),
    ],
)
def test_every_part_of_a_checkpoint_is_checked_before_it_is_used(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], change, part: str
):
    folder = shutil.copytree(finished, tmp_path / "run")
    content = checkpoint.load(folder / "checkpoint.pt")
    change(content)
    checkpoint.save(folder / "checkpoint.pt", content)
    message = refusal(folder, capsys)
    assert part in message
    assert "checkpoint.pt cannot be used: " in message
    assert "Put back a copy" in message


def test_code_that_a_checkpoint_names_is_not_run_unless_the_user_names_it_too(
    tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "of_a_stranger.py").write_text(
        "from wotd_env.policies.planner import Planner\ndef go():\n    return Planner()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    folder = shutil.copytree(finished, tmp_path / "run")
    content = checkpoint.load(folder / "checkpoint.pt")
    content["settings"]["credit"] = "of_a_stranger:go"
    checkpoint.save(folder / "checkpoint.pt", content)
    message = refusal(folder, capsys)
    assert "names code to be run: --credit of_a_stranger:go" in message
    assert "of_a_stranger" not in sys.modules
    assert train.main(["--resume", str(folder), "--credit", "of_a_stranger:go"]) == 0
    assert "of_a_stranger" in sys.modules


def test_an_error_that_is_no_lack_of_room_is_not_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    def refuse(self: Run) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", "opponent.npz")

    monkeypatch.setattr(Run, "pass_milestone", refuse)
    assert train.main(arguments(tmp_path / "run")) == 2
    message = capsys.readouterr().err
    assert "opponent.npz" in message
    assert "once that is mended, this goes on from it: " in message


def test_what_was_made_from_the_checkpoint_is_not_needed_to_go_on(tmp_path: Path, finished: Path):
    folder = shutil.copytree(finished, tmp_path / "run")
    (folder / "config.json").write_text("{")
    (folder / "model.zip").write_bytes(b"")
    (folder / "curve.csv").unlink()
    assert train.main(["--resume", str(folder)]) == 0
    assert (folder / "curve.csv").read_bytes() == (finished / "curve.csv").read_bytes()
    assert json.loads((folder / "config.json").read_text())["settings"]["width"] == TINY.width
    for name, tensor in load(finished).network.state_dict().items():
        assert tensor.equal(load(folder).network.state_dict()[name])


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (flip, "model.zip is damaged"),
        # Damaged or, if the end that is left is that of the archive of weights in it, no model.
        (lambda file: file.write_bytes(file.read_bytes()[:-999]), "model.zip is "),
        (lambda file: file.write_bytes(b""), "model.zip is damaged"),
        (lambda file: rezip(file, "wotd-env.json", None), "it lacks wotd-env.json. The policy sb3:FILE"),
        (lambda file: rezip(file, "wotd-env.json", b"["), "wotd-env.json does not describe a network"),
        (lambda file: rezip(file, "wotd-env.json", b"[]"), "wotd-env.json does not describe a network"),
        (lambda file: rezip(file, "wotd-env.json", b'{"rules": {"players": 1}, "width": 8}'), "got 1"),
        (lambda file: rezip(file, "wotd-env.json", b'{"rules": {}, "width": 8.0}'), "width must be that of"),
        (
            lambda file: rezip(file, "wotd-env.json", b'{"rules": {}, "width": 1000000}'),
            "width must be that of",
        ),
        (lambda file: rezip(file, "wotd-env.json", b'{"rules": {}, "width": 9}'), "path_in.weight must be"),
        (
            lambda file: rezip(file, "wotd-env.json", b'{"rules": {"spaces": 3}, "width": 8}'),
            "weight must be",
        ),
        (
            lambda file: rezip(file, "policy.pth", b"weights" * 99),
            "policy.pth is damaged, or not of train.py",
        ),
        (lambda file: rezip(file, "policy.pth", stored(th.ones(3))), "policy.pth must have the keys"),
        (lambda file: rezip(file, "policy.pth", None), "it lacks policy.pth"),
    ],
)
def test_a_model_that_cannot_be_used_is_named(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], harm, words: str
):
    file = tmp_path / "model.zip"
    file.write_bytes((finished / "model.zip").read_bytes())
    load(file)
    harm(file)
    with pytest.raises(CheckpointError, match=r"model\.zip"):
        load(file)
    assert export.main([str(file)]) == 2
    message = capsys.readouterr().err
    assert message.startswith("agents.export: error: ")
    assert message.count("\n") == 1
    assert words in message
    assert contents(tmp_path).keys() == {"model.zip"}


def rezip(file: Path, member: str, data: bytes | None) -> None:
    """Replace a file in a zip archive, or remove it."""
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != member}
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in (parts if data is None else parts | {member: data}).items():
            archive.writestr(name, content)


def stored(content: Any) -> bytes:
    """What `torch.save` writes, but large enough for weights."""
    buffer = io.BytesIO()
    th.save([content, th.zeros(100)], buffer)
    return buffer.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["checkpoint.pt", "model.zip"])
def test_a_damaged_file_is_never_taken_for_another_one(tmp_path: Path, finished: Path, name: str):
    def read(file: Path) -> bytes:
        """All that is read, as bytes that can be compared."""
        content = checkpoint.load(file) if name == "checkpoint.pt" else dict(load(file).network.state_dict())
        buffer = io.BytesIO()
        th.save(content, buffer)
        return buffer.getvalue()

    data = (finished / name).read_bytes()
    expected = read(finished / name)
    rng = np.random.default_rng(0)
    refused = 0
    for i in range(1000):
        damaged, at = bytearray(data), rng.integers(len(data))
        if i % 4 == 0:
            damaged[at] ^= 1 << rng.integers(8)
        elif i % 4 == 1:
            damaged[-1 - at % 4000] ^= 1 << rng.integers(8)  # where the archives say what lies where
        elif i % 4 == 2:
            damaged[at : at + 512] = bytes(len(damaged[at : at + 512]))
        else:
            damaged = damaged[:at]
        (tmp_path / name).write_bytes(damaged)
        try:
            content = read(tmp_path / name)
        except CheckpointError as error:
            refused += "\n" not in str(error)
        else:
            assert content == expected
            refused += 1
    assert refused == 1000


def test_sb3_reads_the_model_too(finished: Path):
    state = Game().reset(50, seed=0)
    model = MaskablePPO.load(finished / "model.zip", device="cpu")
    expected = Trained(model.policy).act(Game(), state, np.random.default_rng())
    np.testing.assert_array_equal(load(finished).act(Game(), state, np.random.default_rng()), expected)


@pytest.mark.parametrize(("network", "mask_in"), [("MlpPolicy", "info"), ("MultiInputPolicy", "obs")])
def test_a_model_of_other_makers_plays_as_sb3_has_it_predict(tmp_path: Path, network: str, mask_in: str):
    env = gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=1, mask_in=mask_in)
    model = MaskablePPO(network, env, seed=0, device="cpu")
    model.save(tmp_path / "model.zip")
    game = Game(Rules(spaces=1))
    state = game.new(200, seed=1)
    for _ in range(6):
        observation, mask = game.observe(state), game.legal_actions(state)
        seen: Any = {"observation": observation, "action_mask": mask} if mask_in == "obs" else observation
        expected, _ = model.predict(seen, action_masks=mask, deterministic=True)
        policy = make_policy(f"sb3:{tmp_path / 'model.zip'}", trust=True)
        chosen = policy.act(game, state, np.random.default_rng(0))
        np.testing.assert_array_equal(chosen, expected)
        game.step(state, chosen)
    assert policy.act(game, state[:0], np.random.default_rng(0)).shape == (0,)


@pytest.mark.parametrize(
    "rules",
    [Rules(), Rules(players=3, powers="own", immunity=True, spaces=2), Rules(players=4, dead_pieces=5)],
    ids=str,
)
def test_an_end_of_a_turn_is_scored_by_the_position_that_it_leaves(rules: Rules):
    game, network = Game(rules, skip_forced=False), PathNetwork(rules, 16, planned=True)
    state, rng = game.reset(300, seed=7), np.random.default_rng(0)
    for _ in range(120):
        going = np.flatnonzero(state["phase"] != Phase.OVER)
        part = state[going]
        game.step(part, RANDOM.act(game, part, rng))
        state[going] = part
    state = state[state["phase"] == Phase.MOVE]
    afterstates, layout = network.afterstates, network.layout
    of_path = th.randn(5, afterstates.path.in_features)
    of_board = th.randn(afterstates.board.in_features)

    def ends(states: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return what the ends are worth, which moves are free, and which pairs of pieces are still."""
        count, observation = len(states), th.from_numpy(game.observe(states)).float()
        pieces = observation[:, layout["pieces"]].reshape(count, rules.players, 5, -1)
        free = network.free(pieces, observation[:, layout["dead"]].reshape(count, 5, -1))
        at = (pieces @ network.space).long()
        with th.no_grad():
            worth = afterstates(at, of_path.expand(count, -1, -1), of_board.expand(count, -1), free)
        still = network.still(pieces, observation[:, layout["colors"]])
        return *(x.numpy() for x in worth), free.numpy(), still.numpy()

    moved, swapped, advanced, passed, free, still = ends(state)
    pairs, dragon = swapped.shape[2], 5
    # Dice, an action, what its end is worth, where it is possible.
    cases = [([0, 1, 2, 3, 4], 47, advanced[:, 0], free[:, :, 0].any(1))]
    for path in range(5):
        for count in range(1, 6):
            dice = [path] * count + [dragon] * (5 - count)
            cases.append((dice, 32 + path, moved[:, path, count - 1], free[:, path, count - 1] > 0))
        for pair in range(pairs):
            action = 55 + path * pairs + pair
            cases.append(([path, *[dragon] * 4], action, swapped[:, path, pair], ~still[:, path, pair]))
    for dice, action, worth, possible in cases:
        shown = state.copy()
        shown["dice"] = dice
        np.testing.assert_array_equal(game.legal_actions(shown)[:, action] == 1, possible)
        left = shown[possible]
        game.decide(left, np.full(len(left), action))
        there = state[possible]
        there["pieces"] = left["pieces"]
        np.testing.assert_allclose(worth[possible], ends(there)[3][:, 0], rtol=1e-4, atol=1e-4)
    with th.no_grad():
        afterstates.again.add_(1)  # five dice earn a further turn, so those ends alone change
    changed = np.abs(ends(state)[0] - moved) > 1e-3
    assert changed[:, :, 4].any()
    assert not changed[:, :, :4].any()
    for now, before in zip(ends(state)[1:4], (swapped, advanced, passed), strict=True):
        np.testing.assert_array_equal(now, before)


def test_an_exported_network_is_small_and_tells_nothing_of_this_machine(tmp_path: Path):
    rules = Rules(spaces=2)
    network = PathNetwork(rules, 16, planned=True)
    file = tmp_path / "model.onnx"
    file.write_bytes(export.to_onnx(trained_player(network)))
    weights = sum(4 * tensor.numel() for tensor in network.parameters())
    assert file.stat().st_size < weights + 100_000
    assert b"forward" not in file.read_bytes()
    assert str(Path(train.__file__).parent).encode() not in file.read_bytes()

    game, rng = Game(rules), np.random.default_rng(0)
    session, state = onnxruntime.InferenceSession(file), game.reset(200, seed=9)
    for _ in range(12):
        observation, mask = game.observe(state), game.legal_actions(state)
        (logits,) = session.run(["logits"], {"observation": observation, "action_mask": mask})
        with th.no_grad():
            expected = network.forward_actor(th.from_numpy(observation).float()).numpy()
        np.testing.assert_allclose(logits[mask == 1], expected[mask == 1], atol=1e-4)
        game.step(state, RANDOM.act(game, state, rng))


def test_export_names_what_is_missing(tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]):
    assert export.main([str(tmp_path / "nowhere")]) == 2
    assert "error: there is no model" in capsys.readouterr().err
    assert export.main([str(finished), str(tmp_path / "nowhere" / "model.onnx")]) == 2
    assert "error: no folder" in capsys.readouterr().err


def test_what_makes_a_run_another_one_cannot_change(finished: Path, capsys: pytest.CaptureFixture[str]):
    assert "rules cannot change when the run in" in refusal(finished, capsys, "--players", "3")
    message = refusal(finished, capsys, "--width", "9")
    assert f"width cannot change when the run in {finished} is resumed: it is 8" in message
    other = finished.parent / "other"
    assert "folder cannot change when the run in" in refusal(finished, capsys, "--folder", str(other))
    assert not other.exists()


# -------------------------------------------------------------------------------------------- cut short, side by side


def test_a_start_cut_short_can_be_begun_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".lock").write_bytes(b"")
    (folder / "new-checkpoint.pt").write_bytes(b"half")
    runs.make_folder(folder)
    run = Run.begin(dataclasses.replace(TINY, folder=folder))
    assert "new-checkpoint.pt" not in contents(folder)
    with pytest.raises(FileExistsError, match=r"there is a run in folder .* --resume .* goes on with it"):
        Run.begin(dataclasses.replace(TINY, folder=folder))

    # Before it has learned anything, too, it can be resumed, to the same end.
    other = Run.resume(training.Run.read_settings(folder))
    other.train(lambda run: None)
    run.train(lambda run: None)
    for name, tensor in weights(run).items():
        np.testing.assert_array_equal(tensor, weights(other)[name])
    assert [row[:1] + row[2:] for row in run.curve] == [row[:1] + row[2:] for row in other.curve]


def test_a_second_training_in_a_folder_is_an_error(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str]
):
    folder = shutil.copytree(finished, tmp_path / "run")
    with runs.alone(folder):
        assert "another training is at work in" in refusal(folder, capsys)
    empty = tmp_path / "new"
    empty.mkdir()
    with runs.alone(empty):
        assert train.main(arguments(empty)) == 2
        assert "another training is at work in" in capsys.readouterr().err
    assert contents(empty) == {".lock": b""}
    assert train.main(["--resume", str(folder)]) == 0


@contextmanager
def no_room(size: int, after: Callable[[Run], None] | None = None) -> Iterator[None]:
    """Let no file become larger than so many bytes: at once, or after the first call of a method of `Run`."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)

    def limit(run: Run) -> None:
        assert after is not None
        setattr(Run, after.__name__, after)
        after(run)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))

    try:
        if after is None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
        else:
            setattr(Run, after.__name__, limit)
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        if after is not None:
            setattr(Run, after.__name__, after)


@pytest.mark.parametrize("size", [0, 1000])
def test_a_run_that_finds_no_room_to_begin_can_be_begun_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int
):
    with no_room(size):
        code = train.main(arguments(tmp_path))
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert str(tmp_path / "checkpoint.pt") in message
    assert contents(tmp_path) == {".lock": b""}
    runs.make_folder(tmp_path)


@pytest.mark.parametrize("size", [0, 40_000])  # the latter is too little for a checkpoint, not for the rest
def test_a_full_disk_leaves_a_run_that_can_go_on(
    tmp_path: Path, finished: Path, capsys: pytest.CaptureFixture[str], size: int
):
    folder, whole = shutil.copytree(finished, tmp_path / "run"), shutil.copytree(finished, tmp_path / "whole")
    longer = ("--decisions", "512", "--milestones", "2")
    with no_room(size, after=Run.write_config):  # the last thing when it is resumed
        code = train.main(["--resume", str(folder), *longer])
    message = capsys.readouterr().err
    assert code == 1
    assert message.startswith("train.py: error: ")
    assert message.count("\n") == 1
    assert "File too large" in message
    assert f"The last checkpoint in {folder} is intact" in message
    assert not [name for name in contents(folder) if name.startswith("new-")]

    before = contents(folder)
    with no_room(size):  # still
        code = train.main(["--resume", str(folder)])
    assert code == 1
    assert str(folder / "checkpoint.pt") in capsys.readouterr().err
    assert contents(folder) == before

    assert train.main(["--resume", str(folder)]) == 0
    assert train.main(["--resume", str(whole), *longer]) == 0
    for name, tensor in load(whole).network.state_dict().items():
        assert tensor.equal(load(folder).network.state_dict()[name])


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "precious").write_text("data")
    assert train.main(arguments(tmp_path)) == 2
    assert "is not empty" in capsys.readouterr().err
    assert contents(tmp_path) == {"precious": b"data"}
    assert train.main(arguments(tmp_path / "precious")) == 2
    assert "train.py: error: " in capsys.readouterr().err
    assert contents(tmp_path) == {"precious": b"data"}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (["--players", "7"], "players must be an integer from 2 to 5, got 7"),
        (["--past", "0.25", "--greedy", "0.9"], "greedy must leave room for past = 0.25, got 0.9"),
        (["--credit", "greedy"], "credit must be a policy that plans"),
        (
            ["--device", "gpu"],
            "device must be cpu or one that torch can use here, got 'gpu': Expected one of",
        ),
        (["--device", "meta"], "device must be cpu or one that torch can use here, got 'meta'"),
        (
            ["--credit", "td:nowhere.npz"],
            "credit must name a policy for the rules at hand: no file nowhere.npz",
        ),
        (["--credit", "td", "--spaces", "6"], "credit must name a policy for the rules at hand: no trained"),
        (["--credit", "none"], "gamma must be positive without credits"),
        (["--learning-rate", "-1"], "learning_rate must be a positive number, got -1.0"),
        (["--learning-rate", "inf"], "learning_rate must be a positive number, got inf"),
        (["--entropy", "inf"], "entropy must be a number that is not negative, got inf"),
        (["--steps", "0"], "steps must be an integer of at least 1, got 0"),
        (
            ["--milestone-games", "1"],
            "milestone_games must be an integer of at least 2 (the number of players), got 1",
        ),
        (["--batch-size", "1000"], "batch_size must divide games * steps = 4096, got 1000"),
        (["--start", "2"], "start must be an integer from 0 to 1 as a seat, got 2"),
        (["--preset", "slow"], "slow"),
        (["--no-such-thing"], "--no-such-thing"),
    ],
)
def test_wrong_settings_are_named(wrong: list[str], words: str, capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stop:
        train.main(wrong)
    assert stop.value.code == 2
    output = capsys.readouterr()
    assert words in " ".join((output.out + output.err).replace("│", "").split())


def test_help_lists_and_explains_every_setting(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as stop:
        train.main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    for options in (Settings, Rules):
        for name in [f.name for f in dataclasses.fields(options) if f.name != "rules"]:
            _, found, rest = text.partition(f"--{name.replace('_', '-')}")
            assert found, name
            rest = rest.removeprefix(f", --no-{name}")
            assert len(rest.split("--")[0].split()) > 3, f"{name} is not explained"


def test_the_last_measurement_shows_how_far_it_is_with_every_opponent(tmp_path: Path):
    run = trained(tmp_path / "run")
    out = io.StringIO()
    train.measure(run, Console(file=out, width=80, force_terminal=True, color_system=None))
    for name in run.references:
        assert re.search(rf"100 % .*games against {name} ", out.getvalue()), name


def test_the_line_of_progress_says_everything_in_80_characters():
    out = io.StringIO()
    console = Console(file=out, width=80)
    progress = Progress(*train.columns(), console=console, expand=True)
    text = "12,345 decisions/s, wins: greedy 54%, planner 48%"
    progress.update(progress.add_task("training", total=100, text=text), completed=9)
    console.print(progress.get_renderable())
    (line,) = out.getvalue().splitlines()
    assert line.startswith("  9 % ")
    assert line.endswith(f"{text} 0:00:00 left -:--:--")


def test_settings_are_explained_in_one_line_because_the_help_keeps_line_breaks():
    for file in (Path(train.__file__).parent / "agents").glob("*.py"):
        classes = [node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.ClassDef)]
        for field, text in (pair for node in classes for pair in itertools.pairwise(node.body)):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                assert "\n" not in ast.literal_eval(text.value), f"{file.name}: {ast.unparse(field)}"


@pytest.mark.slow
def test_trainings_that_are_killed_or_begun_twice_learn_the_same(tmp_path: Path):
    pytest.importorskip("fcntl")  # as systems have that can fork
    command = [sys.executable, "-m", "tests.helpers.training_kills", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    assert result["kills"] >= 100
    assert not result["wrong"]


@pytest.mark.slow
def test_self_play_learns(tmp_path: Path):
    run = trained(
        tmp_path / "run",
        decisions=300_000,
        milestones=6,
        games=128,
        steps=64,
        batch_size=1024,
        width=64,
        milestone_games=1000,
    )
    random, greedy, _ = (row[4] / row[3] for row in run.curve[-3:])
    # Seeds 0 to 6: at least 0.994 and 0.244 (mean 0.34, standard deviation 0.05); at first at most 0.76 and 0.02.
    assert random > 0.95
    assert greedy > 0.1
