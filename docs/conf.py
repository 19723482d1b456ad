"""The documentation site (`make docs`).

Sphinx's source folder is the root of the checkout. So a page can link to any file of the checkout, and the link also
works on the site.
"""

from pathlib import Path

from docutils.nodes import document
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.util.inspect import TypeAliasForwardRef

import wotd_env

ROOT = Path(__file__).parent.parent

project = "wotd-env"
author = "the wotd-env authors"
copyright = f"2026, {author}"
version = release = wotd_env.__version__
html_title = f"wotd-env {release}"

extensions = ["sphinx.ext.autodoc", "sphinx.ext.napoleon", "myst_nb", "sphinx_copybutton"]
root_doc = "docs/index"
include_patterns = ["docs/**.md", "notebooks/*.ipynb", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"]
exclude_patterns = [".*", "docs/_build", "runs", "tables"]

html_theme = "furo"
html_favicon = "../wotd_env/web/static/icon.svg"
html_extra_path = ["_site"]  # a page that redirects from the root of the site to docs/index.html
html_static_path = ["_static"]
html_css_files = ["site.css"]
templates_path = ["_templates"]
html_sidebars = {  # furo's default list plus demo.html, which links to the demo
    "**": [
        *("sidebar/brand.html", "sidebar/search.html", "sidebar/scroll-start.html", "demo.html"),
        *("sidebar/navigation.html", "sidebar/scroll-end.html"),
    ]
}
html_use_index = html_domain_indices = False
pygments_dark_style = "github-dark"  # furo's default style underlines names, which hides the "_" in wotd_env

myst_heading_anchors = 3  # headings of levels 1 to 3 get the same anchors as on GitHub
suppress_warnings = ["mystnb.unknown_mime_type"]
nb_execution_mode = "off"  # notebooks are stored with their outputs
nb_merge_streams = True
nb_output_stderr = "remove"

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_description_target = "documented_params"
autodoc_type_aliases = {"States": "States", "ArrayLike": "ArrayLike"}
autodoc_preserve_defaults = True
napoleon_google_docstring = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True
default_role = "code"  # names in docstrings are between single backquotes, as in Markdown

# In a union, show only the name of a type alias.
TypeAliasForwardRef.__repr__ = lambda self: self.name  # type: ignore[method-assign]


def show_folders_as_words(app: Sphinx, page: document) -> None:
    """Replace each link to a folder with the text of the link, because the site has no pages for folders."""
    folder = Path(app.env.doc2path(app.env.docname)).parent
    for link in list(page.findall(pending_xref)):
        if link["reftype"] == "myst" and (folder / link["reftarget"]).is_dir():
            link.replace_self(link.children)


def prepare_docstring(
    app: Sphinx, what: str, name: str, documented: object, options: object, lines: list[str]
) -> None:
    """Drop Python's docstrings of NamedTuple fields, and show indented lines of module docstrings as code."""
    if lines and lines[0].startswith("Alias for field number"):
        lines.clear()
    if what == "module":
        for i in range(len(lines) - 1, 0, -1):
            if lines[i].startswith("    ") and not lines[i - 1] and not lines[i - 2].startswith("    "):
                language = "text" if lines[i].endswith('"]') else "python"
                lines[i:i] = [f".. code-block:: {language}", ""]


def setup(app: Sphinx) -> None:
    """Register the functions that Sphinx calls for every page and docstring."""
    app.connect("doctree-read", show_folders_as_words)
    app.connect("autodoc-process-docstring", prepare_docstring)
