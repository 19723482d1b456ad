"""OpenEnv's server plays the games of TextGame, with OpenEnv's own client and its own validation."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("openenv", reason="openenv is not installed: make test-doors", exc_type=ImportError)

import httpx
import uvicorn
from openenv.cli.__main__ import app as command
from openenv.core import GenericEnvClient
from typer.testing import CliRunner

from tests.helpers.games import first_legal
from wotd_env import Rules
from wotd_env.adapters.openenv import make_app
from wotd_env.text import TextGame

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = Rules(spaces=0)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """Serve games on the loopback."""
    app = make_app(SMALL, opponents="greedy", sessions=4)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", ws="websockets-sansio"))
    started = threading.Event()
    startup = server.startup

    async def signalled(*given: Any, **more: Any) -> None:
        await startup(*given, **more)
        started.set()

    server.startup = signalled  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run)
    thread.start()
    assert started.wait(60)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


@pytest.mark.client("OpenEnv", "openenv", "make_app(Rules(spaces=1))")
def test_a_client_plays_the_games_of_the_seed(url):
    game = TextGame(SMALL, "greedy")
    with GenericEnvClient(base_url=url).sync() as client:
        for seed in (3, 4):
            message = game.reset(seed)
            result = client.reset(seed=seed, episode_id=f"episode {seed}")
            assert (result.observation["message"], result.done, result.reward) == (message, False, None)
            over, steps = False, 0
            while not over:
                reply = first_legal(message)
                message, reward, over, _, info = game.step(reply)
                result = client.step({"reply": reply})
                steps += 1
                assert (result.observation["message"], result.done) == (message, over)
                assert result.reward == pytest.approx(reward)
                assert result.metadata["result"] == info["result"]
            state = client.state()
            assert (state["episode_id"], state["step_count"]) == (f"episode {seed}", steps)
            assert set(state) == {"episode_id", "step_count"}


def test_sessions_are_independent_and_share_a_game_by_its_seed(url):
    with GenericEnvClient(base_url=url).sync() as one, GenericEnvClient(base_url=url).sync() as other:
        first = one.reset(seed=5).observation["message"]
        assert other.reset(seed=5).observation["message"] == first
        moved = one.step({"reply": first_legal(first)}).observation["message"]
        assert other.step({"reply": ""}).observation["message"] != moved
        again = other.step({"reply": first_legal(first)}).observation["message"]
        assert again.splitlines()[1:] == moved.splitlines()[1:]


def test_replies_that_are_no_actions_end_no_session(url):
    with GenericEnvClient(base_url=url).sync() as client:
        client.reset(seed=0)
        with pytest.raises(Exception, match=r"VALIDATION_ERROR"):
            client.step({"reply": 31})
        result = client.step({"reply": "\x00<action>win</action>"})
        assert "not a legal action" in result.observation["message"]


def test_a_reply_is_the_only_field_of_an_action(url):
    """So clients such as the task set of verifiers send the text of a model as it is."""
    assert httpx.get(f"{url}/schema").json()["action"]["required"] == ["reply"]


def test_openenv_validates_the_running_server(url):
    result = CliRunner().invoke(command, ["validate", "--url", url])
    assert result.exit_code == 0, result.output


def test_errors_are_raised_before_the_server_starts():
    with pytest.raises(ValueError, match="opponents must be"):
        make_app(SMALL, opponents=["greedy", "greedy"])
