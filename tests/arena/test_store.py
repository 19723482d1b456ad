"""Tournament files: interruptions, reused games, damage and full disks."""

import json
import re
import resource
import sqlite3
import subprocess
import zlib
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.arena_policies import Gambler, Lowest
from tests.helpers.tournaments import OWN, QUICK, blocks_of, digests_of, same, wotd
from wotd_env import Rules, make_policy
from wotd_env.arena import Tournament, run, show
from wotd_env.arena.store import Store
from wotd_env.arena.tournament import results_dtype


@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_tournament_resumes(tmp_path, workers):
    file = tmp_path / "games.sqlite"
    options = ("--spaces", 0, "--games", 10**7, "--file", file, "--workers", workers, "--quiet")
    process = wotd("arena", "random", "greedy", *options)
    while len(blocks_of(file)) < 3:
        assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()
    before = blocks_of(file)
    tournament = Tournament(("random", "greedy"), QUICK, games=512 * (len(before) + 2))
    assert same(run(tournament, file), run(tournament))
    after = blocks_of(file)
    assert after[: len(before)] == before  # no block is lost or played again
    assert len(after) == len({row[1:4] for row in after}) >= len(before) + 1  # no block is counted twice


def test_concurrent_tournaments_share_a_file(tmp_path):
    file = tmp_path / "games.sqlite"
    options = ("--spaces", 0, "--games", 1500, "--file", file, "--workers", 0, "--quiet")
    processes = [
        wotd("arena", "random", "greedy", *options),
        wotd("arena", "random", "greedy", *options),
        wotd("arena", "random", "first", "greedy", *options),
        wotd("arena", "random", "greedy", "--seed", 1, *options),
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    rows = len(blocks_of(file))
    assert rows == (3 + 1) * 3  # three pairings and one more seed, of three blocks each
    for policies, seed in ((("random", "greedy"), 1), (("random", "first", "greedy"), 0)):
        tournament = Tournament(policies, QUICK, 1500, seed)
        assert same(run(tournament, file), run(tournament))
    assert len(blocks_of(file)) == rows  # every block was stored already


def test_reused_games_are_logged_and_fresh_plays_them_again(tmp_path, caplog):
    file = tmp_path / "games.sqlite"
    tournament = Tournament(("mine", "first"), QUICK, games=600)
    mine = {"mine": Gambler()}

    def logged() -> list[str]:
        return [text for text in caplog.messages if str(file) in text]

    first = run(Tournament(("mine", "first"), QUICK, games=512), file, policies=mine)
    assert first.earlier == {}
    assert not logged()
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    resumed = run(tournament, file, policies=mine)
    assert resumed.earlier == resumed.to_dict()["earlier"]
    assert list(resumed.earlier.values()) == [512]
    (date,) = resumed.earlier
    assert date <= today
    assert logged() == [
        f"{file}: using 512 games of earlier runs ({date}); fresh=True, or --fresh, plays them again"
    ]
    assert "512 games are from earlier runs (" in str(vars(show.tables(resumed)[0])["caption"])
    caplog.clear()
    again = run(tournament, file, policies=mine, fresh=True)
    assert same(again, resumed)
    assert again.earlier == {}
    assert not logged()
    assert len(blocks_of(file)) == 2  # replaced


def test_fresh_replaces_stored_games_with_the_first_new_block(tmp_path):
    file = tmp_path / "games.sqlite"
    tournament = Tournament(("random", "first", "greedy"), QUICK, games=600)
    run(tournament, file)
    other = run(Tournament(("random", "first"), QUICK, games=600, seed=1), file)
    before = blocks_of(file)

    def stop_at(most: int):
        def progress(done: int, total: int) -> None:
            if done >= most:
                raise KeyboardInterrupt

        return progress

    for most, left in ((0, before), (1, [row for row in before if row not in before[:6]])):
        with pytest.raises(KeyboardInterrupt):
            run(tournament, file, fresh=True, progress=stop_at(most))
        after = blocks_of(file)
        assert [row for row in after if row in before] == left
    assert len(after) == len(left) + 1
    assert same(run(tournament, file), run(tournament))
    assert sum(run(Tournament(("random", "first"), QUICK, games=600, seed=1), file).earlier.values()) == 600
    assert not other.earlier


def test_an_object_differs_from_the_policy_of_the_same_name(tmp_path):
    tournament = Tournament(("greedy", "random.policy"), QUICK, games=100)
    policies = {"greedy": make_policy("random"), "random.policy": make_policy("random")}
    file = tmp_path / "games.sqlite"
    first = run(tournament, file, policies=policies)
    assert abs(first.rows[0].share.value - 0.5) < 0.2
    honest = Tournament(("greedy", "random"), QUICK, games=100)
    assert same(run(honest, file), run(honest))


def test_other_files_are_refused_unchanged(tmp_path):
    tournament = Tournament(("random", "first"), QUICK, games=10)
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look into" * 10)
    database = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE block (a)")
    for file in (text, database):
        content = file.read_bytes()
        with pytest.raises(ValueError, match=f"{file.name} is not a tournament file"):
            run(tournament, file)
        assert file.read_bytes() == content


# ----------------------------------------------------------------------------------------------- damage and full disks


@pytest.fixture
def kept(tmp_path) -> Path:
    """Return the file of a tournament with four blocks; the last one has forfeits."""
    file: Path = tmp_path / "games.sqlite"
    run(_KEPT, file)
    return file


_KEPT = Tournament((OWN + "Illegal", "first"), Rules(spaces=1), games=1700)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            "games = CAST(substr(games, 1, 99) || x'00' || substr(games, 101) AS BLOB)",
            "the checksum is wrong",
        ),
        ("games = substr(games, 1, 100)", "the checksum is wrong"),
        ("games = 7", "can't concat|must be|bytes-like"),
        ("forfeits = replace(forfeits, '999', '998')", "the checksum is wrong"),
        ("forfeits = CAST(x'ff' || forfeits AS TEXT)", "the checksum is wrong"),
        ("written = '2001-01-01T00:00:00+00:00'", "the checksum is wrong"),
        ("checksum = 0", "the checksum is wrong"),
    ],
)
def test_a_damaged_block_is_detected_and_played_again(kept, caplog, change, why):
    truth = run(_KEPT)
    with closing(sqlite3.connect(kept)) as connection, connection:
        assert connection.execute(f"UPDATE block SET {change} WHERE first = 256").rowcount == 1
    again = run(_KEPT, kept)
    assert same(again, truth)
    assert sum(again.earlier.values()) == 1700 - 512
    logged = caplog.records[0].getMessage()
    assert re.search(rf"games\.sqlite is damaged: games 512 to 1023 of .*Illegal .*again \(({why})", logged)
    caplog.clear()
    assert sum(run(_KEPT, kept).earlier.values()) == 1700  # repaired
    assert "is damaged" not in caplog.text


