"""Help during a game, and reviews after it."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import httpx
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from tests.helpers.server import GREEDY, HERE, INVITED, LINE, OPEN, VARIANTS, At, fewer, make, play, running
from wotd_env import Game, notation
from wotd_env.analysis import BLUNDER, ERROR, Advisor
from wotd_env.web.review import replay


def test_help_is_one_setting_for_the_whole_table(client: httpx.Client) -> None:
    assert make(client, HERE, GREEDY)[1]["view"]["help"]
    assert not make(client, HERE, OPEN)[1]["view"]["help"]
    assert not make(client, HERE, INVITED)[1]["view"]["help"]
    without, _ = make(client, HERE, GREEDY, help=False)
    assert without.get("/help").status_code == 409
    at, content = make(client, HERE, HERE, HERE, rules={"players": 3, "powers": "any"}, help=True)
    told = at.get("/help").json()
    assert sum(told["chances"]) == pytest.approx(1, abs=1e-3)
    assert [hint["loss"] for hint in told["hints"]] == sorted(hint["loss"] for hint in told["hints"])
    assert {hint["action"] for hint in told["hints"]} <= {choice["action"] for choice in at.view["choices"]}
    assert At(client, at.table, content["watch"]).get("/help").json()["hints"] == []
    with at.socket() as socket:
        kinds = [json.loads(socket.recv(timeout=60))["type"] for _ in range(2)]
        assert kinds == ["view", "help"]


@pytest.mark.parametrize("rules", VARIANTS[:3])
def test_review_of_a_finished_game_is_consistent(client: httpx.Client, rules: dict[str, Any]) -> None:
    at, _ = make(client, *[HERE] * rules["players"], rules=rules)
    assert at.get("/review").status_code == 409
    view = play(at)
    told = at.get("/review").json()
    assert len(told["steps"]) == view["ply"]
    for step in told["steps"]:
        assert step["regret"] is None or step["regret"] >= 0
        assert sum(step["chances"]) == pytest.approx(1, abs=1e-3)
        assert step["forced"] == (step["regret"] is None)
    for seat in told["seats"]:
        own = [step for step in told["steps"] if step["seat"] == seat["seat"]]
        assert seat["blunders"] == sum(step["class"] == "blunder" for step in own)
        assert seat["regret"] == pytest.approx(sum(step["regret"] or 0 for step in own), abs=0.01)
    assert sum(seat["luck"] for seat in told["seats"]) == pytest.approx(0, abs=0.01)
    n = rules["players"]
    assert told["thresholds"] == [ERROR, BLUNDER]
    shares = [(1 + (n - 1) * reward) / n for reward in view["result"]["rewards"]]  # all equal if nobody wins
    assert told["last_chances"] == pytest.approx(shares, abs=1e-4)
    pasted = client.post("/api/games", json={"text": told["text"], "review": True}).json()
    assert (pasted["steps"], pasted["seats"]) == (told["steps"], told["seats"])


def test_help_of_three_players_names_a_known_guarantee(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    at, _ = make(client, HERE, HERE, HERE, rules={"players": 3, "spaces": 0}, help=True)
    position = at.view["position"]
    values = {"position": position, "values": True}
    assert client.post("/api/choices", json=values).json()["guarantee"] is None  # without the table
    rules, state = notation.parse_position(position)
    forced = Advisor(Game(rules))  # stands for the advisor with the table of guarantees
    monkeypatch.setattr("wotd_env.web.games.guarantor_of", lambda rules: forced)
    expected = (1 + 2 * float(forced.analyze(state).equity[0])) / 3
    for told in (at.get("/help"), client.post("/api/choices", json=values)):
        assert told.json()["guarantee"] == pytest.approx(expected, abs=1e-4)


def test_games_and_positions_can_be_sent_as_text(client: httpx.Client) -> None:
    told = client.post("/api/games", json={"text": LINE}).json()
    assert (told["steps"], told["last"]["position"], told["graded"]) == ([], LINE, False)
    assert client.post("/api/games", json={"text": LINE, "review": True}).json()["last_chances"][0] > 0
    for wrong in ("", "x", "[Position 3]", f'[Position "{LINE}"]\n\n12. A [wwfmd] nonsense'):
        assert client.post("/api/games", json={"text": wrong}).status_code == 400
    assert client.post("/api/games", json={"text": "x" * 70_000}).status_code == 413


def test_review_is_counted_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path / "tables", fewer(games=1e-6)) as client:
        at, other = (make(client, HERE, HERE, rules={"spaces": 0})[0] for _ in range(2))
        for table in (at, other):
            play(table)
        told = at.get("/review")
        for _ in range(9):
            assert client.post("/api/games", json={"text": LINE}).status_code == 200
        assert other.get("/review").status_code == 429
        assert at.get("/review").content == told.content
        at.post("/seat", seat=0, agent="greedy")
        assert at.get("/review").status_code == 429  # the kept review names another player


@pytest.fixture
def long_reviews(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[Event]]]:
    """Make later reviews wait for an event. Gives the events of their start, release and end."""
    started, release, finished = events = [Event() for _ in range(3)]

    def long(recorded: notation.RecordedGame, graded: bool) -> dict[str, Any]:
        started.set()
        release.wait(60)
        finished.set()
        return replay(recorded, graded)

    def begin() -> list[Event]:
        monkeypatch.setattr("wotd_env.web.handlers.replay", long)
        return events

    yield begin
    release.set()


def test_review_counts_until_its_thread_finishes(
    tmp_path: Path, long_reviews: Callable[[], list[Event]]
) -> None:
    with running(tmp_path / "tables", fewer(reviews=1, reviewing=0.1)) as client:
        _, release, _ = long_reviews()
        late, next_ = (client.post("/api/games", json={"text": LINE}) for _ in range(2))
        assert (late.status_code, late.json()["code"]) == (503, "review_late")
        assert (next_.status_code, next_.json()["code"]) == (503, "reviews")
        release.set()
        for _ in range(600):
            answer = client.post("/api/games", json={"text": LINE})
            if answer.json().get("code") != "reviews":
                break
            Event().wait(0.1)
        else:
            pytest.fail("the review that has finished still counts")


def test_server_stops_during_a_review(
    tmp_path: Path, long_reviews: Callable[[], list[Event]], caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor() as pool:
        with running(tmp_path / "tables") as client:
            started, _, finished = long_reviews()
            address = f"{client.base_url}/api/games"
            asked = pool.submit(httpx.post, address, json={"text": LINE}, timeout=60)
            started.wait(60)
        assert not finished.is_set()
        assert (asked.result().status_code, asked.result().json()["code"]) == (503, "stopping")
    assert not [record for record in caplog.records if record.exc_info]
