"""Solve games with powers or immunity and write the tables of docs/results/powers.md (`python -m tools.powers`).

For every board, the tool solves games of three kinds: `powers="own"` with each pair of colors, `powers="any"`, and
immunity without powers.
"""

from datetime import date
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from tools import pages
from wotd_env import Game, Rules, __version__, analysis, make_policy, solver
from wotd_env.core.rules import ELEMENTS, POWERS, Power, win_share
from wotd_env.policy import play_policies
from wotd_env.reporting import markdown

PAGE = pages.ROOT / "docs" / "results" / "powers.md"
BOARDS = (0, 1, 2, 3)  # numbers of plain spaces
GAMES = 4000  # games for each pair of colors, and for each graded policy
GRADED = ("planner", "greedy", "random")
START = [[0] * 5]
NAMES = [f"{color}: {power}" for color, power in zip(ELEMENTS, POWERS, strict=True)]


class Findings:
    """The tables of the page, from the solved boards."""

    def __init__(self) -> None:
        self.pairs: dict[tuple[int, int, int], solver.Table] = {}
        self.any: dict[int, solver.Table] = {}
        self.immune: dict[int, solver.Table] = {}
        for spaces in BOARDS:
            self.any[spaces] = solve(Rules(spaces=spaces, powers="any"))
            self.immune[spaces] = solve(Rules(spaces=spaces, immunity=True))
            for pair in combinations(range(len(Power)), 2):
                rules = Rules(spaces=spaces, powers="own", colors=tuple(ELEMENTS[color] for color in pair))
                self.pairs[spaces, *pair] = solve(rules)

    def edge(self, spaces: int, mine: int, theirs: int | None) -> float:
        """Return the expected reward of color `mine` against color `theirs`, as the mean over both starting players.

        If `theirs` is None, the opponent has no power.
        """
        other = theirs if theirs is not None else next(color for color in range(len(Power)) if color != mine)
        table = self.pairs[spaces, min(mine, other), max(mine, other)]
        powers = 1 << mine, 0 if theirs is None else 1 << theirs
        first, second = (float(table.value(START, START, section)[0]) for section in (powers, powers[::-1]))
        return (first - second) / 2

    def when(self) -> str:
        """Return the date and the boards of the measurements."""
        boards = ", ".join(map(str, BOARDS))
        return f"Measured on {date.today()} with version {__version__}; boards of {boards} plain spaces."

    def worth(self) -> str:
        """Return a table of the win share that each power adds against a player without a power."""
        head = ["power", *(f"{spaces} plain space{'s' * (spaces != 1)}" for spaces in BOARDS)]
        rows = [
            [name, *(f"{50 * self.edge(spaces, color, None):+.1f}" for spaces in BOARDS)]
            for color, name in enumerate(NAMES)
        ]
        return markdown(head, rows, right=range(1, len(head)))

    def pairings(self) -> str:
        """Return a table of the win shares of all pairs of colors on the largest board."""
        rows = [[name] for name in NAMES]
        for mine, theirs in product(range(len(Power)), repeat=2):
            share = "" if mine == theirs else f"{100 * win_share(self.edge(BOARDS[-1], mine, theirs), 2):.1f}"
            rows[mine].append(share)
        return markdown(["win share of the row, %", *ELEMENTS], rows, right=range(1, len(Power) + 1))

    def first(self) -> str:
        """Return a table of the win share of the starting player, without powers and with `powers="any"`."""
        rows = []
        for spaces in BOARDS:
            table = self.any[spaces]
            none = float(table.value(START, START, (0, 0))[0])
            rows.append(f"{spaces} | {100 * win_share(none, 2):.1f} | {100 * win_share(table.start, 2):.1f}")
        return markdown('plain spaces | no powers | `powers="any"`', rows, right=range(3))

    def immunity(self) -> str:
        """Return a table of the value of the starting position with and without immunity, in games without powers."""
        rows = []
        for spaces in BOARDS:
            basic, table = float(self.any[spaces].value(START, START, (0, 0))[0]), self.immune[spaces]
            rows.append(f"{spaces} | {table.board.positions:,} | {basic:+.5f} | {table.start:+.5f}")
        head = "plain spaces | positions with immunity | value without immunity | value with immunity"
        return markdown(head, rows, right=range(4))

    def use(self) -> str:
        """Return a table of how late in a game perfect players use each power on the largest board."""
        times: dict[int, list[float]] = {color: [] for color in range(len(Power))}
        for (spaces, *pair), table in self.pairs.items():
            if spaces == BOARDS[-1]:
                for color, of_color in zip(pair, times_of_use(table, GAMES).T, strict=True):
                    times[color] += of_color.tolist()
        rows = []
        for color, name in enumerate(NAMES):
            used = np.array(times[color])
            early, middle, late = np.nanpercentile(used, [25, 50, 75])
            shares = early, middle, late, np.isnan(used).mean()
            rows.append([name, *(f"{100 * share:.0f} %" for share in shares)])
        head = ["power", *(f"{share} % of the uses before" for share in (25, 50, 75)), "never used"]
        return markdown(head, rows, right=range(1, 5))

    def grades(self) -> str:
        """Return a table of the grades of policies on the largest board, with `powers="any"`."""
        rows = []
        for name in GRADED:
            table = self.any[BOARDS[-1]]
            found = analysis.grade(name, table, GAMES, opponent=f"oracle:{table.file}").all
            rows.append(
                f"`{name}` | {found.share_against_perfect:.2f} ± {found.share_against_perfect_error:.2f} "
                f"| {1000 * found.regret:.1f} ± {1000 * found.regret_error:.1f}"
            )
        head = "policy | win share against perfect play, % | regret of a decision, thousandths"
        return markdown(head, rows, right=(1, 2))


def solve(rules: Rules) -> solver.Table:
    """Return the table of a board from the cache folder. If the table is missing, solve the board."""
    file = solver.cache_file(rules)
    print(f"solve {file.name}", flush=True)
    return solver.solve(rules, file)


def times_of_use(table: solver.Table, games: int) -> NDArray[np.float64]:
    """Play games between perfect players; return how late each seat uses its power, float64 (games, 2).

    A value is (turn of the use) / (last turn), both counted from 0, or nan if the seat does not use its power.
    """
    game, oracle = Game(table.rules), make_policy(f"oracle:{table.file}")
    state, rng = game.reset(games, seed=0), np.random.default_rng(0)
    same, turns = np.zeros((games, 2), np.int64), np.zeros((2, games))
    seats = 1 << np.arange(2)[:, None]
    for _ in play_policies(game, state, same, [oracle], rng):
        turns = np.where(state["used"] & seats, turns, state["turn"])  # last turn with an unused power
    shares: NDArray[np.float64] = np.where(state["used"] & seats, turns / state["turn"], np.nan).T
    return shares


if __name__ == "__main__":
    names = pages.parser_of(PAGE, __doc__).parse_args().names
    pages.write(PAGE, Findings(), names)
