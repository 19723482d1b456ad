"""The file of a solved game: a header, checksums, then the values of all positions.

- The header has 4096 bytes: a line with a magic word, JSON padded with blanks, and the SHA-256 of the preceding bytes.
  The JSON contains the SHA-256 of the checksums.
- Each checksum is the CRC-32 of a block of 16,384 values, as a little-endian uint32. The checksums are padded to a
  multiple of 4096 bytes. A block has values of one layer only, so the last block of a layer may be shorter.
- The values are sorted by section (see `sections_of`), and within a section by layer (see `positions`), from the most
  progress to the least. The values are little-endian float32. In a compact table, they are little-endian int16 in units
  of 1/32767.

A file is named FILE.part until it is complete. Then it gets the name FILE and is never changed. The process that makes
the file locks FILE.lock. The operating system releases the lock when the process ends.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_integer
from wotd_env.core.layouts import dead_of, standard
from wotd_env.core.rules import ABOUT, DICE, ELEMENTS, PATHS, Power, Rules, options_of
from wotd_env.extras import needed_for
from wotd_env.process import shell_command
from wotd_env.solver.positions import Board, board_of

FORMAT = b"way-of-the-dragon values "
MAGIC = FORMAT + b"2\n"
RULINGS = 2  # version of the rulings that affect values; version 2: only a moving piece earns an extra turn
PART = ".part"
HEADER = 4096
DIGEST = 65  # number of bytes at the end of the header: a SHA-256 in hexadecimal digits, and a line feed
VALUE = np.dtype("<f4")
COMPACT = np.dtype("<i2")
CHECKSUM = np.dtype("<u4")
REACH = DICE + 1  # layers in memory in the basic game: the current layer and the five layers solved before it
UNITS = 32767
BLOCK_BITS = 14
BLOCK = 1 << BLOCK_BITS

LOG = logging.getLogger("wotd_env")


class TableError(ValueError):
    """The error for a file that is not a complete and intact table."""


ALL_POWERS = (1 << len(Power)) - 1
Section = tuple[int, ...]
"""The key of a section. With two players, the key is a pair of bit sets: the powers that the player to move can still
use, and the powers that the other player can still use. Bit i stands for power i. With three players, the key is
(seat,), and the section has the guarantees of this seat. Seats are counted from the player to move."""


def board_for(rules: Rules) -> Board:
    """Return the board for these rules."""
    rules = rules_in({"rules": facts_of(rules)})
    if not isinstance(rules.dead_pieces, str):
        return board_of(rules.spaces, rules.immunity, rules.players)
    columns = dead_by_column(rules)
    dead = [*columns[2:], *columns[:2]] if rules.immunity else columns
    return board_of(rules.spaces, rules.immunity, rules.players, tuple(dead))


def sections_of(rules: Rules) -> list[list[Section]]:
    """Return groups of a table's sections, in the order of solving. The sections of a group are solved together."""
    if rules.players == 3:
        return [[(0,), (1,), (2,)]]
    if rules.powers == "none":
        return [[(0, 0)]]
    if rules.powers == "any":
        return [[(0, 0)], [(ALL_POWERS, 0), (0, ALL_POWERS)], [(ALL_POWERS, ALL_POWERS)]]
    first, second = (1 << color for color in colors_of(rules))
    pairs: list[list[Section]] = [[(a, b), (b, a)] for a, b in ((first, 0), (second, 0), (first, second))]
    return [[(0, 0)], *pairs]


def dead_by_column(rules: Rules) -> list[int]:
    """Return the dead pieces of the five paths under the rules of a table, in the order of `Table.value`."""
    if not isinstance(rules.dead_pieces, str):
        return [0] * PATHS
    own = colors_of(rules) if rules.immunity else []
    dead: list[int] = dead_of(rules.dead_pieces)[[*own, *(set(range(PATHS)) - {*own})]].tolist()
    return dead


def in_standard_order(rules: Rules) -> int | str:
    """Return 0 or the layout of the dead pieces, with its interchangeable paths in order.

    With immunity and without own powers, the seats of the result have the colors water and fire.

    Raises:
        ValueError: for dead pieces on random spaces, or on the paths of random colors with immunity.
    """
    if not rules.dead_pieces:
        return 0
    if not isinstance(rules.dead_pieces, str):
        raise ValueError(
            f"dead_pieces must be 0 or a layout for the game to be solved, got {rules.dead_pieces}"
        )
    if not rules.immunity:
        return standard(rules.dead_pieces)
    paths, colors = rules.dead_pieces.split("/"), colors_of(rules)
    ordered = sorted(path for color, path in enumerate(paths) if color not in colors)
    own = [paths[color] for color in colors]
    if rules.powers != "own":
        own, colors = sorted(own), [0, 1]
    for color, path in zip(colors, own, strict=True):
        ordered.insert(color, path)
    return "/".join(ordered)


