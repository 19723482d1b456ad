"""Tournaments: the matchups, their games, and the blocks in which the games are played.

    matchup    the policies that meet, one for each seat
    duplicate  n games of n players with the same dice, in which the policies rotate through the n seats
    block      up to 256 duplicates of one matchup; each policy has its own random generator in a block

The tournament's seed, the matchup and the block determine all random numbers.

The luck of a roll is the equity after the roll minus the mean equity over all outcomes of the roll. The luck of a game
is the sum of the luck of its rolls. Expected luck is zero, even if equities are rough estimates. As a control
variate, luck narrows intervals without bias.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement, permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.arena.asking import FORFEITED, Asker, Failure
from wotd_env.core import engine
from wotd_env.core.arguments import check_integer
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Rules, share_difference, win_share
from wotd_env.core.state import Records, States
from wotd_env.policies import make_policy
from wotd_env.policies.blamed import BrokenPolicyError, own_traceback
from wotd_env.policy import HasEquity, Policy, play_out

BLOCK = 256
"""Number of duplicates in a full block. A different block size would change the policies' random numbers."""

Matchup = tuple[str, ...]  # sorted by name


class Block(NamedTuple):
    """The duplicates `first` to `first + size - 1` of a matchup, which are played and stored together."""

    matchup: Matchup
    first: int
    size: int


