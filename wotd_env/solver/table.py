"""The file of a solved game: a header, checksums, then one value for each position.

- The header has 4096 bytes (`head -c 4096 FILE` shows it): a line with a magic word, one line of JSON, spaces, and the
  SHA-256 of all that. It has the SHA-256 of the checksums.
- The values follow one another layer by layer (see `wotd_env.solver.positions`) from the most progress to the least, so
  that solving appends to the file; the last value is that of the start. They are little-endian float32 or, in a
  compact table, int16 in units of 1/32767; `compact` makes the latter of the former and notes how far they differ.
- Every layer is cut into blocks of 16,384 positions, the last one of a layer being shorter. The checksums are the
  CRC-32 of each block, little-endian uint32, padded to a multiple of 4096 bytes.

Values are mapped into memory, and a block is compared with its checksum when it is first read, once in each process. So
opening a table is quick however large it is, and a damaged value is never used.

A file that has its name is finished and is never written again. It is made as FILE.part, by whoever holds the lock on
FILE.lock; the system releases that if the process ends, however it ends.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.arguments import check_integer
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import PATHS, Rules
from wotd_env.core.state import Records
from wotd_env.extras import needed_for
from wotd_env.solver.positions import NONE, Board, Layers, board_of, index_of, sort_codes

__all__ = [
    "Table",
    "TableError",
    "cache_file",
    "check_solvable",
    "check_table",
    "compact",
    "describe_missing",
    "load",
]

FORMAT = b"way-of-the-dragon values "
MAGIC = FORMAT + b"2\n"
RULINGS = 2
"""Raised whenever a ruling changes on which values depend; 2: only a piece that moves earns perfection (R8)."""
PART = ".part"
"""What the name of an unfinished file ends in."""
HEADER = 4096
DIGEST = 65
"""Bytes at the end of the header: the SHA-256 of those before in hexadecimal digits, and an end of line."""
VALUE = np.dtype("<f4")
COMPACT = np.dtype("<i2")
CHECKSUM = np.dtype("<u4")
UNITS = 32767
"""Units of a compact table in a value of 1."""
BLOCK_BITS = 14
BLOCK = 1 << BLOCK_BITS
"""Positions in a block."""
MICROSECONDS = 1.2
"""Measured on one core of a server of 2025, for each position."""

LOG = logging.getLogger("wotd_env")

Progress = Callable[[int, int], None]
"""Is called as the work goes on with the number of positions done and that of all."""


class TableError(ValueError):
    """A file that is no complete and intact table."""


class Layout(NamedTuple):
    """Where in a file the layers of a board are; T layers, B blocks."""

    base: NDArray[np.int64]
    """(T,): the number of values before each layer"""
    block: NDArray[np.int64]
    """(T,): the number of blocks before each layer"""
    cuts: NDArray[np.int64]
    """(B + 1,): the number of values before each block, and all of them"""

    @property
    def blocks(self) -> int:
        """All blocks."""
        return len(self.cuts) - 1

    @property
    def bytes(self) -> int:
        """Bytes before the values."""
        return HEADER + -(-self.blocks * CHECKSUM.itemsize // HEADER) * HEADER

    def blocks_of(self, total: int) -> slice:
        """Return the blocks of a layer."""
        return slice(self.block[total], self.block[total - 1] if total else self.blocks)


def layout_of(board: Board) -> Layout:
    """Return where the layers of a board are."""
    base = np.append(np.cumsum(board.sizes[::-1])[::-1][1:], 0).astype(np.int64)
    layers = zip(base[::-1], board.sizes[::-1], strict=True)
    cuts = [np.arange(first, first + size, BLOCK) for first, size in layers]
    cuts.append(np.array([board.positions]))
    cut = np.concatenate(cuts)
    return Layout(base, np.searchsorted(cut, base), cut)


class Table:
    """The value of every position of the two-player basic game on one board.

    A value is the expected result (1 a win, -1 a loss; no game is tied) of the player to move, before the first roll of
    the turn, if both play perfectly.

    Attributes:
        file: where the values are.
        header: what the file says of itself.
        board: the positions and their numbers.
        layout: where the layers are.
        unit: what a 1 in `values` is worth.
    """

    def __init__(
        self, file: Path, header: dict[str, Any], checksums: NDArray[np.uint32], values: NDArray[Any]
    ) -> None:
        self.file = file
        self.header = header
        self.unit = np.float32(1 / UNITS if is_compact(header) else 1)
        self.board = board_of(header["rules"]["spaces"])
        self.layout = layout_of(self.board)
        self._values = values
        self._layers = Layers(self.board, self.layout.base, values)
        self._checksums = checksums
        self._checked = np.zeros(len(checksums), np.bool_)

    def __repr__(self) -> str:
        return f"Table({str(self.file)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.file.absolute(),)  # not the values, which may be gigabytes

    def __deepcopy__(self, memo: dict[int, Any]) -> Table:
        return self  # a table is only read

    @property
    def spaces(self) -> int:
        """Plain spaces of the board."""
        return self.board.spaces

    @property
    def start(self) -> float:
        """The value of the game for the player who begins."""
        return float(self.value([[0] * PATHS], [[0] * PATHS])[0])

    @property
    def values(self) -> NDArray[Any]:
        """All values, float32 or, if the table is compact, int16 (positions,), mapped; what is unchecked is read.

        Raises:
            TableError: if some do not match their checksum.
        """
        self._check(np.arange(len(self._checked)))
        return self._values

    def _check(self, blocks: NDArray[np.int64]) -> None:
        """Compare blocks with their checksums unless that has been done."""
        if self._checked[blocks].all():
            return
        for block in np.unique(blocks[~self._checked[blocks]]).tolist():
            if checksums(self._values, self.layout.cuts[block : block + 2]) != self._checksums[block]:
                raise TableError(
                    f"values in {self.file} do not match their checksum; it is damaged: {cure(self.file)}"
                )
            self._checked[block] = True

    def value(self, mine: ArrayLike, theirs: ArrayLike) -> NDArray[np.float32]:
        """Return the values of positions, float32 (N,), for the player to move.

        Args:
            mine: integers (N, 5), the spaces of the pieces of the player to move.
            theirs: integers (N, 5), those of the other player's.

        Raises:
            ValueError: if the arrays don't fit, or a piece is off the board's range or stands on another.
        """
        alike = np.shape(mine) == np.shape(theirs)
        pieces: Any = np.stack([np.asarray(mine), np.asarray(theirs)]) if alike else np.empty(0)
        if pieces.ndim != 3 or pieces.shape[2] != PATHS or pieces.dtype.kind not in "iu":
            what = f"{np.shape(mine)} and {np.shape(theirs)}"
            raise ValueError(f"mine and theirs must be integer arrays (N, {PATHS}), got shapes {what}")
        top = len(self.board.code) - 1
        wrong = (pieces < 0) | (pieces > top)
        wrong |= self.board.code[tuple(np.where(wrong, 0, pieces))] == NONE
        if wrong.any():
            side, game, path = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"{('mine', 'theirs')[side]}[{game}, {path}] must be a space from 0 to {top} where no other piece "
                f"stands, got {int(pieces[side, game, path])}"
            )
        out, blocks = np.empty(pieces.shape[1], np.float32), np.empty(pieces.shape[1], np.int64)
        pieces = np.ascontiguousarray(pieces, np.int8)
        look_up_pieces(self._layers, self.layout.block, pieces, out, blocks)
        self._check(blocks)
        return out * self.unit

    def check_rules(self, rules: Rules) -> None:
        """Make sure that games with these rules are those of the table.

        Raises:
            ValueError: if they have other rules than those that are solved, or another board.
        """
        check_solvable(rules)
        if rules.spaces != self.spaces:
            raise ValueError(
                f"the table {self.file} is for {self.spaces} plain spaces, the game has {rules.spaces}"
            )

    def for_seats(self, game: Game, state: NDArray[np.void]) -> NDArray[np.float32]:
        """Return what states before the first roll of a turn are worth to both seats, float32 (N, 2).

        This is a value as `wotd_env.planning.planner.plan` takes it. In other phases the value is that of the position
        if the turn began there.

        Raises:
            ValueError: if the game has other rules than those that are solved, or another board, or a state has a
                player or pieces that no position of the board has.
        """
        self.check_rules(game.rules)
        out, blocks = np.empty((len(state), 2), np.float32), np.empty(len(state), np.int64)

        def look_up_part(states: Records, config: Configs, out: Any, blocks: Any) -> None:
            look_up_states(self._layers, self.layout.block, states, out, blocks)

        game.apply(look_up_part, state, out, blocks, validate=False)
        if (blocks < 0).any():
            wrong = int(np.argmax(blocks < 0))
            player, pieces = state[wrong]["player"], state[wrong]["pieces"][:2].tolist()
            raise ValueError(
                f"game {wrong}: player must be 0 or 1, and pieces on spaces of their own from 0 to "
                f"{len(self.board.code) - 1}, got {player} and {pieces}"
            )
        self._check(blocks)
        return out * self.unit


@kernel
def look_up_states(
    layers: Layers, first_block: NDArray[np.int64], states: Records, out: Any, blocks: Any
) -> None:
    """Write the values of states for both seats, (N, 2), and the blocks of the values, (N,).

    The blocks of the first invalid state and of all states after it are -1.
    """
    board = layers.board
    codes = np.empty(PATHS, np.uint64)
    top = board.code.shape[0] - 1
    blocks[:] = -1
    for i in range(states.shape[0]):
        s = states[i]
        if s.player < 0 or s.player > 1:
            return
        for path in range(PATHS):
            mine, theirs = s.pieces[s.player, path], s.pieces[1 - s.player, path]
            if min(mine, theirs) < 0 or max(mine, theirs) > top or board.code[mine, theirs] == NONE:
                return
            codes[path] = board.code[mine, theirs]
        value, block = look_up(layers, first_block, codes)
        out[i, s.player] = value
        out[i, 1 - s.player] = -value
        blocks[i] = block


@kernel
def look_up_pieces(
    layers: Layers, first_block: NDArray[np.int64], pieces: Any, out: Any, blocks: Any
) -> None:
    """Write the values (N,) of positions, and their blocks (N,).

    `pieces` is int8 (2, N, 5): the spaces of the pieces of the player to move, and of the other player.
    """
    board = layers.board
    codes = np.empty(PATHS, np.uint64)
    for i in range(out.size):
        for path in range(PATHS):
            codes[path] = board.code[pieces[0, i, path], pieces[1, i, path]]
        out[i], blocks[i] = look_up(layers, first_block, codes)


@kernel
def look_up(layers: Layers, first_block: NDArray[np.int64], codes: Any) -> Any:
    """Return the value of the position with these codes, which get sorted, and its block."""
    total = sort_codes(layers.board, codes)
    index = index_of(layers, total, codes)
    return layers.values[index], first_block[total] + ((index - layers.base[total]) >> BLOCK_BITS)


# ------------------------------------------------------------------------------------------------------------- reading


def load(file: str | Path) -> Table:
    """Open a table for reading; its values are mapped, and checked when they are first read.

    Raises:
        FileNotFoundError: if there is no such file; the message says how to make one.
        TableError: if the file is no table, is unfinished, cut short or damaged, or was made by other rulings.
    """
    file = Path(file)
    if file.is_dir():
        raise FileNotFoundError(
            f"there is no table {file}: that is a folder; name a table in it, such as {file / 'table.wotd'}"
        )
    if not file.is_file():
        raise FileNotFoundError(f"there is no table {file}; make one with: {command(file, 'S')}")
    header = read_header(file)
    board = board_of(header["rules"]["spaces"])
    layout = layout_of(board)
    if header["sha256"] is None:
        how = (
            f"go on with: {command(file, board.spaces)}" if file.suffix == PART else cure(file, board.spaces)
        )
        raise TableError(f"{file} is unfinished ({header['layers']} of {len(board.sizes)} layers); {how}")
    value = COMPACT if is_compact(header) else VALUE
    size = layout.bytes + board.positions * value.itemsize
    if file.stat().st_size != size:
        raise TableError(
            f"{file} must have {size} bytes, got {file.stat().st_size}; it is damaged: {cure(file, board.spaces)}"
        )
    with file.open("rb") as stream:
        sums = read_checksums(stream, layout)
    if digest(sums.data) != header["sha256"]:
        raise TableError(f"the checksums in {file} are damaged: {cure(file, board.spaces)}")
    return Table(
        file, header, sums, np.memmap(file, value, "r", layout.bytes, (board.positions,)).view(np.ndarray)
    )


def is_compact(header: dict[str, Any]) -> bool:
    """Return whether the values are int16."""
    return header["compact_error"] is not None


def read_header(file: Path) -> dict[str, Any]:
    """Return a file's header.

    Raises:
        TableError: if that is none, or is damaged, or of another format, other rulings or other rules.
    """
    with file.open("rb") as stream:
        text = stream.read(HEADER)
    if not text.startswith(FORMAT):
        raise TableError(f"{file} is not a table made by `wotd solve`")
    if not text.startswith(MAGIC):
        raise TableError(f"{file} was made by another version of wotd-env, in another format: {cure(file)}")
    if len(text) < HEADER or text[-DIGEST:].decode("ascii", "replace") != digest(text[:-DIGEST]) + "\n":
        raise TableError(f"the header of {file} is damaged: {cure(file)}")
    try:
        header: dict[str, Any] = json.loads(text[len(MAGIC) : -DIGEST])
        rulings, spaces = header["rulings"], header["rules"]["spaces"]
        known = header["rules"] == rules_of(spaces)
        check_integer("layers", header["layers"], 0, len(board_of(spaces).sizes))
        if not header.keys() >= {"sha256", "compact_error"}:
            raise ValueError("it has wrong entries")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise TableError(f"the header of {file} cannot be read ({error}): {cure(file)}") from error
    if not known:
        raise TableError(f"{file} is about other rules, {header['rules']}; only {rules_of(spaces)} are read")
    if rulings != RULINGS:
        raise TableError(
            f"{file} was solved by other rulings than those of today (version {rulings}, not {RULINGS}): "
            f"{cure(file, spaces)}"
        )
    return header


def cure(file: Path, spaces: int | str = "S") -> str:
    """Say how to get a sound table in place of a file."""
    return f"remove it and solve again: {command(file, spaces)}"


def command(file: Path, spaces: int | str) -> str:
    """Return the command that makes a table, or that goes on with one whose unfinished file is given."""
    whole = file.with_suffix("") if file.suffix == PART else file
    return f"wotd solve --spaces {spaces} --out {whole}"


def rules_of(spaces: int) -> dict[str, Any]:
    """Return the rules on which values depend.

    Raises:
        ValueError: if there can be no such board.
    """
    rules = Rules(spaces=spaces)
    return {name: getattr(rules, name) for name in ("players", "spaces", "powers", "immunity", "dead_pieces")}


def checksums(values: NDArray[Any], cuts: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return the checksums of the blocks between cuts (B + 1,), uint32 (B,)."""
    return np.array([zlib.crc32(values[a:b].data) for a, b in pairwise(cuts.tolist())], CHECKSUM)


