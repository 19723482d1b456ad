"""Run JavaScript in Node."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.helpers import ROOT


def run_node(
    *arguments: str | Path, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Node in a folder, with arguments and additional environment variables."""
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    variables = os.environ | environment
    return subprocess.run(
        [node, *arguments], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )


def check_agreement(file: Path, **environment: str) -> None:
    """Run the tests in a file, which compare the package with JavaScript."""
    compared = run_node("--test", "--test-reporter=spec", file, cwd=ROOT, **environment)
    assert compared.returncode == 0, compared.stdout[-3000:]
