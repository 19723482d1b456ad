"""Measure the tables and draw the plot of docs/results/perfect-play.md (`make solution`).

Boards with up to 2 plain spaces are solved if they have no table file. Larger boards without a table file are left out.
"""

import functools
import platform
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tools import pages
from wotd_env import Game, Phase, Rules, __version__, analysis, make_policy, solver
from wotd_env.core.actions import Action
from wotd_env.core.dice import COUNTS, HOLD_KEEP, UNROLLED_DICE, keep_index
from wotd_env.core.rules import DICE, DRAGON, MAX_SPACES, PATHS, share_difference, win_share
from wotd_env.policy import play_policies
from wotd_env.reporting import Estimate, markdown, thousandths
from wotd_env.solver.families import Chunk, new_block
from wotd_env.solver.iteration import Work, group_of, solve_families
from wotd_env.solver.positions import board_of
from wotd_env.solver.storage import layout_of

PAGE = pages.ROOT / "docs" / "results" / "perfect-play.md"
REGRET_PLOT = PAGE.with_name("solution-regret.svg")
SOLVED_HERE = 2  # largest number of plain spaces of a board that this tool solves
GRADED = ("first", "random", "greedy", "planner")
LEARNED = ("ppo", "td")  # graded only on the board of `Rules()`, for which the models were trained
GAMES = 20_000
EVALUATED = ((0, "first"), (0, "greedy"), (1, "greedy"))