IMPOSSIBLE = {"duplicate": 7, "place": 9, "rank": np.nan, "share": 1e9, "luck": np.inf, "forfeit": 9}
IMPOSSIBLE_FORFEITS = {
    "policy": 3,
    "seats": ["a", "b"],
    "seat": 99,
    "duplicate": "1",
    "game_seed": -1,
    "moves": [999],
    "reason": None,
}


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("games", zlib.compress(b"")),
        ("games", zlib.compress(bytes(100_000_000))),
        ("games", zlib.compress(bytes(512 * 40))[:-20]),
        ("games", b"no zlib"),
        ("forfeits", "[" * 100_000),
        ("forfeits", "[1]"),
        ("forfeits", '[{"seats": 1}]'),
        ("forfeits", "[]"),
        *(("games", {name: value}) for name, value in IMPOSSIBLE.items()),
        *(("forfeits", {name: value}) for name, value in IMPOSSIBLE_FORFEITS.items()),
    ],
)
def test_malformed_rows_with_a_valid_checksum_are_played_again(kept, column, value):
    truth = run(_KEPT)
    with (
        Store(_KEPT, kept, digests_of(_KEPT)) as store,
        closing(sqlite3.connect(kept)) as connection,
        connection,
    ):
        matchup = _KEPT.matchups[0]
        row = connection.execute("SELECT games, forfeits, written FROM block WHERE first = 0").fetchone()
        games, forfeits, written = row
        if isinstance(value, dict) and column == "games":
            records = np.frombuffer(zlib.decompress(games), results_dtype(2)).copy()
            ((name, wrong),) = value.items()
            records[name][0] = wrong
            value = zlib.compress(records.tobytes())
        elif isinstance(value, dict):
            value = json.dumps([json.loads(forfeits)[0] | value, *json.loads(forfeits)[1:]])
        games, forfeits = (value, forfeits) if column == "games" else (games, value)
        checksum = store._checksum(
            store._policies(matchup), _KEPT.block(matchup, 0), games, forfeits, written
        )
        connection.execute(
            "UPDATE block SET games = ?, forfeits = ?, checksum = ? WHERE first = 0",
            (games, forfeits, checksum),
        )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert same(run(_KEPT, kept), truth)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 50_000  # kB


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TABLE block", "is damaged (no such table: block). Delete it, or use another file"),
        ("PRAGMA user_version = 1", "has format 1, this version reads 2; use another file"),
        ("PRAGMA application_id = 1", "is not a tournament file: it is another database"),
    ],
)
def test_altered_databases_are_refused(kept, sql, message):
    with closing(sqlite3.connect(kept)) as connection, connection:
        connection.execute(sql)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        run(_KEPT, kept)
    assert str(kept) in str(refused.value)


