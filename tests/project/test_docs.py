"""The documentation: code runs, commands and links exist, and generated tables are up to date."""

import re
import shlex
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer

from tests.helpers import ROOT
from tools import __main__ as pages_command
from tools import figures, pages, tables, wasm
from tools.pages import PAGES
from tools.wasm.weights import weights
from wotd_env import Game, Phase, Rules
from wotd_env.cli import app

NEEDS = {
    "jax.md": ("jax", None),
    "openspiel.md": ("pyspiel", None),
    "pettingzoo.md": ("pettingzoo", "1.27"),
    "rllib.md": ("ray.rllib", None),
    "torchrl.md": ("torchrl", None),
    "wasm.md": ("wasmtime", None),
}
"""Pages about other packages: the module that each page needs, and its oldest version."""

DESIGN = ROOT / "docs" / "explanation" / "design.md"
ENVIRONMENT = ROOT / "docs" / "reference" / "environment.md"
WASM = ROOT / "docs" / "how-to" / "wasm.md"

CODE = r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?"
"""A block of Python code, and the block with its output, if one follows."""

RANDOM = {"first-game.md", "openspiel.md", "pettingzoo.md", "rewards.md"}
"""Pages whose code draws actions without a seed, so that their output varies."""

MOST_LINES = 120
"""Lines of a page that are written by hand; generated parts, outputs, lists of pages and differences do not count."""


def blocks(page: Path, *languages: str) -> list[str]:
    """Return the code of a page in the given languages."""
    fenced = re.findall(r"^```(\w+)\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    return [code for language, code in fenced if language in languages]


def commands() -> list[str]:
    """Return the shell commands of all pages, without their comments."""
    lines = [line for page in PAGES for block in blocks(page, "sh", "bash") for line in block.splitlines()]
    return sorted({command for line in lines if (command := re.split(r"(?:^|\s)# ", line)[0].strip())})


def pages_with_code() -> list[Any]:
    """Return the pages with Python code; pages about other packages allow their warnings."""
    allowed = pytest.mark.filterwarnings("default")
    return [
        pytest.param(page, id=page.name, marks=[allowed] if page.name in NEEDS else [])
        for page in PAGES
        if blocks(page, "python")
    ]


@pytest.mark.parametrize("page", pages_with_code())
def test_the_python_code_of_a_page_runs_and_prints_what_the_page_shows(page, tmp_path, monkeypatch, capsys):
    if page.name in NEEDS:
        module, oldest = NEEDS[page.name]
        pytest.importorskip(module, minversion=oldest, exc_type=ImportError)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "page"}
    for code, shown in re.findall(CODE, page.read_text(), flags=re.DOTALL | re.MULTILINE):
        capsys.readouterr()
        exec(compile(code, page.name, "exec"), names)
        if shown and page.name not in RANDOM:
            assert is_shown(capsys.readouterr().out, shown)


def is_shown(output: str, shown: str) -> bool:
    """Return whether a page shows an output; `...` stands for any text."""
    pattern = ".*".join(map(re.escape, shown.strip().split("...")))
    lines = "\n".join(line.rstrip() for line in output.strip().splitlines())
    return re.fullmatch(pattern, lines, flags=re.DOTALL) is not None


def test_changed_outputs_are_noticed():
    assert is_shown("a b \nc\n", "a b\nc\n")
    assert is_shown("a b\nc\n", "a ...\n")
    assert not is_shown("a b\nd\n", "a b\nc\n")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "js")], ids=lambda page: page.name)
def test_the_javascript_of_a_page_runs(page, tmp_path):
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    for file in wasm.MODULE.parent.iterdir():
        shutil.copy(file, tmp_path)
    (tmp_path / "td").write_bytes(weights(Rules()))
    (tmp_path / "page.mjs").write_text("".join(blocks(page, "js")))
    subprocess.run([node, "page.mjs"], cwd=tmp_path, check=True, capture_output=True)


def test_pages_are_short():
    generated = r"<!-- table.*?<!-- end -->|```({toctree}|{eval-rst}|diff|text).*?```\n*"
    long = {"report.md", "environment.md"}  # a paper, and the whole reference of the environment on one page
    pages = [page for page in PAGES if page.parent != ROOT and page.name not in long]
    assert len(pages) > 40
    lines = {
        page.name: len(re.sub(generated, "", page.read_text(), flags=re.DOTALL).splitlines())
        for page in pages
    }
    assert not {name: count for name, count in lines.items() if count > MOST_LINES}


def test_documented_commands_exist():
    makefile = (ROOT / "Makefile").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    group: Any = typer.main.get_command(app)
    assert len(commands()) > 50
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
            others = {"cp", "rm", "export", "python3", "python", "pip", "pytest", "source", "jupyter"}
            assert Path(program).name in others, command
        for argument in arguments:
            if Path(argument).suffix in {".py", ".txt"} and Path(program).name != "wotd":
                assert (ROOT / argument).is_file(), command
            elif extras := re.fullmatch(r"(?:\.|wotd-env)\[([\w,]+)\]", argument):
                assert set(extras[1].split(",")) <= set(project["optional-dependencies"]), command


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_relative_links_lead_to_existing_files(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_pages_named_in_code_exist():
    folders = ("wotd_env", "agents", "tests", "tools", "notebooks", ".github")
    files = [
        file
        for folder in folders
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".ipynb", ".yml"}
    ]
    named = {
        (file.name, page)
        for file in [*files, ROOT / "Makefile", ROOT / "pyproject.toml"]
        for page in re.findall(r"\bdocs/[\w/-]+\.md\b", file.read_text())
    }
    assert len(named) > 30
    assert not {(name, page) for name, page in named if not (ROOT / page).is_file()}


