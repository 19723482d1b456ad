"""Write a file of games. The folder FILE.parts keeps finished blocks, so that a repeated call continues."""

from __future__ import annotations

import json
import shutil
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import wotd_env
from wotd_env import files
from wotd_env.analysis.equity import analyze
from wotd_env.arena.asking import Blamed
from wotd_env.arena.fingerprints import policy_digest
from wotd_env.core.arguments import check_integer
from wotd_env.core.compilation import source_digest
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.extras import needed_for
from wotd_env.policies import make_policy
from wotd_env.policy import Policy, check_plays
from wotd_env.recording.columns import FORMAT, KEY, schema
from wotd_env.recording.playing import Recording, play_block
from wotd_env.solver import Table

with needed_for("a Parquet file of games", "arena"):
    import pyarrow as pa
    from filelock import FileLock, Timeout
    from pyarrow import parquet

BLOCK = 256
"""Number of games in a batch. It is a constant, because the random draws of policies depend on it."""

MOST_GAMES = 100_000_000


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
    """Play games between policies and write every decision to a file. Forced decisions are not recorded.

    The same call always writes the same games. If it is repeated after an interruption or a full disk, it continues.

    Args:
        policies: one policy for each seat, or one policy for all seats. From game to game, every policy moves on by one
            seat.
        file: the file to write. An existing file is replaced only after all games have been played.
        games: number of games.
        rules: the rules, by default the basic game of two players.
        seed: game i has the seed `seed + i`. The random draws of policies also depend on `seed`.
        table: solved game. With it, the equity of every legal action and the regret of every decision are recorded.
        trust: see `make_policy`.
        progress: called with the number of finished games and the number of all games, before every block and at
            the end.

    Returns:
        The number of decisions.

    Raises:
        ValueError: for an invalid argument, or policies that do not play these rules.
        IllegalActionError: if a policy chooses an illegal action.
        BrokenPolicyError: if a policy fails in another way; the message names the policy.
        OSError: if the file cannot be written. Finished blocks are kept.
    """
    rules = Rules() if rules is None else rules
    games = check_integer("games", games, 1, MOST_GAMES)
    seed = check_integer("seed", seed, 0, 2**64 - games)
    if len(policies) not in (1, rules.players):
        raise ValueError(
            f"policies must be one for each of the {rules.players} seats, or one for all, got {len(policies)}"
        )
    names = [name_of(policy) for policy in policies]
    players = [
        Blamed(name, make_policy(policy, trust=trust)) for name, policy in zip(names, policies, strict=True)
    ]
    for player in players:
        check_plays(player, rules)
    game = Game(rules)
    if table is not None:
        analyze(game, game.new(1), table)  # raises an error for a wrong table before the first game
    about = {
        "format": FORMAT,
        "version": wotd_env.__version__,
        "rules": asdict(rules),
        "seed": seed,
        "policies": names,
    }
    depends_on = about | {
        "code": source_digest(Path(__file__)),
        # The contents of a policy object are unknown, so blocks played by it are never reused.
        "digests": [policy_digest(each) if isinstance(each, str) else uuid.uuid4().hex for each in policies],
        "table": table.header["sha256"] if table else None,
    }
    recording = Recording(game, players, names, seed, table)
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
                played = play_block(recording, first, count)
                write_groups(written[-1], played.schema.with_metadata({KEY: key}), [played])
                rows = len(played)
            decisions += rows
        metadata = {KEY: json.dumps(about | {"games": games}).encode()}
        write_groups(target, schema(rules).with_metadata(metadata), map(parquet.read_table, written))
        for part in parts.glob("*.parquet"):
            part.unlink()
        progress(games, games)
    return decisions


def name_of(policy: str | Policy) -> str:
    """Return the name of a policy. For a policy object, return the import path of its class."""
    return policy if isinstance(policy, str) else f"{type(policy).__module__}:{type(policy).__qualname__}"


@contextmanager
def _parts_folder(file: Path) -> Iterator[Path]:
    """Yield the folder of finished blocks, locked for this call. Remove the folder at the end if it contains no block.

    An OSError raised inside is raised again with the file and the folder of kept blocks in its message.
    """
    parts = file.with_name(f"{file.name}.parts")
    try:
        parts.mkdir(exist_ok=True)
        with FileLock(parts / "lock", timeout=0):
            yield parts
    except Timeout:
        raise OSError(f"{file} is being written by another process") from None
    except OSError as error:
        blocks = any(parts.glob("0*"))
        kept = f". Finished blocks are kept in {parts}; the same call continues" if blocks else ""
        raise OSError(f"{file} cannot be written: {error}{kept}") from error
    finally:
        if not any(parts.glob("*.parquet")):
            shutil.rmtree(parts, ignore_errors=True)


def write_groups(file: Path, columns: pa.Schema, tables: Iterable[pa.Table]) -> None:
    """Write a file with one row group for each table. If an error occurs, an existing file stays unchanged."""
    with (
        files.replacing(file) as part,
        parquet.ParquetWriter(part, columns, compression="zstd", compression_level=1) as writer,
    ):
        for table in tables:
            writer.write_table(table.replace_schema_metadata(columns.metadata), len(table))


def _rows_of(part: Path, key: bytes) -> int | None:
    """Return the number of rows in a kept block; None if the block is missing, damaged, or has another key."""
    try:
        with parquet.ParquetFile(part) as file:
            rows: int = file.metadata.num_rows
            return rows if (file.schema_arrow.metadata or {}).get(KEY) == key else None
    except (OSError, pa.ArrowException):
        return None
