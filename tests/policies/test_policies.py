"""Policies play legal actions, depend on nothing but the positions and their own randomness, and play well."""

from __future__ import annotations

import copy
import importlib
import pickle
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers.arena_policies import Cheat, Seer
from tests.helpers.positions import board, legal
from wotd_env import Game, Phase, Policy, Rules, make_policy
from wotd_env.core.compilation import kernel
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.state import scratch
from wotd_env.policies import POLICIES, Script, script_of
from wotd_env.policies.function import FunctionPolicy
from wotd_env.policies.scripts import choose
from wotd_env.policy import ask, play_out

VARIANTS = [
    Rules(),
    Rules(players=3, spaces=3),
    Rules(players=5, spaces=0),
    Rules(players=2, spaces=4, powers="any", dead_pieces=10),
    Rules(players=3, spaces=2, powers="own", colors="random", immunity=True, dead_pieces=3),
    Rules(players=4, spaces=3, powers="any", immunity=True, dead_pieces=5),
    Rules(players=5, spaces=1, powers="own"),
    Rules(players=2, spaces=2, powers="own", colors=("metal", "earth"), max_turns=20),
    Rules(players=2, spaces=2, powers="own", colors=("wood", "fire")),
]
NAMES = ["random", "first", "greedy", "planner", "mcts:20"]


def positions(rules: Rules, games: int = 60, decisions: int = 40, skip_forced: bool = False) -> np.ndarray:
    """Games at many decisions of random play, those that are over left out."""
    game = Game(rules, skip_forced=skip_forced)
    player, rng = make_policy("random"), np.random.default_rng(1)
    state = game.reset(games, seed=1)
    met = []
    for _ in range(decisions):
        met.append(state[state["phase"] != Phase.OVER])
        game.step(state, player.act(game, state, rng))
    return np.concatenate(met)


def equity(game: Game, policy: Policy, opponent: Policy, games: int) -> float:
    """Mean reward of a policy over games of two, half of them from each seat."""
    seat = np.arange(games) % 2
    rng = np.random.default_rng(0)
    state = game.reset(games, seed=1)
    seats = np.arange(2) ^ seat[:, None]
    for _ in play_out(
        game, state, seats, lambda i, asked: ask((policy, opponent)[i], game, state[asked], rng)
    ):
        pass
    return float(game.rewards(state)[np.arange(games), seat].mean())


def test_who_is_asked_cannot_know_the_dice_to_come():
    game, seer, rng = Game(Rules(spaces=0)), Seer(), np.random.default_rng(0)

    def play(state: np.ndarray) -> None:
        for _ in play_out(game, state, np.zeros((1, 2), np.int64), lambda *_: ask(seer, game, state, rng)):
            pass

    for seed in range(100):
        play(game.new(1, seed=seed))
    assert len(seer.right) > 1000
    assert np.mean(seer.right) < 0.05


def test_streams_are_replaced_by_any_of_64_bits():
    game, cheat = Game(), Cheat()
    state = game.new(4000, seed=1)
    before = state.copy()
    ask(cheat, game, state, np.random.default_rng(0))
    (shown,) = cheat.shown
    streams = shown["rng"].copy()
    bits = streams[:, None] >> np.arange(64, dtype=np.uint64) & np.uint64(1)
    assert (abs(bits.mean(0) - 0.5) < 0.05).all()
    assert not set(streams.tolist()) & set(before["rng"].tolist())
    shown["rng"] = before["rng"]
    assert shown.tobytes() == before.tobytes() == state.tobytes()


@pytest.mark.parametrize(
    ("answer", "got"),
    [([31.0, 31.0], r"float64 \(2,\)"), ([31], r"int64 \(1,\)"), ([True, True], "bool"), (31, r"int64 \(\)")],
)
def test_an_answer_that_is_not_an_integer_for_every_game_is_refused(answer, got):
    class Wrong:
        def act(self, game, state, rng):
            return answer

    game = Game()
    with pytest.raises(ValueError, match=rf"act must return integers \(2,\), got {got}"):
        ask(Wrong(), game, game.new(2), np.random.default_rng(0))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_plays_legal_actions_and_changes_nothing(name, rules):
    game = Game(rules, skip_forced=False)
    state = positions(rules)
    before = state.copy()
    state.flags.writeable = False
    actions = make_policy(name).act(game, state, np.random.default_rng(0))
    assert actions.dtype == np.int64
    assert actions.shape == state.shape
    assert (game.legal_actions(state)[np.arange(len(state)), actions] == 1).all()
    assert (state == before).all()


