"""The Markdown pages and their generated parts.

A generated part is the text from `<!-- table: NAME -->` to `<!-- end -->`.
"""

import argparse
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = sorted(page for places in ("*.md", "docs/*.md", "docs/*/*.md") for page in ROOT.glob(places))


def parser_of(page: Path, description: str | None) -> argparse.ArgumentParser:
    """Return a parser of the command that writes a page; its argument `names` selects generated parts."""
    parser = argparse.ArgumentParser(description=description)
    known = re.findall(r"<!-- table: (\w+) -->", page.read_text())

    def part(name: str) -> str:
        if name not in known:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(known)}, got {name!r}")
        return name

    words = f"parts to write: {', '.join(known)}; by default all"
    parser.add_argument("names", nargs="*", type=part, metavar="NAME", help=words)
    return parser


def write(page: Path, findings: object, names: Iterable[str] = ()) -> None:
    """Write generated parts of a page, by default all. The method NAME of `findings` returns the part NAME."""
    for name in names or re.findall(r"<!-- table: (\w+) -->", page.read_text()):
        text = getattr(findings, name)()
        # Read the page only now, because it may have been edited during the measurement.
        page.write_text(renew(page.read_text(), {name: text}))


def renew(page: str, tables: Mapping[str, str]) -> str:
    """Return the text `page` with new generated parts. `tables` maps NAME to the new text of a part."""

    def renewed(block: re.Match[str]) -> str:
        begin, name, old, end = block.groups()
        return f"{begin}{tables.get(name, old)}{end}"

    pattern = r"(<!-- table: (\w+) -->\n+)((?:(?!<!-- end -->).)*?)(\n+<!-- end -->)"
    return re.sub(pattern, renewed, page, flags=re.DOTALL)
