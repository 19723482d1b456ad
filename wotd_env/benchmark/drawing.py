"""Draw positions from games between players of many strengths.

Every game has its own seed for SplitMix64, so it does not depend on the other games.

`draw` gets the equities from its argument `source`, a table or a learned value. Equal arguments give equal files. With
a table, this holds on all processors with fused multiply-add, such as x86-64-v3. With a learned value, this holds only
on processors of the same kind, because other kinds round sums differently.

With a learned value, rollouts estimate the equity of every legal action. In a rollout, every seat plans each of its
turns exactly with the learned value, as the policy `td` does. The result of a rollout is the reward of the seat that
takes the action.

The plan of a turn is a number: the exact expectation of the learned value after the planned turn. The luck of a turn
is the value of the position after the turn minus the plan. A luck-adjusted result is the result minus the luck of all
turns. It equals

    plan(action) + sum over the later turns of (plan of the turn - value of the position before the turn).

The estimate is the mean of the luck-adjusted results. The mean luck is 0, so the luck-adjusted results have the same
expected value as the results, but a much smaller variance.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis import kinds, kinds_of
from wotd_env.analysis.equity import analyze
from wotd_env.benchmark.positions import SPLITS, STAGES, Positions, has_errors, stages, write
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.compilation import kernel
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import ROW, States, take
from wotd_env.core.stream import STEP, mix
from wotd_env.planning.learned import LearnedValue
from wotd_env.planning.planner import Value, plan
from wotd_env.planning.playing import play_turns
from wotd_env.planning.values import hand_made
from wotd_env.policies import make_policy
from wotd_env.policies.planner import Planner
from wotd_env.policies.random import choose_all
from wotd_env.policy import Policy, play_out
from wotd_env.solver import Table
from wotd_env.solver.storage import is_compact
from wotd_env.solver.table import check_table

_MISTAKES = {"random": (0,), "greedy": (0, 4), "planner": (0, 2), "strongest": (0, 1, 4)}
ROSTER = tuple((name, mistakes) for name, each in _MISTAKES.items() for mistakes in each)
"""The players, as pairs (name of a policy, average number of random actions in 16 decisions).

Each seat gets a uniformly random player. "strongest" is the planner whose value function is the `source` of `draw`."""
SIZE = 800
GAMES = 200
ERROR = 0.002
SHARE = 0.1
ROUND = 128  # games per action between two checks of the standard errors

BLOCK = 4096  # games played side by side; the drawn positions do not depend on this number
_NO_PROGRESS: Callable[[int, int], None] = lambda done, total: None  # noqa: E731
_SALT = np.uint64(0x77 << 56)  # separates the random numbers of this module from those of the dice


def draw(
    source: Table | LearnedValue,
    file: str | Path,
    split: str = "test",
    size: int = SIZE,
    *,
    seed: int = 0,
    progress: Callable[[int, int], None] = _NO_PROGRESS,
) -> Positions:
    """Draw positions, compute the equity of every legal action, and write a Parquet file.

    If only `size` differs between two calls, the file with the larger `size` contains all positions of the other file.

    Args:
        source: a table of the solved game with 32 bits per value, or a learned value. A table gives exact equities;
            the rollouts of a learned value take seconds per position.
        file: the file to write.
        split: `"train"`, `"validation"` or `"test"`; no game is in two splits.
        size: number of positions for each pair of kind and stage. `draw` plays at most `GAMES * size` games, so a rare
            kind may have fewer positions.
        seed: number from 0 to 2**20. The published positions have seed 0.
        progress: called with the number of finished games and the number of all games. With a learned value, the
            numbers count positions.

    Raises:
        TypeError, ValueError: for a wrong argument.
        OSError: if the file cannot be written.
    """
    if isinstance(source, LearnedValue):
        strongest: Value = source
        if not has_errors(source.rules):
            raise ValueError(
                "source must be a table with two players, whose equities are exact, got a learned value"
            )
    else:
        strongest = check_table(source).for_seats
        if is_compact(source.header):
            raise ValueError(f"{source.file} has 16 bits a value; positions need the table before --compact")
    check_choice("split", split, SPLITS)
    size = check_integer("size", size, 1, 1_000_000)
    seed = check_integer("seed", seed, 0, 2**20)
    game, first = Game(source.rules), (len(SPLITS) * seed + SPLITS.index(split)) << 40
    of_games = _NO_PROGRESS if isinstance(source, LearnedValue) else progress
    state, number, games = _choose(game, strongest, first, size, of_games)
    kind, stage = kinds(game, state), stages(game.rules, state)
    about: dict[str, Any] = {"size": size, "seed": seed, "games": games}
    if isinstance(source, LearnedValue):
        cell = (kind * len(STAGES) + stage).astype(np.uint64)
        keys = numbers(number.astype(np.uint64) ^ _SALT, 1) + cell
        equity, error = roll_out(state, keys, source, progress=progress)
        weights = hashlib.sha256(b"".join(map(bytes, source.network)))
        about |= {"standard_error": ERROR, "value": weights.hexdigest()}
    else:
        equity = analyze(game, state, source).actions
        error = np.zeros_like(equity)
        about["table"] = source.header["sha256"]
    mask = game.legal_actions(state)
    equity, error = (np.where(mask == 1, each, np.float32(np.nan)) for each in (equity, error))
    positions = Positions(game.rules, split, state, mask, equity, error, kind, stage, number)
    write(positions, Path(file), about)
    return positions


def _choose(
    game: Game, strongest: Value, first: int, size: int, progress: Callable[[int, int], None]
) -> tuple[States, NDArray[np.int64], int]:
    """Play games with the seeds `first`, `first` + 1, ...; choose at most `size` decisions for each kind and stage.

    Return the states of the decisions, the seeds of their games, and how many games were played.
    """
    total, done = GAMES * size, 0
    cells = len(kinds_of(game.rules)) * len(STAGES)
    missing = np.full(cells, size)
    states, chosen = [], []
    while done < total and missing.any():
        count = min(BLOCK, total - done)
        state, number, cell = _sample(game, strongest, np.arange(first + done, first + done + count))
        kept = np.zeros(len(cell), np.bool_)
        for each in range(cells):
            rows = np.flatnonzero(cell == each)[: missing[each]]
            kept[rows] = True
            missing[each] -= len(rows)
        states.append(state[kept])
        chosen.append(number[kept])
        done += count
        progress(done if missing.any() else total, total)
    decided = np.concatenate(states)
    decided["rng"] = 0
    return decided, np.concatenate(chosen), done


class _Largest(Planner):
    """Plays the largest value without a tolerance for ties, as when the published positions were drawn."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        actions: NDArray[np.int64] = plan(game, state, self.value)[0].argmax(1)
        return actions