@pytest.mark.parametrize("attempts", [40, pytest.param(1000, marks=pytest.mark.slow)])
def test_random_damage_gives_right_results_or_an_error(kept, attempts):
    truth, whole, rng = run(_KEPT), kept.read_bytes(), np.random.default_rng(0)
    refused = right = 0
    for attempt in range(attempts):
        content = bytearray(whole)
        if attempt % 4 == 0:
            del content[int(rng.integers(len(content))) :]
        else:
            start = int(rng.integers(len(content)))
            stop = start + int(rng.choice([1, 16, 512, 4096]))
            content[start:stop] = rng.bytes(len(content[start:stop]))
        kept.write_bytes(content)
        try:
            results = run(_KEPT, kept)
        except ValueError as error:
            refused += str(kept) in str(error)
        else:
            right += same(results, truth)
    assert refused + right == attempts
    assert min(refused, right) > attempts / 10


@pytest.mark.usefixtures("reference")  # imports everything before permissions are dropped
def test_a_complete_file_can_be_used_read_only(powerless):
    file = powerless / "games.sqlite"
    tournament = Tournament(("random", "first"), QUICK, games=600)
    truth = run(tournament, file)
    file.chmod(0o400)
    powerless.chmod(0o500)
    assert same(run(tournament, file), truth)
    assert same(
        run(Tournament(("random", "first"), QUICK, games=512), file),
        run(Tournament(("random", "first"), QUICK, games=512)),
    )
    asked = []
    spy = Lowest()
    spy.act = lambda *arguments: asked.append(arguments)  # type: ignore[method-assign, assignment]
    with pytest.raises(sqlite3.OperationalError, match=r"games\.sqlite cannot be written: .*readonly"):
        run(Tournament(("mine", "first"), QUICK, games=600), file, policies={"mine": spy})
    with pytest.raises(sqlite3.OperationalError, match=r"other\.sqlite cannot be read: unable to open"):
        run(tournament, powerless / "other.sqlite")
    assert not asked


def test_a_full_disk_loses_only_unwritten_blocks(tmp_path):
    file = tmp_path / "games.sqlite"
    command = ("arena", "random", "first", "--spaces", 0, "--games", 20_000, "--file", file, "--quiet")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = wotd(*command, "--workers", 0, preexec_fn=full)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert f"Error: the tournament file {file} cannot be written: " in errors
    assert "Written blocks are kept" in errors
    assert "Traceback" not in errors
    blocks = len(blocks_of(file))
    assert 5 < blocks < 40
    tournament = Tournament(("random", "first"), QUICK, games=20_000)
    results = run(tournament, file)
    assert sum(results.earlier.values()) == 512 * blocks
    assert same(results, run(tournament))


@pytest.mark.slow
def test_results_survive_a_hundred_kills(tmp_path):
    file, out = tmp_path / "games.sqlite", tmp_path / "results.json"
    policies = ("random", "greedy", OWN + "Gambler")
    options = ("--spaces", 0, "--seed", 11, "--file", file, "--workers", 2, "--quiet", "--out", out)
    command = ("arena", *policies, *options, "--games")

    def count() -> int:
        try:
            with (
                closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)) as connection,
                connection,
            ):
                return int(connection.execute("SELECT count(*) FROM block").fetchone()[0])
        except sqlite3.OperationalError:  # missing, or to be recovered by the next writer
            return blocks[-1]

    def still_runs(seconds: float) -> bool:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    rng = np.random.default_rng(0)
    blocks = [0]
    for kill in range(100):
        process = wotd(*command, 6_000_000)  # more than it can play before the kill
        if kill % 3 == 0:  # usually during startup
            still_runs(float(rng.uniform(0, 3)))
        else:  # after one or two more blocks
            while still_runs(0.02) and count() < blocks[-1] + kill % 3:
                pass
            still_runs(float(rng.uniform(0, 0.1)))
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
        blocks.append(count())
        assert blocks[-1] >= blocks[-2]
        assert not out.exists()
    rows = blocks_of(file)
    assert len(rows) >= max(blocks)
    last = max(int(str(first)) for _, _, first, _, _ in rows)
    tournament = Tournament(policies, QUICK, games=2 * (last + 256), seed=11)
    process = wotd(*command, tournament.games)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "is damaged" not in errors
    document, truth = json.loads(out.read_text()), run(tournament, workers=2)
    assert sum(document["earlier"].values()) == 512 * len(rows)
    assert document | {"earlier": None} == json.loads(json.dumps(truth.to_dict())) | {"earlier": None}
    assert same(run(tournament, file), truth)
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
