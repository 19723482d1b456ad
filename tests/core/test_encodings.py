"""All encodings contain the same information, within their bounds, in every interface."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.helpers.strategies import any_rules, decisions, seeds
from wotd_env import Game, Rules, way_of_the_dragon_v0
from wotd_env.core.observation import ENCODINGS, parts
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.envs.vector import WayOfTheDragonVectorEnv
from wotd_env.policies.random import Random

OTHERS = [encoding for encoding in ENCODINGS if encoding != "one_hot"]


def split(game: Game, observations: np.ndarray) -> dict[str, np.ndarray]:
    """Return the parts of observations (N, D) by name."""
    return {name: observations[:, part] for name, part in game.observation_layout.items()}


def one_hot_of_compact(rules: Rules, seen: dict[str, np.ndarray]) -> np.ndarray:
    """Return the one-hot observations, int8 (N, D), computed from the parts of compact ones."""
    games, n = len(seen["phase"]), rules.players
    if rules.powers == "any":
        owned = np.ones((games, n, 5), int)
    else:
        owned = np.eye(5, dtype=int)[seen["colors"]] * (rules.powers == "own")
    columns = [
        np.eye(rules.spaces + 6)[seen["pieces"]],
        seen["dead"],
        np.eye(6)[seen["dice"]],
        np.eye(3)[seen["rolls_left"]],
        np.eye(5)[seen["phase"]],
        np.eye(n)[seen["player"]],
        owned * seen["powers"][:, :, None],
        seen["perfection"],
        np.eye(5)[seen["colors"]],
        seen["deadline"],
    ]
    return np.concatenate([column.reshape(games, int(np.prod(column.shape[1:]))) for column in columns], 1)


def compact_of_tokens(rules: Rules, tokens: np.ndarray) -> np.ndarray:
    """Return the compact observations, int8 (N, D), computed from tokens (N, T, width)."""
    games, n = len(tokens), rules.players
    kinds = [0] + [1] * 5 + [2] * 5 + [3] * 5 * n
    np.testing.assert_array_equal(tokens[:, :, 0], np.broadcast_to(kinds, (games, len(kinds))))
    turn, dice, paths, pieces = tokens[:, 0], tokens[:, 1:6], tokens[:, 6:11], tokens[:, 11:]
    pieces = pieces.reshape(games, n, 5, -1)
    np.testing.assert_array_equal(paths[:, :, 1], np.broadcast_to(np.arange(5), (games, 5)))
    np.testing.assert_array_equal(pieces[..., 1], np.broadcast_to(np.arange(5), (games, n, 5)))
    np.testing.assert_array_equal(pieces[..., 3], np.broadcast_to(np.arange(n)[:, None], (games, n, 5)))
    phase, rolls_left, player, perfection, deadline = turn[:, 1:6].T
    columns = [
        pieces[..., 2],
        paths[:, :, 2 : 2 + rules.spaces],
        (dice[:, :, 1, None] == np.arange(6)).sum(1),
        rolls_left,
        phase,
        player,
        pieces[:, :, 0, 5],
        perfection,
        pieces[:, :, 0, 4],
        deadline,
    ]
    return np.concatenate([column.reshape(games, int(np.prod(column.shape[1:]))) for column in columns], 1)


def features_of_compact(rules: Rules, seen: dict[str, np.ndarray]) -> np.ndarray:
    """Return the features, int8 (N, D), computed from the parts of compact observations."""
    games, n, last = len(seen["phase"]), rules.players, rules.spaces + 5
    seen = {name: part.astype(int) for name, part in seen.items()}
    pieces, spaces = seen["pieces"].reshape(games, n, 5), np.arange(1, last + 11)
    on_board = (pieces[:, :, :, None] == spaces).any(1)
    on_board[:, :, : rules.spaces] |= seen["dead"].reshape(games, 5, rules.spaces) > 0
    mine, plain = pieces[:, 0], pieces[:, 0] <= rules.spaces
    ahead = np.take_along_axis(on_board, mine[:, :, None] + np.arange(5), 2)  # [game, path, 0..4]
    shown = seen["dice"][:, :5]
    onto = np.take_along_axis(ahead, np.maximum(shown, 1)[:, :, None] - 1, 2)[:, :, 0]
    may = (shown > 0) & plain & ~onto & (seen["player"] == 0) & np.isin(seen["phase"], (1, 2))
    points = np.maximum(pieces - rules.spaces, 0)
    columns = [
        mine,
        pieces[:, 1:].max(1),
        (~ahead).sum(2) * plain,
        (mine + shown) * may,
        seen["dice"],
        seen["rolls_left"],
        np.eye(5)[seen["phase"]],
        np.eye(n)[seen["player"]],
        seen["perfection"],
        seen["deadline"],
        points.sum(2),
        (points > 0).sum(2),
        pieces.sum(2),
    ]
    if rules.powers != "none":
        owned = np.ones(5) if rules.powers == "any" else np.eye(5)[seen["colors"][:, 0]]
        columns += [seen["powers"], owned * seen["powers"][:, :1]]
    if rules.immunity:
        columns.append(np.eye(5)[seen["colors"][:, 0]])
    return np.concatenate([column.reshape(games, int(np.prod(column.shape[1:]))) for column in columns], 1)


@given(any_rules(), seeds)
def test_all_encodings_agree(rules: Rules, seed: int) -> None:
    games = {encoding: Game(rules, encoding=encoding) for encoding in ENCODINGS}
    for step, (_, state, _, after) in enumerate(decisions(rules, seed)):
        states, seat = np.concatenate([state, after]), step % rules.players
        seen = {encoding: game.observe(states, seat) for encoding, game in games.items()}
        for encoding, rows in seen.items():
            highest = np.concatenate([part.highest for part in parts(rules, encoding).values()])
            assert rows.dtype == np.int8
            assert ((rows >= 0) & (rows <= highest)).all(), encoding
        compact = split(games["compact"], seen["compact"])
        np.testing.assert_array_equal(one_hot_of_compact(rules, compact), seen["one_hot"])
        width = games["tokens"].observation_layout["game"].stop
        tokens = seen["tokens"].reshape(len(states), -1, width)
        np.testing.assert_array_equal(compact_of_tokens(rules, tokens), seen["compact"])
        np.testing.assert_array_equal(features_of_compact(rules, compact), seen["features"])


@given(any_rules(), seeds, st.sampled_from(OTHERS))
def test_step_autoreset_writes_the_same_observations_as_observe(
    rules: Rules, seed: int, encoding: str
) -> None:
    game = Game(rules, encoding=encoding)
    state = game.reset(8, seed)
    rows = np.empty((8, game.observation_size), np.int8)
    for _ in range(20):
        game.step_autoreset(state, game.legal_actions(state).argmax(1), observation=rows)
        np.testing.assert_array_equal(rows, game.observe(state))


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_every_environment_supports_every_encoding(encoding: str, dtype: str) -> None:
    rules: dict[str, Any] = {"players": 3, "powers": "own"}
    arguments = rules | {"encoding": encoding, "observation_dtype": dtype}
    game = Game(Rules(**rules), encoding=encoding)

    single = WayOfTheDragonEnv(**arguments)
    observation, info = single.reset(seed=3)
    vector = WayOfTheDragonVectorEnv(4, **arguments)
    observations, infos = vector.reset(seed=3)
    for _ in range(20):
        assert single.observation_space.contains(observation)
        np.testing.assert_array_equal(observation, game.observe(single.record, single.seat)[0])
        assert vector.observation_space.contains(observations)
        np.testing.assert_array_equal(observations, game.observe(vector.record, vector.seat))
        observation, *_, info = single.step(int(info["action_mask"].argmax()))
        observations, *_, infos = vector.step(infos["action_mask"].argmax(1))

    aec = way_of_the_dragon_v0.env(**arguments)
    aec.reset(seed=3)
    for agent in aec.agents:
        seen = aec.observe(agent)
        assert aec.observation_space(agent).contains(seen)
        seat = int(agent[-1])
        np.testing.assert_array_equal(seen["observation"], game.observe(aec.unwrapped.record, seat)[0])
    assert aec.unwrapped.state_space.contains(aec.state())


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_gymnasium_makes_every_encoding_without_warnings(encoding: str) -> None:
    env = gymnasium.make("wotd_env/WayOfTheDragon-v0", encoding=encoding)  # a warning is an error here
    env.reset(seed=0)
    env.step(31)


class ObservationRecorder(Random):
    """Plays at random and records the sizes of its observations."""

    def __init__(self) -> None:
        self.sizes: set[int] = set()

    def act(self, game: Game, state: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self.sizes.add(game.observe(state).shape[1])
        return super().act(game, state, rng)


@pytest.mark.parametrize("encoding", OTHERS)
def test_opponents_see_the_default_encoding(encoding: str) -> None:
    one, other = ObservationRecorder(), ObservationRecorder()
    single = WayOfTheDragonEnv(opponents=one, encoding=encoding, seat=0)
    single.reset(seed=0, options={"starting_player": 1})
    vector = WayOfTheDragonVectorEnv(2, opponents=other, encoding=encoding, seat=0)
    vector.reset(seed=0, options={"starting_player": 1})
    assert one.sizes == other.sizes == {Game().observation_size}


def test_unknown_encodings_are_rejected() -> None:
    message = "encoding must be one of 'one_hot', 'compact', 'tokens', 'features', got 'pixels'"
    for make in (
        lambda: Game(encoding="pixels"),
        lambda: WayOfTheDragonEnv(encoding="pixels"),
        lambda: WayOfTheDragonVectorEnv(2, encoding="pixels"),
        lambda: way_of_the_dragon_v0.env(encoding="pixels"),
    ):
        with pytest.raises(ValueError, match=message):
            make()
