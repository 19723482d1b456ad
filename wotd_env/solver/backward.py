"""Solving the two-player basic game from its end backwards, layer by layer, into a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from wotd_env import __version__
from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import DICE
from wotd_env.solver.families import Block, Chunk, check_families, new_block, solve_families
from wotd_env.solver.positions import Board, Layers, board_of
from wotd_env.solver.storage import (
    LOG,
    PART,
    RULINGS,
    VALUE,
    TableError,
    alone,
    cure,
    finish,
    is_compact,
    layer_checksums,
    layout_of,
    read_checksums,
    read_header,
    rules_of,
    write_header,
    write_layer,
)
from wotd_env.solver.table import Progress, Table, load

TOLERANCE = 5e-7
"""The largest change in the last round; the residual is a fraction of it, and single precision adds its own."""
REACH = DICE + 1
"""Layers that solving one needs: a turn makes progress of at most five."""
CHUNK = 1024
"""Families for one call, which takes some tens of milliseconds."""
MOST_THREADS = 1024


def solve(spaces: int, file: str | Path, threads: int = 2, progress: Progress | None = None) -> Table:
    """Compute the value of every position and write the table; one that is there is only opened.

    Each finished layer is on the disk: a run that was interrupted, whatever way, goes on where it was. Until the last
    one, the file's name ends in `.part`. While another process makes the same table, this one waits, and says so in the
    log. The values do not depend on the number of threads.

    Args:
        spaces: plain spaces, 0 to 10.
        file: the table to make.
        threads: threads to share the work.
        progress: is called now and then.

    Raises:
        ValueError: for a wrong number of spaces or threads.
        TableError: if the file, or that with `.part`, is there and is something else, such as the table of another
            board; it is left as it is.
        OSError: if it cannot be written; finished layers are kept.
        ImportError: if filelock is not installed.
    """
    board, file = board_of(spaces), Path(file)
    threads = check_integer("threads", threads, 1, MOST_THREADS)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with alone(file):
            # Another process may have made it meanwhile.
            if not file.exists():
                _make(board, file, threads, progress)
    table = load(file)
    if table.spaces != spaces:
        raise TableError(
            f"{file} is a table for {table.spaces} spaces; it is left alone: choose another name"
        )
    return table


def verify(file: str | Path, threads: int = 2, progress: Progress | None = None) -> float:
    """Return the largest Bellman error over all positions of a table.

    Every value is compared with what one turn makes of the values in the file; nothing is iterated, and nothing
    written.

    Raises:
        FileNotFoundError, TableError: as by `load`; also if values do not match their checksums, or are compact.
        ValueError: for a wrong number of threads.
    """
    threads = check_integer("threads", threads, 1, MOST_THREADS)
    table = load(file)
    if is_compact(table.header):
        raise TableError(f"{file} is compact; verify the table that it was made of")
    board, layers = table.board, Layers(table.board, table.layout.base, table.values)
    residual, done = 0.0, 0
    with ThreadPoolExecutor(threads) as pool:
        team = _Team(pool, threads)
        for total in reversed(range(len(board.sizes))):
            errors = team.run(check_families, layers, total)
            residual = max([residual, *errors])
            done += int(board.sizes[total])
            if progress:
                progress(done, board.positions)
    return residual


def _new_header(spaces: int) -> dict[str, Any]:
    return {
        "about": "Way of the Dragon: expected result for the player to move, before the first roll of the turn",
        "rules": rules_of(spaces),
        "rulings": RULINGS,
        "version": __version__,
        "positions": board_of(spaces).positions,
        "layers": 0,  # on the disk
        "seconds": 0.0,  # that solving took, interruptions not counted
        "cpu_seconds": 0.0,  # of all threads
        "tolerance": TOLERANCE,
        "date": None,
        "start": None,
        "compact_error": None,
        "sha256": None,  # of the checksums; None while layers are missing
    }


def _read_part(part: Path, spaces: int) -> dict[str, Any]:
    """Return the header of an unfinished file."""
    header = read_header(part)
    if header["rules"]["spaces"] != spaces:
        raise TableError(
            f"{part} is an unfinished table for {header['rules']['spaces']} spaces; it is left alone: remove it or "
            "choose another name"
        )
    if is_compact(header):
        raise TableError(f"{part} was left by `wotd solve --compact`: {cure(part, spaces)}")
    for name in ("seconds", "cpu_seconds"):  # they are added to
        if not isinstance(header.get(name), float):
            raise TableError(
                f"the header of {part} cannot be read ({name} must be a float, got {header.get(name)!r}): "
                f"{cure(part, spaces)}"
            )
    return header


class _Team:
    """Threads with a block each, over which the families of a layer are shared out in chunks."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool = pool
        self._blocks: list[Block] = [new_block() for _ in range(threads)]

    def run(self, kernel: Callable[..., Any], layers: Layers, total: int, *arguments: Any) -> Iterator[Any]:
        """Call a kernel of `families` on every chunk of a layer; yield the results in order."""
        families = int(layers.board.families[total])

        def work(first: int) -> Any:
            block = self._blocks.pop()
            try:
                chunk = Chunk(total, first, min(first + CHUNK, families))
                return kernel(layers, block, chunk, *arguments)
            finally:
                self._blocks.append(block)

        jobs = [self._pool.submit(work, first) for first in range(0, families, CHUNK)]
        try:
            for job in jobs:
                yield job.result()
        finally:
            # No thread is left at work, not even after an interrupt.
            for job in jobs:
                job.cancel()


