"""Measure what docs/solution.md tells of the perfect player (`make solution`), and draw its plots.

The tables of the page are the methods of `Findings`. Boards of 0 to 2 plain spaces are solved if need be; larger ones
are reported on if their tables are there.
"""

from __future__ import annotations

import argparse
import functools
import platform
import re
from datetime import date
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from tools import pages
from wotd_env import Game, Phase, Rules, __version__, analysis, make_policy, solver
from wotd_env.core.actions import Action
from wotd_env.core.dice import COUNTS, HOLD_KEEP, UNROLLED_DICE, keep_index
from wotd_env.core.rules import DICE, DRAGON, MAX_SPACES, NUMBERED, PATHS
from wotd_env.policy import ask, play_out
from wotd_env.solver.families import Chunk, Work, new_block, solve_families
from wotd_env.solver.positions import Layers, board_of
from wotd_env.solver.storage import layout_of

PAGE = Path(__file__).parents[1] / "docs" / "solution.md"
BOARDS_PLOT = PAGE.with_name("solution-boards.svg")
REGRET_PLOT = PAGE.with_name("solution-regret.svg")
MADE_HERE = 2  # boards of up to this many plain spaces are solved if there is no table
GRADED = ("first", "random", "greedy", "planner")
LEARNT = ("ppo", "td")
"""Graded too on the board of `Rules()`, for which the package has models."""
GAMES = 20_000  # for every figure that is sampled
EVALUATED = ((0, "first"), (0, "greedy"), (1, "greedy"))


def share(part: Any, whole: Any) -> str:
    """Return a share in per cent."""
    return f"{part / whole:.1%}" if whole else "-"


class PerfectGames(NamedTuple):
    """Games of perfect play, seat 0 beginning."""

    results: Any  # of seat 0
    turns: Any
    states: Any  # at all decisions
    actions: Any


def play_perfectly(table: solver.Table, games: int) -> PerfectGames:
    """Let the perfect player play itself."""
    game = Game(Rules(spaces=table.spaces, start=0))
    state = game.reset(games, seed=0)
    oracle, rng = make_policy(f"oracle:{table.file}"), np.random.default_rng(0)
    states, actions = [], []
    same = np.zeros((games, 2), np.int64)
    for taken in play_out(game, state, same, lambda _, asked: ask(oracle, game, state[asked], rng)):
        live = taken >= 0
        states.append(state[live])
        actions.append(taken[live])
    return PerfectGames(
        game.rewards(state)[:, 0], state["turn"], np.concatenate(states), np.concatenate(actions)
    )


