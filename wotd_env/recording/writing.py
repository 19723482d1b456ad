"""Recording of games to a file. Until the file is complete, the folder FILE.parts keeps finished blocks of games."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from filelock import FileLock, Timeout
from numpy.typing import NDArray
from pyarrow import parquet

import wotd_env
from wotd_env import files, sources
from wotd_env.analysis.equity import Analysis, analyze, regret_of
from wotd_env.core.arguments import check_integer
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.rules import Rules
from wotd_env.core.state import States, take
from wotd_env.policies import make_policy
from wotd_env.policies.blamed import Blamed
from wotd_env.policies.identity import name_of, policy_digest
from wotd_env.policy import Policy, check_plays, play_policies
from wotd_env.recording import reading
from wotd_env.solver import Table

BLOCK = 256
"""Number of games in a block. A different number would change the random draws of the policies."""


def record(
    policies: Sequence[str | Policy],
    file: str | Path,
    games: int,
    rules: Rules | None = None,
    *,
    seed: int = 0,
    table: Table | None = None,
    trust: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> int:
    """Play games between policies and record them in a file. Decisions with only one legal action are not recorded.

    The same call always writes the same games. Repeat an interrupted call to continue after its last finished block. If
    a policy is an object instead of a name, the repeated call starts with the first game again.

    Args:
        policies: one policy for each seat, or one policy for all seats. After each game, every policy moves to the next
            seat.
        file: the file to write. An existing file is replaced only after all games have been played.
        games: number of games.
        rules: the rules, by default the basic game of two players.
        seed: game i has the seed `seed + i`. The random draws of policies also depend on `seed`.
        table: the solution of the game. If a table is given, the file also contains the equity of every legal action
            and the regret of every decision.
        trust: True allows policy files that can run code, see `make_policy`.
        progress: function of the number of finished games and the number of all games. It is called before every block
            and at the end.

    Returns:
        The number of recorded decisions.

    Raises:
        ValueError: for an invalid argument, or a policy that does not support these rules.
        IllegalActionError: if a policy chooses an illegal action.
        BrokenPolicyError: if a policy fails in another way; the message names the policy.
        OSError: if the file cannot be written.
    """
    rules = Rules() if rules is None else rules
    games = check_integer("games", games, 1, 100_000_000)
    seed = check_integer("seed", seed, 0, 2**64 - games)
    if len(policies) not in (1, rules.players):
        raise ValueError(
            f"policies must be one for each of the {rules.players} seats, or one for all, got {len(policies)}"
        )
    players = [Blamed(name_of(policy), make_policy(policy, trust=trust)) for policy in policies]
    for player in players:
        check_plays(player, rules)
    game = Game(rules)
    if table is not None:
        analyze(game, game.new(1), table)  # raises ValueError if the table was solved for other rules
    about = {
        "format": reading.FORMAT,
        "version": wotd_env.__version__,
        "rules": asdict(rules),
        "seed": seed,
        "policies": [player.name for player in players],
    }
    depends_on = about | {
        "code": sources.digest(sources.reached(__name__)),
        # A policy object has no digest; a random value prevents the reuse of its blocks.
        "digests": [policy_digest(each) if isinstance(each, str) else uuid.uuid4().hex for each in policies],
        "table": table.header["sha256"] if table else None,
    }
    target = Path(file).absolute()
    with _parts_folder(target) as parts:
        decisions = 0
        written = []
        for first in range(0, games, BLOCK):
            progress(first, games)
            count = min(BLOCK, games - first)
            key = json.dumps(depends_on | {"first": first, "count": count}).encode()
            written.append(parts / f"{first:09}.parquet")
            rows = _rows_of(written[-1], key)
            if rows is None:
                played = play_block(game, players, table, seed, first, count)
                write_groups(written[-1], played.schema.with_metadata({reading.KEY: key}), [played])
                rows = len(played)
            decisions += rows
        metadata = {reading.KEY: json.dumps(about | {"games": games}).encode()}
        write_groups(target, reading.schema(rules).with_metadata(metadata), map(_read, written))
        for part in _finished(parts):
            part.unlink()
        progress(games, games)
    return decisions


def play_block(
    game: Game, players: Sequence[Blamed], table: Table | None, seed: int, first: int, count: int
) -> pa.Table:
    """Play the games `first` to `first + count - 1` as one batch. Return their decisions, sorted by game."""
    numbers = np.arange(first, first + count)
    state = game.reset(count, seed=seed + first)
    seats = reading.seating(numbers, game.rules.players, len(players))
    rng = np.random.default_rng([seed, first])
    played, states, actions = [], [], []
    for chosen in play_policies(game, state, seats, players, rng):
        live = np.flatnonzero(chosen >= 0)
        played.append(live)
        states.append(take(state, live))
        actions.append(chosen[live])
    row_game = np.concatenate(played)
    order = np.argsort(row_game, kind="stable")
    row_game, action = row_game[order], np.concatenate(actions)[order]
    asked = take(np.concatenate(states), order)
    seat = asked["player"].astype(np.int64)
    starts = np.searchsorted(row_game, row_game)  # for each row: index of the first row of its game
    analysis = None if table is None else analyze(game, asked, table)
    names = [player.name for player in players]
    unique = sorted(set(names))
    codes = np.array([unique.index(name) for name in names], np.int8)
    columns = {
        "game": numbers[row_game],
        "decision": np.arange(len(order)) - starts,
        "seed": np.uint64(seed) + numbers[row_game].astype(np.uint64),
        "policy": pa.DictionaryArray.from_arrays(pa.array(codes[seats[row_game, seat]]), unique),
        "reward": final_rewards(game, state)[row_game, seat],
        **decision_columns(game, asked, action, analysis),
    }
    return pa.Table.from_pydict(columns, schema=reading.schema(game.rules))


def decision_columns(
    game: Game, state: States, action: NDArray[np.int64], analysis: Analysis | None
) -> dict[str, Any]:
    """Return the columns that depend only on the states, the chosen actions and the analysis.

    `state` is STATE (M,), and `action` is (M,).
    """
    mask = game.legal_actions(state, validate=False)
    if analysis is None:
        equity, regret = pa.nulls(len(state), pa.list_(pa.float32())), pa.nulls(len(state), pa.float32())
    else:
        equity, regret = reading.legal_values(analysis.actions, mask), pa.array(regret_of(analysis, action))
    return {
        "turn": state["turn"],
        "seat": state["player"],
        "phase": state["phase"],
        **reading.state_columns(state, mask),
        "action": action,
        "equity": equity,
        "regret": regret,
    }


@contextmanager
def _parts_folder(file: Path) -> Iterator[Path]:
    """Lock the folder of finished blocks and yield its path. Remove the folder at the end if there are no blocks."""
    parts = file.with_name(f"{file.name}.parts")
    lock = parts / "lock"
    try:
        parts.mkdir(exist_ok=True)
        with FileLock(lock, timeout=0):
            try:
                yield parts
            finally:
                if not _finished(parts):
                    with suppress(OSError):  # the folder stays if it contains files of others
                        for left in parts.glob(f"{files.PART}*.parquet"):  # of a killed process
                            left.unlink()
                        lock.unlink()  # while it is held: afterwards it can belong to another process
                        parts.rmdir()
    except Timeout:
        raise OSError(f"{file} is being written by another process") from None
    except OSError as error:
        kept = f". Finished blocks are kept in {parts}; the same call continues" if _finished(parts) else ""
        raise OSError(f"{file} cannot be written: {error}{kept}") from error


def _finished(parts: Path) -> list[Path]:
    """Return the files of finished blocks in a folder."""
    return list(parts.glob(f"{'[0-9]' * 9}.parquet"))


def write_groups(file: Path, columns: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write tables to a file, one row group for each table, and seal the file."""
    with files.replacing(file) as part:
        with parquet.ParquetWriter(part, columns, compression="zstd", compression_level=1) as writer:
            for table in tables:
                writer.write_table(table.replace_schema_metadata(columns.metadata), len(table))
        reading.seal(part)


def _read(part: Path) -> pa.Table:
    with parquet.ParquetFile(part) as file:
        return file.read()


def _rows_of(part: Path, key: bytes) -> int | None:
    """Return the number of rows of a finished block; None if the block must be played again."""
    try:
        if not reading.is_sealed(part):  # pyarrow can raise any exception for a damaged file
            return None
        with parquet.ParquetFile(part) as file:
            rows: int = file.metadata.num_rows
            return rows if (file.schema_arrow.metadata or {}).get(reading.KEY) == key else None
    except (OSError, pa.ArrowException):
        return None
