"""Learned value functions: the compiled network, its features, its file, and whole turns planned with a value."""

import io
import json
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest

from tests.helpers.games import positions
from tests.helpers.learned import some_value
from tests.helpers.planned import VARIANTS, arbitrary, by_decisions
from wotd_env import STATE, Game, Phase, Rules, make_policy
from wotd_env.arena import Tournament, run
from wotd_env.planning import learned
from wotd_env.planning.deeper import Deeper
from wotd_env.planning.learned import Features
from wotd_env.planning.planner import plan
from wotd_env.planning.playing import play_turns
from wotd_env.policies.planner import Planner

RULES = [
    *VARIANTS,
    Rules(powers="own", colors=("fire", "metal"), immunity=True),
    Rules(spaces=2, dead_pieces="#./.#/../##/.."),
]


# ------------------------------------------------------------------------------------------------------------- network


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("width", [32, 96])
def test_the_compiled_network_equals_the_formula(rules: Rules, width: int):
    game, state, n = Game(rules), positions(rules), rules.players
    value = some_value(rules, width)
    net, active = value.network, value.features.write(game, state)
    assert active.shape == (len(state), value.features.active)
    assert active.min() >= 0
    assert active.max() < value.features.total
    x = np.maximum(net.rows[active].sum(1), 0)
    y = np.maximum(x @ net.hidden + net.hidden_bias, 0)
    logits = np.concatenate((x, y), 1) @ net.output.T + net.output_bias
    chances = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    seats = (np.arange(n) - state["player"][:, None]) % n
    expected = (n * np.take_along_axis(chances, seats, 1) - 1) / (n - 1)
    values = value(game, state)
    assert values.dtype == np.float32
    np.testing.assert_allclose(values, expected, atol=1e-5)
    np.testing.assert_allclose(values.sum(1), 0, atol=1e-5)


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_values_are_invariant_to_the_order_of_paths_and_seats(rules: Rules):
    game, state, n = Game(rules), positions(rules), rules.players
    if isinstance(rules.colors, tuple):
        game = Game(Rules(**asdict(rules) | {"colors": "random"}))
    value = some_value(game.rules)
    expected = value(game, state)

    order = np.random.default_rng(0).permutation(5)  # path e becomes path order[e]
    other = state.copy()
    other["pieces"][:, :, order] = state["pieces"]
    other["dead"][:, order] = state["dead"]
    if rules.powers == "none":
        other["color"] = order[state["color"]]
        np.testing.assert_allclose(value(game, other), expected, atol=1e-5)

    other = state.copy()
    seats = (np.arange(n) + 1) % n
    other["player"] = seats[state["player"]]
    other["pieces"][:, seats], other["color"][:, seats] = state["pieces"][:, :n], state["color"][:, :n]
    other["used"] = sum((state["used"] >> seat & 1) << seats[seat] for seat in range(n))
    np.testing.assert_array_equal(value(game, other)[:, seats], expected)


@pytest.mark.parametrize(
    ("rules", "change"),
    [
        (Rules(), {"pieces": 3}),
        (Rules(players=5), {"pieces": 3}),
        (Rules(players=4, powers="any"), {"used": 2}),
        (Rules(powers="own"), {"used": 1}),
        (Rules(powers="own"), {"color": [4, 3, 2, 1, 0]}),
        (Rules(immunity=True), {"color": [4, 3, 2, 1, 0]}),
        (Rules(players=3, dead_pieces=2), {"dead": 8}),
        (Rules(), {"player": 1}),
    ],
    ids=str,
)
def test_features_change_with_every_relevant_field(rules: Rules, change: dict[str, Any]):
    game = Game(rules)
    state = game.reset(1, roll=False, starting_player=0)
    state["pieces"][0, :2, 1] = 2, 1
    state["pieces"][0, :2, 4] = 3, 6
    other = state.copy()
    (field, new), *_ = change.items()
    if field == "pieces":
        other[field][0, rules.players - 1, 0] = new
    elif field == "dead":
        other[field][0, 1] = new
    else:
        other[field] = new
    write = Features.of(rules).write
    assert (np.sort(write(game, state)) != np.sort(write(game, other))).any()


def test_values_do_not_depend_on_the_batch():
    rules = VARIANTS[5]
    game, state, value = Game(rules), positions(rules), some_value(rules)
    parts = [value(game, part) for part in np.array_split(state, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), value(game, state))


# --------------------------------------------------------------------------------------------------------------- rules


def test_other_rules_are_rejected_before_play(tmp_path: Path):
    (tmp_path / "value.npz").write_bytes(learned.save(some_value(Rules(spaces=1))))
    name = f"td:{tmp_path}"
    words = "made for spaces=1, not for spaces=2"
    with pytest.raises(ValueError, match=words):
        Planner(learned.load(tmp_path / "value.npz")).act(
            Game(Rules(spaces=2)), Game(Rules(spaces=2)).reset(1), np.random.default_rng(0)
        )
    with pytest.raises(ValueError, match=words):
        run(Tournament(("random", name), Rules(spaces=2), games=2), workers=0)
    entry = "wotd_env:wotd_env/WayOfTheDragon-v0"
    with pytest.raises(ValueError, match=words):
        gymnasium.make(entry, opponents=name, spaces=2)
    with pytest.raises(ValueError, match=words):
        gymnasium.make_vec(entry, num_envs=2, opponents=name, spaces=2)