class Findings:
    """Everything that is measured; `games` of perfect play on each board whose table is in a folder."""

    def __init__(self, folder: Path | None, games: int) -> None:
        self.games = games
        self.tables: dict[int, solver.Table] = {}
        for spaces in range(MAX_SPACES + 1):
            file = folder / f"{spaces}.wotd" if folder else solver.cache_file(spaces)
            if spaces <= MADE_HERE:
                solver.solve(spaces, file)
            if file.exists():
                self.tables[spaces] = solver.load(file)
        self.largest = self.tables[max(self.tables)]

    @functools.cache  # noqa: B019  # there is one, and it lives as long as the program
    def perfect_games(self, spaces: int) -> PerfectGames:
        """Return games of perfect play on a board."""
        print(f"perfect play on {spaces} plain spaces")
        return play_perfectly(self.tables[spaces], self.games)

    def when(self) -> str:
        """Return what the findings were made with."""
        spaces = ", ".join(map(str, self.tables))
        return (
            f"Measured on {date.today()} with version {__version__} on {platform.machine()}, numpy {np.__version__}; "
            f"boards of {spaces} plain spaces, {self.games:,} games of perfect play on each."
        )

    def boards(self) -> str:
        """Return size, work and value of every board."""
        rows = []
        for spaces, table in self.tables.items():
            print(f"verify {table.file}")
            residual, header, perfect = solver.verify(table.file), table.header, self.perfect_games(spaces)
            cpu = header["cpu_seconds"]
            rows.append(
                (
                    spaces,
                    f"{table.board.positions:,}",
                    f"{table.board.positions * 4 / 1e6:,.0f} MB",
                    f"{cpu:,.0f} s",
                    f"{cpu / table.board.positions * 1e6:.2f} µs",
                    f"{residual:.1e}",
                    f"{table.start:+.7f}",
                    f"{(1 + table.start) / 2:.2%}",
                    f"{perfect.turns.mean():.1f}",
                )
            )
        self._draw_boards()
        return pages.table(
            (
                "plain spaces",
                "positions",
                "table",
                "processor time",
                "a position",
                "residual",
                "value of the start",
                "share of the first player",
                "turns",
            ),
            rows,
        )

    def _draw_boards(self) -> None:
        figure = Figure(figsize=(11, 3.6), layout="constrained")
        value, turns, time = figure.subplots(1, 3)
        spaces = list(self.tables)
        value.plot(spaces, [table.start for table in self.tables.values()], marker="o")
        value.set_ylabel("value of the start")
        value.set_ylim(bottom=0)
        turns.plot(spaces, [self.perfect_games(n).turns.mean() for n in spaces], marker="o", label="turns")
        turns.set_ylabel("turns of a perfect game")
        turns.set_ylim(bottom=0)
        sizes = [table.board.positions for table in self.tables.values()]
        time.loglog(sizes, [table.header["cpu_seconds"] for table in self.tables.values()], marker="o")
        time.set_ylabel("processor time in s")
        for axes in (value, turns):
            axes.set_xlabel("plain spaces")
        time.set_xlabel("positions")
        with mpl.rc_context({"svg.hashsalt": "wotd-env"}):
            figure.savefig(BOARDS_PLOT, metadata={"Date": None})

    def precision(self) -> str:
        """Return how far tables in single precision are from solutions in double precision."""
        rows = []
        for spaces in (0, 1, 2):
            board = board_of(spaces)
            exact = np.empty(board.positions)
            layers, block = Layers(board, layout_of(board).base, exact), new_block(np.float64)
            done = [
                Work(*solve_families(layers, block, Chunk(total, 0, int(board.families[total])), 1e-12))
                for total in reversed(range(len(board.sizes)))
            ]
            error = np.abs(exact - self.tables[spaces].values).max()
            mean = sum(work.rounds for work in done) / sum(work.blocks for work in done)
            most = max(work.most_rounds for work in done)
            rows.append((spaces, f"{exact[-1]:+.10f}", f"{error:.1e}", f"{mean:.1f}", most))
        return pages.table(
            (
                "plain spaces",
                "value of the start",
                "largest error of float32",
                "rounds, mean",
                "rounds, most",
            ),
            rows,
        )

    def holds(self) -> str:
        """Return what perfect players keep on the largest board."""
        perfect = self.perfect_games(self.largest.spaces)
        roll = np.array([keep_index(dice) for dice in perfect.states["dice"].tolist()])
        rows = []
        for name, left in (("first", 2), ("second", 1)):
            here = (perfect.states["phase"] == Phase.KEEP) & (perfect.states["rolls_left"] == left)
            action = perfect.actions[here]
            keep = HOLD_KEEP[roll[here], action]
            counts = COUNTS[keep].astype(int)
            elements = (counts[:, :DRAGON] > 0).sum(1)
            dragons = counts[:, DRAGON] > 0
            rolled = UNROLLED_DICE[keep] > 0
            n = len(action)
            rows.append(
                (
                    name,
                    f"{n:,}",
                    share((action == Action.STOP_ROLLING).sum(), n),
                    share((rolled & (elements == 0) & ~dragons).sum(), n),
                    *(share((rolled & (elements == k) & ~dragons).sum(), n) for k in (1, 2)),
                    share((rolled & (elements > 2) & ~dragons).sum(), n),
                    share((rolled & dragons).sum(), n),
                )
            )
        return pages.table(
            (
                "hold",
                "decisions",
                "stop",
                "keep nothing",
                "dice of one element",
                "of two",
                "of three or four",
                "some dragon",
            ),
            rows,
        )

    def moves(self) -> str:
        """Return which moves perfect players make on the largest board."""
        perfect = self.perfect_games(self.largest.spaces)
        here = perfect.states["phase"] == Phase.MOVE
        states, action = perfect.states[here], perfect.actions[here]
        roll = np.array([keep_index(dice) for dice in states["dice"].tolist()])
        mask = Game(Rules(spaces=self.largest.spaces)).legal_actions(states)
        by_dice = mask[:, Action.MOVE_ON : Action.MOVE_ON + PATHS] * COUNTS[roll][:, :PATHS].astype(int)
        moved = (action >= Action.MOVE_ON) & (action < Action.MOVE_ON + PATHS)
        dice = by_dice[np.arange(len(action)), np.where(moved, action - Action.MOVE_ON, 0)]
        longest = by_dice.max(1)
        differ = moved & (np.where(by_dice > 0, by_dice, DICE).min(1) < longest)
        n = len(action)
        kinds = [(f"move by {k}", (moved & (dice == k)).sum()) for k in range(1, DICE + 1)]
        kinds += [("swap", (action >= Action.FIRST_SWAP).sum()), ("pass", (action == Action.PASS).sum())]
        kinds += [("equilibrium", (action == Action.EQUILIBRIUM).sum())]
        rows = [(name, f"{count:,}", share(count, n)) for name, count in kinds]
        rows.append(
            (
                "the longest, where lengths differ",
                f"{differ.sum():,}",
                share((dice == longest)[differ].sum(), differ.sum()),
            )
        )
        return pages.table(("best move", "decisions", "share"), rows)

    def dragons(self) -> str:
        """Return how often calling the dragon is right on the largest board, by what the swap brings."""
        perfect = self.perfect_games(self.largest.spaces)
        game = Game(Rules(spaces=self.largest.spaces), skip_forced=False)
        first = (perfect.states["phase"] == Phase.KEEP) & (perfect.states["rolls_left"] == 2)
        positions = perfect.states[first][:: max(1, first.sum() // 20_000)].copy()
        rows = []
        for name, faces in (("four", (0, *[DRAGON] * 4)), ("five", [DRAGON] * 5)):
            state = positions.copy()
            state["phase"], state["rolls_left"], state["dice"] = Phase.MOVE, 0, faces
            can = game.legal_actions(state)[:, Action.FIRST_SWAP :].any(1)
            state = state[can]
            result = analysis.analyze(game, state, self.largest)
            swaps = result.actions[:, Action.FIRST_SWAP :].max(1)
            others = result.actions[:, : Action.FIRST_SWAP].max(1)
            path = result.actions[:, Action.FIRST_SWAP :].argmax(1)
            seat = state["player"].astype(int)
            at = np.arange(len(state))
            brings = state["pieces"][at, 1 - seat, path].astype(int) - state["pieces"][at, seat, path]
            for words, chosen in (
                ("-3 or less", brings <= -3),
                ("-2 or -1", (brings < 0) & (brings > -3)),
                ("1 or 2", (brings > 0) & (brings < 3)),
                ("3 to 5", (brings > 2) & (brings < 6)),
                ("6 or more", brings > 5),
            ):
                right = swaps[chosen] > others[chosen]
                gain = (swaps - others)[chosen]
                mean = f"{gain[right].mean():+.3f}" if right.any() else "-"
                rows.append((name, words, f"{chosen.sum():,}", share(right.sum(), chosen.sum()), mean))
        return pages.table(
            (
                "dragons",
                "spaces gained by the best swap",
                "positions",
                "right to swap",
                "gain where right",
            ),
            rows,
        )

    def policies(self) -> str:
        """Return grades on the smallest and the largest board."""
        rows = []
        for table in (self.tables[0], self.largest):
            oracle = make_policy(f"oracle:{table.file}")
            drawn = {}
            for name in GRADED + (LEARNT if table.spaces == Rules.spaces else ()):
                print(f"grade {name} on {table.spaces} plain spaces")
                graded = analysis.grade(make_policy(name), table, self.games, opponent=oracle)
                drawn[name] = graded
                per_kind = [f"{grade.per_game:.3f}" for grade in graded.kinds[:-1]]
                result = -graded.all.per_game
                rows.append(
                    (
                        table.spaces,
                        f"`{name}`",
                        f"{(1 + result) / 2:.2%} ±{graded.all.per_game_error / 2:.2%}",
                        f"{(1 + graded.result) / 2:.1%} ±{graded.result_error / 2:.1%}",
                        f"{graded.all.regret:.4f} ±{graded.all.regret_error:.4f}",
                        f"{graded.all.errors:.1%}",
                        f"{graded.all.blunders:.1%}",
                        *per_kind,
                    )
                )
        shown = ("greedy", "planner", *LEARNT)  # the others give away so much that these would look alike
        analysis.picture({name: drawn[name] for name in shown if name in drawn}, REGRET_PLOT)
        return f"Graded on {date.today()}.\n\n" + pages.table(
            (
                "plain spaces",
                "policy",
                "share of wins by regret",
                "share of wins counted",
                "regret a decision",
                "errors",
                "blunders",
                *(f"{kind}, regret a game" for kind in analysis.GRADED_KINDS),
            ),
            rows,
        )

    def exact(self) -> str:
        """Return exact results of deterministic policies on the smallest boards."""
        rows = []
        for spaces, name in EVALUATED:
            print(f"evaluate {name} on {spaces} plain spaces")
            found = solver.evaluate(make_policy(name), self.tables[spaces])
            rows.append(
                (
                    spaces,
                    f"`{name}`",
                    f"{found.begins:+.5f}",
                    f"{found.follows:+.5f}",
                    f"{found.win_share:.3%}",
                    f"{found.itself:+.5f}",
                    f"{found.exploitability:.5f}",
                )
            )
        return pages.table(
            (
                "plain spaces",
                "policy",
                "result, first to move",
                "second to move",
                "share of wins",
                "first to move against itself",
                "exploitability",
            ),
            rows,
        )

    def beyond(self) -> str:
        """Return the sizes of games that are not solved here."""
        per_position = self.largest.header["cpu_seconds"] / self.largest.board.positions
        rows = []

        def row(name: str, positions: int, values: int, widest: int | None = None) -> None:
            hours = positions * per_position / 3600
            window = f"{6 * widest * 4 * values / 1e9:,.1f} GB" if widest else "-"
            rows.append(
                (
                    name,
                    f"{positions:.2e}",
                    f"{positions * 4 * values / 1e9:,.0f} GB",
                    window,
                    f"{hours:,.1f} h",
                )
            )

        for spaces in range(self.largest.spaces + 1, MAX_SPACES + 1):
            board = board_of(spaces)
            row(f"{spaces} plain spaces", board.positions, 1, int(board.sizes.max()))
        for spaces in (7, 10):
            board = board_of(spaces)
            row(f'{spaces} plain spaces, powers="any"', 4 * board.positions, 1, int(board.sizes.max()))
            row(
                f'{spaces} plain spaces, powers="own", two colors',
                8 * board.positions,
                1,
                int(board.sizes.max()),
            )
        for spaces in (0, 1, 7):
            top = spaces + NUMBERED
            codes = sum(comb(3, k) * int(np.prod([top - i for i in range(k)], initial=1)) for k in range(4))
            row(f"{spaces} plain spaces, three players", comb(codes + PATHS - 1, PATHS), 2)
        return pages.table(
            ("game", "positions", "table", "six layers in memory", "one core, at the same speed"), rows
        )


def renew(name: str, text: str) -> None:
    """Write a table into the page as it is now: it may have been edited while the table was measured."""
    PAGE.write_text(pages.renew(PAGE.read_text(), {name: lambda: text}))


def main() -> None:
    """Write the tables of the page anew."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    known = re.findall(r"<!-- table: (\w+) -->", PAGE.read_text())
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"tables of the page to write anew: {', '.join(known)}; by default all",
    )
    parser.add_argument("--tables", type=Path, help="folder with tables S.wotd; by default the cache folder")
    options = parser.parse_args()
    if unknown := sorted(set(options.names) - set(known)):
        parser.error(f"there is no table {', '.join(unknown)} on the page; there are {', '.join(known)}")
    findings = Findings(options.tables, GAMES)
    for name in options.names or known:
        renew(name, getattr(findings, name)())


if __name__ == "__main__":
    main()
