"""Solve layouts of dead pieces and write docs/results/layouts.md (`python -m tools.layouts one two three`).

Without names, it writes all tables of the page. On one core, all layouts with one plain space take a minute, all with
two take half an hour, and the ten with three take an hour. Layouts that are already in the cache are not solved again.
"""

from collections.abc import Iterable

import numpy as np

from tools import pages
from wotd_env import Game, Rules, analysis, make_policy, solver
from wotd_env.benchmark.generalization import in_order
from wotd_env.core.layouts import standard_layouts
from wotd_env.planning.planner import Value
from wotd_env.policies.planner import Planner
from wotd_env.policies.td import Td
from wotd_env.policy import Policy, play_policies
from wotd_env.reporting import markdown

PAGE = pages.ROOT / "docs" / "results" / "layouts.md"
THREE = 10  # number of layouts with three plain spaces
GAMES = 500
COLUMNS = "layout | positions | value of the start | turns of a perfect game | `greedy` | `planner` | `td`"


class Findings:
    """The tables of the page."""

    def one(self) -> str:
        """Return the table of all layouts of one plain space."""
        return table(1, standard_layouts(1))

    def two(self) -> str:
        """Return the table of all layouts of two plain spaces."""
        return table(2, standard_layouts(2))

    def three(self) -> str:
        """Return a table of layouts of three plain spaces, among them the graded ones of the benchmark."""
        return table(3, in_order(3)[:THREE])


def table(spaces: int, layouts: Iterable[str]) -> str:
    """Return a table of solved layouts, sorted by the value of the start."""
    rows = []
    for layout in layouts:
        rules = Rules(spaces=spaces, dead_pieces=layout)
        solved = solver.solve(rules, solver.cache_file(rules))
        players: tuple[str | Policy, ...] = ("greedy", "planner", trained_without_dead_pieces(spaces))
        regret = [analysis.grade(player, solved, GAMES).all.regret * 1000 for player in players]
        cells = (f"{mean:.1f}" for mean in regret)
        row = f"`{layout}` | {solved.board.positions:,} | {solved.start:+.4f} | {turns(rules):.1f}"
        rows.append((solved.start, " | ".join([row, *cells])))
    return markdown(COLUMNS, [row for _, row in sorted(rows, reverse=True)], right=range(1, 7))


def trained_without_dead_pieces(spaces: int) -> Policy:
    """Return the policy `td` with the value learned without dead pieces; it does not see dead pieces."""
    board = Game(spaces=spaces)
    learned = Td().learned(board.rules)
    value: Value = lambda game, states: learned.unchecked(board, states)  # noqa: E731
    return Planner(value)


def turns(rules: Rules) -> float:
    """Return the mean number of turns in games of perfect players."""
    game = Game(rules)
    state, seats = game.reset(GAMES, seed=0), np.zeros((GAMES, 2), np.int64)
    for _ in play_policies(game, state, seats, [make_policy("oracle")], np.random.default_rng(0)):
        pass
    return float((state["turn"] + 1).mean())


if __name__ == "__main__":
    names = pages.parser_of(PAGE, __doc__).parse_args().names
    pages.write(PAGE, Findings(), names)
