"""Tables on disk: restarts, damage, and failed writes."""

import contextlib
import logging
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from tests.helpers.server import GREEDY, HERE, INVITED, LINE, OPEN, VARIANTS, At, lasting, make, play, running
from wotd_env import STATE
from wotd_env.web.refused import Refused
from wotd_env.web.store import Store
from wotd_env.web.tables import stored_tables, table_at


def test_games_continue_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, GREEDY, rules=VARIANTS[2] | {"players": 2, "dead_pieces": 2})
        waiting, invited = make(client, HERE, INVITED, position=LINE, help=True)
        play(at, 7)
        before = [lasting(at.view), lasting(waiting.view)]
    with running(tmp_path / "tables") as client:
        at, waiting = At(client, at.table, at.key), At(client, waiting.table, waiting.key)
        assert [lasting(at.view), lasting(waiting.view)] == before
        assert play(at)["status"] == "over"
        body = {"name": "Bob", "invitation": invited["invitations"][0]["invitation"]}
        assert client.post(f"{waiting.url}/join", json=body).json()["view"]["position"] == LINE


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE tables SET settings = '{' WHERE id = ?",
        "UPDATE tables SET settings = '[]' WHERE id = ?",
        "UPDATE tables SET settings = CAST(X'7bff' AS TEXT) WHERE id = ?",
        "UPDATE steps SET note = CAST(X'ff' AS TEXT) WHERE id = ? AND ply = 1",
        """UPDATE tables SET settings = '{"rules": {"players": 9}, "position": null}' WHERE id = ?""",
        "UPDATE tables SET settings = replace(settings, '\"kind\"', '\"sort\"') WHERE id = ?",
        "UPDATE games SET state = X'00' WHERE id = ?",
        "UPDATE games SET roll_off = '' WHERE id = ?",
        "UPDATE steps SET state = X'00' WHERE id = ? AND ply = 1",
        "UPDATE steps SET state = CAST(state || state AS BLOB) WHERE id = ? AND ply = 1",
        "UPDATE steps SET state = replace(hex(state), '0', '7') WHERE id = ? AND ply = 1",
        "UPDATE steps SET state = randomblob(64) WHERE id = ? AND ply = 1",
        "UPDATE steps SET action = 1000000 WHERE id = ? AND ply = 1",
        "UPDATE steps SET action = 'x' WHERE id = ? AND ply = 1",
        "DELETE FROM steps WHERE id = ? AND ply = 1",
        "DELETE FROM steps WHERE id = ? AND ply = (SELECT max(ply) FROM steps)",
        "DELETE FROM games WHERE id = ?",
        "UPDATE steps SET note = 'failed' WHERE id = ? AND ply = 1",
        "UPDATE tables SET settings = replace(settings, 'Ann', 'Eve') WHERE id = ?",
        "UPDATE tables SET touched = 0 WHERE id = ?",
    ],
)
def test_damaged_table_is_left_out(tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture) -> None:
    with running(tmp_path / "tables") as client:
        damaged, _ = make(client, HERE, HERE, rules=VARIANTS[0])
        play(damaged, 3)
        whole, _ = make(client, HERE, HERE, rules=VARIANTS[0])
        play(whole, 3)
        before = lasting(whole.view)

    def all_rows(file: sqlite3.Connection) -> list[str]:
        file.text_factory = lambda text: text.decode(errors="replace")
        return list(file.iterdump())

    with contextlib.closing(sqlite3.connect(tmp_path / "tables")) as file, file:
        assert file.execute(damage, (damaged.table,)).rowcount == 1
        rows = all_rows(file)
    with running(tmp_path / "tables") as client:
        whole = At(client, whole.table, whole.key)
        assert lasting(whole.view) == before
        assert client.get(f"/api/tables/{damaged.table}").status_code == 404
    (told,) = (record.getMessage() for record in caplog.records if record.levelname == "ERROR")
    assert f"table {damaged.table} " in told
    with contextlib.closing(sqlite3.connect(tmp_path / "tables")) as file:
        assert all_rows(file) == rows  # damaged rows stay in the file


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE games SET state = X'00' WHERE id = ? AND game = 1",
        "UPDATE games SET roll_off = '' WHERE id = ? AND game = 1",
        "UPDATE steps SET note = CAST(X'ff' AS TEXT) WHERE id = ? AND game = 1 AND ply = 1",
        "UPDATE steps SET state = 3 WHERE id = ? AND game = 1 AND ply = 1",
        "UPDATE steps SET state = (SELECT state FROM games) WHERE id = ? AND game = 1 AND ply = 3",
        "UPDATE steps SET action = 'x' WHERE id = ? AND game = 1 AND ply = 1",
        "DELETE FROM steps WHERE id = ? AND game = 1 AND ply = 1",
        "DELETE FROM steps WHERE id = ? AND game = 1 AND ply > 2",
        "UPDATE games SET roll_off = 'null' WHERE id = ? AND game = 1",
    ],
)
def test_damaged_earlier_game_is_reported(
    tmp_path: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, HERE, rules={"spaces": 0})
        play(at)
        at.post("/next", game=1)
        play(at)
    with contextlib.closing(sqlite3.connect(tmp_path / "tables")) as file, file:
        assert file.execute(damage, (at.table,)).rowcount >= 1
    with running(tmp_path / "tables") as client:
        at = At(client, at.table, at.key)
        for path in ("/text", "/review"):
            answer = at.get(path, game=1)
            told = answer.json()
            assert (told["status"], told["code"], told["field"]) == (410, "damaged", "game")
            assert at.get(path, game=2).status_code == 200
    errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert [message.partition(":")[0] for message in errors] == [f"game 1 of table {at.table} is damaged"] * 2


