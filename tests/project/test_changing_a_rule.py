"""The places that know a rule, and the examples of two pages of docs/project, applied to a copy of the code."""

import re
import shutil
from pathlib import Path

import pytest

from tests.helpers import ROOT, run_python

PAGES = [ROOT / "docs" / "project" / name for name in ("changing-a-rule.md", "a-new-field.md")]
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
        wotd_env/core/engine.py wotd_env/core/game.py wotd_env/core/layouts.py wotd_env/core/observation.py
        wotd_env/core/rules.py wotd_env/core/starting.py wotd_env/core/state.py wotd_env/jax/env.py
        wotd_env/jax/rules.py
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
    assert not [name for name, text in texts.items() if re.search(r"\bR\d+ ?(\.\.|to|-) ?R?\d", text)]


def test_places_that_the_page_changes_name_the_ruling():
    for name, _ in diffs(PAGES[0]):
        assert re.search(r"\bR8\b", (ROOT / name).read_text())


def diffs(page: Path) -> list[tuple[str, str]]:
    return re.findall(r"^```diff\n--- (\S+)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the code to which the diffs of both pages are applied."""
    folder = tmp_path_factory.mktemp("changed")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for name in ("wotd_env", "agents", "entries", "tools", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "results"))
    changes = [diffs(page) for page in PAGES]
    assert list(map(len, changes)) == [4, 4]
    for name, diff in changes[0] + changes[1]:
        old, new = (
            "".join(line[1:] for line in diff.splitlines(True) if line[0] in kept) for kept in ("- ", "+ ")
        )
        file = folder / name
        assert file.read_text().count(old) == 1
        file.write_text(file.read_text().replace(old, new))
    return folder


def run_in(folder: Path, *arguments: str) -> None:
    run_python(*arguments, cwd=folder, PYTHONPATH=str(folder), NUMBA_CACHE_DIR=str(folder / "kernels"))


@pytest.mark.slow
def test_the_diffs_of_the_page_change_the_rule_everywhere(changed):
    """The engine, the second implementation, the planner and the solver agree about the changed rule."""
    run_in(changed, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n", "0", *TESTS)


NEW_FIELD = """
import jax, pytest, typer
from tools import tables
from tools.wasm.layout import options
from wotd_env import Game, Rules, notation
from wotd_env.core.rules import valid_values
from wotd_env.jax.rules import new_game
from wotd_env.policy import check_made_for
from wotd_env.solver.storage import facts_of

rules = Rules(players=3, bonus=2, start=1)
with pytest.raises(ValueError, match="bonus must be an integer from 0 to 5, got 6"):
    Rules(bonus=6)
state = Game(rules).reset(1)
assert state["pieces"][0, :3, 0].tolist() == [9, 0, 0]
assert new_game(rules, jax.random.key(0))._pieces[:, 0].tolist() == [0, 0, 9]  # seat 0 is the last to act
assert notation.parse_position(notation.position(rules, state))[0].bonus == 2
assert valid_values()["bonus"] == options()["bonus"] == {"least": 0, "most": 5, "default": 0}
assert "| `--bonus` | Points on water with which seat 0 starts, 0 to 5. | `0` |" in tables.options()
assert "| `bonus` | 0; 0 to 5 |" in tables.rules() and "bonus" in tables.wasm_config()
assert "bonus: points on water" in Rules.__doc__
assert "bonus" not in facts_of(Rules())
check_made_for("a value", Rules(), Rules(bonus=1))
"""


@pytest.mark.slow
def test_a_new_field_of_the_rules_needs_only_the_diffs_of_the_page(changed):
    run_in(changed, "-c", NEW_FIELD)
