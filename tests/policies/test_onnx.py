"""Policies from ONNX files."""

import copy
import pickle
import sys

import numpy as np
import pytest

from tests.helpers.damage import survive
from tests.helpers.games import VARIANTS, positions
from tests.helpers.networks import network, with_metadata
from wotd_env import Game, Rules, make_policy
from wotd_env.core.observation import ENCODINGS
from wotd_env.policies.onnx import sealed

pytest.importorskip("onnxruntime")
onnx = pytest.importorskip("onnx")


def random_weights(game: Game) -> np.ndarray:
    """Return the weights of a linear network for a game, float32 (D, A)."""
    weights = np.random.default_rng(0).normal(size=(game.observation_size, game.num_actions))
    return weights.astype(np.float32)


def test_onnx_plays_the_legal_action_with_the_largest_logit(tmp_path):
    game = Game(VARIANTS[4])
    weights = random_weights(game)
    policy = make_policy(f"onnx:{network(tmp_path, game, weights)}")
    state = positions(game.rules, 20, 30)
    actions = policy.act(game, state, np.random.default_rng())
    logits = np.where(game.legal_actions(state), game.observe(state) @ weights, -np.inf)
    assert (actions == logits.argmax(1)).all()
    with pytest.raises(ValueError, match=r"does not fit|made for"):
        policy.act(Game(), Game().reset(1), np.random.default_rng())


def test_onnx_policies_can_be_copied_and_pickled(tmp_path, monkeypatch):
    game = Game(Rules(spaces=0))
    network(tmp_path, game, random_weights(game))
    monkeypatch.chdir(tmp_path)
    policy = make_policy("onnx:policy.onnx")
    state, rng = positions(game.rules, 20, 30), np.random.default_rng(0)
    expected = policy.act(game, state, rng)
    copied, sent = copy.deepcopy(policy), pickle.dumps(policy)
    monkeypatch.chdir("/")  # another process may run elsewhere
    for again in (copied, pickle.loads(sent)):
        np.testing.assert_array_equal(again.act(game, state, rng), expected)


@pytest.mark.parametrize(
    "kind",
    [f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)] + ["FLOAT", "DOUBLE", "BOOL"],
)
def test_onnx_accepts_inputs_of_every_numeric_type(tmp_path, kind: str):
    game = Game()
    weights, state = random_weights(game), game.reset(50, seed=0)
    for observation, mask in ((kind, "UINT8"), ("FLOAT16", kind)):
        policy = make_policy(f"onnx:{network(tmp_path, game, weights, observation, mask)}")
        seen = game.observe(state).astype(bool if observation == "BOOL" else np.float32)
        expected = np.where(game.legal_actions(state), seen @ weights, -np.inf).argmax(1)
        np.testing.assert_array_equal(policy.act(game, state, np.random.default_rng()), expected)


def test_onnx_errors_name_invalid_inputs_and_outputs(tmp_path):
    game = Game()
    weights = random_weights(game)
    file = network(tmp_path, game, weights, "FLOAT", "STRING")
    with pytest.raises(
        ValueError, match=r"input action_mask of the network of .*policy\.onnx must be a matrix of"
    ):
        make_policy(f"onnx:{file}")
    model = onnx.load(network(tmp_path, game, weights))
    model.graph.input[0].type.tensor_type.shape.dim.pop()
    file.write_bytes(model.SerializeToString())
    with pytest.raises(
        ValueError, match=r"policy\.onnx contains no network|input observation .* must be a matrix"
    ):
        make_policy(f"onnx:{file}")
    model = onnx.load(network(tmp_path, game, weights))
    model.graph.ClearField("output")
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"network of .*policy\.onnx has no output"):
        make_policy(f"onnx:{file}")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_network_gets_observations_in_its_encoding(tmp_path, encoding: str):
    rules = VARIANTS[1]
    game, state = Game(rules, encoding=encoding), positions(rules)
    weights = random_weights(game)
    file = with_metadata(network(tmp_path, game, weights), wotd_encoding=encoding)
    policy = make_policy(f"onnx:{file}")
    logits = np.where(game.legal_actions(state), game.observe(state) @ weights, -np.inf)
    rng = np.random.default_rng()
    np.testing.assert_array_equal(policy.act(Game(rules), state, rng), logits.argmax(1))
    np.testing.assert_array_equal(policy.act(game, state, rng), logits.argmax(1))
    with pytest.raises(ValueError, match=r"does not fit|made for"):
        policy.act(Game(), Game().reset(1), rng)


