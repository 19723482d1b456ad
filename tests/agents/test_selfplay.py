"""Self-play as an SB3 `VecEnv`, and the measurement of strength."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3.common.vec_env import VecMonitor

from agents.evaluate import Counts, measure
from agents.selfplay import SelfPlayVecEnv
from tests.helpers.training import VARIANTS
from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.policies import Policy

GREEDY, RANDOM, FIRST = (make_policy(name) for name in ("greedy", "random", "first"))


def learner_actions(mask: np.ndarray, step: int) -> np.ndarray:
    """Return legal actions that vary with the step."""
    return np.array(
        [legal[(7 * step + 3 * i) % len(legal)] for i, legal in enumerate(map(np.flatnonzero, mask))]
    )


@pytest.mark.parametrize("rules", [*VARIANTS, Rules(max_turns=30)], ids=str)
def test_self_play_matches_games_played_one_by_one(rules: Rules):
    game = Game(rules)
    opponents: list[Policy] = [GREEDY, FIRST, GREEDY, FIRST, FIRST]
    env = SelfPlayVecEnv(game, opponents, seed=40)

    # The same games, each in its own loop. The environment draws the learner's seats.
    states = [game.reset(1, seed=40 + i) for i in range(len(opponents))]
    seats = env.seat.copy()

    def until_learner(i: int) -> tuple[float, bool]:
        """Play the opponents' decisions in game i; return the result and whether the game ended."""
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

    for i in range(len(opponents)):
        until_learner(i)
    observation: Any = game.observe(env.state)
    ends = 0
    for step in range(250):
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
                assert infos[i].keys() == {"terminal_observation"}
                np.testing.assert_array_equal(infos[i]["terminal_observation"], last)
            else:
                assert infos[i] == {}
            ends += ended
    assert ends


def test_games_that_end_before_the_learner_acts_are_skipped():
    env = SelfPlayVecEnv(Game(Rules(players=3, max_turns=1)), [RANDOM] * 8)
    for step in range(50):
        assert (env.state["player"] == env.seat).all()
        _, rewards, _, _ = env.step(learner_actions(env.action_masks(), step))
        assert not rewards.any()


@pytest.mark.parametrize("players", [2, 3])
def test_the_learner_receives_rewards_for_wins_and_losses(players: int):
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
    assert wins + losses > 0.9 * len(results)  # the rest are ties and games that the turn limit ended


def test_the_learner_plays_every_seat_equally_often():
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
    """A policy that records the random streams of the games it sees."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self.seen |= set(state["rng"].tolist())
        return FIRST.act(game, state, rng)


class Streams(Game):
    """A game that records the random streams of its dice."""

    def __init__(self) -> None:
        super().__init__()
        self.real: set[int] = set()

    def step(self, state: np.ndarray, actions: Any, validate: bool = True) -> None:
        self.real |= set(state["rng"].tolist())
        super().step(state, actions, validate)


def test_opponents_cannot_see_future_dice():
    game, peeking = Streams(), Peeking()
    env = SelfPlayVecEnv(game, [peeking] * 20, seed=4)
    for step in range(10):
        env.step(learner_actions(env.action_masks(), step))
    assert len(peeking.seen) > 100
    assert not peeking.seen & (game.real | set(env.state["rng"].tolist()))


def test_measured_policies_cannot_see_future_dice():
    game, one, other = Streams(), Peeking(), Peeking()
    measure(game, one, other, 20, seed=4)
    assert min(len(one.seen), len(other.seen)) > 100
    assert not (one.seen | other.seen) & game.real


def test_self_play_implements_the_vecenv_interface():
    env = SelfPlayVecEnv(Game(), [GREEDY] * 4, seed=3)
    assert is_masking_supported(env)
    np.testing.assert_array_equal(get_action_masks(env), env.action_masks())
    assert len(env.env_method("action_masks", indices=[1, 2])) == 2
    assert env.get_attr("render_mode") == [None] * 4
    assert not env.has_attr("no_such_thing")
    assert env.env_is_wrapped(VecMonitor) == [False] * 4
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


@pytest.mark.parametrize("players", [2, 3])
def test_evaluation_plays_all_seats_and_counts_every_game(players: int):
    game = Game(Rules(players=players, max_turns=200))
    seats: list[int] = []

    class Watching:
        def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            seats.extend(state["player"][state["turn"] < players].tolist())
            return GREEDY.act(game, state, rng)

    counts = measure(game, Watching(), RANDOM, 100, seed=0)
    assert counts.games == -(-100 // players) * players
    assert counts.wins + counts.ties + counts.losses == counts.games
    assert set(seats) == set(range(players))
    assert counts.wins > 0.9 * counts.games
    assert counts == measure(game, GREEDY, RANDOM, 100, seed=0)
    assert measure(game, RANDOM, GREEDY, 100, seed=0).losses > 0.9 * counts.games / (players - 1) / 2


def test_games_ended_by_the_turn_limit_are_ties():
    counts = measure(Game(Rules(max_turns=2)), RANDOM, RANDOM, 10, seed=0)
    assert counts == Counts(games=10, wins=0, ties=10, losses=0)
