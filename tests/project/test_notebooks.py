"""The notebooks run in a clean kernel and are stored without outputs; the site runs them."""

from __future__ import annotations

import nbformat
import pytest
from nbclient import NotebookClient

from tests.helpers import ROOT

NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
QUICK = {"01_quickstart", "03_arena"}
"""Notebooks that take less than half a minute."""


@pytest.mark.parametrize(
    "notebook",
    [pytest.param(path, marks=[] if path.stem in QUICK else pytest.mark.slow) for path in NOTEBOOKS],
    ids=lambda path: path.stem,
)
@pytest.mark.filterwarnings("default")  # warnings of the kernel
def test_notebook_runs(notebook, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # agents/ is used from the checkout
    content = nbformat.read(notebook, as_version=4)
    folder = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(content, timeout=600, kernel_name="python3", resources=folder).execute()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_without_outputs(notebook):
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    hint = "clear the outputs before you save: jupyter nbconvert --clear-output --inplace notebooks/*.ipynb"
    assert not any(cell.outputs or cell.execution_count for cell in cells), hint
