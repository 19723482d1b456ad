"""The page of examples lists each with its number of lines; examples are small and import only the package."""

import ast
import re
from pathlib import Path

import pytest

from tests.helpers import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.name)
def test_example_is_one_small_documented_file(file: Path):
    text = file.read_text()
    assert len(text.splitlines()) < 280
    assert f"python examples/{file.name}" in (ast.get_docstring(ast.parse(text)) or "")
    assert not re.search(r"^\s*(from|import) (agents|examples|tests|tools|train)\b", text, re.MULTILINE)


def test_the_page_lists_every_example_with_its_line_count():
    page = (ROOT / "docs" / "how-to" / "examples.md").read_text()
    listed = re.findall(
        r"^\| \[(\w+\.py)\]\(\.\./\.\./examples/\1\) \| .* \| (\d+) \|$", page, flags=re.MULTILINE
    )
    assert dict(listed) == {file.name: str(len(file.read_text().splitlines())) for file in EXAMPLES}
