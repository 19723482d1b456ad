"""The checks of kernels and of sentences in `make check`."""

import pytest

from tests.helpers import ROOT
from tools import prose
from tools.kernels import faults, main

KERNEL = """
from wotd_env.core import compilation

@compilation.kernel
def choose(games, rules):
    memory = {}
    return memory[0]
"""


@pytest.mark.parametrize(
    "code",
    [
        "np.empty(1, STATE)",
        "np.zeros((2, 3), dtype=games.dtype)",
        "np.full(4, games[0], STATE)",
        "np.empty_like(games)",
        "games.copy()",
        "games[:2].repeat(3)",
    ],
)
def test_kernel_check_reports_record_allocations(code):
    assert list(faults(KERNEL.format(code))) == [(6, code)]
    assert not list(faults(KERNEL.format(code).replace("@compilation.kernel\n", "")))


@pytest.mark.parametrize(
    "code", ["np.empty(3)", "np.zeros((2, 3), np.uint64)", "np.full(4, 1, dtype=np.int8)"]
)
def test_kernel_check_allows_arrays_of_numbers(code):
    assert not list(faults(KERNEL.format(code)))


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("page.md", "A text that is none.", "negate the verb"),
        ("page.md", "Whoever plays wins.", "name the subject"),
        ("page.md", "- short\n- " + "word " * 50 + "end.", "a sentence of 51 words"),
        ("code.py", '"""Begin anew."""', "again"),
        ("code.py", "x = 1  # what the box holds for good", "permanently"),
    ],
)
def test_unclear_sentences_are_found(name, content, fault):
    file = ROOT / name
    read = prose.paragraphs if name.endswith(".md") else prose.in_code
    faults = [found for text in read(file, content) for found in prose.check(text)]
    assert len(faults) == 1
    assert fault in faults[0]


def test_code_and_generated_parts_are_not_sentences():
    page = "`is none` and\n\n```python\nx is none\n```\n\n<!-- table: a -->\n\nanew\n\n<!-- end -->\n\n| anew |\n"
    assert not [fault for text in prose.paragraphs(ROOT / "page.md", page) for fault in prose.check(text)]
    assert not list(prose.in_code(ROOT / "code.py", "value = 'anew'"))


def test_the_kernels_of_the_project_allocate_no_records():
    assert main() == 0