def test_file_opens_in_one_server_only(tmp_path: Path) -> None:
    store = Store(tmp_path / "tables")
    store.put_table("a", {})
    with pytest.raises(ValueError, match="is open in another server"):
        Store(tmp_path / "tables")
    store.close()
    (tmp_path / "other").write_text("no file of tables at all")
    with pytest.raises(ValueError, match="other is not a database of this server"):
        Store(tmp_path / "other")


@pytest.mark.parametrize("journal", ["DELETE", "WAL"])
def test_foreign_database_is_not_changed(tmp_path: Path, journal: str) -> None:
    file = tmp_path / "other"
    with contextlib.closing(sqlite3.connect(file)) as database, database:
        database.execute(f"PRAGMA journal_mode = {journal}")
        database.execute("CREATE TABLE tables (id)")
    before = file.read_bytes()
    with pytest.raises(
        ValueError, match="other is not a database of this server: it belongs to another application"
    ):
        Store(file)
    assert (file.read_bytes(), [*tmp_path.iterdir()]) == (before, [file])


def test_file_of_another_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    Store(file).close()
    with contextlib.closing(sqlite3.connect(file)) as database:
        (mark,) = database.execute("PRAGMA application_id").fetchone()
        assert mark.to_bytes(4, "big") == b"wots"
    with contextlib.closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA user_version = 3")
    with pytest.raises(ValueError, match="its format is 3, not 2"):
        Store(file)


def stored(file: Path) -> dict[str, Any]:
    """Return everything that a server reads from a file of tables."""
    found = {}
    with contextlib.closing(Store(file)) as store:
        for table in stored_tables(store):
            games = []
            for number in range(1, table.number + 1):
                with contextlib.suppress(Refused):
                    shown = table_at(store, table, number)
                    games.append((number, shown.log(), shown.played.roll_off, str(shown.recorded())))
            found[table.id] = [table.settings(), table.touched, table.number, games]
    return found


@pytest.fixture
def file_of_games(tmp_path: Path) -> Path:
    """A file of two tables; one has two games."""
    file = tmp_path / "tables"
    with running(file) as client:
        at, _ = make(client, HERE, HERE, rules={"spaces": 0})
        play(at)
        at.post("/next", game=1)
        play(at, 5)
        play(make(client, HERE, GREEDY, rules={"players": 2, "powers": "any"})[0], 5)
    return file


def test_flipped_bit_is_never_shown(file_of_games: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "wotd_env.web")
    whole, before = file_of_games.read_bytes(), stored(file_of_games)
    rng, undetected, damaged = np.random.default_rng(0), 0, 0
    for _ in range(200):
        content = bytearray(whole)
        content[rng.integers(len(content))] ^= 1 << int(rng.integers(8))
        file_of_games.write_bytes(content)
        with contextlib.suppress(ValueError, sqlite3.DatabaseError):  # the whole file is refused
            found = stored(file_of_games)
            for table, (settings, touched, number, games) in found.items():
                assert [settings, touched, number] == before[table][:3]
                assert all(game in before[table][3] for game in games)
            undetected += found == before  # the bit has no meaning
            continue
        damaged += 1
    assert undetected < 190
    assert damaged < 190


def full(*_: Any) -> None:
    raise sqlite3.OperationalError("database or disk is full")


def test_failed_write_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, HERE)
        before = at.view
        with monkeypatch.context() as patch:
            patch.setattr(Store, "put_step", full)
            assert at.post("/act", ply=0, action=31).status_code == 503
        assert at.view == before
        assert at.post("/act", ply=0, action=31).status_code == 200


def test_failed_start_of_a_game_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wotd_env.web.tables._AGAIN", 0.1)
    with running(tmp_path / "tables") as client:
        host, _ = make(client, HERE, OPEN)
        with monkeypatch.context() as patch:
            patch.setattr(Store, "put_game", full)
            joined = client.post(f"{host.url}/join", json={"name": "Bob"})
            assert joined.status_code == 200  # Bob gets the seat and its key
            assert (joined.json()["view"]["status"], joined.json()["view"]["waiting_for"]) == ("waiting", [])
        guest = At(client, host.table, joined.json()["key"])
        assert guest.until(lambda view: view["status"] == "playing")["mine"] == [1]


def test_file_is_private_and_contains_no_keys_or_random_streams(tmp_path: Path) -> None:
    file = tmp_path / "tables"
    with running(file) as client:
        at, content = make(client, HERE, INVITED, position=LINE)
        keys = [at.key, content["watch"], content["invitations"][0]["invitation"]]
        body = {"name": "Bob", "invitation": keys[-1]}
        keys.append(client.post(f"{at.url}/join", json=body).json()["key"])
        assert at.post("/act", ply=0, action=0).status_code == 200
    assert file.stat().st_mode & 0o077 == 0
    assert not any(key.encode() in file.read_bytes() for key in keys)
    with contextlib.closing(sqlite3.connect(file)) as database:
        states = b"".join(
            row[0] for row in database.execute("SELECT state FROM games UNION ALL SELECT state FROM steps")
        )
    assert not np.frombuffer(states, STATE)["rng"].any()
