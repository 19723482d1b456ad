"""Find unclear constructions in pages, notebooks, docstrings and comments (`python -m tools.prose`).

The tool searches for patterns, so it finds only a few of the faults that CONTRIBUTING.md names.
"""

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tools.pages import PAGES, ROOT

FOLDERS = ("wotd_env", "agents", "examples", "tools", "tests")
MOST_WORDS = 40  # largest number of words in a sentence of a page, outside tables
PATTERNS = {
    r"(?<!there )\b(is|are|was|were) none\b": "negate the verb: is not a ...",
    r"\b[Ww]hoever\b": "name the subject",
    r"\banew\b": "again",
    r"\bgo(es)? on (with|from|to)\b": "continue",
    r"\bthe way back\b": "the inverse",
    r"\bfor (good|ever)\b": "permanently, forever",
    r"\bso many\b": "that many",
    r"\bgives? away\b": "regret, loses",
    r"\b(is|are) what\b": "name the thing",
    r"\bas that (does|is|of)\b": "repeat the noun",
    r"\bwhere (it|they|there) (is|are) (one|none|any)\b": "if",
    r"\bstands at \d": "reaches",
    r"\blearnt\b|\bcolour": "US spelling",
    r"\bcomes? to (its|their|an) end\b": "finishes",
}


class Text(NamedTuple):
    """A docstring, a comment, or a paragraph of a page."""

    file: Path
    line: int
    words: str


def main() -> int:
    """Print every fault with its file and line, and return the exit status."""
    places = ((f"{text.file.relative_to(ROOT)}:{text.line}", text) for text in texts())
    faults = [f"{place}: {fault}" for place, text in places for fault in check(text)]
    print("\n".join(faults) or "No unclear sentences found.")
    return int(bool(faults))


def check(text: Text) -> Iterator[str]:
    """Yield a message for each fault of a text."""
    for pattern, cure in PATTERNS.items():
        if found := re.search(pattern, text.words):
            yield f"{found[0]!r} ({cure})"
    if text.file.suffix == ".md":
        for sentence in re.split(r"(?<=[.!?:])\s+", text.words):
            if len(sentence.split()) > MOST_WORDS:
                yield f"a sentence of {len(sentence.split())} words: {' '.join(sentence.split()[:6])} ..."


def texts() -> Iterator[Text]:
    """Yield the paragraphs of all pages and notebooks, and all docstrings and comments."""
    for page in PAGES:
        yield from paragraphs(page, page.read_text())
    for notebook in sorted(ROOT.glob("notebooks/*.ipynb")):
        for cell in json.loads(notebook.read_text())["cells"]:
            if cell["cell_type"] == "markdown":
                yield from (text._replace(line=1) for text in paragraphs(notebook, "".join(cell["source"])))
    for file in sorted(file for folder in FOLDERS for file in ROOT.glob(f"{folder}/**/*.py")):
        yield from in_code(file, file.read_text())


def paragraphs(file: Path, page: str) -> Iterator[Text]:
    """Yield the paragraphs of a Markdown page. Skip its code, tables and generated parts."""
    skipped = r"```.*?```|<!-- table.*?<!-- end -->|<!--.*?-->"
    page = re.sub(skipped, lambda found: "\n" * found[0].count("\n"), page, flags=re.DOTALL)
    line = 1
    for block in page.split("\n\n"):
        # Each entry of a list is a paragraph of its own.
        for i, part in enumerate(re.split(r"\n(?=\s*(?:[-*]|\d+\.) )", block)):
            if not part.lstrip().startswith(("|", "#", "<", ":::")):
                words = re.sub(r"^\s*(?:[-*]|\d+\.) ", "", part).split()
                yield Text(file, line + i, re.sub(r"`[^`]*`", "`x`", " ".join(words)))
        line += block.count("\n") + 2


def in_code(file: Path, code: str) -> Iterator[Text]:
    """Yield the docstrings and comments of a Python file."""
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield Text(file, node.lineno, " ".join(re.sub(r"`[^`]*`", "`x`", text).split()))
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield Text(file, token.start[0], token.string)


if __name__ == "__main__":
    sys.exit(main())