def anchors(page: Path) -> set[str]:
    """Return the heading anchors of a page, as code hosts and the site generate them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ +(.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_link_anchors_match_headings(page):
    links = re.findall(r"\]\((?!https?:)([^)#]*)#([^)]+)\)", page.read_text())
    missing = [
        (file, anchor)
        for file, anchor in links
        if anchor not in anchors(page.parent / file if file else page)
    ]
    assert not missing


def test_names_in_changing_a_rule_exist_in_the_linked_files():
    page = ROOT / "docs" / "project" / "changing-a-rule.md"
    text = page.read_text()
    files = {(page.parent / link).resolve() for link in re.findall(r"\]\(([^)#]+)", text)}
    words = {word for file in files if file.is_file() for word in re.findall(r"\w+", file.read_text())}
    named = {part for name in re.findall(r"`([A-Za-z_][\w.-]*)`", text) for part in re.findall(r"\w+", name)}
    assert not named - words
    for change in blocks(page, "diff"):
        head, *lines = change.splitlines()
        old = "\n".join(line[1:] for line in lines if line[0] in "- ")
        assert old in (ROOT / head.removeprefix("--- ")).read_text(), (
            f"{head} differs from the diff on the page"
        )


def test_generated_tables_are_up_to_date():
    contents, found = pages_command.contents(), set()
    for page in PAGES:
        text = page.read_text()
        found |= set(re.findall(r"<!-- table: (\w+) -->", text))
        assert pages.renew(text, contents) == text, "run `make docs-tables`"
    assert set(contents) <= found
    assert "make speed" in contents["writers"]
    assert "make speed" not in contents["rule_writers"]
    assert "make solution" in contents["rule_writers"]


def test_every_module_that_writes_pages_is_a_writer():
    makefile = (ROOT / "Makefile").read_text()
    modules = set()
    for written_by, _, _ in pages_command.WRITERS:
        line = written_by
        if target := written_by.partition("make ")[2]:
            line = re.findall(rf"^{target}:.*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[0]
        modules |= set(re.findall(r"-m (tools[\w.]*)", line))
    found = {
        ".".join(file.relative_to(ROOT).with_suffix("").parts)
        for file in (ROOT / "tools").rglob("*.py")
        if re.search(r"\.write_text\(.*(renew|dumps)|pages\.write\(", file.read_text())
    }
    assert {name.removesuffix(".__main__") for name in found - {"tools.pages"}} <= modules
    assert len(found) > 5


def test_the_page_of_the_design_describes_every_package():
    rows = set(re.findall(r"^\| \[wotd_env/(\w+)/\]", DESIGN.read_text(), re.MULTILINE))
    folders = {file.parent.name for file in (ROOT / "wotd_env").glob("*/__init__.py")}
    layers = set(re.findall(r"`(\w+)`", tables.layers()))
    assert rows == folders <= layers, (
        "add the package to the table in docs/explanation/design.md and to the import contract in pyproject.toml"
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_quoted_figures_match_the_measurements(page):
    assert figures.renewed(page) == page.read_text(), "run `make docs-tables`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_line_begins_with_a_figure(page):
    # A comment at the start of a line begins a block of HTML, in which links stay text.
    assert not re.findall(r"^\s*<!-- figure: .*", page.read_text(), flags=re.MULTILINE)


def test_pages_quote_figures():
    pages_with_figures = {page.name for page in PAGES if "<!-- figure: " in page.read_text()}
    assert pages_with_figures >= {"speed.md", "turn-planner.md", "openspiel.md", "report.md"}
    for page in ("README.md", "docs/index.md"):
        assert "<!-- table: figures -->" in (ROOT / page).read_text()
    with pytest.raises(KeyError):
        figures.figure("rate no-such-case")


def test_the_page_of_installation_lists_every_extra():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = (ROOT / "docs" / "how-to" / "install.md").read_text()
    rows = text.partition("| extra | contents |")[2].partition("\n\n")[0].splitlines()[2:]
    listed = [name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])]
    assert sorted(listed) == sorted(extras)
    (everything,) = extras["all"]
    assert set(re.findall(r"\w+", everything.partition("[")[2])) == set(extras) - {
        *("all", "rllib", "cuda", "video", "docs", "notebooks", "bench", "dev")
    }, "docs/how-to/install.md says which extras `all` leaves out"


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_the_reward_table_matches_the_game(players):
    table = ENVIRONMENT.read_text().split("<!-- table: reward -->")[1]
    row = next(line for line in table.splitlines() if line.startswith(f"| {players} |"))
    *stated, other = (float(cell) for cell in row.split("|")[2:] if cell.strip())
    game = Game(players=players)
    assert len(stated) == players - 1  # all seats never win together
    for winners in range(1, players):
        over = game.reset(1)  # an artificial end before anyone has moved
        over["phase"] = Phase.OVER
        for path in range(winners):
            over["pieces"][0, path, path] = game.rules.spaces + 3
        expected = [stated[winners - 1]] * winners + [other] * (players - winners)
        np.testing.assert_allclose(game.rewards(over)[0], expected, atol=5e-5)


def test_an_empty_table_is_filled_without_the_text_after_it():
    page = "<!-- table: a -->\n\n<!-- end -->\n\n## Text\n\n<!-- table: b -->\nold\n<!-- end -->\n"
    renewed = pages.renew(page, {"a": "new"})
    assert renewed == page.replace("\n\n<!-- end", "\nnew\n<!-- end", 1)