def test_a_network_for_an_unknown_encoding_is_refused(tmp_path):
    game = Game()
    file = with_metadata(network(tmp_path, game, random_weights(game)), wotd_encoding="pixels")
    with pytest.raises(ValueError, match=r"policy\.onnx: wotd_encoding must be one of 'one_hot', "):
        make_policy(f"onnx:{file}")


@pytest.mark.parametrize("logit", [np.nan, -np.inf, np.inf])
def test_onnx_refuses_nonfinite_largest_logits(tmp_path, logit: float):
    game = Game()
    weights = np.full((game.observation_size, game.num_actions), logit, np.float32)
    policy = make_policy(f"onnx:{network(tmp_path, game, weights)}")
    with pytest.raises(ValueError, match=r"policy\.onnx must return a finite largest logit .* for game 0"):
        policy.act(game, game.reset(5, seed=0), np.random.default_rng())


def test_damaged_onnx_files_play_or_raise_value_error(tmp_path):
    game, rng = Game(), np.random.default_rng(0)
    whole = network(tmp_path, game, random_weights(game)).read_bytes()
    state = game.reset(5, seed=0)
    refused = 0
    for i in range(120):
        data = bytearray(whole)
        if i % 3 == 0:
            data = data[: rng.integers(len(data))]
        elif i % 3 == 1:
            data[rng.integers(400)] ^= 1 << rng.integers(8)  # the nodes
        else:
            data[-rng.integers(1, 300)] = rng.integers(256)  # inputs and outputs
        (tmp_path / "damaged.onnx").write_bytes(data)
        try:
            actions = make_policy(f"onnx:{tmp_path / 'damaged.onnx'}").act(game, state, rng)
        except ValueError as error:
            refused += "damaged.onnx" in str(error)
        else:
            assert game.legal_actions(state)[np.arange(5), actions].all()
    assert refused > 40


def test_onnx_errors_name_the_file(tmp_path):
    with pytest.raises(ValueError, match="onnx:FILE"):
        make_policy("onnx")
    with pytest.raises(FileNotFoundError, match=r"missing\.onnx"):
        make_policy(f"onnx:{tmp_path / 'missing.onnx'}")
    (tmp_path / "bad.onnx").write_text("no network")
    with pytest.raises(ValueError, match=r"bad\.onnx contains no network"):
        make_policy(f"onnx:{tmp_path / 'bad.onnx'}")


def test_onnx_names_the_extra_when_onnxruntime_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"wotd-env\[arena\]"):
        make_policy("onnx:policy.onnx")


@pytest.mark.parametrize("flips", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_damaged_network_with_a_digest_is_refused(tmp_path, flips: int):
    game = Game(Rules(spaces=0))
    state = positions(game.rules, 20, 30)
    file = with_metadata(network(tmp_path, game, random_weights(game)), wotd_encoding="one_hot")
    file.write_bytes(sealed(file.read_bytes()))
    onnx.checker.check_model(onnx.load(file))

    def read(file):
        return make_policy(f"onnx:{file}").act(game, state, np.random.default_rng()).tolist()

    assert survive(file, read, flips) > flips
    with_metadata(file, wotd_encoding="features")
    with pytest.raises(ValueError, match=r"policy\.onnx does not match its digest"):
        read(file)
