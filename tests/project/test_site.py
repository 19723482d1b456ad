"""The documentation site builds without a warning, and has every page and every public name."""

from __future__ import annotations

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
    "wotd_env.notation",
    "wotd_env.symmetry",
    "wotd_env.policies",
    "wotd_env.rendering",
    "wotd_env.solver",
    "wotd_env.way_of_the_dragon_v0",
]
"""The modules that are meant to be used by others; `__all__` has their names."""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    pytest.importorskip("sphinx", reason="needs the extra docs")
    pytest.importorskip("myst_nb", reason="needs the extra docs")
    folder = tmp_path_factory.mktemp("site")
    # The notebooks are run by tests/project/test_notebooks.py.
    options = f"-q -W --keep-going -D nb_execution_mode=off -c docs -d {folder / 'read'}".split()
    command = [sys.executable, "-m", "sphinx", *options, ".", folder / "html"]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, f"the site does not build:\n{built.stderr}"
    return folder / "html"


def test_site_builds_without_a_warning_and_begins_with_the_front_page(site):
    assert (site / "docs" / "index.html").is_file()
    assert "docs/index.html" in (site / "index.html").read_text()


def test_pictures_of_the_site_exist(site):
    missing = []
    for page in site.rglob("*.html"):
        for picture in re.findall(r'(?:src|srcset)="([^"#?:]+\.(?:svg|png))', page.read_text()):
            if not (page.parent / picture).is_file():
                missing.append((page.name, picture))
    assert not missing


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(site, module):
    names = set(re.findall(r'id="(?:module-)?([\w.]+)"', (site / "docs" / "api.html").read_text()))
    for name in importlib.import_module(module).__all__:
        assert any(entry.startswith("wotd_env.") and entry.endswith(f".{name}") for entry in names), (
            f"{module}.{name} is not on the page docs/api.md: write an entry for it there"
        )


def test_every_page_is_in_the_table_of_contents():
    index = (ROOT / "docs" / "index.md").read_text()
    trees = re.findall(r"```{toctree}(.*?)```", index, re.DOTALL)
    listed = {line.strip() for tree in trees for line in tree.split()}
    pages = {page.stem for page in (ROOT / "docs").glob("*.md")} - {"index"}
    assert not pages - listed, (
        "write the names of these pages into one of the toctrees at the end of docs/index.md, where their subject "
        "belongs, without the ending .md"
    )
