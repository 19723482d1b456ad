"""Make the puzzles that the page of `wotd serve` shows: `python -m tools.puzzles`.

The tool first solves the boards that have no table yet.

A puzzle is a decision in which one action is clearly better than all others. The solved board has the exact values.
The positions come from games between two of the server's opponents, `easy` and `very easy`. The level of a puzzle is 1
if the policy `greedy` finds the best action, 2 if only the policy `planner` finds this action, and 3 otherwise.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env import Game, Rules, make_policy, web
from wotd_env.analysis import Advisor
from wotd_env.core.actions import Action, power_of
from wotd_env.core.position import position
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.policy import ask, play_policies
from wotd_env.solver import cache_file, solve

FILE = Path(web.__file__).with_name("static") / "puzzles.json"
BOARDS = (Rules(spaces=1), Rules(spaces=2), Rules(spaces=3), Rules(spaces=1, powers="any"))
KINDS = ("dice", "move", "swap", "power")
SEED = 1
GAMES = 10_000
GAP = 0.04  # smallest lead of the best action over the second best, in equity
DECIDED = 0.9  # positions with at least this absolute equity are not used
EACH = 20  # largest number of puzzles for each pair of kind and level


def main() -> None:
    """Write the puzzles."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    rng = np.random.default_rng(SEED)
    games = [Game(rules, skip_forced=False) for rules in BOARDS]
    found = [puzzle for game in games for puzzle in puzzles(game, GAMES, rng)]
    chosen = []
    for kind in KINDS:
        for level in (1, 2, 3):
            fitting = [puzzle for puzzle in found if (puzzle["kind"], puzzle["level"]) == (kind, level)]
            chosen += [fitting[i] for i in rng.permutation(len(fitting))[:EACH]]
            print(kind, level, len(fitting))
    lines = [json.dumps(chosen[i], separators=(",", ":")) for i in rng.permutation(len(chosen))]
    FILE.write_text("[\n" + ",\n".join(lines) + "\n]\n")


def puzzles(game: Game, games: int, rng: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yield all puzzles in games between `easy` and `very easy`."""
    advisor = Advisor(game, solve(game.rules, cache_file(game.rules)))
    states = decisions(game, games, rng)
    equity, actions, best = advisor.analyze(states)
    top = np.sort(actions, 1)[:, ::-1]
    clear = (top[:, 0] - top[:, 1] >= GAP) & (abs(equity) < DECIDED)
    finds = {name: ask(make_policy(name), game, states, rng) == best for name in ("greedy", "planner")}
    for i in np.flatnonzero(clear).tolist():
        legal = np.flatnonzero(np.isfinite(actions[i]))
        if kind := kind_of(game.rules, states[i], legal):
            level = 1 if finds["greedy"][i] else 2 if finds["planner"][i] else 3
            # The loss of win probability in thousandths, for each legal action in the order of the action numbers.
            lost = np.round((top[i, 0] - actions[i, legal]) * 500).astype(int).tolist()
            where = position(game.rules, states[i : i + 1])
            yield {"position": where, "kind": kind, "level": level, "lost": lost}


def decisions(game: Game, games: int, rng: np.random.Generator) -> States:
    """Play games between `easy` and `very easy`; return distinct decisions with several legal actions, STATE (N,)."""
    players = make_policy("easy"), make_policy("very easy")
    state = game.reset(games, seed=int(rng.integers(1 << 32)))
    seats = np.resize([[0, 1], [1, 0]], (games, 2))
    seen = []
    for actions in play_policies(game, state, seats, players, rng):
        seen.append(state[actions >= 0].copy())
    states = np.concatenate(seen)
    states["rng"] = 0
    states = np.unique(states)
    return np.asarray(states[game.legal_actions(states).sum(1) > 1])


def kind_of(rules: Rules, record: np.void, legal: NDArray[np.int64]) -> str | None:
    """Return the kind of a decision, or None if the decision is not suitable for a puzzle."""
    moves, powers = record["phase"] == Phase.MOVE, rules.powers != "none"
    if powers:
        uses = any(power_of(action) is not None for action in legal.tolist())
        return "power" if moves and uses else None
    if moves:
        return "swap" if legal[-1] >= Action.FIRST_SWAP else "move"
    return "dice" if record["phase"] == Phase.KEEP else None


if __name__ == "__main__":
    main()
