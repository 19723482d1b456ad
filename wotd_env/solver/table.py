"""Look up the values of positions in a file made by `wotd solve` (see `storage` for the format).

The values of large tables are mapped into memory, and those of other tables are read. When a process first uses a
block of values, it compares the block with its checksum.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.arguments import check_integers
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game
from wotd_env.core.layouts import layout_of
from wotd_env.core.observation import next_seat
from wotd_env.core.rules import ELEMENTS, PATHS, Rules
from wotd_env.core.state import STATE, Int, Records, States
from wotd_env.extras import needed_for
from wotd_env.solver import storage
from wotd_env.solver.positions import MINE, NEUTRAL, NONE, OWN, THEIRS, Board, index_of, sort_codes
from wotd_env.solver.storage import REACH, Section, TableError

Progress = Callable[[int, int], None]  #: called with the number of finished positions and the total number
# Time to compute one value, by number of players; measured on one core of a server from 2025
MICROSECONDS = {2: 1.2, 3: 1.4}
MAPPED = 100_000_000
"""Size of the values in bytes from which a file is mapped. If a mapped file is truncated, the operating system ends the
process at the next look-up, but processes share the memory of mapped files."""


class Table:
    """The value of every position of a solved game of two or three players on one board.

    With two players, a value is the expected reward of the player to move, before the first roll of the turn, if both
    players play perfectly. With three players, a value is the guarantee of a seat (see `guarantees`). `load` opens a
    table.

    Attributes:
        file: the file of the table.
        header: the header of the file.
        rules: the rules of the game. With own powers, the colors of the seats ascend.
        board: the `Board`, which assigns an index to each position.
        sections: the key of each row of `values`, see `storage.Section`. In the basic game of two players, the only
            key is (0, 0).
        layout: the offsets of the layers in the file.
        unit: the factor that converts `values` to expected rewards.
    """

    def __init__(self, file: Path, expected: Rules | None = None) -> None:
        self.file, self.header = file, storage.read_header(file, expected)
        compact, self.rules = storage.is_compact(self.header), storage.rules_in(self.header)
        self.unit = np.float32(1 / storage.UNITS if compact else 1)
        self.board, groups = storage.board_for(self.rules), storage.sections_of(self.rules)
        self.sections = [section for group in groups for section in group]
        self.layout, cure = storage.layout_of(self.board, len(self.sections)), storage.cure(file, self.rules)
        if self.header["sha256"] is None:
            if file.suffix == storage.PART:
                cure = f"continue with: {storage.command(file, self.rules)}"
            layers = f"{self.header['layers']} of {len(groups) * len(self.board.sizes)} layers"
            raise TableError(f"{file} is unfinished ({layers}); {cure}")
        dtype = storage.COMPACT if compact else storage.VALUE
        size = self.layout.offset(len(self.sections), dtype.itemsize)
        if file.stat().st_size != size:
            raise TableError(
                f"{file} must have {size} bytes, got {file.stat().st_size}; it is damaged: {cure}"
            )
        with file.open("rb") as stream:
            self._checksums = storage.read_checksums(stream, self.layout)
        if storage.digest(self._checksums.data) != self.header["sha256"]:
            raise TableError(f"the checksums in {file} are damaged: {cure}")
        shape = len(self.sections), self.board.positions
        self._values: NDArray[Any]
        if size < MAPPED:
            values = np.fromfile(file, dtype, offset=self.layout.bytes)
            if values.size != np.prod(shape):
                raise TableError(f"{file} was truncated while it was read: {cure}")
            self._values = values.reshape(shape)
            self._values.flags.writeable = False
        else:
            self._values = np.memmap(file, dtype, "r", self.layout.bytes, shape).view(np.ndarray)
        self._checked = np.zeros(len(self._checksums), np.bool_)

    def __repr__(self) -> str:
        return f"Table({str(self.file)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return load, (self.file.absolute(),)  # pickle only the file name: the values may take gigabytes

    def __deepcopy__(self, memo: dict[int, Any]) -> Table:
        return self  # a copy is not needed, because a table is never changed

    @property
    def spaces(self) -> int:
        """The number of plain spaces of the board."""
        return self.rules.spaces

    @property
    def start(self) -> float:
        """The value of the start of the game for the starting player. With own powers, seat 0 of `rules` starts."""
        return next(iter(self.starts.values()))

    @property
    def starts(self) -> dict[str, float]:
        """The values of the start of the game, as a dict.

        With own powers, or with immunity and different dead pieces on the paths of the seats' colors, the keys are the
        possible colors of the starting player. With three players, the keys are "first seat", "second seat" and "third
        seat". Otherwise, the only key is "".
        """
        last, positions = storage.sections_of(self.rules)[-1], int(self.board.sizes[0])
        names = [""]
        if self.rules.players == 3:
            names = ["first seat", "second seat", "third seat"]
        elif self.rules.powers == "own" or positions > 1:
            names = list(map(ELEMENTS.__getitem__, storage.colors_of(self.rules)))
        rows = np.array([self.sections.index(section) for section in last * (len(names) // len(last))])
        self._check((rows + 1) * self.layout.blocks - 1)
        # Layer 0 has the starts of the game: that of the first seat at its beginning, the others at its end.
        columns = [-positions, -1, -1][: len(names)]
        return dict(zip(names, (self._values[rows, columns] * self.unit).tolist(), strict=True))

    @property
    def values(self) -> NDArray[Any]:
        """All values, checked and read-only, float32 (sections, positions), or int16 if the table is compact.

        Raises:
            TableError: if the values of a block do not match its checksum.
        """
        self._check(np.arange(len(self._checked)))
        return self._values

    def _check(self, blocks: NDArray[np.int64]) -> None:
        if self._checked[blocks].all():
            return
        for block in np.unique(blocks[~self._checked[blocks]]).tolist():
            section, within = divmod(block, self.layout.blocks)
            cuts = self.layout.cuts[within : within + 2]
            if storage.checksums(self._values[section], cuts) != self._checksums[block]:
                raise TableError(
                    f"values in {self.file} do not match their checksum; it is damaged: "
                    f"{storage.cure(self.file, self.rules)}"
                )
            self._checked[block] = True

    def value(self, mine: ArrayLike, theirs: ArrayLike, powers: Section | None = None) -> NDArray[np.float32]:
        """Return the values of positions for the player to move, float32 (N,).

        Args:
            mine: integers (N, 5), the spaces of the pieces of the player to move. The paths have the order of
                `rules.dead_pieces`. With immunity, the first path has the color of the player to move, who is seat 0 of
                `rules`, and the second path has the color of the other player.
            theirs: integers (N, 5), the spaces of the other player's pieces on the same paths.
            powers: the powers that the two players hold, one of `sections`. By default, no player has used a power.
                With own powers, the default also means that the player to move has the color of seat 0 in `rules`.

        Raises:
            ValueError: for a wrong shape or dtype, a space that does not exist, two pieces on one space, or powers that
                are not among the sections.
        """
        last = storage.sections_of(self.rules)[-1][0]
        if powers is not None and powers not in self.sections:
            raise ValueError(f"powers must be one of {self.sections}, got {powers!r}")
        own = check_integers("mine", mine, (*np.shape(mine)[:1], PATHS))
        pieces = np.stack([own, check_integers("theirs", theirs, own.shape)])
        top, dead = self.board.code.shape[1] - 1, storage.dead_by_column(self.rules)
        wrong = (pieces < 0) | (pieces > top)
        wrong |= self.board.code[(self.kinds, *np.where(wrong, 0, pieces))] == NONE
        if wrong.any():
            side, game, path = np.argwhere(wrong)[0].tolist()
            raise ValueError(
                f"{('mine', 'theirs')[side]}[{game}, {path}] must be an empty space from 0 to {top}, "
                f"got {int(pieces[side, game, path])}"
            )
        state = np.zeros(pieces.shape[1], STATE)
        state["pieces"][:, :2] = pieces.transpose(1, 0, 2)
        state["color"], state["dead"] = np.arange(PATHS), dead
        out, blocks = np.empty((len(state), 2), np.float32), np.empty((len(state), 1), np.int64)
        sections = np.full(len(state), self.sections.index(powers or last))
        look_up(self._sections, sections, state, out, blocks)
        self._check(blocks)
        return np.ascontiguousarray(out[:, 0]) * self.unit

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the table is for other rules."""
        check_solvable(rules, self.rules.players)
        wanted, known = storage.facts_of(rules), self.header["rules"]
        if wanted != known:
            raise ValueError(
                f"the table {self.file} is for {storage.in_words(known)}, the game has {storage.in_words(wanted)}"
            )

    @property
    def kinds(self) -> NDArray[np.int8]:
        """The kind of each column of the arguments of `value`, int8 (5,)."""
        roles = [MINE, THEIRS, *[NEUTRAL] * OWN] if self.rules.immunity else [NEUTRAL] * PATHS
        return self.board.kind_of[roles, storage.dead_by_column(self.rules)]

    @property
    def _sections(self) -> Lookup:
        return Lookup(self.board, self.layout.base, self.layout.block, self.layout.blocks, self._values)

    def _sections_of(self, state: States) -> NDArray[np.int64]:
        """Return the index of the section of each state, int64 (N,), or -1 if the table has no such section."""
        if self.rules.powers == "none":
            return np.zeros(len(state), np.int64)
        held = np.where(state["used"][:, None] >> np.arange(2) & 1, 0, storage.ALL_POWERS)
        if self.rules.powers == "own":
            held &= 1 << state["color"][:, :2].astype(np.int64)
        mover = np.clip(state["player"], 0, 1)
        games = np.arange(len(state))
        mine, theirs = held[games, mover], held[games, 1 - mover]
        sections = np.full(len(state), -1)
        for i, section in enumerate(self.sections):
            sections[(mine == section[0]) & (theirs == section[1])] = i
        return sections

    def for_seats(self, game: Game, state: NDArray[np.void]) -> NDArray[np.float32]:
        """Return the value of each state for every seat, float32 (N, n), as if a turn starts in each state.

        This method can be used as the argument `value` of `wotd_env.planning.planner.plan`.

        Raises:
            ValueError: if the table is for other rules, or a state has an invalid player or piece.
        """
        self.check_rules(game.rules)
        n, games = self.rules.players, len(state)
        out, blocks = np.empty((games, n), np.float32), np.empty((games, n if n == 3 else 1), np.int64)

        def look_up_part(states: Any, config: Configs, out: Any, blocks: Any) -> None:
            look_up(self._sections, self._sections_of(states), states, out, blocks)

        game.apply(look_up_part, state, out, blocks, validate=False)
        if (blocks < 0).any():
            wrong = int(np.argmax(blocks[:, 0] < 0))
            player, pieces, colors = (state[wrong][name].tolist() for name in ("player", "pieces", "color"))
            seats = "0 or 1" if n == 2 else "0, 1 or 2"
            raise ValueError(
                f"game {wrong}: player must be {seats}, and pieces on different spaces from 0 to "
                f"{self.board.code.shape[1] - 1}, with the dead pieces and colors of the rules; got {player}, "
                f"{pieces[:n]}, dead pieces {layout_of(state[wrong]['dead'], self.spaces)} and colors {colors[:n]}"
            )
        self._check(blocks)
        return out * self.unit


