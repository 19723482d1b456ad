"""Control of a table: its pace, single steps, resignation, deletion, and spectators."""

import asyncio
import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from websockets.exceptions import ConnectionClosed

from tests.helpers.server import GREEDY, HERE, INVITED, OPEN, At, closed, make, play, running, until_closed
from wotd_env import Rules
from wotd_env.web.agents import Agents
from wotd_env.web.limits import Limits
from wotd_env.web.requests import NewSeat, NewTable
from wotd_env.web.store import Store
from wotd_env.web.tables import Tables


def watcher(at: At, content: dict[str, str]) -> At:
    """Return the table as a spectator sees it."""
    return At(at.client, at.table, content["watch"])


def beyond(ply: int) -> Callable[[Any], bool]:
    """Return the condition that decision `ply` has been taken."""
    return lambda view: bool(view["ply"] > ply)


def test_paused_table_moves_only_by_steps_until_a_pace_is_set(tmp_path: Path) -> None:
    with running(tmp_path / "tables.sqlite") as client:
        at, _ = make(client, GREEDY, GREEDY, pace=5)
        paused = at.post("/pace", pace=None).json()
        assert (paused["pace"], paused["ply"], paused["left"]) == (None, 0, None)
        for ply in range(3):
            assert at.post("/step", ply=ply).status_code == 200
            assert at.until(beyond(ply))["ply"] == ply + 1
        assert at.post("/step", ply=2).status_code == 409
    with running(tmp_path / "tables.sqlite") as client:  # the pause outlasts a restart
        at = At(client, at.table, at.key)
        assert (at.view["pace"], at.view["ply"]) == (None, 3)
        at.post("/pace", pace=0.2)
        assert at.until(lambda view: view["ply"] > 4)["pace"] == 0.2


def test_a_step_during_a_decision_does_not_take_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def overlap() -> int:
        tables = Tables(store, agents := Agents(), Limits())
        seats = [NewSeat(kind="agent", agent="greedy") for _ in range(2)]
        table, key = tables.create(NewTable(seats=seats, pace=5.0), Rules(), None, "")
        host = tables.viewer(table, key)
        tables.set_pace(table, host, None)
        chosen = asyncio.Event()

        async def late(*asked: Any) -> tuple[int, str | None]:
            await chosen.wait()
            return table.legal[0], None

        monkeypatch.setattr(agents, "choose", late)
        tables.step(table, host, 0)
        for _ in range(9):
            await asyncio.sleep(0.001)  # the first decision waits
        asyncio.get_running_loop().call_later(0, chosen.set)
        # begins in the same round of the loop, after the first decision is chosen
        tables.step(table, host, 0)
        for _ in range(9):
            await asyncio.sleep(0.001)
        await tables.close()
        return table.ply

    with contextlib.closing(Store(tmp_path / "tables")) as store:
        assert asyncio.run(overlap()) == 1


@pytest.mark.parametrize("pace", [-1, 5.1, "fast", 0.1])
def test_wrong_pace_is_refused(client: httpx.Client, pace: object) -> None:
    at, _ = make(client, GREEDY, GREEDY, pace=5)
    refused = at.post("/pace", pace=pace)
    assert (refused.status_code, refused.json()["field"]) == (400, "pace")
    assert at.view["pace"] == 5


def test_person_decides_at_a_paused_table(client: httpx.Client) -> None:
    at, content = make(client, HERE, HERE)
    at.post("/pace", pace=None)
    assert at.post("/step", ply=0).status_code == 409
    assert at.act(content["view"])["ply"] >= 1


def test_only_the_host_controls_a_table(client: httpx.Client) -> None:
    at, content = make(client, GREEDY, GREEDY, pace=5)
    spectator = watcher(at, content)
    assert spectator.post("/pace", pace=None).status_code == 403
    assert spectator.post("/step", ply=0).status_code == 403
    assert client.delete(spectator.url, headers=spectator.headers).status_code == 403
    assert client.delete(at.url).status_code == 401
    assert (at.view["pace"], at.view["ply"]) == (5, 0)


def test_resignation_ends_the_game_for_the_other_player(tmp_path: Path) -> None:
    with running(tmp_path / "tables.sqlite") as client:
        at, _ = make(client, HERE, GREEDY, rules={"start": "loser"}, pace=5, help=True)
        over = at.post("/resign", game=1, seat=0).json()
        assert (over["status"], over["choices"]) == ("over", [])
        assert over["result"]["winners"] == [1]
        assert over["result"]["rewards"] == [-1, 1]
        assert over["result"]["resigned"] == 0
        assert at.post("/resign", game=1, seat=0).status_code == 409
        assert at.post("/act", ply=over["ply"], action=31).status_code == 409
        assert at.get("/help").json()["hints"] == []
        assert at.get("/review").json()["result"]["resigned"] == 0
    with running(tmp_path / "tables.sqlite") as client:
        at = At(client, at.table, at.key)
        assert at.view["result"] == over["result"]
        again = at.post("/next", game=1).json()
        assert (again["status"], again["game"], again["player"]) == ("playing", 2, 0)  # the loser starts


def test_foreign_seats_and_large_tables_cannot_be_resigned(client: httpx.Client) -> None:
    at, content = make(client, HERE, GREEDY)
    assert at.post("/resign", game=1, seat=1).status_code == 403
    assert at.post("/resign", game=2, seat=0).status_code == 409
    assert watcher(at, content).post("/resign", game=1, seat=0).status_code == 403
    three, _ = make(client, HERE, GREEDY, GREEDY, rules={"players": 3})
    refused = three.post("/resign", game=1, seat=0)
    assert refused.status_code == 409
    assert "give your seat to an agent" in refused.json()["error"]
    waiting, _ = make(client, HERE, OPEN)
    assert waiting.post("/resign", game=0, seat=0).status_code == 409


