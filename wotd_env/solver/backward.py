"""Solve a game by backward induction, and write the values to a file."""

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
from wotd_env.core.rules import Rules
from wotd_env.planning.ends import ends_of
from wotd_env.process import physical_memory
from wotd_env.solver import storage
from wotd_env.solver.families import Chunk, new_block
from wotd_env.solver.guarantees import Guarantees, check_guarantees, new_family, solve_guarantees
from wotd_env.solver.iteration import Group, check_families, group_of, solve_families
from wotd_env.solver.storage import REACH, Section, TableError, in_words, layer_checksums
from wotd_env.solver.table import Progress, Table, as_rules, describe_needs, load, memory_for

TOLERANCE = 5e-7  # iterations stop when no value changes by more than this
# Number of families in one call of a kernel, by number of players. A call takes some tens of milliseconds.
CHUNK = {2: 1024, 3: 8}
KERNELS: dict[int, tuple[Callable[..., Any], Callable[..., Any]]] = {
    2: (solve_families, check_families),
    3: (solve_guarantees, check_guarantees),
}
MOST_THREADS = 1024


def solve(
    rules: Rules | int, file: str | Path, threads: int = 2, progress: Progress = lambda done, total: None
) -> Table:
    """Compute the value of every position, write the table and return it. If the table exists, only open it.

    Finished layers (see `positions`) are saved in a file with the suffix `.part`. After an interruption, the next call
    continues with this file. If another process is making the same table, `solve` logs a warning and waits. The number
    of threads has no effect on the values.

    Args:
        rules: a game of two players, with or without powers, or the basic game of three players. An integer stands
            for the basic game of two players with this number of plain spaces.
        file: path of the table.
        threads: number of threads.
        progress: called with the number of finished positions and the number of all positions.

    Raises:
        ValueError: for rules that cannot be solved, or an invalid number of threads.
        MemoryError: if the machine has less memory than the table needs.
        TableError: if `file` or its `.part` file exists and is not a table for these rules. Both files stay unchanged.
        OSError: if writing fails. Finished layers stay in the `.part` file.
        ImportError: if filelock is not installed.
    """
    rules, file = as_rules(rules), Path(file)
    threads = check_integer("threads", threads, 1, MOST_THREADS)
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        with storage.alone(file):
            if not file.exists():  # another process may have made the file during the wait
                _make(rules, file, threads, progress)
    table = load(file, rules)
    if (given := table.header["rules"]) != storage.facts_of(rules):
        raise TableError(f"{file} is a table for {in_words(given)} and is not changed; choose another name")
    return table


def verify(file: str | Path, threads: int = 2, progress: Progress = lambda done, total: None) -> float:
    """Return the residual of a table: the largest Bellman error over all positions.

    Raises:
        FileNotFoundError: if there is no such file.
        TableError: if the file is not a table (see `load`), or the table is damaged or compact.
        ValueError: for an invalid number of threads.
    """
    threads = check_integer("threads", threads, 1, MOST_THREADS)
    table = load(file)
    if storage.is_compact(table.header):
        raise TableError(f"{file} is compact; verify the original table")
    board, sections = table.board, dict(zip(table.sections, table.values, strict=True))
    residual, done = 0.0, 0
    with ThreadPoolExecutor(threads) as pool:
        team = _Team(pool, threads, table.rules.players)
        for pair in storage.sections_of(table.rules):
            group = _group_of(board, table.layout.base, pair, sections)
            for total in reversed(range(len(board.sizes))):
                residual = max([residual, *team.run(KERNELS[table.rules.players][1], group, total)])
                done += int(board.sizes[total]) * len(pair)
                progress(done, board.positions * len(sections))
    return residual


def _group_of(
    board: Any, base: NDArray[np.int64], sections: list[Section], known: dict[Section, Any]
) -> Group | Guarantees:
    """Return the arrays that kernels need to solve a group of sections."""
    if len(sections) == 3:
        own, following, last = (known[section] for section in sections)
        return Guarantees(board, ends_of(3, powers=False), base, (own, following, last))
    return group_of(board, base, sections, known)


def _new_header(rules: Rules) -> dict[str, Any]:
    return {
        "about": "Way of the Dragon: expected or guaranteed reward before the first roll of a turn",
        "rules": storage.facts_of(rules),
        "rulings": storage.RULINGS,
        "version": __version__,
        "positions": storage.board_for(rules).positions,
        "layers": 0,  # number of finished layers in the file
        "seconds": 0.0,  # wall-clock time of solving, added up over all calls
        "cpu_seconds": 0.0,
        "tolerance": TOLERANCE,
        "date": None,
        "start": None,
        "compact_error": None,
        "sha256": None,  # None in an unfinished file
    }


def _read_part(part: Path, rules: Rules) -> dict[str, Any]:
    header = storage.read_header(part, rules)
    if header["rules"] != storage.facts_of(rules):
        raise TableError(
            f"{part} is an unfinished table for {in_words(header['rules'])} and is not changed; remove it or "
            "choose another name"
        )
    if storage.is_compact(header):
        raise TableError(f"{part} was left by `wotd solve --compact`: {storage.cure(part, rules)}")
    return header