class Lookup(NamedTuple):
    """The arrays of a table that kernels need."""

    board: Board
    base: NDArray[np.int64]
    first_block: NDArray[np.int64]  # `Layout.block`
    blocks: int  # the number of blocks of a section
    values: NDArray[Any]  # (sections, positions)


@kernel
def look_up(table: Lookup, sections: NDArray[np.int64], states: Records, out: Any, blocks: Any) -> None:
    """Write to `out`, (N, n), the value of each state for every seat.

    `sections`, (N,), has the index of the section of each state. `blocks` gets the index of the block of each stored
    value. `blocks` is (N, 1) with two players, and (N, 3) with three. If a state is invalid, no values are written for
    this state and all later states, and their entries of `blocks` are -1.
    """
    board = table.board
    code_of, spaces, n = board.code.ravel(), board.code.shape[1], board.code.ndim - 1
    codes = np.empty(PATHS, np.uint64)
    blocks[:] = -1
    for i in range(states.shape[0]):
        s = states[i]
        if s.player < 0 or s.player >= n or sections[i] < 0:
            return
        mine, theirs = -1, -1
        if board.immunity:
            mine, theirs = s.color[s.player], s.color[1 - s.player]
            if mine == theirs or min(mine, theirs) < 0 or max(mine, theirs) >= PATHS:
                return
        for path in range(PATHS):
            role = MINE if path == mine else THEIRS if path == theirs else NEUTRAL
            if s.dead[path] >= board.kind_of.shape[1]:
                return
            at = np.int64(board.kind_of[role, s.dead[path]])
            seat: Int = np.int64(s.player)
            if at < 0:
                return
            for _ in range(n):
                space = s.pieces[seat, path]
                if space < 0 or space >= spaces:
                    return
                at = at * spaces + space
                seat = next_seat(seat, n)
            if code_of[at] == NONE:
                return
            codes[path] = code_of[at]
        total = sort_codes(board, codes)
        for place in range(PATHS):  # the dead pieces may be those of another layout
            if codes[place] < board.span[place, 0] or codes[place] > board.span[place, 1]:
                return
        index = index_of(board, table.base, total, codes)
        block = table.first_block[total] + ((index - table.base[total]) >> storage.BLOCK_BITS)
        if n == 2:
            out[i, 1 - s.player] = -table.values[sections[i], index]
        for k in range(blocks.shape[1]):
            section = sections[i] + k
            out[i, (s.player + k) % n] = table.values[section, index]
            blocks[i, k] = section * table.blocks + block


