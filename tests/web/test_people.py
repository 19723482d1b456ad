"""People against agents: the games that count, the intervals, and the export."""

from __future__ import annotations

import contextlib
import json
import time
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from pyarrow import parquet
from typer.testing import CliRunner

from tests.helpers.server import GREEDY, HERE, LINE, OPEN, At, make, play, running
from wotd_env.cli import app
from wotd_env.web.people import margin_of_people
from wotd_env.web.store import Store

SHORT: dict[str, Any] = {"rules": {"spaces": 0}}


def results(client: httpx.Client) -> list[dict[str, Any]]:
    """Return the results after all games are graded."""
    for _ in range(300):
        answer = client.get("/api/results").raise_for_status().json()
        if not answer["waiting"]:
            rows: list[dict[str, Any]] = answer["results"]
            return rows
        time.sleep(0.1)
    raise TimeoutError("the games are not graded")


def test_results_and_export_agree_and_contain_no_names_or_keys(tmp_path: Path) -> None:
    file, out = tmp_path / "tables", tmp_path / "people.parquet"
    with running(file) as client:
        for person in ("anna", "anna", "bert"):
            at, _ = make(client, HERE, GREEDY, **SHORT, person=person)
            play(at)
        at.post("/next", game=1)
        play(at, 1)  # a game without decisions has no rows
        assert at.post("/resign", game=2, seat=0).status_code == 200
        at.post("/next", game=2)  # stays unfinished
        play(at, 2)
        helped = make(client, HERE, GREEDY, **SHORT, person="anna", help=False)[0]
        play(helped)
        without, row = results(client)
        assert (row["agent"], row["help"], row["games"], row["people"]) == ("greedy", True, 4, 2)
        assert row["unfinished"] == 1
        assert row["margin"] > 0
        assert (without["help"], without["games"], without["margin"]) == (False, 1, None)
        assert without["score"] != without["wins"]  # adjusted for luck
    result = CliRunner().invoke(app, ["serve", "--file", str(file), "--export", str(out)])
    assert result.exit_code == 0, result.output
    assert "5 games of 2 people" in result.output
    exported = parquet.read_table(out)
    assert json.loads(exported.schema.metadata[b"wotd_env"])["results"] == [without, row]
    games = {each["game"]: each for each in exported.to_pylist() if each["help"]}
    scores = [each["share"] - each["luck"] for each in games.values()]
    assert len(scores) == row["games"]
    assert np.mean(scores) == pytest.approx(row["score"], abs=1e-4)
    for each in exported.to_pylist():
        assert len(each["equity"]) == sum(each["mask"])
        assert each["mask"][each["action"]] == 1
        assert each["regret"] >= 0
    assert not any(secret in out.read_bytes() for secret in (b"Ann", b"anna", b"bert"))
    assert not any(secret in file.read_bytes() for secret in (b"anna", b"bert"))


def test_games_that_do_not_count(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        play(make(client, HERE, GREEDY, **SHORT)[0])  # no key
        play(make(client, HERE, HERE, **SHORT, person="anna")[0])  # both seats
        play(make(client, HERE, GREEDY, position=LINE, person="anna")[0])  # not from the start
        at, _ = make(client, HERE, OPEN, **SHORT, person="anna")
        joined = client.post(f"{at.url}/join", json={"name": "Bob", "person": "bert"}).json()
        play(at, 1)
        bob = At(client, at.table, joined["key"])
        assert bob.post("/seat", seat=1, agent="greedy").status_code == 200  # during the game
        play(at)
        assert results(client) == []
        at.post("/next", game=1)
        play(at)
        (row,) = results(client)  # the seat belongs to the agent now
        assert (row["agent"], row["games"], row["people"]) == ("greedy", 1, 1)


def test_a_finished_game_counts_after_the_seat_is_given_to_an_agent(tmp_path: Path) -> None:
    with running(tmp_path / "tables") as client:
        at, _ = make(client, HERE, GREEDY, **SHORT, person="anna")
        play(at)
        assert at.post("/seat", seat=0, agent="greedy").status_code == 200
        (row,) = results(client)
        assert row["games"] == 1


def test_export_needs_an_existing_file_and_the_server_to_be_stopped(tmp_path: Path) -> None:
    command = ["serve", "--export", str(tmp_path / "out.parquet"), "--file", str(tmp_path / "tables")]
    assert "no file of tables" in CliRunner().invoke(app, command).stderr
    with contextlib.closing(Store(tmp_path / "tables")) as store:
        store.put_table("a", {})
        assert "open in another server" in CliRunner().invoke(app, command).stderr


def test_the_interval_contains_the_mean_of_few_unequal_people() -> None:
    rng, hits = np.random.default_rng(0), 0
    for _ in range(1000):
        counts = rng.geometric(0.25, 5)
        sums = np.array([rng.normal(rng.normal(0.4, 0.1), 0.35, count).sum() for count in counts])
        hits += abs(sums.sum() / counts.sum() - 0.4) <= margin_of_people(sums, counts)
    assert 920 <= hits <= 980
    assert margin_of_people(np.ones(1), np.ones(1)) == np.inf
