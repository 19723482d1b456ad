"""Tables as text, and the cost of importing the modules that many packages use."""

import subprocess
import sys

import pytest

from wotd_env.reporting import Shown, as_latex


@pytest.mark.parametrize(
    ("module", "most"),
    [("wotd_env.reporting", 10), ("wotd_env.policies.blamed", 30), ("wotd_env.policies.identity", 32)],
)
def test_shared_modules_import_few_others(module: str, most: int):
    code = f"import sys, {module}; print(*(name for name in sys.modules if name.startswith('wotd_env')))"
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    loaded = run.stdout.split()
    assert module in loaded
    assert len(loaded) <= most
    assert not {f"wotd_env.{package}" for package in ("arena", "benchmark", "analysis", "solver")} & {*loaded}


def test_latex_escapes_special_characters():
    shown = Shown("title\nsecond line", ["a_b", "c"], [["50% ±1", "my\\file"]])
    assert as_latex([shown]).splitlines() == [
        "% title. second line",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & c \\",
        r"\midrule",
        r"50\% $\pm$1 & my\textbackslash file \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