def load(file: str | Path, expected: Rules | None = None) -> Table:
    """Open a table file.

    Args:
        file: the file.
        expected: the rules of the table, if known. Error messages use them to name the command that makes the table.

    Raises:
        FileNotFoundError: if there is no such file.
        TableError: if the file is not a table, or the table is unfinished, damaged or solved with other rulings.
    """
    file = Path(file)
    if file.is_dir():
        raise FileNotFoundError(
            f"there is no table {file}: it is a folder; name a table in it, such as {file / 'table.wotd'}"
        )
    if not file.is_file():
        raise FileNotFoundError(f"there is no table {file}; make one with: {storage.command(file, expected)}")
    return Table(file, expected)


def compact(file: str | Path, out: str | Path, progress: Progress = lambda done, total: None) -> Table:
    """Write a compact copy of a table to the file `out`, and return the copy.

    The copy has int16 values, which take half the space. `compact_error` in its header is the largest rounding error.

    Raises:
        FileNotFoundError: if there is no table `file`.
        TableError: if `file` is not a table (see `load`), `file` is compact already, or `out` is an unfinished table.
        FileExistsError: if `out` exists.
        OSError: if writing fails.
    """
    table, out = load(file), Path(out)
    if storage.is_compact(table.header):
        raise TableError(f"{file} is compact already")
    with storage.alone(out):
        if out.exists():
            raise FileExistsError(f"{out} exists; remove it or choose another name")
        part = out.with_name(out.name + storage.PART)
        if part.exists() and part.stat().st_size and not storage.is_compact(storage.read_header(part)):
            raise TableError(f"{part} is an unfinished table of `wotd solve`; remove it or choose another")
        try:
            with part.open("w+b", buffering=0) as stream:
                _write_compact(table, stream, progress)
            part.replace(out)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    return load(out)


