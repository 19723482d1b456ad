"""Solve the two-player basic game backwards, layer by layer, into a file."""

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
from wotd_env.solver import storage
from wotd_env.solver.families import Chunk, check_families, new_block, solve_families
from wotd_env.solver.positions import Board, Layers, board_of
from wotd_env.solver.storage import TableError
from wotd_env.solver.table import Progress, Table, load

TOLERANCE = 5e-7
"""The largest change of a value in the last iteration. The residual is smaller, but includes rounding errors."""
REACH = DICE + 1  # layers in memory: a turn makes progress of at most five
CHUNK = 1024  # families in one call, which takes some tens of milliseconds
MOST_THREADS = 1024


def solve(
    spaces: int, file: str | Path, threads: int = 2, progress: Progress = lambda done, total: None
) -> Table:
    """Compute the value of every position and write the table. An existing table is only opened.

    Finished layers are saved in a file with the suffix `.part`, so the same call continues interrupted work. If another
    process makes the same table, this one logs that it waits. The values do not depend on the number of threads.

    Args:
        spaces: plain spaces, 0 to 10.
        file: the table to make.
        threads: number of threads.
        progress: see `Progress`.

    Raises:
        ValueError: for an invalid number of spaces or threads.
        TableError: if the file or its `.part` exists and is not such a table; it is not changed.
        OSError: if writing fails; finished layers are kept.
        ImportError: if filelock is not installed.
    """
    board, file = board_of(spaces), Path(file)
    threads = check_integer("threads", threads, 1, MOST_THREADS)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with storage.alone(file):
            if not file.exists():  # another process may have made it meanwhile
                _make(board, file, threads, progress)
    table = load(file)
    if table.spaces != spaces:
        raise TableError(
            f"{file} is a table for {table.spaces} spaces and is not changed; choose another name"
        )
    return table


def verify(file: str | Path, threads: int = 2, progress: Progress = lambda done, total: None) -> float:
    """Return the residual of a table, the largest Bellman error over all positions.

    Raises:
        FileNotFoundError: if there is no such file.
        TableError: if the file is not a table (see `load`), is damaged or compact.
        ValueError: for an invalid number of threads.
    """
    threads = check_integer("threads", threads, 1, MOST_THREADS)
    table = load(file)
    if storage.is_compact(table.header):
        raise TableError(f"{file} is compact; verify the original table")
    board, layers = table.board, Layers(table.board, table.layout.base, table.values)
    residual, done = 0.0, 0
    with ThreadPoolExecutor(threads) as pool:
        team = _Team(pool, threads)
        for total in reversed(range(len(board.sizes))):
            errors = team.run(check_families, layers, total)
            residual = max([residual, *errors])
            done += int(board.sizes[total])
            progress(done, board.positions)
    return residual


def _new_header(board: Board) -> dict[str, Any]:
    return {
        "about": "Way of the Dragon: expected result for the player to move, before the first roll of the turn",
        "rules": storage.rules_of(board.spaces),
        "rulings": storage.RULINGS,
        "version": __version__,
        "positions": board.positions,
        "layers": 0,  # on the disk
        "seconds": 0.0,  # of work, without interruptions
        "cpu_seconds": 0.0,  # of all threads
        "tolerance": TOLERANCE,
        "date": None,
        "start": None,
        "compact_error": None,
        "sha256": None,  # of the checksums; None in an unfinished file
    }


def _read_part(part: Path, spaces: int) -> dict[str, Any]:
    """Return the header of an unfinished file."""
    header = storage.read_header(part)
    if header["rules"]["spaces"] != spaces:
        raise TableError(
            f"{part} is an unfinished table for {header['rules']['spaces']} spaces and is not changed; remove it or "
            "choose another name"
        )
    if storage.is_compact(header):
        raise TableError(f"{part} was left by `wotd solve --compact`: {storage.cure(part, spaces)}")
    return header


class _Team:
    """Threads that share the families of a layer in chunks. Each has a `Block`."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool, self._blocks = pool, [new_block() for _ in range(threads)]

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
            for job in jobs:  # after an error or interrupt
                job.cancel()


def _make(board: Board, file: Path, threads: int, progress: Progress) -> None:
    """Solve all missing layers in the unfinished file, then give it its final name."""
    part = file.with_name(file.name + storage.PART)
    part.touch()
    size = part.stat().st_size
    header = _read_part(part, board.spaces) if size else _new_header(board)
    with part.open("r+b", buffering=0) as stream, ThreadPoolExecutor(threads) as pool:
        if not size:
            try:
                storage.write_header(stream, header)
            except BaseException:
                stream.truncate(0)
                raise
        _solve_layers(board, stream, header, _Team(pool, threads), progress)
        layout = storage.layout_of(board)
        stream.truncate(layout.bytes + board.positions * storage.VALUE.itemsize)
        header["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        storage.finish(stream, layout, header)
    part.replace(file)


def _solve_layers(
    board: Board, stream: BinaryIO, header: dict[str, Any], team: _Team, progress: Progress
) -> None:
    """Solve the missing layers and append each to the file."""
    layout, last, longest = storage.layout_of(board), len(board.sizes) - 1, int(board.sizes.max())
    values = np.empty(REACH * longest, storage.VALUE)
    base = np.arange(len(board.sizes), dtype=np.int64) % REACH * longest

    def layer(total: int) -> NDArray[np.float32]:
        return values[base[total] : base[total] + board.sizes[total]]

    sums = storage.read_checksums(stream, layout)
    for total in range(last, last - header["layers"], -1):
        stream.seek(layout.bytes + layout.base[total] * storage.VALUE.itemsize)
        read = np.fromfile(stream, storage.VALUE, board.sizes[total])
        intact = np.array_equal(storage.layer_checksums(layout, total, read), sums[layout.blocks_of(total)])
        if len(read) < board.sizes[total] or not intact:
            storage.LOG.warning(
                f"layer {last - total + 1} of the {header['layers']} in {stream.name} is damaged; it and all later "
                "layers are solved again"
            )
            header["layers"] = last - total
            break
        layer(total)[:] = read
    for total in range(last - header["layers"], -1, -1):
        began, cpu_began = time.perf_counter(), time.process_time()
        done, chunks = int(layout.base[total]), -(-int(board.families[total]) // CHUNK)
        solved = team.run(solve_families, Layers(board, base, values), total, np.float32(TOLERANCE))
        for chunk, _ in enumerate(solved, 1):
            progress(done + int(board.sizes[total]) * chunk // chunks, board.positions)
        try:
            # First the layer, then the header that counts it.
            storage.write_layer(stream, layout, total, layer(total))
            header["layers"] += 1
            header["seconds"] = round(header["seconds"] + time.perf_counter() - began, 3)
            header["cpu_seconds"] = round(header["cpu_seconds"] + time.process_time() - cpu_began, 3)
            storage.write_header(stream, header)
        except OSError as error:
            what = (
                f"{error.strerror}; {last - total} of {last + 1} layers are kept; the same command continues"
            )
            raise OSError(error.errno, what, stream.name) from error
    header["start"] = float(layer(0)[-1])
