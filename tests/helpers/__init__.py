"""Helpers that several test modules share."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The folder of this checkout."""


def run_python(
    *arguments: str | Path, cwd: str | Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run Python with further environment variables in another process, which must succeed; return its output."""
    variables = os.environ | environment
    done = subprocess.run(
        [sys.executable, *arguments], cwd=cwd, env=variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done
