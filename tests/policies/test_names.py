"""Names of policies, and errors for invalid names."""

import importlib
import sys
import types

import numpy as np
import pytest

from tests.helpers.games import VARIANTS, positions
from wotd_env import Game, Policy, make_policy
from wotd_env.core.compilation import kernel
from wotd_env.core.state import scratch
from wotd_env.envs.opponents import choose
from wotd_env.policies import POLICIES, Script, script_of
from wotd_env.policies.function import FunctionPolicy


def test_make_policy_accepts_names_import_paths_and_policies():
    policy = make_policy("greedy")
    assert isinstance(policy, Policy)
    assert make_policy(policy) is policy
    assert isinstance(make_policy("wotd_env.policies.greedy:Greedy"), type(policy))


def test_make_policy_imports_an_object_of_a_module(monkeypatch):
    module = types.ModuleType("players")
    module.best = make_policy("greedy")  # type: ignore[attr-defined]
    module.wrong = 3  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "players", module)
    assert make_policy("players:best") is module.best
    with pytest.raises(ValueError, match=r"'players:wrong' must have a method act"):
        make_policy("players:wrong")
    with pytest.raises(ValueError, match="players:missing"):
        make_policy("players:missing")


def test_a_function_of_a_module_gets_the_text_after_the_second_colon(monkeypatch):
    module = types.ModuleType("players")
    module.load = lambda file: FunctionPolicy(lambda observation, mask: file)  # type: ignore[attr-defined]
    module.best = make_policy("greedy")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "players", module)
    game = Game()
    with pytest.raises(ValueError, match=r"got \['C:weights.npz'\]"):  # the function returns the text
        make_policy("players:load:C:weights.npz").act(game, game.reset(1), np.random.default_rng(0))
    with pytest.raises(
        ValueError, match=r"'players:load' must be a policy, or return one when called without"
    ):
        make_policy("players:load")
    with pytest.raises(ValueError, match=r"players:best is a policy and takes nothing after a colon"):
        make_policy("players:best:3")


KNOWN = "one of random, first, greedy"
ARGUMENTS = "must be a policy, or return one when called"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", KNOWN),
        ("nowhere:policy", KNOWN),
        ("random.Random:x", KNOWN),
        ("x" * 5000, f"policy must be {KNOWN}"),
        ("x" * 5000 + ":policy", f"is neither {KNOWN}"),
        ("a\0b", f"policy must be {KNOWN}"),
        (".players:best", f"policy must be {KNOWN}"),
        ("json:dumps", f"'json:dumps' {ARGUMENTS} without arguments.*To use a function .*FunctionPolicy"),
        ("fractions:Fraction.limit_denominator", ARGUMENTS),
        ("json:JSONDecodeError:3", f"{ARGUMENTS} with a string"),
        ("json:dump_", "has no attribute 'dump_': did you mean json:dump?"),
        ("gredy", f"{KNOWN}.*got 'gredy': did you mean greedy?"),
        ("GREEDY", "got 'GREEDY': did you mean greedy?"),
        ("TD:value.npz", "did you mean td:value.npz?"),
        ("nowhere.py:Best", "No module named 'nowhere'.*without folder and .py"),
        ("./mine.py:Best", "without folder and .py, and run the program in the module's folder"),
        ("folder/mine:Best", "without folder and .py, and run the program in the module's folder"),
        ("greedy:5", "policy 'greedy' takes nothing after a colon, got 'greedy:5'"),
        ("onnx", "policy 'onnx' needs its FILE: 'onnx:FILE'"),
        ("sb3:", "policy 'sb3' needs its FILE: 'sb3:FILE'"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_invalid_names_raise_one_clear_error(name, message):
    with pytest.raises(ValueError, match=message) as caught:
        make_policy(name)
    assert type(caught.value) is ValueError


@pytest.mark.parametrize("name", ["td", "onnx", "oracle"])
def test_a_name_that_is_too_long_for_a_file_is_refused(name):
    # Since Python 3.14, such a file does not exist, instead of raising an error of the operating system.
    with pytest.raises(
        (ValueError, FileNotFoundError), match=r"cannot be made: .*too long|no .*file|no table"
    ):
        make_policy(f"{name}:{'x' * 5000}")


@pytest.mark.parametrize(
    ("name", "message"), [("oracle", "there is no table"), ("onnx", "no ONNX file"), ("td", "no file")]
)
def test_a_folder_without_the_file_of_a_policy_is_refused(tmp_path, name, message):
    with pytest.raises(FileNotFoundError, match=message):
        make_policy(f"{name}:{tmp_path}")


@pytest.mark.parametrize("name", POLICIES)
def test_policies_match_their_table_rows(name):
    known = POLICIES[name]
    module, _, attribute = f"wotd_env.policies.{known.maker}".partition(":")
    assert callable(getattr(importlib.import_module(module), attribute))
    if known.script == Script.OUTSIDE:
        return
    policy = make_policy(name)
    assert script_of(policy) == known.script
    # a subclass may play differently
    assert script_of(type("Other", (type(policy),), {})()) == Script.OUTSIDE
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
        out[i] = choose(script, states[i], config[0], scratch[0], bits[i])
