"""Rules to try, kinds of decisions that must occur, and positions, for tests that compare two implementations."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import numpy as np

from tests import reference as ref
from wotd_env import Rules

KINDS = {
    **dict.fromkeys(range(31), "hold"),
    ref.STOP_ROLLING: "stop",
    **dict.fromkeys(range(ref.MOVE_ON, ref.MOVE_ON + 5), "move"),
    **dict.fromkeys(range(ref.WOOD_ON, ref.WOOD_ON + 5), "wood"),
    **dict.fromkeys(range(ref.JUMP_ON, ref.JUMP_ON + 5), "jump"),
    ref.EQUILIBRIUM: "equilibrium",
    ref.WOOD_EQUILIBRIUM: "wood equilibrium",
    ref.EARTH_EQUILIBRIUM: "earth equilibrium",
    ref.PASS: "pass",
    ref.NO_MOVE_BY_FEAR: "fear",
    ref.END_TURN: "end",
    ref.PERFECTION_TURN: "perfection turn",
    ref.REBIRTH_TURN: "rebirth turn",
}
"""The kind of each action below the swaps."""

EVERYTHING = set(KINDS.values()) | {
    "tiger", "swap", "swap of two others", "wood perfection",
    "game won", "game won by a swap", "game shared", "game expired",
}  # fmt: skip
"""The kinds of decisions and ends that must occur in compared games."""


def agree(walk: Callable[[Rules, int, int], Counter[str]], variants: Iterable[Rules], steps: int) -> int:
    """Compare games of all variants, check that every kind of decision occurred, and return their number.

    `walk(rules, steps, seed)` compares games, and returns the numbers of the kinds of decisions.
    """
    seen: Counter[str] = Counter()
    for seed, rules in enumerate(variants):
        seen += walk(rules, steps, seed)
    # With two players, only one can have all five pieces on numbers, which breaks every tie.
    everything = EVERYTHING - ({"swap of two others", "game shared"} if rules.players == 2 else set())
    assert everything <= set(seen), f"never seen: {everything - set(seen)}"
    return seen["decisions"]


def variants(players: int) -> Iterator[Rules]:
    """Yield rules with each setting of powers on each board size; the other fields alternate."""
    for i, (powers, spaces, half) in enumerate(product(["none", "own", "any"], [0, 1, 7, 10], range(2))):
        yield Rules(
            players=players,
            spaces=spaces,
            powers=powers,
            immunity=i % 4 in (0, 3),
            dead_pieces=min(5 * (5 - players), 3 * spaces) if half else 0,
            colors="random" if i % 4 in (0, 1) else None,
            max_turns=60 if i % 3 else 1000,
        )


def all_variants(players: int) -> Iterator[Rules]:
    """Yield every combination of typical values of the fields."""
    boards = {
        (spaces, min(dead, 5 * (5 - players), 3 * spaces))
        for spaces in (0, 1, 2, 7, 10)
        for dead in (0, 1, 15)
    }
    for (spaces, dead), powers, immunity, colors, max_turns in product(
        sorted(boards), ["none", "own", "any"], [False, True], ["random", None], [60, 1000]
    ):
        yield Rules(players, spaces, powers, immunity, dead, colors, max_turns=max_turns)


def typical_variants() -> list[Rules]:
    """Return rules for each number of players and each setting of powers, with four settings of the other fields."""
    boards: tuple[tuple[int, bool, int, dict[str, Any]], ...] = (
        (7, False, 0, {}),
        (0, True, 0, {"start": 1}),
        (3, False, 5, {"colors": "random", "start": "loser", "max_turns": 25}),
        (10, True, 15, {"start": "loser", "max_turns": 40}),
    )
    return [
        Rules(players, spaces, powers, immunity, min(dead, 5 * (5 - players)), **others)
        for players, powers in product(range(2, 6), ("none", "own", "any"))
        for spaces, immunity, dead, others in boards
    ]


def scatter(rules: Rules, state: np.ndarray, rng: np.random.Generator) -> None:
    """Put the pieces of every game on random empty spaces, with no seat complete on numbered spaces."""
    for game in state:
        for path in range(5):
            empty = [t for t in range(1, rules.spaces + 6) if not game["dead"][path] >> t & 1]
            spaces = rng.permutation(empty)[: rules.players]
            on_board = rng.random(rules.players) < 0.9
            game["pieces"][: rules.players, path] = np.where(on_board, spaces, 0)
        for seat in game["pieces"][: rules.players]:
            if (seat > rules.spaces).all():
                seat[rng.integers(5)] = 0
        game["used"] = rng.integers(1 << rules.players) & rng.integers(1 << rules.players)
        game["turn"] = rng.integers(rules.max_turns)
