"""The documentation holds: its code runs, its commands and links exist, its tables are those of the code."""

import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.helpers import ROOT
from tools import commands as wotd_commands
from tools import figures, pages, tables
from wotd_env.cli import app

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])

RECIPES = ROOT / "docs" / "recipes.md"

NEEDS = {"openspiel.md": "pyspiel"}
"""Pages on packages that may be missing."""


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the code of a page in the given languages."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [code for language, code in fenced if language in languages]


def recipes() -> list[tuple[str, str]]:
    """Return the module that each recipe of docs/recipes.md needs, and its code."""
    pattern = r"^(?:<!-- needs: ([\w.]+) -->\n\n)?```python\n(.*?)^```"
    found = re.findall(pattern, RECIPES.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [(module or "wotd_env", code) for module, code in found]


def commands() -> list[str]:
    """Return the shell commands of all pages, without their comments."""
    lines = [line for page in PAGES for block in blocks(page, "sh", "bash") for line in block.splitlines()]
    return sorted({command for line in lines if (command := line.split("#")[0].strip())})


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks(page, "python") and page != RECIPES], ids=lambda page: page.name
)
def test_python_runs_from_the_top_of_the_page_to_its_end(page, tmp_path, monkeypatch):
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name])
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for code in blocks(page, "python"):
        exec(compile(code, page.name, "exec"), names)


@pytest.mark.parametrize(("module", "code"), recipes(), ids=lambda part: part if part.isidentifier() else "")
@pytest.mark.filterwarnings("default")  # those of the other libraries
def test_recipe_runs_by_itself(module, code, tmp_path, monkeypatch):
    pytest.importorskip(module, reason=f"{module} is not installed", exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, RECIPES.name, "exec"), {"__name__": "page"})


def test_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    group: Any = typer.main.get_command(app)
    for command in commands():
        program, *arguments = shlex.split(command)
        if program == "make":
            assert re.search(rf"^{arguments[0]}:.* ## ", makefile, flags=re.MULTILINE), command
        elif Path(program).name == "wotd":
            options = {
                option for parameter in group.commands[arguments[0]].params for option in parameter.opts
            }
            assert {word for word in arguments if word.startswith("--")} <= options, command
        else:
            assert Path(program).name in {"python3", "python", "pip", "pytest", "source", "jupyter"}, command
        for argument in arguments:
            if Path(argument).suffix in {".py", ".txt"} and Path(program).name != "wotd":
                assert (ROOT / argument).is_file(), command
            elif extras := re.fullmatch(r"(?:\.|wotd-env)\[([\w,]+)\]", argument):
                assert set(extras[1].split(",")) <= set(project["optional-dependencies"]), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_of_the_project(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def anchors(page: Path) -> set[str]:
    """Return the anchors of the headings of a page, as forges and the site make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_into_pages_lead_to_headings(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    missing = [
        (file, anchor)
        for file, anchor in links
        if anchor not in anchors(page.parent / file if file else page)
    ]
    assert not missing


def test_what_the_page_on_changing_a_rule_names_is_in_the_files_that_it_links_to():
    page = ROOT / "docs" / "changing-a-rule.md"
    text = page.read_text()
    files = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)", text)}
    words = {word for file in files if file.is_file() for word in re.findall(r"\w+", file.read_text())}
    named = {part for name in re.findall(r"`([A-Za-z_][\w.-]*)`", text) for part in re.findall(r"\w+", name)}
    assert not named - words
    for change in blocks(page, "diff"):
        head, *lines = change.splitlines()
        old = "\n".join(line[1:] for line in lines if line[0] in "- ")
        assert old in (ROOT / head.removeprefix("--- ")).read_text(), (
            f"{head} has other lines now than the page shows"
        )


def test_the_page_of_commands_is_what_their_help_says():
    assert wotd_commands.page() == wotd_commands.PAGE.read_text(), "run `make docs-tables`"


def test_generated_tables_are_those_of_the_code():
    text = (ROOT / "docs" / "environment.md").read_text()
    assert set(re.findall(r"<!-- table: (\w+) -->", text)) == set(tables.all_tables())
    assert pages.renew(text, tables.all_tables()) == text, "run `make docs-tables`"


@pytest.mark.parametrize("page", figures.PAGES, ids=lambda page: page.name)
def test_quoted_figures_are_the_measured_ones(page):
    assert figures.renewed(page) == page.read_text(), "run `make docs-tables`"


def test_figures_are_quoted():
    pages_with_figures = {page.name for page in figures.PAGES if "<!-- figure: " in page.read_text()}
    assert pages_with_figures >= {"performance.md", "policies.md", "openspiel.md"}
    for page in ("README.md", "docs/index.md"):
        assert "<!-- table: figures -->" in (ROOT / page).read_text()
    with pytest.raises(KeyError):
        figures.figure("rate no-such-case")


def test_the_table_of_extras_has_those_of_the_project():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (ROOT / "README.md").read_text()
    rows = text.partition("| extra | contents |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(extras)
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(extras) - {
        *("all", "rllib", "docs", "notebooks", "bench", "dev")
    }, "the last but one row says so"
