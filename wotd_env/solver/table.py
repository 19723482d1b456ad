"""The file of a solved game: a header of 4096 bytes, then one value for each position.

Values are little-endian float32 or, in a compact table, int16 in units of 1/32767; `compact` makes the latter of the
former and notes how far they differ.

The header is a line with a magic word and one line of JSON, padded with spaces (`head -c 4096 FILE` shows it). The
values follow layer by layer (see `wotd_env.solver.positions`) from the most progress to the least, so that solving
appends to the file and any part of it can be memory-mapped; the last value is that of the start.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env._compile import kernel
from wotd_env.game import Game
from wotd_env.rules import PATHS, Rules
from wotd_env.solver.positions import NONE, Board, board, rank

__all__ = ["Table", "TableError", "cache_file", "check_rules", "compact", "describe_missing", "load"]

MAGIC = b"way-of-the-dragon values 1\n"
HEADER = 4096
VALUE = np.dtype("<f4")
COMPACT = np.dtype("<i2")
UNITS = 32767
"""Units of a compact table in a value of 1."""
COPIED_AT_ONCE = 1 << 22
"""Positions."""
MICROSECONDS = 1.2
"""Measured on one core of a server of 2025, for each position."""
CHECKED_AT_ONCE = 1 << 26
"""Files up to this many bytes have their checksum compared whenever they are opened."""


class TableError(ValueError):
    """A file that is no complete and intact table."""


class Table:
    """The value of every position of the two-player basic game on one board.

    A value is the expected result (1 a win, 0 a tie, -1 a loss) of the player to move, before the first roll of the
    turn, if both play perfectly.

    Attributes:
        file: where the values are.
        header: what the file says of itself.
        board: the numbering of positions.
        base: int64 (T,), where in `values` each layer begins.
        values: float32 or, if it is compact, int16 (positions,), memory-mapped.
        unit: what a 1 in `values` is worth.
    """

    def __init__(self, file: Path, header: dict[str, Any], values: NDArray[Any]) -> None:
        self.file = file
        self.header = header
        self.unit = np.float32(1 / UNITS if is_compact(header) else 1)
        self.board: Board = board(header["rules"]["spaces"])
        self.base = layer_starts(self.board)
        self.values = values

    def __repr__(self) -> str:
        return f"Table({str(self.file)!r})"

    @property
    def spaces(self) -> int:
        """Plain spaces of the board."""
        return self.board.spaces

    @property
    def start(self) -> float:
        """The value of the game for the player who begins."""
        return float(self.values[-1] * self.unit)

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
        out = np.empty(pieces.shape[1], np.float32)
        look_up_pieces(self.board, np.ascontiguousarray(pieces, np.int8), self.values, self.base, out)
        return out * self.unit

    def for_seats(self, game: Game, state: NDArray[np.void]) -> NDArray[np.float32]:
        """Return what states before the first roll of a turn are worth to both seats, float32 (N, 2).

        This is a value as `wotd_env.policies.planner.plan` takes it. In other phases the value is that of the position
        if the turn began there.

        Raises:
            ValueError: if the game has other rules than those that are solved, or another board.
        """
        check_rules(game.rules)
        if game.rules.spaces != self.spaces:
            raise ValueError(
                f"the table {self.file} is for {self.spaces} plain spaces, the game has {game.rules.spaces}"
            )
        out = np.empty((len(state), 2), np.float32)
        look_up_states(self.board, state, self.values, self.base, out)
        return out * self.unit


@kernel
def look_up_states(b: Any, states: Any, values: Any, base: Any, out: Any) -> None:
    """Write the values of states for both seats, (N, 2)."""
    codes = np.empty(PATHS, np.uint64)
    for i in range(states.shape[0]):
        s = states[i]
        for path in range(PATHS):
            codes[path] = b.code[s.pieces[s.player, path], s.pieces[1 - s.player, path]]
        value = values[index(b, codes, base)]
        out[i, s.player] = value
        out[i, 1 - s.player] = -value


@kernel
def look_up_pieces(b: Any, pieces: Any, values: Any, base: Any, out: Any) -> None:
    """Write the values of positions given as int8 (2, N, 5): the spaces of the mover's pieces and of the other's."""
    codes = np.empty(PATHS, np.uint64)
    for i in range(out.size):
        for path in range(PATHS):
            codes[path] = b.code[pieces[0, i, path], pieces[1, i, path]]
        out[i] = values[index(b, codes, base)]


@kernel
def index(b: Any, codes: Any, base: Any) -> Any:
    """Return where the value of five codes, which get sorted in place, is kept."""
    total = np.uint64(b.progress[codes[0]])
    for path in range(1, PATHS):
        code = codes[path]
        total += np.uint64(b.progress[code])
        i = path
        while i > 0 and codes[i - 1] > code:
            codes[i] = codes[i - 1]
            i -= 1
        codes[i] = code
    return base[total] + rank(b, total, codes[0], codes[1], codes[2], codes[3], codes[4])


def layer_starts(b: Board) -> NDArray[np.int64]:
    """Return where in a file's values each layer begins, int64 (T,)."""
    return np.append(np.cumsum(b.sizes[::-1])[::-1][1:], 0).astype(np.int64)