@pytest.mark.parametrize(
    ("own", "other", "fits"),
    [
        ({}, {"start": 1}, True),
        ({}, {"max_turns": 9}, True),
        ({}, {"colors": "random"}, True),
        ({}, {"players": 3}, False),
        ({}, {"immunity": True}, False),
        ({}, {"dead_pieces": 1}, False),
        ({"dead_pieces": 1}, {"dead_pieces": "/".join(["#......"] * 3 + ["......."] * 2)}, True),
        ({"dead_pieces": 9}, {}, True),
        ({"powers": "own"}, {"powers": "any"}, False),
        ({"powers": "own"}, {"powers": "own", "colors": ("water", "fire")}, True),
        ({"powers": "own"}, {"powers": "own", "colors": ("fire", "water")}, False),
        ({"powers": "own"}, {"powers": "own", "colors": "random"}, False),
        ({"powers": "own", "colors": "random"}, {"powers": "own", "colors": ("fire", "water")}, True),
    ],
)
def test_rules_may_differ_only_in_irrelevant_fields(own: dict[str, Any], other: dict[str, Any], fits: bool):
    value = some_value(Rules(**own))
    if fits:
        value.check_rules(Rules(**other))
    else:
        with pytest.raises(ValueError, match="the learned value is made for"):
            value.check_rules(Rules(**other))


# ------------------------------------------------------------------------------------------------------------ the file


def test_files_preserve_the_value(tmp_path: Path):
    rules = Rules(players=3, powers="own", colors=("metal", "earth", "wood"))
    value = some_value(rules)
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(value))
    assert learned.save(value) == file.read_bytes()
    again = learned.load(file)
    assert again.rules == rules
    for one, other in zip(again.network, value.network, strict=True):
        np.testing.assert_array_equal(one, other)
    game, state = Game(rules), positions(rules)[:50]
    rng = np.random.default_rng(0)
    expected = Planner(value).act(game, state, rng)
    np.testing.assert_array_equal(make_policy(f"td:{file}").act(game, state, rng), expected)
    np.testing.assert_array_equal(make_policy(f"td:{tmp_path}").act(game, state, rng), expected)


def archive(**changes: Any) -> bytes:
    """Return the content of a file with some arrays changed, or omitted if None."""
    value = some_value(Rules())
    content = {"format": learned.FORMAT, "rules": json.dumps(asdict(Rules())), **value.network._asdict()}
    buffer = io.BytesIO()
    np.savez(buffer, **{name: array for name, array in (content | changes).items() if array is not None})
    return buffer.getvalue()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "File is not a zip file"),
        (b"nothing of the kind", "File is not a zip file"),
        (archive(format="another"), "its format is not"),
        (archive(rules=json.dumps({"players": 9})), "players must be"),
        (archive(rules="[]"), "rules must be"),
        (
            archive(rules=json.dumps(asdict(Rules(spaces=6)))),
            r"rows must be .* for Rules\(players=2, spaces=6, ",
        ),
        (archive(hidden=None), "hidden is not a file in the archive"),
        (archive(hidden=np.zeros((32, 31), np.float32)), "hidden must be finite numbers"),
        (archive(output=np.full((2, 64), np.nan, np.float32)), "output must be finite numbers"),
        (archive(output_bias=np.zeros(2)), "output_bias must be finite numbers, float32 .* got float64"),
        (archive(rows=np.zeros(3, np.float32)), "rows must have a multiple of 32 columns"),
        (archive(rows=np.zeros((781, 33), np.float32)), "rows must have a multiple of 32 columns"),
        (archive(rows=np.array([print], object)), "allow_pickle=False"),
    ],
)
def test_unusable_files_are_rejected(tmp_path: Path, content: bytes, words: str):
    file = tmp_path / "value.npz"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=words) as error:
        make_policy(f"td:{file}")
    assert str(file) in str(error.value)
    assert "\n" not in str(error.value)
    with pytest.raises(FileNotFoundError, match="no file"):
        make_policy(f"td:{tmp_path / 'nowhere'}")