def _write_compact(table: Table, stream: BinaryIO, progress: Progress) -> None:
    layout, values, error = table.layout, table.values, 0.0
    storage.write_header(stream, table.header | {"sha256": None, "compact_error": error})
    for section, of_section in enumerate(values):
        for total in reversed(range(len(layout.base))):
            done = int(layout.base[total] + table.board.sizes[total])
            exact = of_section[layout.base[total] : done]
            rounded = np.rint(exact * np.float32(storage.UNITS)).astype(storage.COMPACT)
            error = max(error, float(np.abs(rounded * np.float32(1 / storage.UNITS) - exact).max()))
            storage.write_layer(stream, layout, total, rounded, section)
            progress(section * layout.positions + done, layout.sections * layout.positions)
    storage.finish(stream, layout, table.header | {"compact_error": error})


def as_rules(rules: Rules | int) -> Rules:
    """Return `rules`. Raise ValueError if these rules cannot be solved.

    An integer stands for the basic game of two players with this number of plain spaces.
    """
    if not isinstance(rules, Rules):
        return Rules(spaces=rules)
    check_solvable(rules, 3 if rules.players == 3 else 2)
    return rules


def cache_file(rules: Rules | int) -> Path:
    """Return the default file of the table for these rules (see `solve`), in the user's cache folder."""
    rules = as_rules(rules)
    with needed_for("the folder of tables", "arena"):
        from platformdirs import user_cache_path
    facts = storage.facts_of(rules)
    variant = [] if rules.powers == "none" else [rules.powers, *facts.get("colors", [])]
    variant += ["immunity"] if rules.immunity else []
    if rules.dead_pieces:
        variant.append(facts["dead_pieces"].translate(str.maketrans("#./", "x_-")))
    name = "perfect" if rules.players == 2 else f"guarantees-{rules.players}p"
    return user_cache_path("wotd-env") / f"{'-'.join([name, str(rules.spaces), *variant])}.wotd"