def layer_checksums(layout: Layout, total: int, values: NDArray[Any]) -> NDArray[np.uint32]:
    """Return the checksums of the blocks of a layer with these values."""
    blocks = layout.blocks_of(total)
    return checksums(values, layout.cuts[blocks.start : blocks.stop + 1] - layout.base[total])


def read_checksums(stream: BinaryIO, layout: Layout) -> NDArray[np.uint32]:
    """Return the checksums in an open file, uint32 (B,), or fewer where it is cut short."""
    stream.seek(HEADER)
    content = stream.read(layout.blocks * CHECKSUM.itemsize)
    return np.frombuffer(content[: len(content) // CHECKSUM.itemsize * CHECKSUM.itemsize], CHECKSUM)


def digest(content: bytes | memoryview) -> str:
    """Return a SHA-256 in hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


# ------------------------------------------------------------------------------------------------------------- writing


@contextmanager
def alone(file: Path) -> Iterator[None]:
    """Keep other processes from making a file; while one of them does, say so and wait.

    Raises:
        ImportError: if filelock is not installed.
    """
    with needed_for("making a table", "arena"):
        from filelock import FileLock, Timeout
    lock = FileLock(f"{file}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        LOG.warning(
            "another process is making %s and holds the lock %s; waiting until it is done",
            file,
            lock.lock_file,
        )
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def write_header(stream: BinaryIO, header: dict[str, Any]) -> None:
    """Write a header to the beginning of an open file."""
    text = (MAGIC + json.dumps(header).encode()).ljust(HEADER - DIGEST)
    write(stream, 0, text + f"{digest(text)}\n".encode())


def write_layer(stream: BinaryIO, layout: Layout, total: int, values: NDArray[Any]) -> None:
    """Write the values of a layer and their checksums to an open file, and onto the disk."""
    write(stream, layout.bytes + int(layout.base[total]) * values.itemsize, values.data)
    sums = layer_checksums(layout, total, values)
    write(stream, HEADER + int(layout.block[total]) * CHECKSUM.itemsize, sums.data)
    os.fsync(stream.fileno())


def write(stream: BinaryIO, where: int, content: bytes | memoryview) -> None:
    """Write all of something to an open, unbuffered file.

    Raises:
        OSError: with the name of the file.
    """
    left = memoryview(content).cast("B")
    stream.seek(where)
    try:
        while left:
            left = left[stream.write(left) :]
    except OSError as error:
        raise OSError(error.errno, error.strerror, stream.name) from error


def finish(stream: BinaryIO, layout: Layout, header: dict[str, Any]) -> None:
    """Write the header that makes a file of layers a table."""
    header["sha256"] = digest(read_checksums(stream, layout).data)
    write_header(stream, header)
    os.fsync(stream.fileno())


def compact(file: str | Path, out: str | Path, progress: Progress | None = None) -> Table:
    """Make a table of half the size, and return it; its header has the largest difference as `compact_error`.

    Args:
        file: a table.
        out: the file to make.
        progress: is called with the positions done and their number.

    Raises:
        FileNotFoundError, TableError: as by `load`; also if the table is compact already, or `solve` has begun the
            file to make.
        FileExistsError: if the file to make is there.
        OSError: if it cannot be written.
    """
    table, out = load(file), Path(out)
    if is_compact(table.header):
        raise TableError(f"{file} is compact already")
    with alone(out):
        if out.exists():
            raise FileExistsError(f"{out} is there already; remove it or choose another name")
        part = out.with_name(out.name + PART)
        if part.exists() and part.stat().st_size and not is_compact(read_header(part)):
            raise TableError(
                f"{part} is an unfinished table of `wotd solve`; remove it or choose another name"
            )
        try:
            with part.open("w+b", buffering=0) as stream:
                _write_compact(table, stream, progress)
            part.replace(out)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return load(out)


def _write_compact(table: Table, stream: BinaryIO, progress: Progress | None) -> None:
    layout, values, error = table.layout, table.values, 0.0
    write_header(stream, table.header | {"sha256": None, "compact_error": error})
    for total in reversed(range(len(layout.base))):
        done = int(layout.base[total] + table.board.sizes[total])
        exact = values[layout.base[total] : done]
        rounded = np.rint(exact * np.float32(UNITS)).astype(COMPACT)
        error = max(error, float(np.abs(rounded * np.float32(1 / UNITS) - exact).max()))
        write_layer(stream, layout, total, rounded)
        if progress:
            progress(done, table.board.positions)
    finish(stream, layout, table.header | {"compact_error": error})


# ---------------------------------------------------------------------------------------------------------------- else


def cache_file(spaces: int) -> Path:
    """Return where the table of a board is looked for when no file is named, by the platform's conventions."""
    with needed_for("the folder of tables", "arena"):
        from platformdirs import user_cache_path
    return user_cache_path("wotd-env") / f"perfect-{spaces}.wotd"


def describe_missing(spaces: int, file: Path) -> str:
    """Say that a table is missing, and what making it takes."""
    positions = board_of(spaces).positions
    minutes = positions * MICROSECONDS / 6e7
    return (
        f"there is no table {file} of the game with {spaces} plain spaces; make it once with: "
        f"{command(file, spaces)} "
        f"({positions * VALUE.itemsize / 1e9:.2g} GB, about {max(minutes, 0.1):.2g} minutes of one core)"
    )


def check_solvable(rules: Rules) -> None:
    """Raise ValueError unless these are the rules that tables are about, on any board."""
    for field in ("players", "powers", "dead_pieces"):
        if getattr(rules, field) != getattr(Rules, field):  # the defaults
            raise ValueError(
                f"only the two-player basic game is solved: {field} must be {getattr(Rules, field)!r}, "
                f"got {getattr(rules, field)!r}"
            )
    if rules.immunity:
        raise ValueError("only the two-player basic game is solved: immunity must be False, got True")


def check_table(table: object) -> None:
    """Raise TypeError unless this is a table."""
    if not isinstance(table, Table):
        raise TypeError(f"table must be a Table, as wotd_env.solver.load(file) returns it, got {table!r}")
