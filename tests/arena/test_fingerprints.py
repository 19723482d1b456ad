"""Digests of policies, which decide whether games of earlier runs are used."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import pytest

from tests.helpers.arena_policies import Gambler, Lowest
from tests.helpers.learned import some_value
from tests.helpers.tournaments import OWN, QUICK
from wotd_env import Policy, Rules
from wotd_env.arena import Tournament, run
from wotd_env.arena.fingerprints import policy_digest
from wotd_env.planning import learned


def test_a_policy_is_known_by_all_sources_that_it_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    sources = {
        "changing/__init__.py": "import json, numpy.linalg, wotd_env, sys\n",
        "changing/policy.py": "from . import helper\nfrom .deep.thing import Player\nimport changing_not_there\n",
        "changing/helper.py": "def late():\n    import changing_tools.first as tools\n",
        "changing/deep/__init__.py": "from ...beyond import nothing\n",
        "changing/deep/thing.py": "from ..helper import late\nfrom .. import policy\n",
        "changing_tools/first.py": "this is no Python\n",
    }
    for name, text in {**sources, "changing/other.py": "", "changing_tools/second.py": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    name = "changing.policy:Player"
    before = policy_digest(name)
    assert policy_digest(name) == before
    for name_of_source in sources:
        source = tmp_path / name_of_source
        text = source.read_text()
        source.write_text(text + "# changed\n")
        assert policy_digest(name) != before, source
        source.write_text(text)
    for unrelated in ("changing/other.py", "changing_tools/second.py"):
        (tmp_path / unrelated).write_text("# changed\n")
    assert policy_digest(name) == before
    assert "changing.policy" not in sys.modules


def test_policies_of_this_package_have_the_digest_of_their_file_too(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"a")
    names = {policy_digest(f"onnx:{file}")}
    file.write_bytes(b"b")
    names.add(policy_digest(f"onnx:{file}"))
    (tmp_path / "model.onnx.data").write_bytes(b"weights")
    names |= {
        policy_digest(f"onnx:{file}"),
        policy_digest("greedy"),
        policy_digest("random"),
        policy_digest(OWN),
    }
    assert len(names) == 6


WEIGHTS = """
import pickle
import numpy as np
from pathlib import Path

FILE = Path(__file__).with_name("weights.pickle")
{module}

class Player:
    def __init__(self):
        {constructor}

    def act(self, game, state, rng):
        legal = game.legal_actions(state)
        return (legal * (1 + np.arange(legal.shape[1]) * self.weight)).argmax(1)

    {method}
"""


@pytest.mark.parametrize(
    ("module", "constructor", "method"),
    [
        ("", "self.weight = pickle.loads(FILE.read_bytes())", ""),
        ("WEIGHT = pickle.loads(FILE.read_bytes())", "pass", "weight = WEIGHT"),
        ("", "self.weight = pickle.loads(FILE.read_bytes()); self.act = lambda *a: Player.act(self, *a)", ""),
        (
            "",
            "self.weight = 1; self.act = lambda *a: Player.act(self, *a)",
            "def fingerprint(self): return FILE.read_bytes().hex()",
        ),
    ],
    ids=["constructor", "module", "no pickle", "fingerprint"],
)
def test_changed_weights_are_played_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, constructor: str, method: str
):
    source = WEIGHTS.format(module=module, constructor=constructor, method=method)
    (tmp_path / "weighted.py").write_text(source)
    weights = tmp_path / "weights.pickle"
    monkeypatch.syspath_prepend(tmp_path)
    tournament = Tournament(("weighted:Player", "first"), QUICK, games=20)

    def games_used(weight: float) -> int:
        weights.write_bytes(pickle.dumps(weight))
        monkeypatch.delitem(sys.modules, "weighted", raising=False)  # as in a new process
        return sum(run(tournament, tmp_path / "games.sqlite").earlier.values())

    doubtful = "self.act" in constructor and not method
    assert games_used(1.0) == 0
    assert games_used(1.0) == (0 if doubtful else 20)
    assert games_used(0.0) == 0


def test_objects_are_known_by_their_state(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file, tournament = tmp_path / "games.sqlite", Tournament(("mine", "first"), QUICK, games=20)

    def games_used(policy: Policy) -> int:
        return sum(run(tournament, file, policies={"mine": policy}).earlier.values())

    class Local(Lowest):
        pass

    assert [games_used(policy) for policy in (Lowest(), Lowest(), Gambler(), Lowest())] == [0, 20, 0, 20]
    assert [games_used(policy) for policy in (Local(), Local())] == [0, 0]
    assert "policy mine plays all its games again, because its state is unknown" in caplog.text


def test_deep_has_the_digest_of_the_policy_it_plans_with(tmp_path: Path):
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(Rules())))
    names = ("deep", "deep:planner", f"deep:{file}", f"deep:td:{file}", "deep:td")
    found = [policy_digest(name) for name in names]
    assert found[0] == found[4]
    assert found[2] == found[3]
    assert len(set(found)) == 3
    file.write_bytes(learned.save(some_value(Rules(), seed=1)))
    assert policy_digest(f"deep:{file}") != found[2]


def test_a_model_with_an_encoding_in_its_name_has_the_digest_of_its_file(tmp_path: Path):
    file = tmp_path / "model.zip"
    file.write_bytes(b"a")
    before = policy_digest(f"sb3:compact:{file}")
    file.write_bytes(b"b")
    assert policy_digest(f"sb3:compact:{file}") != before