def test_oversized_files_are_rejected_before_decompression(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    file = tmp_path / "value.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        for name in learned.Weights._fields:
            with packed.open(f"{name}.npy", "w") as stream:
                for _ in range(60):
                    stream.write(bytes(1_000_000))
    assert file.stat().st_size < 1_000_000

    def decompress(*arguments: Any) -> None:
        raise AssertionError("the file is decompressed")

    monkeypatch.setattr(zipfile.ZipFile, "open", decompress)
    with pytest.raises(ValueError, match=r"its arrays take 300 MB; at most 256 MB are allowed"):
        learned.load(file)


# --------------------------------------------------------------------------------------------------------- whole turns


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_play_turns_equals_the_planner(rules: Rules):
    game = Game(rules, skip_forced=False)
    value = some_value(rules)
    player = Planner(value)
    state = game.reset(120, seed=3, roll=False)
    for _ in range(12):
        before, stepped = state.copy(), by_decisions(game, state, player)
        planned = plan(game, state, value)[1]
        turns = play_turns(game, state, value)
        np.testing.assert_array_equal(turns.before[np.arange(120), before["player"]], planned)
        np.testing.assert_allclose(turns.before.sum(1), 0, atol=1e-5)
        assert (state == stepped).all()
        over = state["phase"] == Phase.OVER
        np.testing.assert_array_equal(turns.after[over], game.rewards(state)[over])
        np.testing.assert_array_equal(turns.after[~over], value(game, state)[~over])
        game.reset(state, where=over, roll=False)


@pytest.mark.parametrize(
    "rules",
    [
        Rules(players=3, spaces=1, powers="own", colors=("metal", "earth", "wood")),
        Rules(players=3, spaces=0, powers="any"),
        Rules(players=5, spaces=1, immunity=True),
    ],
    ids=str,
)
def test_values_before_a_turn_are_the_mean_of_those_after_it(rules: Rules):
    game, value, n, each = Game(rules), some_value(rules), rules.players, 4000
    starts = game.reset(3, seed=8, roll=False)
    for _ in range(n + 1):
        play_turns(game, starts, value)
        game.reset(starts, where=game.is_over(starts), roll=False)
    for start in starts.reshape(-1, 1):
        state = np.repeat(start, each)
        state["rng"] = np.arange(each) << 32
        turns = play_turns(game, state, value)
        error = turns.after.std(0) / np.sqrt(each)
        assert (error > 0).all()
        assert (turns.before == turns.before[0]).all()
        assert (np.abs(turns.before[0] - turns.after.mean(0)) < 4.5 * error).all()
        assert abs(turns.before[0].sum()) < 1e-5


def test_turns_do_not_depend_on_the_number_of_threads():
    rules = VARIANTS[4]
    value = some_value(rules)
    ends = []
    for threads in (1, 3):
        game = Game(rules, num_threads=threads)
        state = game.reset(800, seed=5, roll=False)
        drawn = np.arange(800) % 3 == 0
        turns = [play_turns(game, state, value, drawn) for _ in range(3)]
        ends.append((state, *turns[-1]))
    for one, other in zip(*ends, strict=True):
        np.testing.assert_array_equal(one, other)


def test_random_moves_are_legal_and_equally_likely():
    game = Game(Rules(spaces=2), skip_forced=False)
    state, rng = game.reset(3000, seed=3, roll=False), np.random.default_rng(0)
    for _ in range(8):
        play_turns(game, state, arbitrary)
    state = state[state["phase"] != Phase.OVER]
    last = state.copy()  # the same turns up to the last roll
    while (rolling := last["phase"] != Phase.MOVE).any():
        part = last[rolling]
        game.roll(part)
        holding = part["phase"] == Phase.KEEP
        actions = np.where(holding, Planner(arbitrary).act(game, part, rng), 0)
        held = part[holding]
        game.decide(held, actions[holding])
        part[holding] = held
        last[rolling] = part
    play_turns(game, state, arbitrary, np.ones(len(state), np.bool_))
    legal = game.legal_actions(last) == 1
    chosen = np.zeros_like(legal)
    for action in np.flatnonzero(legal.any(0)):
        after = last[legal[:, action]]
        game.decide(after, np.full(len(after), action))
        chosen[legal[:, action], action] = (after["pieces"] == state["pieces"][legal[:, action]]).all((1, 2))
    assert (chosen.sum(1) == 1).all()
    for choices in (2, 3):
        first = legal.argmax(1) == chosen.argmax(1)
        counted = first[legal.sum(1) == choices]
        assert len(counted) > 300
        assert abs(counted.mean() - 1 / choices) < 4 * 0.5 / np.sqrt(len(counted))


def test_play_turns_rejects_invalid_arguments():
    game = Game()
    with pytest.raises(ValueError, match="before the first roll of a turn"):
        play_turns(game, game.reset(3), arbitrary)
    state = game.reset(3, roll=False)
    before = state.copy()
    with pytest.raises(ValueError, match=r"value must return an array \(\d+, 2\), got \(\d+,\)"):
        play_turns(game, state, lambda game, afterstates: np.zeros(len(afterstates)))
    wrong: Any
    for wrong in (np.zeros((3, 2)), state[0], [state], None):
        with pytest.raises(ValueError, match=r"state must be a one-dimensional array of wotd_env\.STATE"):
            play_turns(game, wrong, arbitrary)
        with pytest.raises(ValueError, match=r"state must be a one-dimensional array of wotd_env\.STATE"):
            Deeper(arbitrary)(game, wrong)
    for wrong in (np.ones(2, np.bool_), np.ones(3), True):
        with pytest.raises(ValueError, match=r"at_random must be bool \(3,\), got"):
            play_turns(game, state, arbitrary, wrong)
    assert (state == before).all()
    assert state.dtype == STATE