def test_deleted_table_is_gone_for_everybody(tmp_path: Path) -> None:
    with running(tmp_path / "tables.sqlite") as client:
        at, content = make(client, HERE, OPEN)
        with watcher(at, content).socket() as socket:
            assert json.loads(socket.recv(timeout=60))["type"] == "view"
            assert client.delete(at.url, headers=at.headers).status_code == 200
            assert closed(at) == (4404, "no_table")
            with pytest.raises(ConnectionClosed, match="4404"):
                until_closed(socket)
        assert at.get().status_code == 404
        assert client.get("/api/tables").json()["tables"] == []
        agents, _ = make(client, GREEDY, GREEDY, pace=0.2)
        agents.until(lambda view: view["ply"] > 1)
        client.delete(agents.url, headers=agents.headers)
    with running(tmp_path / "tables.sqlite") as client:
        assert [At(client, each.table, each.key).get().status_code for each in (at, agents)] == [404, 404]


def test_spectators_are_counted(client: httpx.Client) -> None:
    at, content = make(client, HERE, GREEDY)
    assert at.view["spectators"] == 0
    with watcher(at, content).socket(), watcher(at, content).socket():
        assert at.until(lambda view: view["spectators"] == 2)["mine"] == [0]
    assert at.until(lambda view: view["spectators"] == 0)["ply"] == 0


def test_a_person_takes_its_seat_back_from_an_agent(client: httpx.Client) -> None:
    at, _ = make(client, HERE, GREEDY)
    assert at.post("/seat", seat=0, agent="greedy").json()["seats"][0]["name"] == "greedy"
    watching = at.view
    assert (watching["mine"], watching["lent"], watching["choices"]) == ([], [0], [])
    assert at.post("/seat", seat=1, agent=None).status_code == 403  # an agent since the start
    back = at.post("/seat", seat=0, agent=None).json()
    assert (back["mine"], back["lent"], back["seats"][0]["name"]) == ([0], [], "Ann")
    assert play(at)["status"] == "over"


def test_a_decision_of_an_agent_is_dropped_if_its_seat_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def overlap() -> int:
        tables = Tables(store, agents := Agents(), Limits())
        seats = [NewSeat(kind="here"), NewSeat(kind="agent", agent="greedy")]
        table, key = tables.create(NewTable(seats=seats, pace=0.0), Rules(), None, "")
        asked, chosen = asyncio.Event(), asyncio.Event()

        async def late(*_: Any) -> tuple[int, str | None]:
            asked.set()
            await chosen.wait()
            return table.legal[0], None

        monkeypatch.setattr(agents, "choose", late)
        lent = tables.hand_over(table, tables.viewer(table, key), 0, "greedy")
        await asked.wait()
        tables.hand_over(table, lent, 0, None)
        chosen.set()
        for _ in range(9):
            await asyncio.sleep(0)
        await tables.close()
        return table.ply

    with contextlib.closing(Store(tmp_path / "tables")) as store:
        assert asyncio.run(overlap()) == 0


def test_an_invitation_outlasts_an_agent(client: httpx.Client) -> None:
    at, content = make(client, HERE, INVITED)
    assert at.post("/seat", seat=1, agent="greedy").json()["status"] == "playing"
    [invited] = content["invitations"]
    joined = client.post(f"{at.url}/join", json={"name": "Bob", "invitation": invited["invitation"]})
    assert joined.json()["view"]["mine"] == [1]
    assert at.view["seats"][1]["name"] == "Bob"


def test_clock_gives_the_seat_of_an_idle_person_away(tmp_path: Path) -> None:
    with running(tmp_path / "tables.sqlite") as client:
        host, _ = make(client, HERE, OPEN, OPEN, rules={"players": 3}, clock=1)
        keys = [client.post(f"{host.url}/join", json={"name": name}).json()["key"] for name in ("Bob", "Cem")]
        people = [host, *(At(client, host.table, key) for key in keys)]
        with contextlib.ExitStack() as open_sockets:
            for each in people:
                open_sockets.enter_context(each.socket())
            first = host.until(lambda view: view["left"] == 0)  # nobody decides
            idle = first["player"]
            other = next(seat for seat in (1, 2) if seat != idle)
            assert first["gives"] == sorted({0, idle})
            assert people[other].view["gives"] == [other]
            assert people[other].post("/seat", seat=idle, agent="greedy").status_code == 403
        gone = people[other].until(lambda view: not view["seats"][0]["connected"] and view["left"] == 0)
        assert idle in gone["gives"]  # the host left
        assert people[other].post("/seat", seat=idle, agent="greedy").status_code == 200
        assert people[idle].view["lent"] == [idle]
    with running(tmp_path / "tables.sqlite") as client:
        back = At(client, host.table, people[idle].key).post("/seat", seat=idle, agent=None).json()
        assert (back["mine"], back["lent"]) == ([idle], [])


def test_rush_skips_the_waits_until_a_person_is_to_act(client: httpx.Client) -> None:
    at, _ = make(client, HERE, GREEDY, GREEDY, rules={"players": 3}, pace=5)
    view = at.view
    for _ in range(3):
        if view["choices"]:
            view = at.post("/act", ply=view["ply"], action=view["choices"][-1]["action"]).json()
        else:
            assert at.post("/step", ply=view["ply"], rush=True).status_code == 200
            view = at.until(lambda view: bool(view["choices"]))
    assert view["ply"] > 2
