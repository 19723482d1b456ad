"""The demo without a server (`python -m tools.demo`): it agrees with the package, and can be played."""

import functools
import json
import re
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="the fixtures of tests/web need the extra web")

from tests.helpers.node import check_agreement
from tools import demo
from wotd_env import Game, Phase
from wotd_env.web import views

AGREEMENT = Path(__file__).with_name("agreement.js")
GAMES = 20
NAMES = ["Player", "td"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the demo."""
    folder = tmp_path_factory.mktemp("demo")
    demo.build(folder)
    return folder


@pytest.fixture(scope="module")
def site(folder: Path) -> Iterator[str]:
    """The address of the demo at a host of static files."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as host:
        threading.Thread(target=host.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{host.server_port}"
        host.shutdown()


def test_demo_has_the_pictures_of_its_rules(folder):
    rules = [file.read_text() for file in (folder / "rules").iterdir() if file.is_file()]
    pictures = [re.findall(r'src="([^"]+)"', text) for text in rules]
    assert len(pictures) == 4
    assert all((folder / picture).is_file() for each in pictures for picture in each)


def test_demo_agrees_with_the_package_over_whole_games(folder):
    game, rng = Game(skip_forced=False), np.random.default_rng(0)
    games = [play(game, seed, rng) for seed in range(GAMES)]
    played = {decision["step"]["notation"] for each in games for decision in each["decisions"]}
    assert {"pass", "equilibrium", "perfection", "end", "wA-B"} <= played
    (folder / "games.json").write_text(json.dumps(games))
    check_agreement(AGREEMENT, WOTD_DEMO=str(folder))


@pytest.mark.slow
def test_demo_can_be_played(visit):
    pytest.importorskip("playwright", reason="playwright drives the browser")
    pytest.importorskip("axe_playwright_python", reason="the helpers of the page use it")
    from playwright.sync_api import Locator, expect

    from tests.helpers.page import decide, my_turn, played, violations

    page = visit()
    for _ in range(9):
        assert my_turn(page)
        decide(page, Locator.click)
    assert my_turn(page)
    names = page.locator(".log .turn-head strong").all_inner_texts()
    assert {*names} == set(NAMES)
    assert len(played(page)) > 9
    page.get_by_text("Hints").click()
    expect(page.locator(".hints .choice")).to_have_count(2)
    assert not violations(page)
    page.get_by_role("button", name="Rules").click()
    expect(page.locator("#rules-text")).to_contain_text("dragon")


def play(game: Game, seed: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return a game of random actions as JSON. Every second roll has only two faces, so all kinds of moves occur."""
    state = game.reset(1, seed=seed)
    states, actions = [state.copy()], []
    while not game.is_over(state)[0]:
        actions.append(int(rng.choice(np.flatnonzero(game.legal_actions(state)[0]))))
        game.decide(state, actions[-1:])
        if state["phase"][0] == Phase.CHANCE:
            faces = rng.choice(6, 6 if rng.random() < 0.5 else 2, replace=False)
            dice = state["dice"]
            game.roll(state, np.sort(np.where(dice < 0, rng.choice(faces, (1, 5)), dice)))
        states.append(state.copy())
    decisions = [
        {
            "record": list(before.tobytes()),
            "state": show(game, before),
            "choices": views.choices(game, before),
            "step": views.step(game, before, action, after) | {"ply": ply},
        }
        for ply, (before, action, after) in enumerate(zip(states, actions, states[1:], strict=False))
    ]
    end = {"record": list(state.tobytes()), "state": show(game, state), "result": views.result(game, state)}
    return {"decisions": decisions, "end": end}


def show(game: Game, state: np.ndarray) -> dict[str, Any]:
    """Return a position as the demo shows it, without its line of text."""
    return views.show(game, state) | {"position": ""}
