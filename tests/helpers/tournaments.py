"""Small tournaments, their files and their results."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

from tests.helpers import ROOT
from wotd_env import Rules, make_policy
from wotd_env.arena import Results, Tournament
from wotd_env.arena.tournament import Block, play_block
from wotd_env.policies.identity import policy_digest

OWN = "tests.helpers.arena_policies:"
"""The prefix of the names of the policies in `arena_policies`."""
QUICK = Rules(spaces=0)
"""Rules of short games."""


def played(tournament: Tournament, block: Block, **options):
    """Play a block in this process."""
    policies = {name: make_policy(name) for name in block.matchup}
    return play_block(tournament, policies, block, **options)


def digests_of(tournament: Tournament) -> dict[str, str]:
    """Return the digests of the policies, as `run` computes them for a file."""
    return {name: policy_digest(name, make_policy(name)) for name in tournament.policies}


def same(one: Results, other: Results) -> bool:
    """Return whether two runs have the same results, apart from the number of games loaded from a file."""
    return (
        one.games.keys() == other.games.keys()
        and all(one.games[matchup].tobytes() == other.games[matchup].tobytes() for matchup in one.games)
        and one.to_dict() | {"earlier": None} == other.to_dict() | {"earlier": None}
    )


TOURNAMENT = Tournament(("random", "greedy", OWN + "Gambler"), QUICK, games=1300, seed=3)
"""A tournament with random policies, of several blocks."""


def wotd(*arguments: object, **options) -> subprocess.Popen[str]:
    """Start the `wotd` command."""
    command = [sys.executable, "-m", "wotd_env.cli", *map(str, arguments)]
    return subprocess.Popen(
        command, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **{"cwd": ROOT, **options}
    )


def blocks_of(file: Path) -> list[tuple[object, ...]]:
    """Return the rows of the blocks in a tournament file."""
    if not file.exists():
        return []
    with closing(sqlite3.connect(file, timeout=60)) as connection, connection:
        try:
            return connection.execute(
                "SELECT rowid, policies, first, size, games FROM block ORDER BY rowid"
            ).fetchall()
        except sqlite3.OperationalError:  # created, but without tables
            return []
