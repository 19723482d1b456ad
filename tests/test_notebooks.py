"""The notebooks run, and say what is stored in them.

`python tests/test_notebooks.py` stores anew what they say; then look at the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_output

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))


def executed(notebook: Path) -> Any:
    """The notebook after a run from the project's folder, all that a cell prints in one piece."""
    content = nbformat.read(notebook, as_version=4)
    folder = {"metadata": {"path": str(ROOT)}}
    NotebookClient(content, timeout=300, kernel_name="python3", resources=folder).execute()
    for cell in content.cells:
        cell.metadata.pop("execution", None)  # when it was run
        if cell.cell_type == "code":
            # What comes by stderr depends on the machine: a warning where kernels have to be compiled first.
            printed = "".join(output.text for output in cell.outputs if output.get("name") == "stdout")
            others = [output for output in cell.outputs if output.output_type != "stream"]
            cell.outputs = [new_output("stream", text=printed)] * bool(printed) + others
    return content


@pytest.mark.filterwarnings("default")  # the kernel's own
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_says_what_is_stored(notebook):
    stored, now = nbformat.read(notebook, as_version=4), executed(notebook)
    for before, after in zip(stored.cells, now.cells, strict=True):
        assert after.get("outputs") == before.get("outputs"), (
            f"what is stored of this cell is stale, run tests/test_notebooks.py:\n{after.source}"
        )


if __name__ == "__main__":
    for path in NOTEBOOKS:
        nbformat.write(executed(path), path)