def colors_of(rules: Rules) -> list[int]:
    """Return the colors of the two seats in ascending order; raise ValueError for random colors."""
    if rules.colors == "random":
        raise ValueError(
            "colors must be the same in every game to be solved with own powers, or with dead pieces and immunity, "
            "got 'random'"
        )
    return sorted(map(ELEMENTS.index, rules.colors or ELEMENTS[: rules.players]))


class Layout(NamedTuple):
    """The offsets of the values in a file. Every section has T layers and B blocks."""

    sections: int
    positions: int
    base: NDArray[np.int64]  # (T,): the number of values in a section before each layer
    block: NDArray[np.int64]  # (T,): the number of blocks in a section before each layer
    cuts: NDArray[np.int64]  # (B + 1,): block b has the values cuts[b] to cuts[b + 1] - 1 of a section

    @property
    def blocks(self) -> int:
        """The number of blocks of a section."""
        return len(self.cuts) - 1

    @property
    def bytes(self) -> int:
        """The number of bytes before the values."""
        return HEADER + -(-self.sections * self.blocks * CHECKSUM.itemsize // HEADER) * HEADER

    def offset(self, section: int, itemsize: int, total: int | None = None) -> int:
        """Return the offset in bytes of the values of a section, or of layer `total` in the section."""
        within = 0 if total is None else int(self.base[total])
        return self.bytes + (section * self.positions + within) * itemsize

    def blocks_of(self, total: int) -> slice:
        """Return the range of blocks of layer `total` within a section."""
        return slice(self.block[total], self.block[total - 1] if total else self.blocks)


def layout_of(board: Board, sections: int = 1) -> Layout:
    """Return the layout of a file that has this number of sections for this board."""
    base = np.append(np.cumsum(board.sizes[::-1])[::-1][1:], 0).astype(np.int64)
    layers = zip(base[::-1], board.sizes[::-1], strict=True)
    cuts = [np.arange(first, first + size, BLOCK) for first, size in layers]
    cut = np.append(np.concatenate(cuts), board.positions)
    return Layout(sections, board.positions, base, np.searchsorted(cut, base), cut)


def is_compact(header: dict[str, Any]) -> bool:
    """Return whether a table with this header is compact."""
    return header["compact_error"] is not None


def read_header(file: Path, expected: Rules | None = None) -> dict[str, Any]:
    """Return the header of a file. If the header is unreadable, the error names the command for the rules `expected`.

    Raises:
        TableError: if the header is damaged, has another format or other rulings, or its rules cannot be solved.
    """
    with file.open("rb") as stream:
        text = stream.read(HEADER)
    if not text.startswith(FORMAT):
        raise TableError(f"{file} is not a table made by `wotd solve`")
    if not text.startswith(MAGIC):
        raise TableError(f"{file} has the format of another version of wotd-env: {cure(file, expected)}")
    if len(text) < HEADER or text[-DIGEST:].decode("ascii", "replace") != digest(text[:-DIGEST]) + "\n":
        raise TableError(f"the header of {file} is damaged: {cure(file, expected)}")
    try:
        header: dict[str, Any] = json.loads(text[len(MAGIC) : -DIGEST])
        rulings, rules = header["rulings"], rules_in(header)
        known = header["rules"] == facts_of(rules)
        layers = len(board_for(rules).sizes) * len(sections_of(rules))
        check_integer("layers", header["layers"], 0, layers)
        if not header.keys() >= {"sha256", "compact_error"}:
            raise ValueError("it has wrong entries")
        for name in ("seconds", "cpu_seconds"):
            if not isinstance(header.get(name), float):
                raise ValueError(f"{name} must be a float, got {header.get(name)!r}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(f"the header of {file} cannot be read ({error}): {cure(file, expected)}") from error
    if not known:
        raise TableError(f"{file} is for rules that cannot be solved, {header['rules']}")
    if rulings != RULINGS:
        raise TableError(
            f"{file} was solved with other rulings (version {rulings}, not {RULINGS}): {cure(file, rules)}"
        )
    return header


def cure(file: Path, rules: Rules | None = None) -> str:
    """Return advice on how to replace an invalid table."""
    return f"remove it and solve again: {command(file, rules)}"


def command(file: Path, rules: Rules | None = None) -> str:
    """Return the command that makes a table or continues an unfinished table."""
    whole = file.with_suffix("") if file.suffix == PART else file
    if rules is None:
        return shell_command("wotd", "solve", "--spaces", "S", "--out", whole)
    others = options_of(rules_in({"rules": facts_of(rules)}))
    if "--spaces" in others:
        at = others.index("--spaces")
        del others[at : at + 2]
    return shell_command("wotd", "solve", "--spaces", rules.spaces, *others, "--out", whole)


def facts_of(rules: Rules) -> dict[str, Any]:
    """Return the rules that affect values."""
    facts = {name: getattr(rules, name) for name, known in ABOUT.items() if known.affects_values}
    del facts["colors"]  # they matter only with own powers
    facts["dead_pieces"] = in_standard_order(rules)
    if rules.powers == "own":
        facts["colors"] = [ELEMENTS[color] for color in colors_of(rules)]
    return facts


def in_words(facts: dict[str, Any]) -> str:
    """Return a description of rules for error messages. `facts` is the result of `facts_of`."""
    players = "" if facts["players"] == 2 else f"{facts['players']} players, "
    powers = f", powers {' '.join([facts['powers'], *facts.get('colors', [])])}"
    powers = "" if facts["powers"] == "none" else powers
    dead = f", dead pieces {facts['dead_pieces']}" if facts["dead_pieces"] else ""
    return f"{players}{facts['spaces']} plain spaces{powers}{', immunity' if facts['immunity'] else ''}{dead}"


def rules_in(header: dict[str, Any]) -> Rules:
    """Return the rules of a table. With own powers, the colors in the header are the colors of seats 0 and 1."""
    facts = header["rules"]
    names = ("players", "spaces", "powers", "immunity", "dead_pieces")
    return Rules(**{name: facts[name] for name in names}, colors=facts.get("colors"))


def checksums(values: NDArray[Any], cuts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the checksums of B blocks, uint32 (B,). Block b is `values[cuts[b] : cuts[b + 1]]`."""
    return np.array([zlib.crc32(values[a:b].data) for a, b in pairwise(cuts.tolist())], CHECKSUM)


def layer_checksums(layout: Layout, total: int, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the checksums of the blocks of layer `total`, given the values of the layer."""
    blocks = layout.blocks_of(total)
    return checksums(values, layout.cuts[blocks.start : blocks.stop + 1] - layout.base[total])


def read_checksums(stream: BinaryIO, layout: Layout) -> NDArray[np.uint32]:
    """Return the checksums in an open file, uint32 (sections * B,). A truncated file may contain fewer checksums."""
    stream.seek(HEADER)
    content = stream.read(layout.sections * layout.blocks * CHECKSUM.itemsize)
    return np.frombuffer(content, CHECKSUM, len(content) // CHECKSUM.itemsize)


def digest(content: bytes | memoryview) -> str:
    """Return the SHA-256 of the content in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Lock the table `file` during a `with` block. If another process holds the lock, log a warning and wait."""
    with needed_for("making a table", "arena"):
        from filelock import FileLock, Timeout
    lock = FileLock(f"{file}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        LOG.warning(f"another process is making {file} and holds the lock {lock.lock_file}; waiting")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def write_header(stream: BinaryIO, header: dict[str, Any]) -> None:
    """Write a header to the beginning of an open file."""
    text = (MAGIC + json.dumps(header).encode()).ljust(HEADER - DIGEST)
    write(stream, 0, text + f"{digest(text)}\n".encode())


def write_layer(stream: BinaryIO, layout: Layout, total: int, values: NDArray[Any], section: int = 0) -> None:
    """Write the values of a layer and their checksums to an open file, and flush them to the disk."""
    write(stream, layout.offset(section, values.itemsize, total), values.data)
    sums = layer_checksums(layout, total, values)
    block = section * layout.blocks + int(layout.block[total])
    write(stream, HEADER + block * CHECKSUM.itemsize, sums.data)
    os.fsync(stream.fileno())


def write(stream: BinaryIO, offset: int, content: bytes | memoryview) -> None:
    """Write all content at an offset of an open, unbuffered file. If writing fails, the OSError has the file name."""
    left = memoryview(content).cast("B")
    stream.seek(offset)
    try:
        while left:
            left = left[stream.write(left) :]
    except OSError as error:
        raise OSError(error.errno, error.strerror, stream.name) from error


def finish(stream: BinaryIO, layout: Layout, header: dict[str, Any]) -> None:
    """Write the final header of a table, with the SHA-256 of the checksums."""
    header["sha256"] = digest(read_checksums(stream, layout).data)
    write_header(stream, header)
    os.fsync(stream.fileno())
