"""Damage and compare table files, and solve small boards."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

from wotd_env.solver import positions, storage
from wotd_env.solver.storage import DIGEST, HEADER, MAGIC, digest

OTHER_RULES = {"players": 2, "spaces": 0, "powers": "own", "immunity": False, "dead_pieces": 0}


def same(file: Path, other: Path) -> bool:
    """Return whether two files have the same checksums and values; headers contain times and may differ."""
    contents = [one.read_bytes()[HEADER:] for one in (file, other)]
    return bool(contents[0] == contents[1])


def with_header(content: bytes, **changes) -> bytes:
    """Return the content of a file with a changed header and a valid checksum."""
    header = json.loads(content[len(MAGIC) : HEADER - DIGEST]) | changes
    return with_text(content, json.dumps(header).encode())


def with_text(content: bytes, text: bytes) -> bytes:
    """Return the content of a file with this text as the JSON of its header and a valid checksum."""
    text = (MAGIC + text).ljust(HEADER - DIGEST)
    return text + f"{digest(text)}\n".encode() + content[HEADER:]


def without(content: bytes, name: str) -> bytes:
    """Return the content of a file without one entry of its header."""
    header = json.loads(content[len(MAGIC) : HEADER - DIGEST])
    del header[name]
    return with_text(content, json.dumps(header).encode())


def flipped(content: bytes, at: int, bit: int = 0) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


@contextmanager
def short_paths(*board: Any, **options: Any) -> Iterator[positions.Board]:
    """Make a board with paths of two numbered spaces, whose tables are solved within a second."""
    with mock.patch.object(positions, "NUMBERED", 2):
        small = positions.board_of.__wrapped__(*board, **options)
    with mock.patch.object(storage, "board_of", return_value=small):
        yield small