def describe_missing(rules: Rules, file: Path) -> str:
    """Return the message for a missing table: how to make it, and the disk space, memory and time needed."""
    how = f"{storage.command(file, rules)} ({describe_needs(rules)})"
    return f"there is no table {file} of the game with {rules.spaces} plain spaces; make it once with: {how}"


def size_of(rules: Rules) -> int:
    """Return the number of values in a table."""
    return int(storage.board_for(rules).positions) * sum(map(len, storage.sections_of(rules)))


def memory_for(rules: Rules) -> int:
    """Return the memory in bytes that the values need while a table is made."""
    board, groups = storage.board_for(rules), storage.sections_of(rules)
    longest = int(board.sizes.max()) * REACH
    return (longest if len(groups) == 1 else board.positions * max(map(len, groups))) * storage.VALUE.itemsize


def describe_needs(rules: Rules) -> str:
    """Return the size of a table, and the time and memory needed to make it, as text."""
    positions = size_of(rules)
    minutes = max(positions * MICROSECONDS[rules.players] / 6e7, 0.1)
    needs = (positions * storage.VALUE.itemsize / 1e9, memory_for(rules) / 1e9, minutes)
    disk, ram, time = (f"{need:,.0f}" if need >= 10 else f"{need:.2g}" for need in needs)
    return f"{positions:,} positions, {disk} GB of disk, {ram} GB of memory, about {time} minutes of one core"


def check_solvable(rules: Rules, players: int = 2) -> None:
    """Raise ValueError unless these rules have `players` players, 2 or 3, and can be solved."""
    what = "games of two players are solved"
    needed: dict[str, Any] = {"players": 2}
    if players == 3:
        what = "the basic game of three players has guarantees"
        needed = {"players": 3, "powers": "none", "immunity": False, "dead_pieces": 0}
    for field, solved in needed.items():
        if (given := getattr(rules, field)) != solved:
            raise ValueError(f"only {what}: {field} must be {solved!r}, got {given!r}")
    storage.facts_of(rules)  # raises ValueError for other unsolved games


def check_table(table: object) -> Table:
    """Return the argument if it is a `Table`; otherwise raise TypeError."""
    if not isinstance(table, Table):
        raise TypeError(f"table must be a Table, the result of wotd_env.solver.load(file), got {table!r}")
    return table
