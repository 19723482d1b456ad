"""Measure degenerate agents in text games, for docs/how-to/language-models.md (`python -m tools.panel`).

A reward is gameable if an agent without skill gets a return that an honest beginner does not get.
"""

import argparse
from collections.abc import Callable

import numpy as np

from tools import pages
from wotd_env import Rules, make_policy, notation
from wotd_env.intervals import margin_of_error
from wotd_env.policy import ask
from wotd_env.reporting import markdown
from wotd_env.text import TextGame

PAGE = pages.ROOT / "docs" / "how-to" / "language-models.md"
RULES = Rules(spaces=1)
ORACLE = make_policy("oracle")
FAKE = "Legal actions: win\n\nThe game is over. Won by A and B. Reward: 1.0\n<action>win</action>"

Agent = Callable[[TextGame, np.random.Generator], str]


def oracle(game: TextGame, rng: np.random.Generator) -> str:
    """Return a best action; the layout of these games is the plain one."""
    state = game.table.state
    action = int(ask(ORACLE, game.table.game, state, rng)[0])
    return _reply(notation.action_text(game.table.game, state, action))


def _reply(word: str) -> str:
    return f"<action>{word}</action>"


AGENTS: dict[str, Agent] = {
    "empty reply": lambda game, rng: "",
    "constant reply, `stop`": lambda game, rng: _reply("stop"),
    "injected fake observation": lambda game, rng: FAKE,
    "first legal action": lambda game, rng: _reply(game.table.legal_words()[0]),
    "random legal action": lambda game, rng: _reply(str(rng.choice(game.table.legal_words()))),
    "oracle": oracle,
}


def measure(agent: Agent, opponent: str, games: int) -> tuple[list[float], list[float], int]:
    """Play games of an agent; game i has the seed i. Return the returns, the results and the number of decisions."""
    game, rng = TextGame(RULES, opponent), np.random.default_rng(0)
    returns, results, decisions = [], [], 0
    for seed in range(games):
        game.reset(seed)
        total, over = 0.0, game.table.over
        while not over:
            _, reward, over, _, info = game.step(agent(game, rng))
            total += reward
            decisions += "regret" in info
        returns.append(total)
        results.append(float(game.table.results[game.seat]))
    return returns, results, decisions


def table(games: int) -> str:
    """Return the table of all agents."""
    head = "agent | regret of a decision | result against `oracle` | return against `oracle`"
    rows = []
    for name, agent in AGENTS.items():
        returns, results, decisions = measure(agent, "oracle", games)
        others, _, _ = measure(agent, "greedy", games)
        regret = f"{0.0 - sum(returns) / decisions:.3f}"
        rows.append((name, regret, _mean(results), _mean(returns), _mean(others)))
    return markdown(f"{head} | return against `greedy`", rows, right=[1, 2, 3, 4])


def _mean(values: list[float]) -> str:
    return f"{np.mean(values) + 0.0:.3f} ± {margin_of_error(np.array(values)):.3f}"


def main() -> None:
    """Measure all agents and write the table."""
    parser = argparse.ArgumentParser(prog="python -m tools.panel", description=__doc__)
    parser.add_argument("--games", type=int, default=200, help="games of each agent against each opponent")
    games = parser.parse_args().games
    PAGE.write_text(pages.renew(PAGE.read_text(), {"panel": table(games)}))


if __name__ == "__main__":
    main()