@pytest.mark.parametrize("name", NAMES)
def test_choices_do_not_depend_on_the_batch_nor_on_the_threads(name):
    rules = VARIANTS[5]
    state = positions(rules)
    policy = make_policy(name)
    whole = policy.act(Game(rules), state, np.random.default_rng(7))
    rng = np.random.default_rng(7)
    parts = [policy.act(Game(rules), part, rng) for part in np.array_split(state, 9)]
    threads = policy.act(Game(rules, num_threads=3), state, np.random.default_rng(7))
    assert (np.concatenate(parts) == whole).all()
    assert (threads == whole).all()


@pytest.mark.parametrize("name", NAMES)
def test_choices_do_not_depend_on_the_dice_to_come(name):
    rules = VARIANTS[5]
    state = positions(rules)
    other = state.copy()
    other["rng"] += np.uint64(12345)
    policy = make_policy(name)
    actions = [policy.act(Game(rules), s, np.random.default_rng(7)) for s in (state, other)]
    assert (actions[0] == actions[1]).all()


@pytest.mark.parametrize("name", NAMES)
def test_finished_games_and_empty_batches_are_no_trouble(name):
    game = Game()
    state = game.reset(2)
    state["phase"] = Phase.OVER
    policy, rng = make_policy(name), np.random.default_rng(0)
    assert game.legal_actions(state)[[0, 1], policy.act(game, state, rng)].all()
    assert policy.act(game, state[:0], rng).shape == (0,)


@pytest.mark.parametrize("name", NAMES)
def test_where_a_roll_is_due_there_is_no_action_and_no_trouble(name):
    game = Game()
    state = game.reset(2, roll=False)
    assert not game.legal_actions(state).any()
    actions = make_policy(name).act(game, state, np.random.default_rng(0))
    assert actions.tolist() == [0, 0]


def test_random_plays_every_legal_action_equally_often():
    game = Game(Rules(players=5))
    boards: dict[str, Any] = dict.fromkeys(("water", "fire", "wood"), ".abcde.|.....")
    state = np.repeat(board(game.rules, dice="dragon dragon dragon dragon dragon", **boards), 31_000)
    actions = make_policy("random").act(game, state, np.random.default_rng(3))
    lawful = legal(game, state[:1])
    assert len(lawful) == 31  # 10 pairs on three paths, and passing
    often = np.bincount(actions, minlength=game.num_actions)[lawful]
    assert often.sum() == len(state)
    chi_square = ((often - 1000) ** 2 / 1000).sum()
    assert chi_square < 59.7  # with 30 degrees of freedom 0.1 % of fair choices exceed it


def test_greedy_stops_for_an_equilibrium():
    game, greedy = Game(), make_policy("greedy")
    state = board(game.rules, dice="water fire metal earth wood", phase=Phase.KEEP)
    many = np.repeat(state, 1000)
    many["rolls_left"] = np.arange(1000) % 2 + 1
    assert (
        greedy.act(game, many, np.random.default_rng(0)) == 31
    ).all()  # five advances are worth a turn and more


def test_first_is_the_lowest_legal_action():
    game = Game(VARIANTS[3], skip_forced=False)
    state = positions(game.rules)
    actions = make_policy("first").act(game, state, np.random.default_rng())
    for i in range(0, len(state), 50):
        assert actions[i] == legal(game, state[i : i + 1])[0]


def test_greedy_beats_random_and_first_by_a_wide_margin():
    for name in ("random", "first"):
        assert equity(Game(), make_policy("greedy"), make_policy(name), 500) > 0.95
        powers = Game(Rules(powers="any", spaces=4, dead_pieces=5))
        assert equity(powers, make_policy("greedy"), make_policy(name), 500) > 0.9


def greedy(state: np.ndarray, rules: Rules) -> int:
    return int(make_policy("greedy").act(Game(rules, skip_forced=False), state, np.random.default_rng())[0])


