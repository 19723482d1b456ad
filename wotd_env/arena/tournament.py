"""Tournaments: the matchups, their games, and the blocks in which the games are played.

    matchup    the policies that meet, one for each seat
    duplicate  n games of n players with the same dice, in which the policies rotate through the n seats
    block      up to 256 duplicates of one matchup; each policy has its own random generator in a block

The tournament's seed, the matchup and the block determine everything random. The results therefore do not depend on the
number of workers, the order of work, or interruptions.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_integer
from wotd_env.core.rules import Rules

BLOCK = 256
"""Duplicates in a block. The number is fixed, because a policy's random numbers depend on the size of its batches."""

MAX_SEED = 2**63 - 1

MAX_GAMES = 20_000_000  # for all matchups together; the results of all games are in memory

Matchup = tuple[str, ...]  # the policies that meet, sorted


class Block(NamedTuple):
    """The duplicates `first` to `first + size - 1` of a matchup: the unit of work, of randomness and of storage."""

    matchup: Matchup
    first: int
    size: int


@dataclass(frozen=True)
class Tournament:
    """A tournament between policies.

    With n seats and at least n policies, every set of n policies is a matchup. With fewer policies, every
    multiset of n policies that contains each policy at least once is a matchup.

    Attributes:
        policies: names that `make_policy` takes, all different.
        rules: the rules of all games. Games are independent, so `start="loser"` acts as `start="dragons"`.
        games: number of games of each matchup. It is rounded up to whole duplicates, at least two. All matchups
            together may have at most 20,000,000 games.
        seed: determines all dice and all random choices of policies, 0 to 2**63 - 1.
        until: stop a matchup as soon as half the width of the 95 % interval of every policy's win share is at most this
            value; `games` is then the maximum.
        luck: name of a policy that measures the luck of the dice, see `wotd_env.arena.luck`; None measures no luck.
    """

    policies: tuple[str, ...]
    rules: Rules = field(default_factory=Rules)
    games: int = 10_000
    seed: int = 0
    until: float | None = None
    luck: str | None = None

    def __post_init__(self) -> None:
        names: object = self.policies
        if isinstance(names, str):  # tuple() would split the name into letters
            raise ValueError(f"policies must be a tuple of names, got {names!r}: write ({names!r},)")
        set_field = object.__setattr__
        set_field(self, "policies", tuple(self.policies))
        if not self.policies or not all(isinstance(name, str) and name for name in self.policies):
            raise ValueError(f"policies must be at least one name, got {self.policies!r}")
        if len(set(self.policies)) < len(self.policies):
            twice = next(name for name in self.policies if self.policies.count(name) > 1)
            raise ValueError(f"policies must differ, got {twice!r} twice; a policy alone plays itself")
        k, seats = len(self.policies), self.rules.players
        matchups = math.comb(k, seats) if k >= seats else math.comb(seats - 1, k - 1)
        why = f"with {matchups:,} matchups" if matchups > 1 else ""
        set_field(self, "games", check_integer("games", self.games, 1, MAX_GAMES // matchups, why))
        set_field(self, "seed", check_integer("seed", self.seed, 0, MAX_SEED))
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
        """Largest number of duplicates of each matchup."""
        return max(2, math.ceil(self.games / self.rules.players))

    @property
    def num_blocks(self) -> int:
        """Largest number of blocks of each matchup."""
        return math.ceil(self.duplicates / BLOCK)

    def block(self, matchup: Matchup, i: int) -> Block:
        """Return block i of a matchup; the last block may be smaller than the other blocks."""
        return Block(matchup, i * BLOCK, min(BLOCK, self.duplicates - i * BLOCK))


def game_seed(seed: int, matchup: Matchup, duplicate: int) -> int:
    """Return the seed of a duplicate for `Game.reset`, 64 bits; different matchups have different seeds."""
    first = int(np.random.SeedSequence(_entropy(seed, matchup)).generate_state(1, np.uint64)[0])
    return (first + duplicate) % 2**64


def generator(seed: int, block: Block, policy: str) -> np.random.Generator:
    """Return the random generator of a policy in a block."""
    key = (block.first, block.matchup.index(policy))
    return np.random.default_rng(np.random.SeedSequence(_entropy(seed, block.matchup), spawn_key=key))


def _entropy(seed: int, matchup: Matchup) -> list[int]:
    return [seed, *json.dumps(matchup).encode()]


def seatings(duplicates: Sequence[int] | NDArray[np.int64], seats: int) -> NDArray[np.int8]:
    """Return for each seat the index in the matchup of its policy, int8 [duplicate, game, seat].

    The games of a duplicate are the rotations of one seating order, so each policy has every seat once. The order
    changes from duplicate to duplicate, so the neighbors of a policy change too.
    """
    orders = np.array([(0, *rest) for rest in permutations(range(1, seats))], np.int8)
    order = orders[np.asarray(duplicates) % len(orders)]
    rotations = (np.arange(seats)[:, None] + np.arange(seats)) % seats
    rotated: NDArray[np.int8] = order[:, rotations]
    return rotated