class _Team:
    """Threads that solve the families of a layer in chunks."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int, players: int) -> None:
        self._pool, self.at_once = pool, CHUNK[players]
        self._memory = [new_family() if players == 3 else new_block() for _ in range(threads)]

    def run(
        self, kernel: Callable[..., Any], group: Group | Guarantees, total: int, *arguments: Any
    ) -> Iterator[Any]:
        """Call a kernel of KERNELS on every chunk of layer `total`; yield the results in order."""
        families = int(group.board.families[total])

        def work(first: int) -> Any:
            memory = self._memory.pop()
            try:
                chunk = Chunk(total, first, min(first + self.at_once, families))
                return kernel(group, memory, chunk, *arguments)
            finally:
                self._memory.append(memory)

        jobs = [self._pool.submit(work, first) for first in range(0, families, self.at_once)]
        try:
            for job in jobs:
                yield job.result()
        finally:
            for job in jobs:  # cancel the waiting jobs after an error or interrupt
                job.cancel()


def _make(rules: Rules, file: Path, threads: int, progress: Progress) -> None:
    """Add the missing layers to FILE.part, then rename FILE.part to FILE."""
    if memory_for(rules) > (there := physical_memory()):
        raise MemoryError(
            f"{file} needs {describe_needs(rules)}; this machine has {there / 1e9:.0f} GB of memory"
        )
    board, groups = storage.board_for(rules), storage.sections_of(rules)
    layout = storage.layout_of(board, sum(map(len, groups)))
    part = file.with_name(file.name + storage.PART)
    part.touch()
    size = part.stat().st_size
    header = _read_part(part, rules) if size else _new_header(rules)
    with part.open("r+b", buffering=0) as stream, ThreadPoolExecutor(threads) as pool:
        if not size:
            try:
                storage.write_header(stream, header)
            except BaseException:
                stream.truncate(0)
                raise
        maker = _Maker(layout, stream, header, _Team(pool, threads, rules.players))
        for pair in groups:
            maker.solve(pair, progress)
        stream.truncate(layout.offset(layout.sections, storage.VALUE.itemsize))
        header["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        storage.finish(stream, layout, header)
    part.replace(file)


class _Maker:
    """Solves the groups of sections one by one, and writes the values to an unfinished file."""

    def __init__(self, layout: storage.Layout, stream: BinaryIO, header: dict[str, Any], team: _Team) -> None:
        self._layout, self._stream, self._header, self._team = layout, stream, header, team
        rules = storage.rules_in(header)
        self._board, self._kernel = storage.board_for(rules), KERNELS[rules.players][0]
        self._sums = storage.read_checksums(stream, layout)
        self._sections: dict[Section, Any] = {}  # values of the finished sections, mapped into memory
        self._step = 0  # number of finished layers so far, over all groups

    def solve(self, pair: list[Section], progress: Progress) -> None:
        """Read the finished layers of a group from the file, and solve the missing layers."""
        board, layout, longest = self._board, self._layout, int(self._board.sizes.max())
        # A kernel uses the same offsets `base` for all sections that it reads. To save memory, the first group keeps
        # only the REACH layers that were solved last. Later groups also read earlier groups from the file, so they use
        # the offsets in the file.
        base, size = layout.base, board.positions
        if not self._sections:
            base, size = np.arange(len(board.sizes), dtype=np.int64) % REACH * longest, REACH * longest
        values = [np.empty(size, storage.VALUE) for _ in pair]
        first = len(self._sections)
        group = _group_of(board, base, pair, {**self._sections, **dict(zip(pair, values, strict=True))})
        for total in reversed(range(len(board.sizes))):
            parts = [part[base[total] : base[total] + board.sizes[total]] for part in values]
            if self._step < self._header["layers"] and self._read(first, total, parts):
                self._step += 1
                continue
            began = time.perf_counter(), time.process_time()
            done = int(layout.base[total]) * len(pair) + first * board.positions
            chunks = -(-int(board.families[total]) // self._team.at_once)
            solved = self._team.run(self._kernel, group, total, np.float32(TOLERANCE))
            for chunk, _ in enumerate(solved, 1):
                more = int(board.sizes[total]) * len(pair) * chunk // chunks
                progress(done + more, layout.sections * board.positions)
            self._write(first, total, parts, began)
        self._header["start"] = float(values[0][base[0]])
        for section, name in enumerate(pair, first):
            offset, shape = layout.offset(section, storage.VALUE.itemsize), (board.positions,)
            mapped = np.memmap(self._stream.name, storage.VALUE, "r", offset, shape)
            self._sections[name] = mapped.view(np.ndarray)

    def _read(self, first: int, total: int, parts: list[NDArray[np.float32]]) -> bool:
        """Read a layer of a group; return whether it is intact."""
        layout, stream = self._layout, self._stream
        for section, part in enumerate(parts, first):
            stream.seek(layout.offset(section, storage.VALUE.itemsize, total))
            read = np.fromfile(stream, storage.VALUE, len(part))
            blocks = layout.blocks_of(total)
            sums = self._sums[section * layout.blocks + blocks.start : section * layout.blocks + blocks.stop]
            if len(read) < len(part) or not np.array_equal(layer_checksums(layout, total, read), sums):
                storage.LOG.warning(
                    f"layer {self._step + 1} of the {self._header['layers']} in {stream.name} is damaged; it and all "
                    "later layers are solved again"
                )
                self._header["layers"] = self._step
                return False
            part[:] = read
        return True

    def _write(self, first: int, total: int, parts: list[Any], began: tuple[float, float]) -> None:
        """Save a solved layer of a group: first the values, then the header with the new number of layers."""
        header = self._header
        try:
            for section, part in enumerate(parts, first):
                storage.write_layer(self._stream, self._layout, total, part, section)
            self._step += 1
            header["layers"] = self._step
            header["seconds"] = round(header["seconds"] + time.perf_counter() - began[0], 3)
            header["cpu_seconds"] = round(header["cpu_seconds"] + time.process_time() - began[1], 3)
            storage.write_header(self._stream, header)
        except OSError as error:
            layers = len(storage.sections_of(storage.rules_in(header))) * len(self._board.sizes)
            what = f"{error.strerror}; {header['layers']} of {layers} layers are kept; the same command continues"
            raise OSError(error.errno, what, self._stream.name) from error