def _make(board: Board, file: Path, threads: int, progress: Progress | None) -> None:
    """Begin or go on with the unfinished file, and give it its name once it is a table."""
    part = file.with_name(file.name + PART)
    part.touch()
    header = _read_part(part, board.spaces) if part.stat().st_size else None
    with part.open("r+b", buffering=0) as stream, ThreadPoolExecutor(threads) as pool:
        if header is None:
            header = _new_header(board.spaces)
            try:
                write_header(stream, header)
            except BaseException:
                stream.truncate(0)
                raise
        _solve_layers(board, stream, header, _Team(pool, threads), progress)
        layout = layout_of(board)
        stream.truncate(layout.bytes + board.positions * VALUE.itemsize)
        header["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        finish(stream, layout, header)
    part.replace(file)


def _solve_layers(
    board: Board, stream: BinaryIO, header: dict[str, Any], team: _Team, progress: Progress | None
) -> None:
    """Solve the layers that are not yet in the file, and append each to it."""
    layout, last = layout_of(board), len(board.sizes) - 1
    longest = int(board.sizes.max())
    values = np.empty(REACH * longest, VALUE)
    base = np.arange(len(board.sizes), dtype=np.int64) % REACH * longest

    def layer(total: int) -> NDArray[np.float32]:
        return values[base[total] : base[total] + board.sizes[total]]

    sums = read_checksums(stream, layout)
    for total in range(last, last - header["layers"], -1):
        stream.seek(layout.bytes + layout.base[total] * VALUE.itemsize)
        read = np.fromfile(stream, VALUE, board.sizes[total])
        whole = len(read) == board.sizes[total]
        if not (
            whole and np.array_equal(layer_checksums(layout, total, read), sums[layout.blocks_of(total)])
        ):
            LOG.warning(
                "layer %d of the %d in %s is damaged: it and those after it are solved again",
                last - total + 1,
                header["layers"],
                stream.name,
            )
            header["layers"] = last - total
            break
        layer(total)[:] = read
    for total in range(last - header["layers"], -1, -1):
        began, cpu_began = time.perf_counter(), time.process_time()
        done, chunks = int(layout.base[total]), -(-int(board.families[total]) // CHUNK)
        solved = team.run(solve_families, Layers(board, base, values), total, np.float32(TOLERANCE))
        for chunk, _ in enumerate(solved, 1):
            if progress:
                progress(done + int(board.sizes[total]) * chunk // chunks, board.positions)
        try:
            # The layer is on the disk before the header that counts it.
            write_layer(stream, layout, total, layer(total))
            header["layers"] += 1
            header["seconds"] = round(header["seconds"] + time.perf_counter() - began, 3)
            header["cpu_seconds"] = round(header["cpu_seconds"] + time.process_time() - cpu_began, 3)
            write_header(stream, header)
        except OSError as error:
            what = f"{error.strerror}; {last - total} of {last + 1} layers are kept, and the same command goes on"
            raise OSError(error.errno, what, stream.name) from error
    header["start"] = float(layer(0)[-1])
