"""Shared by the tests with other libraries: write the table of docs/reference/clients.md from the passed tests."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from tools import pages
from wotd_env.reporting import markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "clients.md"
HEAD = ("library", "version", "how its users make it", "lines of glue")

_entries = pytest.StashKey[dict[tuple[str, str], tuple[str, int] | None]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--table",
        action="store_true",
        help="write the libraries whose tests passed into docs/reference/clients.md",
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]):
    report = yield
    entries = item.config.stash.setdefault(_entries, {})
    for mark in item.iter_markers("client"):
        name, package, entry, *glue = mark.args
        if report.failed:
            entries[name, entry] = None
        elif report.when == "call" and report.passed:
            entries.setdefault((name, entry), (version(package), sum(map(lines_of, glue))))
    return report


def pytest_sessionfinish(session: pytest.Session) -> None:
    if session.config.getoption("--table", False):
        entries = session.config.stash.get(_entries, {})
        rows = [(n, row[0], f"`{entry}`", row[1]) for (n, entry), row in entries.items() if row]
        PAGE.write_text(with_rows(PAGE.read_text(), rows))


def lines_of(glue: Callable[..., Any]) -> int:
    """Return the number of lines of a function's body, without its docstring."""
    (function,) = ast.parse(textwrap.dedent(inspect.getsource(glue))).body
    assert isinstance(function, ast.FunctionDef)
    code = function.body[1:] if ast.get_docstring(function) else function.body
    return sum((statement.end_lineno or 0) - statement.lineno + 1 for statement in code)


def with_rows(page: str, rows: list[tuple[str, str, str, int]]) -> str:
    """Return the page with these rows in its table, in place of the older rows of the same libraries."""
    ran = {row[0] for row in rows}
    begin = page.index("<!-- table: clients -->")
    older = [line.strip("| ").split(" | ") for line in page[begin : page.index("<!-- end -->")].splitlines()]
    kept = [tuple(cells) for cells in older[4:] if len(cells) == len(HEAD) and cells[0] not in ran]
    every = sorted([*kept, *rows], key=lambda row: str(row[0]).lower())
    return pages.renew(page, {"clients": markdown(HEAD, every, right=[3])})
