"""verifiers scores decisions and plays games, with scripted models behind a server on the loopback."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytest.importorskip("verifiers", reason="verifiers is not installed: make test-doors", exc_type=ImportError)

import httpx
import verifiers.v1 as vf
from verifiers.v1.configs.env import EnvConfig
from verifiers.v1.utils.loaders import environment_class, load_environment

from tests.helpers.games import first_legal
from wotd_env import Rules, text
from wotd_env.adapters import verifiers as door

pytestmark = pytest.mark.filterwarnings("ignore")

SMALL = Rules(spaces=0)


class Direct(vf.Harness[vf.HarnessConfig]):  # type: ignore[misc, unused-ignore]  # verifiers may be missing
    """Calls the model in this process; the harnesses of verifiers install packages."""

    SUPPORTS_RESUME = APPENDS_SYSTEM_PROMPT = True
    NEEDS_CONTAINER = EXECUTES_CODE = False

    async def launch(self, ctx, trace, runtime, endpoint, secret, mcp_urls, data):
        _, prompt = self.resolve_prompt(data)
        given = [vf.UserMessage(content=prompt)] if isinstance(prompt, str) else prompt
        messages = [{"role": message.role, "content": message.content} for message in given]
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.post(
                f"{endpoint.rstrip('/')}/chat/completions",
                headers={"Authorization": f"Bearer {secret}"},
                json={"model": ctx.model, "messages": messages},
            )
        answer.raise_for_status()
        return vf.ProgramResult(exit_code=0, stdout="", stderr="")


MODULES: dict[str, dict[str, Any]] = {
    "wotd_decisions": {"Decisions": door.Decisions},
    "wotd_games": {"Games": door.Games, "GamesEnv": door.GamesEnv},
    "wotd_direct": {"Direct": Direct},
}


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Export the classes from modules, as users do."""
    for name, classes in MODULES.items():
        module = ModuleType(name)
        vars(module).update(classes | {"__all__": [*classes]})
        module.__spec__ = None
        monkeypatch.setitem(sys.modules, name, module)


class Server(BaseHTTPRequestHandler):
    """Replies to each prompt with its first legal action, or with silence if the model has this name."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        content = "..." if request["model"] == "silent" else first_legal(request["messages"][-1]["content"])
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": request["model"]}
        answer = json.dumps(body | {"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/v1"
    server.shutdown()
    thread.join()
    server.server_close()


def episodes(url: str, taskset: dict[str, Any], model: str = "script", **roles: Any) -> list[Any]:
    """Run every task of a task set once; return the episodes."""
    seat = {"harness": {"id": "wotd_direct"}, "runtime": {"type": "subprocess"}}
    env_type = environment_class(taskset["id"])
    config_type = door.GamesEnvConfig if env_type is door.GamesEnv else vf.SingleAgentEnvConfig
    names = [f"p{number}" for number in range(5)] if env_type is door.GamesEnv else ["agent"]
    config: EnvConfig = config_type.model_validate(
        {"taskset": taskset, **{name: seat | roles.get(name, {}) for name in names}}
    )

    async def run() -> list[Any]:
        env = load_environment(config)
        client = vf.EvalClientConfig(base_url=url, api_key_var="NO_KEY")
        context = vf.ModelContext(model=model, client=client, sampling=vf.SamplingConfig())
        async with env.serving():
            return [await env.run_episode(task, context) for task in env.taskset]

    done = asyncio.run(run())
    for episode in done:
        assert episode.ok, (episode.errors, [trace.errors for trace in episode.traces])
    return done


@pytest.mark.client("verifiers", "verifiers", "vf-eval wotd_decisions")
def test_rewards_of_decisions_are_their_regrets(url):
    done = episodes(url, {"id": "wotd_decisions", "spaces": 0, "size": 1})
    questions = [*text.decisions(rules=SMALL, size=1)]
    assert len(done) == len(questions) > 5
    for episode, question in zip(done, questions, strict=True):
        (trace,) = episode.traces
        grade = text.grade(question, first_legal(question["prompt"]))
        assert trace.rewards["minus_regret"].score == pytest.approx(-grade["regret"])
        assert trace.metrics["agreement"] == grade["agrees"]
        assert trace.metrics["illegal"] == 0


@pytest.mark.client("verifiers", "verifiers", "vf-eval wotd_games")
@pytest.mark.parametrize(("players", "reward"), [(2, "regret"), (3, "result")])
def test_models_play_the_game_of_the_seed(url, players, reward):
    board = {"players": players, "spaces": 0, "reward": reward, "games": 1, "first_seed": 7}
    (episode,) = episodes(url, {"id": "wotd_games", **board})
    table = text.TextTable(Rules(players=players, spaces=0), reward=reward)
    table.reset(7)
    turns: list[list[float]] = [[] for _ in range(players)]
    while not table.over:
        info = table.reply(first_legal(table.message()))
        turns[info["seat"]].append(info["reward"])
    traces = {trace.agent.name: trace for trace in episode.traces}
    assert set(traces) == {f"p{seat}" for seat in range(players)}
    for seat, rewards in enumerate(turns):
        trace = traces[f"p{seat}"]
        assert trace.info["turns"] == pytest.approx(rewards)
        assert trace.metrics["result"] == pytest.approx(table.results[seat])
        assert trace.rewards[reward].score == pytest.approx(
            sum(rewards) if reward == "regret" else table.results[seat]
        )


def test_a_silent_model_forfeits(url):
    board = {"spaces": 0, "games": 1, "first_seed": 7, "retries": 1}
    (episode,) = episodes(url, {"id": "wotd_games", **board}, p0={"model": "silent"}, p1={"model": "silent"})
    assert sorted(trace.metrics["result"] for trace in episode.traces) == [-1, 1]
    assert sorted(trace.metrics["illegal"] for trace in episode.traces) == [0, 2]


@pytest.mark.parametrize("name", ["Decisions", "Games, GamesEnv"])
def test_the_validation_of_verifiers_passes(name, tmp_path):
    names = [each.strip() for each in name.split(",")]
    (tmp_path / "wotd_tasks.py").write_text(
        f"from wotd_env.adapters.verifiers import {name}\n\n__all__ = {names!r}\n"
    )
    arguments = "wotd_tasks --taskset.spaces 0 -n 3 --runtime.type subprocess --rich false -o out"
    code = "import sys; sys.path.insert(0, '.'); from verifiers.v1.cli.validate import main; main()"
    paths = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    subprocess.run(
        [sys.executable, "-c", code, *arguments.split()],
        cwd=tmp_path,
        env=paths,
        check=True,
        capture_output=True,
        timeout=300,
    )
    (summary,) = (Path(tmp_path) / "out").rglob("summary.json")
    outcome = json.loads(summary.read_text())
    assert outcome["checks"]["gold"]["valid"] == 3, outcome
    assert outcome["checks"]["noop"]["invalid"] == 0, outcome
