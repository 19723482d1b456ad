"""Look up the values of positions in a file that `wotd solve` made.

The values are mapped into memory, and each block is compared with its checksum when it is first read, once in each
process. So a table opens fast whatever its size, and a damaged value is never used. `storage` defines the file format.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import PATHS, Rules
from wotd_env.core.state import Records
from wotd_env.extras import needed_for
from wotd_env.solver.positions import NONE, Layers, board_of, index_of, sort_codes
from wotd_env.solver.storage import (
    BLOCK_BITS,
    COMPACT,
    PART,
    UNITS,
    VALUE,
    TableError,
    alone,
    checksums,
    command,
    cure,
    digest,
    finish,
    is_compact,
    layout_of,
    read_checksums,
    read_header,
    write_header,
    write_layer,
)

Progress = Callable[[int, int], None]
"""Called during the work with the number of finished positions and the number of all positions."""
MICROSECONDS = 1.2
"""Time to solve a position, measured on one core of a server of 2025."""


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
