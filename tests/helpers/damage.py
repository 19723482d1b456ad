"""Campaigns of damage, and full disks.

A reader must refuse a damaged file with one sentence, or return the same result as before.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest


def damaged(content: bytes, flips: int) -> Iterator[bytes]:
    """Yield damaged copies: single flipped bits, overwritten ranges, truncated and extended copies, other content."""
    rng = np.random.default_rng(0)
    for at in rng.integers(8 * len(content), size=flips).tolist():
        copy = bytearray(content)
        copy[at // 8] ^= 1 << at % 8
        yield bytes(copy)
    for start in rng.integers(len(content), size=flips // 4).tolist():
        size = int(rng.choice([1, 16, 512]))
        yield content[:start] + rng.bytes(len(content[start : start + size])) + content[start + size :]
        yield content[:start]
    yield from (b"", b"foreign", content[1:], content[: len(content) // 2] * 2, bytes(len(content)))


def survive(file: Path, read: Callable[[Path], Any], flips: int, errors: Any = ValueError) -> int:
    """Read damaged copies of a file in its place; return how many are refused.

    `read` returns a value that can be compared. The message of an error must be one line with the name of the file.
    """
    content = file.read_bytes()
    expected, refused = read(file), 0
    for number, copy in enumerate(damaged(content, flips)):
        file.write_bytes(copy)
        message = ""
        try:
            found = read(file)
        except errors as error:
            message = str(error)
        if message:
            assert file.name in message
            assert "\n" not in message.strip()
            refused += 1
        else:
            assert found == expected, f"copy {number} has another result"
    file.write_bytes(content)
    assert read(file) == expected
    assert refused
    return refused


@contextmanager
def no_room(size: int) -> Iterator[None]:
    """Limit the size of all files, in bytes, to simulate a full disk."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
