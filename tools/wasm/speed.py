"""Measure the speed of wotd.wasm in Node, and that of the same functions compiled for the processor."""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tools.wasm import exports
from tools.wasm.weights import weights
from wotd_env import Game, Rules
from wotd_env.planning.planner import plan
from wotd_env.planning.values import hand_made
from wotd_env.policies.td import BundledValue
from wotd_env.reporting import markdown

GAMES, PLANS, ROUNDS = 20_000, 2_000, 5
TASKS = (
    "decisions of random games, in one call a game",
    "decisions through `step` and `legalActions`",
    "plans with the hand-made value",
    "plans with the value of `td`",
)

Timed = tuple[int, float]  # a number of decisions or plans, and the seconds that they took


def measure(modules: dict[str, Path]) -> None:
    """Print a table of decisions and plans per second, the best of several rounds."""
    with tempfile.TemporaryDirectory() as folder:
        network = Path(folder, "td")
        network.write_bytes(weights(Rules()))
        runs: dict[str, Callable[[], list[Timed]]] = {"native": native}
        for name, module in modules.items():
            runs[name] = lambda module=module: in_node(module, network)  # type: ignore[misc]
        best: dict[str, list[Timed]] = {}
        for _ in range(ROUNDS):
            for name, run in runs.items():
                found = run()
                best[name] = [max(each, key=speed) for each in zip(found, best.get(name, found), strict=True)]
    if len({counts[0][0] for counts in best.values()}) > 1:
        sys.exit("the games differ: run `python -m tools.wasm`")
    rows = [[task, *(f"{speed(best[name][i]):,.0f}" for name in best)] for i, task in enumerate(TASKS)]
    print(markdown(["per second", *best], rows, right=range(1, len(best) + 1)))


def speed(timed: Timed) -> float:
    """Return the number per second."""
    return timed[0] / timed[1]


def in_node(module: Path, network: Path) -> list[Timed]:
    """Measure a module in Node."""
    script = Path(__file__).with_suffix(".js")
    command: list[str | Path] = ["node", script, module, network, str(GAMES), str(PLANS)]
    return [(number, seconds) for number, seconds in json.loads(subprocess.check_output(command))]


def native() -> list[Timed]:
    """Measure the same functions in Python, with one game in each call."""
    game = Game()
    state = game.reset(1)

    def playouts() -> int:
        decisions = 0
        for seed in range(GAMES):
            exports.new_game(state, game.config, seed, -1)
            decisions += exports.playout(state, game.config)
        return decisions

    def steps() -> int:
        decisions = 0
        for seed in range(GAMES // 200):
            state = game.reset(1, seed=seed)
            while not game.is_over(state)[0]:
                game.step(state, game.legal_actions(state).argmax(1))
                decisions += 1
        return decisions

    def planned(value: object) -> Callable[[], int]:
        def run() -> int:
            for seed in range(PLANS):
                plan(game, game.reset(1, seed=seed), value)  # type: ignore[arg-type]
            return PLANS

        return run

    return [timed(run) for run in (playouts, steps, planned(hand_made), planned(BundledValue()))]


def timed(run: Callable[[], int]) -> Timed:
    """Return the result of a function and its seconds, after a first call that compiles it."""
    run()
    start = time.perf_counter()
    return run(), time.perf_counter() - start
