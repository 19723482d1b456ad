"""Solve a game of three players and write docs/results/guarantees.md (`python -m tools.guarantees`).

The guarantee of a seat is the expected reward that the seat can secure against two cooperating opponents. Solving takes
half an hour on one core, and needs 5 GB of disk. A board that is already in the cache is not solved again.
"""

from datetime import date

import numpy as np
from numpy.typing import NDArray

from tools import pages
from wotd_env import Game, Rules, __version__, analysis, make_policy, solver
from wotd_env.analysis import KINDS
from wotd_env.core.rules import win_share
from wotd_env.intervals import margin_of_error, margin_of_ratio
from wotd_env.policies.planner import Planner
from wotd_env.policy import Policy, play_policies
from wotd_env.reporting import markdown

PAGE = pages.ROOT / "docs" / "results" / "guarantees.md"
RULES = Rules(players=3, spaces=0)
GAMES = 3000
GRADED = ("td", "planner", "greedy", "random")


class Findings:
    """The tables of the page, computed from the solved board."""

    def __init__(self) -> None:
        self.table = solver.solve(RULES, solver.cache_file(RULES))
        self.cautious = Planner(self.table.for_seats)  # the policy that maximizes the guarantee of its seat
        self.game = Game(RULES)

    def when(self) -> str:
        """Return a sentence with the solved board's number of positions, solving time and Bellman error."""
        header, residual = self.table.header, solver.verify(self.table.file)
        return (
            f"{header['positions']:,} positions with three values each, solved in {header['cpu_seconds'] / 60:.0f} "
            f"minutes of processor time. The largest Bellman error of all positions is {residual:.1g}. Measured on "
            f"{date.today()} with version {__version__}."
        )

    def start(self) -> str:
        """Return a table of the lower and upper bound on the expected reward of each seat at the start."""
        starts, total = self.table.starts.items(), sum(self.table.starts.values())
        rows = []
        for name, value in starts:
            low, high = win_share(value, 3), win_share(value - total, 3)
            rows.append(
                f"{name} | {value:+.4f} | {value - total:+.4f} | {100 * low:.1f} % to {100 * high:.1f} %"
            )
        head = "seat | guarantee | largest reward in an equilibrium | win share, from guarantee to largest reward"
        return markdown(head, rows, right=(1, 2, 3))

    def grades(self) -> str:
        """Return a table of the guarantee regret of each policy, in games in which the policy plays all seats.

        The guarantee regret is the best guarantee minus the guarantee after the action that the policy takes.
        """
        rows = [[f"`{name}`", *self.grade(make_policy(name))] for name in GRADED]
        head = ["policy", "all decisions", *KINDS[:4], "sum over a game"]
        return markdown(head, rows, right=range(1, 7))

    def grade(self, policy: Policy) -> list[str]:
        """Return a policy's guarantee regret as text: per decision, per decision of each kind, per game of a seat."""
        game, state, rng = self.game, self.game.reset(GAMES, seed=0), np.random.default_rng(0)
        count, lost = np.zeros((2, GAMES, len(KINDS)))
        same = np.zeros((GAMES, 3), np.int64)
        for actions in play_policies(game, state, same, [policy], rng):
            live = np.flatnonzero(actions >= 0)
            kind = analysis.kinds(game, state[live])
            count[live, kind] += 1
            lost[live, kind] += analysis.regret(game, state[live], actions[live], self.table)
        cells = []
        for columns in (slice(None), *range(4)):
            of, n = lost[:, columns].reshape(GAMES, -1).sum(1), count[:, columns].reshape(GAMES, -1).sum(1)
            cells.append(f"{1000 * of.sum() / n.sum():.1f} ± {1000 * margin_of_ratio(of, n):.1f}")
        in_game = lost.sum(1) / 3
        return [*cells, f"{1000 * in_game.mean():.0f} ± {1000 * margin_of_error(in_game):.0f}"]

    def wins(self) -> str:
        """Return a table of the win share of `cautious` against two copies of each policy."""
        rows = []
        for name in GRADED:
            shares = self.play(make_policy(name))
            rows.append(f"two `{name}` | {100 * shares.mean():.1f} % ± {100 * margin_of_error(shares):.1f} %")
        return markdown("opponents | share of wins of the cautious player", rows, right=(1,))

    def play(self, opponent: Policy) -> NDArray[np.floating]:
        """Return the win share of `cautious` in each game, (GAMES,)."""
        game, state, rng = self.game, self.game.reset(GAMES, seed=1), np.random.default_rng(1)
        seat = np.arange(GAMES) % 3
        seats = (np.arange(3) != seat[:, None]).astype(np.int64)
        for _ in play_policies(game, state, seats, (self.cautious, opponent), rng):
            pass
        return win_share(game.rewards(state)[np.arange(GAMES), seat].astype(np.float64), 3)


if __name__ == "__main__":
    names = pages.parser_of(PAGE, __doc__).parse_args().names
    pages.write(PAGE, Findings(), names)
