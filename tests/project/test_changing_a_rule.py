"""The example of docs/project/changing-a-rule.md, applied to a copy of the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "project" / "changing-a-rule.md"
TESTS = (
    "tests/core/test_differential.py::test_engine_and_reference_agree",
    "tests/planning/test_planner.py::test_action_values_equal_brute_force",
    "tests/solver/test_solver.py::test_values_equal_one_turn_of_the_engine",
    "tests/solver/test_powers.py::test_values_equal_one_turn_of_the_engine",
    "tests/solver/test_evaluate.py::test_exact_results_agree_with_simulated_games",
)


@pytest.mark.slow
def test_the_diffs_of_the_page_change_the_rule_everywhere(tmp_path):
    """The engine, the second implementation, the planner and the solver agree about the changed rule."""
    for name in ("wotd_env", "tests", "pyproject.toml"):
        source, copy = ROOT / name, tmp_path / name
        if source.is_dir():
            shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy)
    diffs = re.findall(r"^```diff\n--- (\S+)\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    assert len(diffs) >= 4
    for name, diff in diffs:
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