def test_greedy_holds_the_dice_of_its_best_path():
    rules = Rules()
    keep: dict[str, Any] = {"phase": Phase.KEEP, "rolls_left": 2}
    assert greedy(board(rules, dice="water water fire metal dragon", **keep), rules) == 0b00011
    # of as many dice, those of the foremost piece, none for a piece that has arrived
    state = board(rules, dice="water water fire fire dragon", fire="..a....|.....", **keep)
    assert greedy(state, rules) == 0b01100
    state = board(rules, dice="water fire fire fire dragon", fire=".......|..a..", **keep)
    assert greedy(state, rules) == 0b00001


def test_greedy_moves_furthest_and_prefers_high_numbers():
    rules = Rules()
    assert greedy(board(rules, dice="water fire fire fire dragon"), rules) == 33
    state = board(rules, dice="water water fire fire dragon", fire=".....a.|.....")
    assert greedy(state, rules) == 32  # number 1 is worth no more than the space before it
    state = board(rules, dice="water water fire fire dragon", fire="......a|.....")
    assert greedy(state, rules) == 32
    state = board(rules, dice="water water water fire fire", fire="......a|.....", water=".a.....|.....")
    assert greedy(state, rules) == 32


def test_greedy_swaps_when_that_raises_its_lead():
    rules = Rules()
    state = board(rules, dice="fire dragon dragon dragon dragon", fire="a......|...b.")
    assert greedy(state, rules) == 56
    state["phase"], state["rolls_left"] = Phase.KEEP, 2
    assert greedy(state, rules) == 31
    state = board(rules, dice="fire dragon dragon dragon dragon", fire="b......|...a.")
    assert greedy(state, rules) == 50


def test_greedy_ends_the_game_when_ahead_and_not_when_behind():
    rules = Rules(powers="own", colors=("water", "fire"))
    near: dict[str, Any] = dict.fromkeys(("water", "metal", "earth"), ".......|.ab..")
    mine: dict[str, Any] = {"fire": "......a|.....", "wood": ".......|.a..."}
    state = board(rules, dice="fire fire wood dragon dragon", **mine, **near)
    assert greedy(state, rules) == 33
    far: dict[str, Any] = dict.fromkeys(("water", "metal", "earth"), ".......|.a..b")
    state = board(rules, dice="fire fire wood dragon dragon", **mine, **far)
    assert greedy(state, rules) == 51  # fear: it would lose


def test_planner_beats_greedy():
    assert equity(Game(), make_policy("planner"), make_policy("greedy"), 600) > 0.15
    powers = Game(Rules(players=2, powers="own", colors="random", spaces=4, dead_pieces=5))
    assert equity(powers, make_policy("planner"), make_policy("greedy"), 600) > 0.1


def test_mcts_beats_random():
    assert equity(Game(Rules(spaces=2)), make_policy("mcts:40"), make_policy("random"), 40) > 0.8


@pytest.mark.parametrize("playouts", ["0", "-3", "many", "1.5", "100001"])
def test_mcts_checks_the_number_of_playouts(playouts):
    with pytest.raises(ValueError, match="playouts must be an integer from 1 to 100000, got "):
        make_policy(f"mcts:{playouts}")


def test_make_policy_takes_names_objects_and_policies():
    policy = make_policy("greedy")
    assert isinstance(policy, Policy)
    assert make_policy(policy) is policy
    assert isinstance(make_policy("wotd_env.policies.greedy:Greedy"), type(policy))


def test_make_policy_takes_an_object_of_a_module(monkeypatch):
    module = types.ModuleType("players")
    module.best = make_policy("greedy")  # type: ignore[attr-defined]
    module.wrong = 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "players", module)
    assert make_policy("players:best") is module.best
    with pytest.raises(ValueError, match=r"'players:wrong' must have a method act"):
        make_policy("players:wrong")
    with pytest.raises(ValueError, match="players:missing"):
        make_policy("players:missing")