def share(part: Any, whole: Any) -> str:
    """Return `part / whole` in percent, or "-" if `whole` is 0."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


class PerfectGames(NamedTuple):
    """Games of the perfect player against itself; seat 0 starts."""

    turns: Any
    states: Any  # the positions at all decisions
    actions: Any


class Findings:
    """The measured tables of the page.

    The argument `folder` contains the files of the solved boards; by default, it is the cache folder. The argument
    `games` is the number of games in each sample.
    """

    def __init__(self, folder: Path | None, games: int) -> None:
        self.games = games
        self.tables: dict[int, solver.Table] = {}
        for spaces in range(MAX_SPACES + 1):
            file = folder / f"{spaces}.wotd" if folder else solver.cache_file(spaces)
            if spaces <= SOLVED_HERE:
                solver.solve(spaces, file)
            if file.exists():
                self.tables[spaces] = solver.load(file)
        self.largest = self.tables[max(self.tables)]

    @functools.cache  # noqa: B019  # the only instance lives as long as the program
    def perfect_games(self, spaces: int) -> PerfectGames:
        """Return games of the perfect player against itself on a board."""
        print(f"perfect play on {spaces} plain spaces")
        game = Game(Rules(spaces=spaces, start=0))
        state = game.reset(self.games, seed=0)
        oracle, rng = make_policy(f"oracle:{self.tables[spaces].file}"), np.random.default_rng(0)
        states, actions = [], []
        same = np.zeros((self.games, 2), np.int64)
        for taken in play_policies(game, state, same, [oracle], rng):
            live = taken >= 0
            states.append(state[live])
            actions.append(taken[live])
        return PerfectGames(state["turn"] + 1, np.concatenate(states), np.concatenate(actions))

    def when(self) -> str:
        """Return the date, the machine and the boards of the measurements."""
        spaces = ", ".join(map(str, self.tables))
        return (
            f"Measured on {date.today()} with version {__version__} on {platform.machine()}, numpy {np.__version__}; "
            f"boards of {spaces} plain spaces, {self.games:,} games of perfect play on each."
        )

    def boards(self) -> str:
        """Return a table of the boards: size, processor time, value of the starting position."""
        rows = []
        for spaces, table in self.tables.items():
            print(f"verify {table.file}")
            residual, cpu = solver.verify(table.file), table.header["cpu_seconds"]
            positions, turns = table.board.positions, self.perfect_games(spaces).turns.mean()
            rows.append(
                f"{spaces} | {positions:,} | {positions * 4 / 1e6:,.0f} MB | {cpu:,.0f} s "
                f"| {cpu / positions * 1e6:.2f} µs | {residual:.1e} | {table.start:+.7f} "
                f"| {100 * win_share(table.start, 2):.2f} % | {turns:.1f}"
            )
        head = "plain spaces | positions | table | processor time | time per position | residual"
        starts = "value of the starting position | win share of the starting player | turns per game"
        return markdown(f"{head} | {starts}", rows)

    def precision(self) -> str:
        """Return a table of the errors that single precision causes in the values of solved boards."""
        rows = []
        for spaces in (0, 1, 2):
            board = board_of(spaces)
            exact = np.empty(board.positions)
            group = group_of(board, layout_of(board).base, [(0, 0)], {(0, 0): exact})
            block = new_block(np.float64)
            done = [
                Work(*solve_families(group, block, Chunk(total, 0, int(board.families[total])), 1e-12))
                for total in reversed(range(len(board.sizes)))
            ]
            error = np.abs(exact - self.tables[spaces].values).max()
            mean = sum(work.rounds for work in done) / sum(work.blocks for work in done)
            most = max(work.most_rounds for work in done)
            rows.append(f"{spaces} | {exact[-1]:+.10f} | {error:.1e} | {mean:.1f} | {most}")
        head = "plain spaces | value of the starting position | largest error of float32"
        return markdown(f"{head} | mean rounds of a block | most rounds of a block", rows)

    def holds(self) -> str:
        """Return a table of the dice that perfect players keep on the largest board."""
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
            kinds = [action == Action.STOP_ROLLING]
            kinds += [rolled & ~dragons & (elements == k) for k in range(3)]
            kinds += [rolled & ~dragons & (elements > 2), rolled & dragons]
            rows.append((name, f"{len(action):,}", *(share(kind.sum(), len(action)) for kind in kinds)))
        head = "hold | decisions | stop | keep nothing | dice of one element | dice of two elements"
        head += " | dice of three or four elements | with a dragon"
        return markdown(head, rows)

    def moves(self) -> str:
        """Return a table of the moves of perfect players on the largest board."""
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
        kinds = [(f"move by {k}", (moved & (dice == k)).sum()) for k in range(1, DICE + 1)]
        kinds += [("swap", (action >= Action.FIRST_SWAP).sum()), ("pass", (action == Action.PASS).sum())]
        kinds += [("equilibrium", (action == Action.EQUILIBRIUM).sum())]
        rows = [f"{name} | {count:,} | {share(count, len(action))}" for name, count in kinds]
        count, right = differ.sum(), (dice == longest)[differ].sum()
        rows.append(f"the longest move, if the lengths differ | {count:,} | {share(right, count)}")
        return markdown("best move | decisions | share", rows)

    def dragons(self) -> str:
        """Return a table of how often a swap is best on the largest board, by the spaces that the swap gains."""
        perfect = self.perfect_games(self.largest.spaces)
        game = Game(Rules(spaces=self.largest.spaces), skip_forced=False)
        first = (perfect.states["phase"] == Phase.KEEP) & (perfect.states["rolls_left"] == 2)
        positions = perfect.states[first][:: max(1, first.sum() // 20_000)].copy()
        rows = []
        gains = {
            "-3 or less": (-99, -3),
            "-2 or -1": (-2, -1),
            "1 or 2": (1, 2),
            "3 to 5": (3, 5),
            "6 or more": (6, 99),
        }
        for name, faces in (("four", (0, *[DRAGON] * 4)), ("five", [DRAGON] * 5)):
            state = positions.copy()
            state["phase"], state["rolls_left"], state["dice"] = Phase.MOVE, 0, faces
            can = game.legal_actions(state)[:, Action.FIRST_SWAP :].any(1)
            state = state[can]
            equity = analysis.analyze(game, state, self.largest).actions
            swaps, others = equity[:, Action.FIRST_SWAP :], equity[:, : Action.FIRST_SWAP].max(1)
            gain, path = swaps.max(1) - others, swaps.argmax(1)
            at, seat = np.arange(len(state)), state["player"].astype(int)
            brings = state["pieces"][at, 1 - seat, path].astype(int) - state["pieces"][at, seat, path]
            for words, (least, most) in gains.items():
                chosen = (brings >= least) & (brings <= most)
                right, count = chosen & (gain > 0), chosen.sum()
                mean = f"{gain[right].mean():+.3f}" if right.any() else "-"
                rows.append(f"{name} | {words} | {count:,} | {share(right.sum(), count)} | {mean}")
        head = "dragons | spaces gained by the best swap | positions | swap is best | mean gain"
        return markdown(head, rows)

    def policies(self) -> str:
        """Return a table of the grades of policies on the smallest and the largest board."""
        rows = []
        for table in (self.tables[0], self.largest):
            drawn, perfect = {}, f"oracle:{table.file}"
            for name in GRADED + (LEARNED if table.spaces == Rules.spaces else ()):
                print(f"grade {name} on {table.spaces} plain spaces")
                drawn[name] = graded = analysis.grade(name, table, self.games, opponent=perfect)
                every = graded.all
                rows.append(
                    f"{table.spaces} | `{name}` "
                    f"| {every.share_against_perfect:.2f} ±{every.share_against_perfect_error:.2f} "
                    f"| {100 * win_share(graded.result, 2):.1f} ±{100 * share_difference(graded.result_error, 2):.1f} "
                    f"| {thousandths(Estimate.around(every.regret, every.regret_error), 3)} "
                    f"| {100 * every.errors:.1f} | {100 * every.blunders:.1f} | "
                    + " | ".join(f"{1000 * grade.per_game:.1f}" for grade in graded.kinds[:-1])
                )
        shown = ("greedy", "planner", *LEARNED)  # the regrets of other policies are too large for the plot
        analysis.picture({name: drawn[name] for name in shown if name in drawn}, REGRET_PLOT)
        head = "plain spaces | policy | win share by regret, % | counted win share, % | regret of a decision"
        kinds = "".join(f" | regret of a game, {kind}" for kind in analysis.kinds_of(Rules()))
        grades = markdown(f"{head} | errors, % | blunders, %{kinds}", rows)
        return f"Graded on {date.today()}.\n\n{grades}"

    def exact(self) -> str:
        """Return a table of exact results of deterministic policies on the smallest boards."""
        rows = []
        for spaces, name in EVALUATED:
            print(f"evaluate {name} on {spaces} plain spaces")
            found = solver.evaluate(make_policy(name), self.tables[spaces])
            rows.append(
                f"{spaces} | `{name}` | {found.begins:+.5f} | {found.follows:+.5f} | {100 * found.win_share:.3f} % "
                f"| {found.itself:+.5f} | {found.exploitability:.5f}"
            )
        head = "plain spaces | policy | reward, moving first | reward, moving second | win share"
        return markdown(f"{head} | reward against itself, moving first | exploitability", rows)

    def beyond(self) -> str:
        """Return a table of the sizes of games that this tool does not solve."""
        per_position = self.largest.header["cpu_seconds"] / self.largest.board.positions
        of_powers = {', `powers="any"`': 4, ', `powers="own"`, two colors': 7}
        boards = [(spaces, {"": 1}) for spaces in range(self.largest.spaces + 1, MAX_SPACES + 1)]
        rows = []
        for spaces, kinds in [*boards, (7, of_powers), (10, of_powers)]:
            board = board_of(spaces)
            for kind, states in kinds.items():
                positions, layers = states * board.positions, 6 * int(board.sizes.max())
                rows.append(
                    f"{spaces} plain spaces{kind} | {positions:.2e} | {positions * 4 / 1e9:,.0f} GB "
                    f"| {layers * 4 / 1e9:,.1f} GB | {positions * per_position / 3600:,.1f} h"
                )
        head = "game | positions | table | six layers in memory | time on one core"
        return markdown(head, rows)


def main() -> None:
    """Measure tables of the page and write them."""
    parser = pages.parser_of(PAGE, main.__doc__)
    parser.add_argument("--tables", type=Path, help="folder with tables S.wotd; by default the cache folder")
    options = parser.parse_args()
    pages.write(PAGE, Findings(options.tables, GAMES), options.names)


if __name__ == "__main__":
    main()
