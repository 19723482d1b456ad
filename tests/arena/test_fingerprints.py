"""Digests of policies, which decide whether games of earlier runs are used."""

from __future__ import annotations

import sys

from tests.helpers.tournaments import OWN
from wotd_env.arena.store import policy_digest


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