@pytest.mark.parametrize("name", ["gredy", "", "nowhere:policy", "random.Random:x"])
def test_an_unknown_policy_is_an_error_that_lists_the_known_ones(name):
    with pytest.raises(ValueError, match="random, first, greedy"):
        make_policy(name)


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        ("x" * 5000, ValueError, "policy must be one of random, first, greedy"),
        ("x" * 5000 + ":policy", ValueError, "is none of random, first, greedy"),
        ("td:" + "x" * 5000, ValueError, "policy 'td:x.* cannot be made: .*too long"),
        ("onnx:" + "x" * 5000, ValueError, "policy 'onnx:x.* cannot be made: .*too long"),
        ("oracle:" + "x" * 5000, ValueError, "policy 'oracle:x.* cannot be made: .*too long"),
        ("a\0b", ValueError, "policy must be one of random, first, greedy"),
        (".players:best", ValueError, "policy must be one of random, first, greedy"),
        (
            "json:dumps",
            ValueError,
            "'json:dumps' must be a policy, or return one when called without arguments",
        ),
        ("fractions:Fraction.limit_denominator", ValueError, "must be a policy, or return one when called"),
        ("oracle:{folder}", FileNotFoundError, "there is no table"),
        ("onnx:{folder}", FileNotFoundError, "no ONNX file"),
        ("td:{folder}", FileNotFoundError, "no file"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_is_no_name_of_a_policy_is_one_clear_error(tmp_path, name, error, message):
    with pytest.raises(error, match=message) as caught:
        make_policy(name.replace("{folder}", str(tmp_path)))
    assert type(caught.value) is error


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("greedy:5", "policy 'greedy' takes nothing after a colon, got 'greedy:5'"),
        ("onnx", "policy 'onnx' needs its FILE: 'onnx:FILE'"),
        ("sb3:", "policy 'sb3' needs its FILE: 'sb3:FILE'"),
    ],
)
def test_an_argument_too_many_or_missing_is_named(name, message):
    with pytest.raises(ValueError, match=message):
        make_policy(name)


@pytest.mark.parametrize("name", POLICIES)
def test_a_policy_is_what_its_row_says(name):
    known = POLICIES[name]
    module, _, attribute = known.maker.partition(":")
    assert callable(getattr(importlib.import_module(module), attribute))
    if known.script == Script.OUTSIDE:
        return
    policy = make_policy(name)
    assert script_of(policy) == known.script
    assert script_of(type("Other", (type(policy),), {})()) == Script.OUTSIDE  # it may play something else
    game = Game(VARIANTS[5], skip_forced=False)
    state = positions(game.rules)
    rng = np.random.default_rng(7)
    bits = np.random.default_rng(7).integers(0, 1 << 64, len(state), dtype=np.uint64)
    chosen = np.empty(len(state), np.int64)
    game.apply(choose_all, state, int(known.script), scratch, bits, chosen)
    assert (chosen == policy.act(game, state, rng)).all()


@kernel
def choose_all(states, config, script, scratch, bits, out):
    for i in range(states.shape[0]):
        out[i] = choose(script, states[i], config[0], scratch, bits[i])


def network(
    folder: Path, game: Game, weights: np.ndarray, observation: str = "INT8", mask: str = "BOOL"
) -> Path:
    """An ONNX file with the network logits = observation @ weights, which is given the mask too."""
    onnx = pytest.importorskip("onnx")
    kind = onnx.TensorProto
    inputs = [
        onnx.helper.make_tensor_value_info(
            "observation", getattr(kind, observation), ["N", weights.shape[0]]
        ),
        onnx.helper.make_tensor_value_info("action_mask", getattr(kind, mask), ["N", game.num_actions]),
    ]
    nodes = [
        onnx.helper.make_node("Cast", ["observation"], ["x"], to=kind.FLOAT),
        onnx.helper.make_node("Cast", ["action_mask"], ["m"], to=kind.FLOAT),
        onnx.helper.make_node("MatMul", ["x", "weights"], ["y"]),
        onnx.helper.make_node("Mul", ["y", "m"], ["logits"]),
    ]
    output = onnx.helper.make_tensor_value_info("logits", kind.FLOAT, ["N", game.num_actions])
    constants = [onnx.numpy_helper.from_array(weights, "weights")]
    graph = onnx.helper.make_graph(nodes, "policy", inputs, [output], constants)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, folder / "policy.onnx")
    return folder / "policy.onnx"


def test_onnx_plays_the_legal_action_with_the_largest_logit(tmp_path):
    pytest.importorskip("onnxruntime")
    game = Game(VARIANTS[4])
    weights = np.random.default_rng(0).normal(size=(game.observation_size, game.num_actions))
    weights = weights.astype(np.float32)
    policy = make_policy(f"onnx:{network(tmp_path, game, weights)}")
    state = positions(game.rules, 20, 30)
    actions = policy.act(game, state, np.random.default_rng())
    logits = np.where(game.legal_actions(state), game.observe(state) @ weights, -np.inf)
    assert (actions == logits.argmax(1)).all()
    with pytest.raises(ValueError, match="made for other rules"):
        policy.act(Game(), Game().reset(1), np.random.default_rng())


