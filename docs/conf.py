"""The documentation site (`make docs`). Its pages are the files of the checkout as they are, so links hold in both.

The root of the sources is the checkout: a page may link to any other page, to a notebook, and to a file of code, which
the site offers for download.
"""

from pathlib import Path

from docutils.nodes import document
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx

import wotd_env

ROOT = Path(__file__).parent.parent

project = "wotd-env"
author = "the wotd-env authors"
version = release = wotd_env.__version__
html_title = f"wotd-env {release}"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = [".*", "docs/_build", "runs", "tables"]

html_theme = "furo"
html_extra_path = ["_site"]  # the address of the site itself leads to docs/index.html
html_static_path = ["_static"]
html_css_files = ["print.css"]

myst_heading_anchors = 3  # as forges make them
suppress_warnings = ["mystnb.unknown_mime_type"]
nb_execution_mode = "cache"  # notebooks carry no outputs: they run here, again only when they have changed
nb_execution_cache_path = str(ROOT / "docs" / "_build" / ".notebooks")
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_execution_show_tb = True
nb_output_stderr = "remove"  # that kernels are compiled, on a first run

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_type_aliases = {"States": "States"}
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False


def show_folders_as_words(app: Sphinx, page: document) -> None:
    """Take the links to folders out of a page: a site has nothing to show for them."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(page.findall(pending_xref)):
        if link["reftype"] == "myst" and (folder / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def setup(app: Sphinx) -> None:
    """Connect what is our own."""
    app.connect("doctree-read", show_folders_as_words)
