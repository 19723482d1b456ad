"""The places that know a rule, and the example of docs/project/changing-a-rule.md, applied to a copy of the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pytest

from tests.helpers import ROOT

PAGE = ROOT / "docs" / "project" / "changing-a-rule.md"
TESTS = (
    "tests/core/test_differential.py::test_engine_and_reference_agree",
    "tests/planning/test_planner.py::test_action_values_equal_brute_force",
    "tests/solver/test_solver.py::test_values_equal_one_turn_of_the_engine",
    "tests/solver/test_powers.py::test_values_equal_one_turn_of_the_engine",
    "tests/solver/test_evaluate.py::test_exact_results_agree_with_simulated_games",
)

NAMED = {
    "has the rules": """
        wotd_env/core/actions.py wotd_env/core/batch.py wotd_env/core/checks.py wotd_env/core/config.py
        wotd_env/core/engine.py wotd_env/core/game.py wotd_env/core/observation.py wotd_env/core/rules.py
        wotd_env/core/starting.py wotd_env/core/state.py wotd_env/jax/env.py wotd_env/jax/rules.py
    """,
    "computes what an end of a turn does to the codes of a path, for speed": """
        wotd_env/solver/families.py wotd_env/solver/guarantees.py wotd_env/solver/positions.py
        wotd_env/solver/powers.py wotd_env/solver/turns.py
    """,
    "decides whether passing and fear are legal, for values that are not in a record": "wotd_env/planning/ends.py",
    "draws the chance events before the first turn itself, as OpenSpiel needs": "wotd_env/adapters/openspiel.py",
    "gives a result to a game that an illegal action or the turn limit has ended": """
        wotd_env/arena/tournament.py wotd_env/envs/results.py wotd_env/envs/starts.py wotd_env/notation/games.py
    """,
    "states rules or results for users": """
        tools/tables.py wotd_env/envs/aec.py wotd_env/envs/single.py wotd_env/notation/messages.py
        wotd_env/planning/learned.py wotd_env/web/store.py wotd_env/web/wasm/wotd.js
    """,
    "draws a lock on pieces that cannot be swapped": """
        wotd_env/rendering/scene.py wotd_env/web/static/board.js
    """,
    "permutes colors with paths, because immunity ties them": "wotd_env/symmetry.py",
}
"""Why a file may name a ruling -> the files."""


def test_only_listed_files_name_a_ruling():
    """Other code asks the engine. A ruling is never part of a range, so that a search for `R8` finds all places."""
    folders = "wotd_env", "agents", "tools", "examples", "entries"
    files = [file for folder in folders for end in ("py", "js") for file in (ROOT / folder).rglob(f"*.{end}")]
    texts = {file.relative_to(ROOT).as_posix(): file.read_text() for file in files}
    found = {name for name, text in texts.items() if re.search(r"\bR([1-9]|1[0-6])\b", text)}
    assert found == {name for names in NAMED.values() for name in names.split()}
    assert not [name for name, text in texts.items() if re.search(r"\bR\d+ ?(\.\.|to|-|–) ?R?\d", text)]


def test_the_diffs_of_the_page_are_in_places_that_name_the_ruling():
    for name, _ in diffs():
        assert re.search(r"\bR8\b", (ROOT / name).read_text())


def diffs() -> list[tuple[str, str]]:
    return re.findall(r"^```diff\n--- (\S+)\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_the_diffs_of_the_page_change_the_rule_everywhere(tmp_path):
    """The engine, the second implementation, the planner and the solver agree about the changed rule."""
    for name in ("wotd_env", "tests", "pyproject.toml"):
        source, copy = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    assert len(diffs()) >= 4
    for name, diff in diffs():
        old, new = (
            "".join(line[1:] for line in diff.splitlines(True) if line[0] in kept) for kept in ("- ", "+ ")
        )
        file = tmp_path / name
        assert file.read_text().count(old) == 1
        file.write_text(file.read_text().replace(old, new))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *TESTS],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "kernels")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 0, done.stdout
