"""Digests of policies, which decide whether stored games are reused."""

import pickle
import sys
from pathlib import Path

import pytest

from tests.helpers.arena_policies import Gambler, Lowest
from tests.helpers.learned import some_value
from tests.helpers.tournaments import OWN, QUICK
from wotd_env import Policy, Rules, make_policy, models
from wotd_env.arena import Tournament, run
from wotd_env.arena.store import Store
from wotd_env.planning import learned
from wotd_env.policies import FILES, POLICIES, RUN_FILES, full_name
from wotd_env.policies.identity import policy_digest
from wotd_env.policies.opened import opened_by, watch


def test_digest_covers_all_imported_sources(tmp_path, monkeypatch):
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
    for source_name in sources:
        source = tmp_path / source_name
        text = source.read_text()
        source.write_text(text + "# changed\n")
        assert policy_digest(name) != before, source
        source.write_text(text)
    for unrelated in ("changing/other.py", "changing_tools/second.py"):
        (tmp_path / unrelated).write_text("# changed\n")
    assert policy_digest(name) == before
    assert "changing.policy" not in sys.modules


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("onnx:model.onnx", "model.onnx"),
        ("onnx:model.onnx", "model.onnx.data"),
        ("sb3:compact:model.zip", "model.zip"),
        ("td:.", "value.npz"),
        ("deep:value.npz", "value.npz"),
    ],
)
def test_digest_of_a_built_in_policy_covers_its_files(tmp_path, monkeypatch, name, file):
    monkeypatch.chdir(tmp_path)
    for own in ("model.onnx", "model.zip"):
        Path(own).touch()
    Path("value.npz").write_bytes(learned.save(some_value(Rules())))
    before = policy_digest(name)
    assert policy_digest(name) == before
    other = learned.save(some_value(Rules(), seed=1))
    Path(file).write_bytes(other)
    assert policy_digest(name) != before


@pytest.mark.parametrize("library", ["numpy", "numba", "llvmlite"])
def test_digests_cover_the_versions_of_the_libraries_that_compute_games(
    library: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    tournament = Tournament(("greedy", "first"), QUICK, games=20)

    def identities() -> tuple[str, ...]:
        with Store(tournament, tmp_path / "games.sqlite") as store:
            return policy_digest("greedy"), policy_digest(OWN), store._description

    before = identities()
    monkeypatch.setattr(f"{library}.__version__", "0")
    assert all(old != new for old, new in zip(before, identities(), strict=True))


def test_digest_of_a_policy_in_an_installed_package_covers_its_package_only(tmp_path, monkeypatch):
    installed = tmp_path / "site-packages"
    for name, text in {
        "mine/__init__.py": "",
        "mine/play.py": "from mine import tools\nimport other\n",
    }.items():
        (installed / name).parent.mkdir(parents=True, exist_ok=True)
        (installed / name).write_text(text)
    tools, other = installed / "mine" / "tools.py", installed / "other.py"
    digests = []
    monkeypatch.syspath_prepend(installed)
    for version in ("1", "2"):
        tools.write_text(f"VERSION = {version}\n")
        for other_version in ("1", "2"):
            other.write_text(f"VERSION = {other_version}\n")
            digests.append(policy_digest("mine.play:Player"))
    assert digests[0] == digests[1] != digests[2] == digests[3]


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
def test_games_are_played_again_after_weights_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, constructor: str, method: str
):
    source = WEIGHTS.format(module=module, constructor=constructor, method=method)
    (tmp_path / "weighted.py").write_text(source)
    weights = tmp_path / "weights.pickle"
    monkeypatch.syspath_prepend(tmp_path)
    tournament = Tournament(("weighted:Player", "first"), QUICK, games=20)

    def games_reused(weight: float) -> int:
        weights.write_bytes(pickle.dumps(weight))
        monkeypatch.delitem(sys.modules, "weighted", raising=False)  # as in a new process
        return sum(run(tournament, tmp_path / "games.sqlite").earlier.values())

    unpicklable = "self.act" in constructor and not method
    assert games_reused(1.0) == 0
    assert games_reused(1.0) == (0 if unpicklable else 20)
    assert games_reused(0.0) == 0


def test_the_files_of_a_policy_include_those_of_policies_that_it_makes(tmp_path: Path):
    files = [tmp_path / name for name in ("a", "b", "c")]
    for file in files:
        file.touch()
    with watch("outer"):
        files[0].read_bytes()
        with watch("inner"):
            files[1].read_bytes()
        files[2].read_bytes()
    assert opened_by("outer") == files
    assert opened_by("inner") == files[1:2]


@pytest.mark.parametrize("model", ["td-2-none.npz", "ppo-2-none.onnx"])
def test_bundled_policies_declare_the_files_that_they_read(model: str, tmp_path: Path):
    kind = FILES[Path(model).suffix]
    file = tmp_path / RUN_FILES[kind]
    file.write_bytes((models.FOLDER / model).read_bytes())
    for name in (f"{kind}:{file}", f"{kind}:{tmp_path}"):
        make_policy(name)  # imports libraries, which open other files
        with watch(name):
            make_policy(name)
        declared = POLICIES[kind].files(full_name(name).partition(":")[2])
        assert opened_by(name) == [file]
        assert str(file) in declared


def test_only_files_of_installed_packages_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "prefix", str(tmp_path))  # as in a container with its project below /usr
    own, installed = tmp_path / "app" / "weights", tmp_path / "lib" / "site-packages" / "data"
    with watch("mine"):
        for file in (own, installed):
            file.parent.mkdir(parents=True)
            file.touch()
            file.read_bytes()
    assert opened_by("mine") == [own]


def test_digest_of_an_object_covers_its_state(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    file, tournament = tmp_path / "games.sqlite", Tournament(("mine", "first"), QUICK, games=20)

    def games_reused(policy: Policy) -> int:
        return sum(run(tournament, file, policies={"mine": policy}).earlier.values())

    class Local(Lowest):
        pass

    assert [games_reused(policy) for policy in (Lowest(), Lowest(), Gambler(), Lowest())] == [0, 20, 0, 20]
    assert [games_reused(policy) for policy in (Local(), Local())] == [0, 0]
    assert "policy mine plays all its games again, because its state is unknown" in caplog.text


def test_digest_of_deep_covers_the_policy_it_plans_with(tmp_path: Path):
    file = tmp_path / "value.npz"
    file.write_bytes(learned.save(some_value(Rules())))
    names = ("deep", "deep:planner", f"deep:{file}", f"deep:td:{file}", "deep:td")
    found = [policy_digest(name) for name in names]
    assert found[0] == found[4]
    assert found[2] == found[3]
    assert len({*found, policy_digest("greedy"), policy_digest("random")}) == 5
