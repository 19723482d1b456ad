"""The notebooks run in a clean kernel, and are stored with their outputs, which the site shows."""

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
def test_notebook_is_stored_with_outputs_of_one_run(notebook):
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    hint = "run the notebook before you save it: jupyter nbconvert --execute --inplace notebooks/*.ipynb"
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1)), hint
    assert not any(output.output_type == "error" for cell in cells for output in cell.outputs), hint