def test_onnx_can_be_copied_and_sent_to_another_process(tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    game = Game(Rules(spaces=0))
    weights = np.random.default_rng(0).normal(size=(game.observation_size, game.num_actions))
    network(tmp_path, game, weights.astype(np.float32))
    monkeypatch.chdir(tmp_path)
    policy = make_policy("onnx:policy.onnx")
    state, rng = positions(game.rules, 20, 30), np.random.default_rng(0)
    expected = policy.act(game, state, rng)
    copied, sent = copy.deepcopy(policy), pickle.dumps(policy)
    monkeypatch.chdir("/")  # as the other process may be
    for again in (copied, pickle.loads(sent)):
        np.testing.assert_array_equal(again.act(game, state, rng), expected)


@pytest.mark.parametrize(
    "kind",
    [f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)] + ["FLOAT", "DOUBLE", "BOOL"],
)
def test_onnx_takes_inputs_of_every_type_of_number(tmp_path, kind: str):
    pytest.importorskip("onnxruntime")
    game = Game()
    weights = (
        np.random.default_rng(0).normal(size=(game.observation_size, game.num_actions)).astype(np.float32)
    )
    state = game.reset(50, seed=0)
    for observation, mask in ((kind, "UINT8"), ("FLOAT16", kind)):
        policy = make_policy(f"onnx:{network(tmp_path, game, weights, observation, mask)}")
        seen = game.observe(state).astype(bool if observation == "BOOL" else np.float32)
        expected = np.where(game.legal_actions(state), seen @ weights, -np.inf).argmax(1)
        np.testing.assert_array_equal(policy.act(game, state, np.random.default_rng()), expected)


def test_onnx_names_inputs_and_outputs_that_are_none(tmp_path):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    game = Game()
    weights = np.zeros((game.observation_size, game.num_actions), np.float32)
    file = network(tmp_path, game, weights, "FLOAT", "STRING")
    with pytest.raises(
        ValueError, match=r"input action_mask of the network of .*policy\.onnx must be a matrix of"
    ):
        make_policy(f"onnx:{file}")
    model = onnx.load(network(tmp_path, game, weights))
    model.graph.input[0].type.tensor_type.shape.dim.pop()
    file.write_bytes(model.SerializeToString())
    with pytest.raises(
        ValueError, match=r"policy\.onnx holds no network|input observation .* must be a matrix"
    ):
        make_policy(f"onnx:{file}")
    model = onnx.load(network(tmp_path, game, weights))
    model.graph.ClearField("output")
    file.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match=r"network of .*policy\.onnx has no output"):
        make_policy(f"onnx:{file}")


