"""The documentation site builds without warnings and contains every page and every public name."""

import importlib
import re
import subprocess
import sys

import pytest

from tests.helpers import ROOT

PUBLIC = [
    "wotd_env",
    "wotd_env.analysis",
    "wotd_env.arena",
    "wotd_env.benchmark",
    "wotd_env.notation",
    "wotd_env.symmetry",
    "wotd_env.policies",
    "wotd_env.rendering",
    "wotd_env.solver",
    "wotd_env.way_of_the_dragon_v0",
]
"""The public modules; `__all__` lists their names."""


def test_site_builds_with_all_pictures_and_public_names(tmp_path):
    pytest.importorskip("sphinx", reason="needs the extra docs")
    pytest.importorskip("myst_nb", reason="needs the extra docs")
    # The notebooks are run by tests/project/test_notebooks.py.
    options = f"-q -W --keep-going -c docs -d {tmp_path / 'read'}".split()
    command = [sys.executable, "-m", "sphinx", *options, ".", tmp_path / "html"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, f"the site does not build:\n{built.stderr}"
    site = tmp_path / "html"
    assert (site / "docs" / "index.html").is_file()
    assert "docs/index.html" in (site / "index.html").read_text()
    pages = list(site.rglob("*.html"))
    pictures = r'(?:src|srcset)="([^"#?:]+\.(?:svg|png))'
    shown = [page.parent / picture for page in pages for picture in re.findall(pictures, page.read_text())]
    assert len(shown) > 20
    assert not [picture for picture in shown if not picture.is_file()]
    api = (site / "docs" / "reference" / "api").glob("*.html")
    entries = {
        name for page in api for name in re.findall(r'id="(?:module-)?(wotd_env\.[\w.]+)"', page.read_text())
    }
    listed = {entry.rpartition(".")[2] for entry in entries}
    for module in PUBLIC:
        unlisted = set(importlib.import_module(module).__all__) - listed
        assert not unlisted, f"add entries for these names of {module} to docs/reference/api/"


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text()
    trees = re.findall(r"```{toctree}(.*?)```", index, re.DOTALL)
    listed = {re.sub(r".*<(.*)>", r"\1", line.strip()) for tree in trees for line in tree.splitlines()}
    docs = ROOT / "docs"
    pages = {page.relative_to(docs).with_suffix("").as_posix() for page in docs.glob("*/*.md")}
    assert not pages - listed, "add these pages, without .md, to a toctree at the end of docs/index.md"