def load(file: str | Path) -> Table:
    """Open a table for reading; its values are mapped, not read.

    The checksum of small files is compared at once, that of larger ones by `wotd_env.solver.verify`.

    Raises:
        FileNotFoundError: if there is no such file; the message says how to make one.
        TableError: if the file is no table, or is cut short or damaged.
    """
    file = Path(file)
    if not file.exists():
        raise FileNotFoundError(
            f"there is no table {file}; make one with: wotd solve --spaces S --out {file}"
        )
    header = read_header(file)
    b = board(header["rules"]["spaces"])
    if header["layers"] < len(b.sizes):
        raise TableError(
            f"{file} is unfinished ({header['layers']} of {len(b.sizes)} layers); "
            f"go on with: wotd solve --spaces {b.spaces} --out {file}"
        )
    value = COMPACT if is_compact(header) else VALUE
    size = HEADER + b.positions * value.itemsize
    if file.stat().st_size != size:
        raise TableError(
            f"{file} must have {size} bytes, got {file.stat().st_size}; it is damaged: solve it again"
        )
    if size <= CHECKED_AT_ONCE:
        check(file, header)
    return Table(file, header, np.memmap(file, value, "r", HEADER, (b.positions,)))


def is_compact(header: dict[str, Any]) -> bool:
    """Return whether the values are int16."""
    return header.get("compact_error") is not None


def compact(file: str | Path, out: str | Path, progress: Callable[[int, int], None] | None = None) -> Table:
    """Make a table of half the size, and return it; its header has the largest difference as `compact_error`.

    Args:
        file: a table.
        out: the file to make.
        progress: is called with the positions done and their number.

    Raises:
        FileNotFoundError, TableError: as by `load`; also if the table is compact already.
        FileExistsError: if the file to make is there.
    """
    table, out = load(file), Path(out)
    if is_compact(table.header):
        raise TableError(f"{file} is compact already")
    if out.exists():
        raise FileExistsError(f"{out} is there already; remove it or choose another name")
    part = out.with_name(out.name + ".part")
    header, error = dict(table.header), 0.0
    with part.open("w+b") as stream:
        write_header(stream, header)
        for first in range(0, len(table.values), COPIED_AT_ONCE):
            exact = table.values[first : first + COPIED_AT_ONCE]
            rounded = np.rint(exact * np.float32(UNITS)).astype(COMPACT)
            error = max(error, float(np.abs(rounded * np.float32(1 / UNITS) - exact).max()))
            stream.seek(HEADER + first * COMPACT.itemsize)
            stream.write(rounded.tobytes())
            if progress:
                progress(first + len(exact), len(table.values))
    header |= {"compact_error": error, "sha256": checksum(part)}
    with part.open("r+b") as stream:
        write_header(stream, header)
    part.replace(out)
    return load(out)


def check(file: Path, header: dict[str, Any]) -> None:
    """Compare the values with their checksum."""
    if checksum(file) != header["sha256"]:
        raise TableError(f"the values in {file} do not match their checksum; it is damaged: solve it again")


def checksum(file: Path) -> str:
    """Return the SHA-256 of the values in hexadecimal digits."""
    with file.open("rb") as stream:
        stream.seek(HEADER)
        return hashlib.file_digest(stream, "sha256").hexdigest()


def read_header(file: Path) -> dict[str, Any]:
    """Return a file's header."""
    with file.open("rb") as stream:
        text = stream.read(HEADER)
    try:
        if not text.startswith(MAGIC):
            raise ValueError("another beginning")
        header: dict[str, Any] = json.loads(text[len(MAGIC) :])
        board(header["rules"]["spaces"])
        header["layers"] + 0
    except (ValueError, KeyError, TypeError) as error:
        raise TableError(f"{file} is not a table made by `wotd solve`: {error}") from error
    return header


def write_header(stream: BinaryIO, header: dict[str, Any]) -> None:
    """Write a header to the beginning of an open file."""
    text = MAGIC + json.dumps(header).encode()
    stream.seek(0)
    stream.write(text.ljust(HEADER - 1) + b"\n")
    stream.flush()


def cache_file(spaces: int) -> Path:
    """Return where the table of a board is looked for when no file is named, by the platform's conventions."""
    try:
        from platformdirs import user_cache_path
    except ModuleNotFoundError as error:
        raise ImportError("the folder of tables needs platformdirs: pip install 'wotd-env[arena]'") from error
    return user_cache_path("wotd-env") / f"perfect-{spaces}.wotd"


def describe_missing(spaces: int, file: Path) -> str:
    """Say that a table is missing, and what making it takes."""
    positions = board(spaces).positions
    minutes = positions * MICROSECONDS / 6e7
    return (
        f"there is no table {file} of the game with {spaces} plain spaces; make it once with: "
        f"wotd solve --spaces {spaces} --out {file} "
        f"({positions * VALUE.itemsize / 1e9:.2g} GB, about {max(minutes, 0.1):.2g} minutes of one core)"
    )


def check_rules(rules: Rules) -> None:
    """Raise ValueError unless these are the rules that tables are about, on any board."""
    basic = Rules(spaces=rules.spaces)
    for field in ("players", "powers", "dead_pieces"):
        if getattr(rules, field) != getattr(basic, field):
            raise ValueError(
                f"only the two-player basic game is solved: {field} must be {getattr(basic, field)!r}, "
                f"got {getattr(rules, field)!r}"
            )
    if rules.immunity:
        raise ValueError("only the two-player basic game is solved: immunity must be False, got True")