def _sample(
    game: Game, strongest: Value, seeds: NDArray[np.int64]
) -> tuple[States, NDArray[np.int64], NDArray[np.int64]]:
    """Choose one random decision for each cell in each game. A cell is the number of a pair of kind and stage.

    Return the states of the decisions, the seeds of their games, and their cells, sorted by game.
    """
    state = game.reset(len(seeds), seed=int(seeds[0]))
    keys = numbers(seeds.astype(np.uint64) ^ _SALT, 0)
    drawn = [numbers(keys, seat) % np.uint64(len(ROSTER)) for seat in range(game.rules.players)]
    seats = np.stack(drawn, 1).astype(np.int64)
    policies: dict[str, Policy] = {name: make_policy(name) for name, _ in ROSTER if name != "strongest"}
    policies |= {"planner": _Largest(hand_made), "strongest": _Largest(strongest)}
    unused = np.random.default_rng(0)  # `act` needs a generator, but these policies are deterministic
    played: list[NDArray[np.int64]] = []
    states, priorities = [], []

    def choose(player: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        name, mistakes = ROSTER[player]
        asked = take(state, games)
        bits = numbers(keys[games], game.rules.players + 2 * len(played))
        actions = np.empty(len(games), np.int64)
        game.apply(choose_all, asked, bits, actions)
        sure = np.flatnonzero((bits & np.uint64(15)) >= mistakes)
        if name != "random" and sure.size:
            actions[sure] = policies[name].act(game, take(asked, sure), unused)
        return actions

    for chosen in play_out(game, state, seats, choose):
        live = np.flatnonzero(chosen >= 0)
        priorities.append(numbers(keys[live], game.rules.players + 2 * len(played) + 1))
        played.append(live)
        states.append(take(state, live))
    number, decided = np.concatenate(played), np.concatenate(states)
    cell = kinds(game, decided) * len(STAGES) + stages(game.rules, decided)
    order = np.lexsort((np.concatenate(priorities), cell, number))
    group = (number * (cell.max() + 1) + cell)[order]
    best = order[np.flatnonzero(np.diff(group, prepend=-1))]
    return take(decided, best), seeds[number[best]], cell[best]


def roll_out(
    state: States,
    keys: NDArray[np.uint64],
    value: LearnedValue,
    *,
    error: float = ERROR,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Estimate the equity of every legal action with rollouts.

    Args:
        state: STATE (M,), games in which a seat must decide. The array is not changed.
        keys: uint64 (M,), a seed of the dice for each position.
        value: the learned value with which all seats plan. The games have the rules of this value.
        error: target of the standard errors. Games after an action are simulated until the standard error of the
            action's equity is at most `error`, or at most `SHARE` times the action's regret.
        progress: called with the number of finished positions and the number of all positions.

    Returns:
        float32 (M, A): equities, -inf for illegal actions.
        float32 (M, A): standard errors of the equities, 0 for illegal actions.

    Raises:
        ValueError: for an invalid record, or a game that is over or waits for a roll.
    """
    # else `game.roll` would take forced moves, which can end the turn
    game = Game(value.rules, skip_forced=False)
    game.check(state)
    equity = plan(game, state, value)[0]
    if not (decides := np.isfinite(equity).any(1)).all():
        raise ValueError(f"state must be games at decisions, but game {decides.argmin()} has none")
    errors = np.zeros_like(equity)
    for i in range(len(state)):
        actions = np.flatnonzero(np.isfinite(equity[i]))
        planned, sums, squares, games = equity[i, actions], *np.zeros((3, len(actions)))
        rounds, playing = 0, np.arange(len(actions))
        while playing.size:
            key = numbers(keys[i : i + 1], rounds)
            results = _later_turns(game, take(state, np.array([i])), actions[playing], key, value)
            rounds += 1
            sums[playing] += results.sum(1)
            squares[playing] += (results**2).sum(1)
            games[playing] += ROUND
            means = sums / games
            noise = np.sqrt((squares / games - means**2).clip(0) / (games - 1))
            estimates = planned + means
            playing = np.flatnonzero(noise > np.maximum(error, SHARE * (estimates.max() - estimates)))
        equity[i, actions], errors[i, actions] = estimates, noise
        progress(i + 1, len(state))
    return equity, errors


def _later_turns(
    game: Game, state: States, actions: NDArray[np.int64], key: NDArray[np.uint64], value: LearnedValue
) -> NDArray[np.float64]:
    """Play ROUND games after each action. Return the sum of (plan - value) over the later turns of each game.

    The sums are float64 (actions, ROUND). The games after one action are independent of each other. Games after
    different actions share their later turns if the current turn ends in the same position. Shared turns save time and
    reduce the noise in the differences between actions.
    """
    seat = state["player"][0]
    ends = take(state, np.zeros(len(actions) * ROUND, np.int64))
    ends["rng"] = np.tile(numbers(key + STEP * np.arange(ROUND, dtype=np.uint64), 0), len(actions))
    game.decide(ends, np.repeat(actions, ROUND))
    _finish_turn(game, ends, state["turn"][0], Planner(value))
    ends["rng"] = ends["players"] = 0  # the bundled positions were drawn without the number of players
    digest = np.broadcast_to(key, len(ends))
    for word in ends.view(np.uint64).reshape(len(ends), -1).T:
        digest = numbers(digest ^ word, 1)
    by_action = digest.reshape(len(actions), ROUND)
    streams = np.array([numbers(each + STEP * _occurrences(each), 0) for each in by_action])
    games, first, which = np.unique(streams, return_index=True, return_inverse=True)
    later = take(ends, first)
    later["rng"] = games
    return _sum_of_turns(game, later, seat, value)[which].reshape(len(actions), ROUND)


def _finish_turn(game: Game, state: States, turn: Any, planner: Planner) -> None:
    """Play the games of `state`, in place, until the turn with number `turn` ends."""
    unused = np.random.default_rng(0)

    def unfinished(games: States) -> NDArray[np.int64]:
        return np.flatnonzero((games["turn"] == turn) & (games["phase"] != Phase.OVER))

    while (rows := unfinished(state)).size:
        rolled = take(state, rows)
        game.roll(rolled)
        asked = unfinished(rolled)
        decided = take(rolled, asked)
        game.decide(decided, planner.act(game, decided, unused))
        rolled.view(ROW)[asked] = decided.view(ROW)
        state.view(ROW)[rows] = rolled.view(ROW)


def _occurrences(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Count the equal values before each value, e.g. [5, 7, 5] -> [0, 0, 1]."""
    order = np.argsort(values, kind="stable")
    new = np.diff(values[order], prepend=~values[order[:1]]) != 0
    place = np.arange(len(values))
    before = np.empty(len(values), np.uint64)
    before[order] = place - np.maximum.accumulate(np.where(new, place, 0))
    return before


def _sum_of_turns(game: Game, state: States, seat: Any, value: LearnedValue) -> NDArray[np.float64]:
    """Play games to the end, and sum (plan - value) over the turns of each game, for the seat `seat`."""
    total = np.zeros(len(state))
    games = np.flatnonzero(state["phase"] != Phase.OVER)
    state = take(state, games)
    before = value(game, state)
    while len(state):
        turns = play_turns(game, state, value)
        total[games] += turns.before[:, seat] - before[:, seat]
        live = np.flatnonzero(state["phase"] != Phase.OVER)
        games, before, state = games[live], turns.after[live], take(state, live)
    return total


@kernel
def numbers(keys: Any, n: Any) -> Any:
    """Return random number `n` of each stream. The seeds of the streams are `keys`, uint64 (N,)."""
    return mix(keys + STEP * np.uint64(n))
