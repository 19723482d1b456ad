"""Solving the two-player basic game from its end backwards, layer by layer, into a file."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env import __version__
from wotd_env.rules import Rules
from wotd_env.solver.families import Block, check_families, new_block, solve_families
from wotd_env.solver.positions import Board, board
from wotd_env.solver.table import (
    HEADER,
    VALUE,
    Table,
    TableError,
    check,
    checksum,
    is_compact,
    layer_starts,
    load,
    read_header,
    write_header,
)

__all__ = ["Progress", "solve", "verify"]

Progress = Callable[[int, int], None]
"""Is called as the work goes on with the number of positions done and that of all."""

TOLERANCE = (
    5e-7  # a change in the last round; the residual is a fraction of it, and single precision adds its own
)
ROUNDS = 1000
REACH = 6  # a turn makes progress of at most five, so six layers hold all that solving one needs
CHUNK = 1024  # families for one call: some tens of milliseconds


def solve(
    spaces: int, file: str | Path, threads: int = 2, progress: Progress | None = None, resume: bool = True
) -> Table:
    """Compute the value of every position and write the table; a complete one is only opened.

    Each finished layer is on the disk: a run that was interrupted, whatever way, goes on where it was. Until the last
    one, the file's name ends in `.part`. The values do not depend on the number of threads.

    Args:
        spaces: plain spaces, 0 to 10.
        file: the table to make.
        threads: threads to share the work.
        progress: is called now and then.
        resume: False starts anew.

    Raises:
        TableError: if the file is there and is something else, such as the table of another board.
        OSError: if it cannot be written.
    """
    file = Path(file)
    part = file.with_name(file.name + ".part")
    b = board(spaces)
    for existing in (file, part):
        if existing.exists() and read_header(existing)["rules"]["spaces"] != spaces:
            raise TableError(
                f"{existing} is a table for {read_header(existing)['rules']['spaces']} spaces; it is left alone"
            )
    if resume and file.exists():
        return load(file)
    file.parent.mkdir(parents=True, exist_ok=True)
    if resume and part.exists():
        header = read_header(part)
    else:
        header = _new_header(spaces)
        with part.open("wb") as stream:
            write_header(stream, header)

    with part.open("r+b") as stream, ThreadPoolExecutor(threads) as pool:
        _solve_layers(b, stream, header, _Team(pool, threads), progress)
    header["sha256"] = checksum(part)
    header["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    header["start"] = float(np.memmap(part, VALUE, "r", HEADER)[-1])
    with part.open("r+b") as stream:
        write_header(stream, header)
    part.replace(file)
    return load(file)


def verify(file: str | Path, threads: int = 2, progress: Progress | None = None) -> float:
    """Return the largest Bellman error over all positions of a table, and note it in the header.

    Every value is compared with what one turn makes of the values in the file; nothing is iterated.

    Raises:
        FileNotFoundError, TableError: as by `load`; also if the values do not match their checksum, or are compact.
    """
    table = load(file)
    if is_compact(table.header):
        raise TableError(f"{file} is compact; verify the table that it was made of")
    check(table.file, table.header)
    b = table.board
    residual, done = 0.0, 0
    with ThreadPoolExecutor(threads) as pool:
        team = _Team(pool, threads)
        for total in reversed(range(len(b.sizes))):
            errors = team.run(check_families, b, total, table.values, table.base)
            residual = max([residual, *errors])
            done += int(b.sizes[total])
            if progress:
                progress(done, b.positions)
    header = table.header | {
        "residual": residual,
        "verified": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    with table.file.open("r+b") as stream:
        write_header(stream, header)
    table.header.update(header)
    return residual


def _new_header(spaces: int) -> dict[str, Any]:
    rules = Rules(spaces=spaces)
    return {
        "about": "Way of the Dragon: expected result for the player to move, before the first roll of the turn",
        "rules": {
            name: getattr(rules, name) for name in ("players", "spaces", "powers", "immunity", "dead_pieces")
        },
        "version": __version__,
        "positions": board(spaces).positions,
        "layers": 0,  # on the disk
        "seconds": 0.0,  # that solving took, interruptions not counted
        "cpu_seconds": 0.0,  # of all threads
        "tolerance": TOLERANCE,
        "start": None,
        "residual": None,  # measured by `verify`
        "sha256": None,  # of the values
    }


class _Team:
    """Threads with a block each, over which the families of a layer are shared out in chunks."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool = pool
        self._blocks: list[Block] = [new_block() for _ in range(threads)]

    def run(self, kernel: Callable[..., Any], b: Board, total: int, *arguments: Any) -> Iterator[Any]:
        """Call a kernel of `families` on every chunk of a layer and yield what it returns, chunk after chunk."""
        families = int(b.families[total])

        def work(first: int) -> Any:
            block = self._blocks.pop()
            try:
                return kernel(b, block, total, first, min(first + CHUNK, families), *arguments)
            finally:
                self._blocks.append(block)

        jobs = [self._pool.submit(work, first) for first in range(0, families, CHUNK)]
        try:
            for job in jobs:
                yield job.result()
        finally:  # after an interrupt too, no thread is left at work
            for job in jobs:
                job.cancel()


def _solve_layers(
    b: Board, stream: Any, header: dict[str, Any], team: _Team, progress: Progress | None
) -> None:
    """Solve the layers that are not yet in the file, and append each to it."""
    starts = layer_starts(b)
    longest = int(b.sizes.max())
    values = np.empty(REACH * longest, VALUE)
    base = np.arange(len(b.sizes), dtype=np.int64) % REACH * longest

    def layer(total: int) -> NDArray[np.float32]:
        return values[base[total] : base[total] + b.sizes[total]]

    top = len(b.sizes) - 1 - header["layers"]
    for total in range(top + 1, min(top + REACH, len(b.sizes))):
        stream.seek(HEADER + starts[total] * VALUE.itemsize)
        layer(total)[:] = np.fromfile(stream, VALUE, b.sizes[total])
    for total in range(top, -1, -1):
        began, cpu_began = time.perf_counter(), time.process_time()
        done, chunks = int(starts[total]), -(-int(b.families[total]) // CHUNK)
        solved = team.run(
            solve_families,
            b,
            total,
            values,
            base,
            np.float32(TOLERANCE),
            ROUNDS,
            np.zeros(ROUNDS + 1, np.int64),
        )
        for chunk, _ in enumerate(solved, 1):
            if progress:
                progress(done + int(b.sizes[total]) * chunk // chunks, b.positions)
        stream.seek(HEADER + starts[total] * VALUE.itemsize)
        layer(total).tofile(stream)
        stream.flush()
        os.fsync(stream.fileno())  # the layer first, then the header that counts it
        header["layers"] += 1
        header["seconds"] = round(header["seconds"] + time.perf_counter() - began, 3)
        header["cpu_seconds"] = round(header["cpu_seconds"] + time.process_time() - cpu_began, 3)
        write_header(stream, header)