def with_metadata(file: Path, **entries: str) -> Path:
    """Add entries to the metadata of an ONNX file."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(file)
    for key, value in entries.items():
        model.metadata_props.add(key=key, value=value)
    onnx.save(model, file)
    return file


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_network_for_an_encoding_is_asked_with_it(tmp_path, encoding: str):
    pytest.importorskip("onnxruntime")
    rules = VARIANTS[1]
    game, state = Game(rules, encoding=encoding), positions(rules)
    weights = np.random.default_rng(0).normal(size=(game.observation_size, game.num_actions))
    file = with_metadata(network(tmp_path, game, weights.astype(np.float32)), wotd_encoding=encoding)
    policy = make_policy(f"onnx:{file}")
    logits = np.where(game.legal_actions(state), game.observe(state) @ weights.astype(np.float32), -np.inf)
    rng = np.random.default_rng()
    np.testing.assert_array_equal(policy.act(Game(rules), state, rng), logits.argmax(1))
    np.testing.assert_array_equal(policy.act(game, state, rng), logits.argmax(1))
    with pytest.raises(ValueError, match="made for other rules"):
        policy.act(Game(), Game().reset(1), rng)


def test_a_network_for_an_unknown_encoding_is_refused(tmp_path):
    pytest.importorskip("onnxruntime")
    game = Game()
    weights = np.zeros((game.observation_size, game.num_actions), np.float32)
    file = with_metadata(network(tmp_path, game, weights), wotd_encoding="pixels")
    with pytest.raises(
        ValueError, match=r"policy\.onnx cannot be asked: wotd_encoding must be one of 'one_hot', "
    ):
        make_policy(f"onnx:{file}")


@pytest.mark.parametrize("logit", [np.nan, -np.inf, np.inf])
def test_onnx_refuses_logits_that_choose_nothing(tmp_path, logit: float):
    pytest.importorskip("onnxruntime")
    game = Game()
    weights = np.full((game.observation_size, game.num_actions), logit, np.float32)
    policy = make_policy(f"onnx:{network(tmp_path, game, weights)}")
    with pytest.raises(
        ValueError, match=r"policy\.onnx returns, for the legal actions of game 0, .* no finite number"
    ):
        policy.act(game, game.reset(5, seed=0), np.random.default_rng())


def test_onnx_files_that_are_damaged_play_or_raise_value_error(tmp_path):
    pytest.importorskip("onnxruntime")
    game = Game()
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(game.observation_size, game.num_actions)).astype(np.float32)
    whole = network(tmp_path, game, weights).read_bytes()
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


def test_onnx_names_what_is_wrong_with_a_file(tmp_path):
    with pytest.raises(ValueError, match="onnx:FILE"):
        make_policy("onnx")
    pytest.importorskip("onnxruntime")
    with pytest.raises(FileNotFoundError, match=r"missing\.onnx"):
        make_policy(f"onnx:{tmp_path / 'missing.onnx'}")
    (tmp_path / "bad.onnx").write_text("no network")
    with pytest.raises(ValueError, match=r"bad\.onnx holds no network"):
        make_policy(f"onnx:{tmp_path / 'bad.onnx'}")


def test_onnx_names_the_extra_when_onnxruntime_is_missing(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(ImportError, match=r"wotd-env\[arena\]"):
        make_policy("onnx:policy.onnx")


# ------------------------------------------------------------------------------------------- policies of functions


def highest(observation, mask):
    """The legal action with the highest number, for one game or a batch."""
    return mask.shape[-1] - 1 - mask[..., ::-1].argmax(-1)


HIGHEST = FunctionPolicy(highest)


@pytest.mark.parametrize("rules", VARIANTS[:3], ids=str)
def test_a_function_plays_game_by_game_what_it_plays_in_a_batch(rules):
    game, state, rng = Game(rules), positions(rules), np.random.default_rng(0)
    mask = game.legal_actions(state)
    expected = [int(np.flatnonzero(row)[-1]) for row in mask]
    for policy in (
        FunctionPolicy(highest),
        FunctionPolicy(highest, batched=True),
        FunctionPolicy(lambda observation, mask: np.array([highest(observation, mask)])),
    ):
        assert ask(policy, game, state, rng).tolist() == expected
        assert ask(policy, game, state[:1], rng).tolist() == expected[:1]
        assert ask(policy, game, state[:0], rng).tolist() == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_function_sees_what_the_seat_to_act_sees(encoding):
    rules = VARIANTS[1]
    state = positions(rules)
    seen: list[np.ndarray] = []

    def look(observation, mask):
        seen.append(observation)
        return 0

    expected = Game(rules, encoding=encoding).observe(state)
    for shown in ENCODINGS:
        seen.clear()
        game = Game(rules, encoding=shown)
        FunctionPolicy(look, encoding=encoding).act(game, state, np.random.default_rng(0))
        np.testing.assert_array_equal(seen, expected)
    with pytest.raises(ValueError, match="encoding must be one of 'one_hot'"):
        FunctionPolicy(look, encoding="pixels")


def test_what_is_no_action_for_every_game_is_refused():
    game = Game()
    for answer in (lambda observation, mask: [1, 2], lambda observation, mask: 0.5):
        with pytest.raises(ValueError, match="act must return integers"):
            ask(FunctionPolicy(answer), game, game.new(3), np.random.default_rng(0))


def test_functions_play_in_environments_and_tournaments():
    import gymnasium

    env = gymnasium.make("wotd_env/WayOfTheDragon-v0", spaces=0, opponents=FunctionPolicy(highest))
    _, info = env.reset(seed=0)
    over = False
    while not over:
        _, _, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
        over = terminated or truncated
    assert isinstance(make_policy(f"{__name__}:HIGHEST"), FunctionPolicy)