@dataclass(frozen=True)
class Tournament:
    """A tournament between policies.

    With n seats and at least n policies, every set of n policies is a matchup. With fewer policies, every
    multiset of n policies that contains each policy at least once is a matchup.

    Attributes:
        policies: distinct policy names, see `make_policy`.
        rules: the rules of all games. Games are independent, so `start="loser"` acts as `start="dragons"`.
        games: number of games of each matchup, rounded up to at least two whole duplicates. All matchups together may
            have at most 20,000,000 games.
        seed: integer from 0 to 2**63 - 1; it determines all dice and all random choices of policies.
        until: half-width of 95 % intervals. A matchup stops as soon as the interval of every policy's win share is that
            narrow; `games` is then the maximum number of games. If None, all games are played.
        luck: name of a policy that measures the luck of the dice, see `HasEquity`; if None, luck is not measured.
    """

    policies: tuple[str, ...]
    rules: Rules = field(default_factory=Rules)
    games: int = 10_000
    seed: int = 0
    until: float | None = None
    luck: str | None = None

    def __post_init__(self) -> None:
        names: object = self.policies
        if isinstance(names, str):
            raise ValueError(f"policies must be a tuple of names, got {names!r}: write ({names!r},)")
        set_field = object.__setattr__
        set_field(self, "policies", tuple(self.policies))
        if not self.policies or not all(isinstance(name, str) and name for name in self.policies):
            raise ValueError(f"policies must be at least one name, got {self.policies!r}")
        if len(set(self.policies)) < len(self.policies):
            twice = next(name for name in self.policies if self.policies.count(name) > 1)
            raise ValueError(f"policies must differ, got {twice!r} twice; a single policy plays itself")
        k, seats = len(self.policies), self.rules.players
        matchups = math.comb(k, seats) if k >= seats else math.comb(seats - 1, k - 1)
        why = f"with {matchups:,} matchups" if matchups > 1 else ""
        set_field(self, "games", check_integer("games", self.games, 1, 20_000_000 // matchups, why))
        set_field(self, "seed", check_integer("seed", self.seed, 0, 2**63 - 1))
        if self.until is not None and not 0 < self.until < 0.5:
            raise ValueError(f"until must be between 0 and 0.5, got {self.until!r}")

    @property
    def matchups(self) -> list[Matchup]:
        """All matchups."""
        names = sorted(self.policies)
        seats = self.rules.players
        if len(names) >= seats:
            return list(combinations(names, seats))
        fillings = combinations_with_replacement(names, seats)
        return [matchup for matchup in fillings if set(matchup) == set(names)]

    @property
    def duplicates(self) -> int:
        """Maximum number of duplicates of a matchup."""
        return max(2, math.ceil(self.games / self.rules.players))

    @property
    def num_blocks(self) -> int:
        """Maximum number of blocks of a matchup."""
        return math.ceil(self.duplicates / BLOCK)

    def block(self, matchup: Matchup, i: int) -> Block:
        """Return block i of a matchup; the last block may be smaller."""
        return Block(matchup, i * BLOCK, min(BLOCK, self.duplicates - i * BLOCK))


def game_seed(seed: int, matchup: Matchup, duplicate: int) -> int:
    """Return the 64-bit seed of all games of a duplicate."""
    first = int(np.random.SeedSequence(_entropy(seed, matchup)).generate_state(1, np.uint64)[0])
    return (first + duplicate) % 2**64


def generator(seed: int, block: Block, policy: str) -> np.random.Generator:
    """Return the random generator of a policy in a block."""
    key = (block.first, block.matchup.index(policy))
    return np.random.default_rng(np.random.SeedSequence(_entropy(seed, block.matchup), spawn_key=key))


def _entropy(seed: int, matchup: Matchup) -> list[int]:
    return [seed, *json.dumps(matchup).encode()]


def seatings(duplicates: Sequence[int] | NDArray[np.int64], seats: int) -> NDArray[np.int8]:
    """Return the policy in each seat, int8 [duplicate, game, seat]. A policy is given by its index in the matchup.

    The seating order changes from duplicate to duplicate, so the neighbors of a policy change too.
    """
    orders = np.array([(0, *rest) for rest in permutations(range(1, seats))], np.int8)
    order = orders[np.asarray(duplicates) % len(orders)]
    rotations = (np.arange(seats)[:, None] + np.arange(seats)) % seats
    rotated: NDArray[np.int8] = order[:, rotations]
    return rotated


class Forfeit(NamedTuple):
    """A game that a policy forfeited. `replay(rules, game_seed, moves)` returns the final position."""

    policy: str
    seats: tuple[str, ...]
    """The policy in each seat."""
    seat: int
    duplicate: int
    game_seed: int
    moves: tuple[int, ...]
    """All actions of all seats before the forfeit."""
    reason: str
    traceback: str = ""
    """Traceback of the policy's first exception in the block; empty for later exceptions and for illegal actions."""

    def __str__(self) -> str:
        return (
            f"{self.policy} in seat {self.seat} of {', '.join(self.seats)}: {self.reason} "
            f"(game seed {self.game_seed}, after {len(self.moves)} actions)"
        )


Equity = Callable[[Game, States], NDArray[np.floating[Any]]]
GameResults = NDArray[np.void]  # (G,), the dtype is from `results_dtype`


class PlayedBlock(NamedTuple):
    """The results of a block."""

    games: GameResults  # one result per game, (size * n,), sorted by duplicate
    forfeits: list[Forfeit]


def results_dtype(players: int) -> np.dtype[np.void]:
    """Return the dtype of a game's result."""
    return np.dtype(
        [
            ("duplicate", "i8"),
            ("turns", "u2"),  # the field `turn` of the last position
            ("expired", "u1"),
            ("forfeit", "i1"),  # the seat that forfeited, or -1
            ("place", "i1", (players,)),  # [seat], the seat's policy, as its index in the matchup
            ("points", "i1", (players,)),
            ("rank", "f4", (players,)),  # [seat], 1 is best; tied seats share the mean of their ranks
            ("share", "f4", (players,)),  # [seat], share of the win: 1/w for each of w winners, 0 for losers
            ("luck", "f4", (players,)),  # [seat], in units of `share`; 0 if not measured
        ]
    )


def replay(rules: Rules, game_seed: int, moves: tuple[int, ...]) -> States:
    """Return the position, STATE (1,), after the actions `moves` of all seats in the game with this seed."""
    game = Game(rules)
    state = game.reset(1, seed=game_seed)
    for action in moves:
        game.step(state, [action])
    return state


def play_block(
    tournament: Tournament,
    policies: Mapping[str, Policy],
    block: Block,
    *,
    equity: Equity | None = None,
    fatal_calls: Mapping[int, str] | None = None,
    on_call: Callable[[int], None] = lambda call: None,
    untried: frozenset[str] = frozenset(),
) -> PlayedBlock:
    """Play all games of a block as one batch. Without `equity`, no luck is measured.

    A policy that raises an exception is asked again for each game separately. It forfeits a game if it raises again, or
    if it returns an illegal action. A forfeited game ends at once: the forfeiting seat is last, and all other seats
    share the win. For `fatal_calls` and `on_call` see `Asker`.

    Policies in `untried` make their first decision in this block. If such a policy fails in every game of its first
    call, BrokenPolicyError is raised.
    """
    rules, matchup, n = tournament.rules, block.matchup, tournament.rules.players
    game = Game(rules)
    duplicates = block.first + np.repeat(np.arange(block.size), n)
    places = seatings(np.arange(block.first, block.first + block.size), n).reshape(-1, n)
    first_seed = game_seed(tournament.seed, matchup, block.first)
    state = np.repeat(game.reset(block.size, seed=first_seed), n)

    names = sorted(set(matchup))
    sits = np.array([names.index(name) for name in matchup])[places]
    generators = [generator(tournament.seed, block, name) for name in names]
    asker = Asker(game, [policies[name] for name in names], generators, fatal_calls or {}, on_call)
    failures: dict[int, Failure] = {}  # index of the game -> failure, earliest first

    def choose(policy: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        nonlocal untried
        actions, failed = asker(policy, state[games])
        if names[policy] in untried and len(failed) == len(games):
            reason = f"policy {names[policy]!r} failed in its first decision: {failed[0].reason}"
            raise BrokenPolicyError(reason + own_traceback(failed[0].error))
        untried -= {names[policy]}
        failures.update((int(games[i]), failure) for i, failure in failed.items())
        state["phase"][games[list(failed)]] = Phase.OVER
        return actions

    log = np.array([actions.astype(np.int16) for actions in play_out(game, state, sits, choose)]).T

    results = np.zeros(len(state), results_dtype(n))
    results["duplicate"], results["place"] = duplicates, places
    results["turns"], results["expired"] = state["turn"], state["expired"]
    results["points"] = game.scores(state)
    results["forfeit"] = -1
    results["forfeit"][list(failures)] = state["player"][list(failures)]
    _settle(game, state, results)
    if equity is not None:
        results["luck"] = luck(rules, equity, first_seed, places.shape, log)
    forfeits: dict[int, Forfeit] = {}
    traced: set[str] = set()
    for i, failure in failures.items():
        seats, seat = tuple(names[policy] for policy in sits[i]), int(state["player"][i])
        traceback = "" if seats[seat] in traced else own_traceback(failure.error).strip()
        if failure.error:
            traced.add(seats[seat])
        forfeits[i] = Forfeit(
            policy=seats[seat],
            seats=seats,
            seat=seat,
            duplicate=int(duplicates[i]),
            game_seed=game_seed(tournament.seed, matchup, int(duplicates[i])),
            moves=tuple(log[i][log[i] != FORFEITED].tolist()),
            reason=failure.reason,
            traceback=traceback,
        )
    return PlayedBlock(results, [forfeits[i] for i in sorted(forfeits)])


def _settle(game: Game, state: States, results: GameResults) -> None:
    """Write ranks and shares of the win (R10) to `results`; at the turn limit all seats are tied (R16)."""
    n = game.rules.players
    standing = np.empty((len(state), n), np.int64)
    _standings(state, game.config, standing)
    standing[state["expired"] == 1] = 0
    share = win_share(game.rewards(state), n)
    forfeited = np.flatnonzero(results["forfeit"] >= 0)
    standing[forfeited] = np.arange(n) != results["forfeit"][forfeited, None]
    share[forfeited] = standing[forfeited] / (n - 1)
    better = (standing[:, None, :] > standing[:, :, None]).sum(2)
    equal = (standing[:, None, :] == standing[:, :, None]).sum(2) - 1
    results["rank"] = 1 + better + equal / 2
    results["share"] = share


@kernel
def _standings(states: Records, config: Configs, out: Any) -> None:
    for i in range(states.shape[0]):
        for seat in range(config[0].players):
            out[i, seat] = engine.standing(states[i], config[0], seat)


def make_equity(policy: str, trust: bool = False) -> Equity:
    """Return the method `equity` of the policy with this name."""
    made = make_policy(policy, trust=trust)
    if not isinstance(made, HasEquity):
        raise ValueError(f"luck must name a policy with a method equity(game, state), got {policy!r}")
    return made.equity


def luck(
    rules: Rules, equity: Equity, seed: int, shape: tuple[int, ...], moves: NDArray[np.int16]
) -> NDArray[np.floating]:
    """Replay the games of a block; return the luck of every seat, float64 [game, seat], in units of one win.

    The luck of a roll counts for the seat that rolls. It is subtracted from the luck of the other seats in equal
    parts.

    `seed` is the seed of the first duplicate. `shape` is (games, seats). `moves`, int16 [game, step], contains the
    actions. An entry is -1 if the game had no decision at this step.
    """
    games, seats = shape
    game = Game(rules, skip_forced=False)  # so that every roll is visible
    state = np.repeat(game.reset(games // seats, seed=seed, roll=False), seats)
    order = np.argsort(moves == -1, axis=1, kind="stable")  # moves the entries -1 to the end of each row
    actions = np.pad(np.take_along_axis(moves, order, 1), ((0, 0), (0, 1)), constant_values=-1)
    taken = np.zeros(games, np.int64)
    total = np.zeros(shape)
    while True:
        due = np.flatnonzero(state["phase"] == Phase.CHANCE)
        if due.size:
            rolled = state[due]
            game.roll(rolled)
            change = equity(game, rolled) - equity(game, state[due])
            total[due] -= change[:, None] / (seats - 1)
            total[due, rolled["player"]] += change * seats / (seats - 1)
            state[due] = rolled
        legal = game.legal_actions(state)
        forced = (state["phase"] == Phase.MOVE) & (legal.sum(1) == 1)
        chosen = np.where(forced, legal.argmax(1), actions[np.arange(games), taken])
        # Running games without further actions (-1) were forfeited.
        going = np.flatnonzero((state["phase"] != Phase.OVER) & (chosen != -1))
        if not going.size:
            return share_difference(total, seats)
        taken[going] += ~forced[going]
        moved = state[going]
        game.decide(moved, chosen[going], validate=False)
        state[going] = moved
