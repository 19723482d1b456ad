"""The package as seen by editors and type checkers."""

import re
import subprocess
import sys

import pytest

import wotd_env
from tests.helpers import ROOT, run_python


def test_dir_lists_exactly_the_public_names_before_use():
    listed = run_python("-c", "import wotd_env; print(*dir(wotd_env))").stdout.split()
    assert {*listed} == {*wotd_env.__all__, "__version__"}


@pytest.mark.slow
def test_type_checkers_infer_the_types_of_the_public_api(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import wotd_env\n"
        "from wotd_env import Game, make_policy, way_of_the_dragon_v0\n"
        "reveal_type(way_of_the_dragon_v0.env(players=3))\n"
        "reveal_type(Game().reset(1, seed=0))\n"
        "reveal_type(make_policy('greedy'))\n"
        "reveal_type(wotd_env.Rules().players)\n"
    )
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", script]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    revealed = re.findall(r'Revealed type is "(.*)"', checked.stdout)
    assert len(revealed) == 4, checked.stdout
    env, states, policy, players = revealed
    assert env.startswith("wotd_env.envs.aec.")
    assert "ndarray" in states
    assert policy.endswith("Policy")
    assert players == "int" or players.endswith(".int")
