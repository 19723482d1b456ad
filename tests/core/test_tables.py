"""The tables that are made at import, against exact arithmetic with Python's integers."""

import importlib
import pkgutil
from itertools import combinations, combinations_with_replacement, product
from math import comb
from typing import Any

import numpy as np
import pytest

import wotd_env

ROLLS = sorted(combinations_with_replacement(range(6), 5), key=lambda roll: roll[::-1])
KEEPS = sorted(combinations_with_replacement(range(7), 5), key=lambda keep: keep[::-1])
INDEX: dict[tuple[int, ...], int] = {keep: index for index, keep in enumerate(KEEPS)}
COUNTS = [[keep.count(face) for face in range(6)] for keep in KEEPS]
THROWN = [keep.count(6) for keep in KEEPS]
THROWS = [
    [
        INDEX[tuple(sorted((*(face for face in keep if face < 6), *throw)))]
        for throw in product(range(6), repeat=n)
    ]
    for keep, n in zip(KEEPS, THROWN, strict=True)
]
HOLDS = [
    [
        INDEX[tuple(sorted(face if hold >> die & 1 else 6 for die, face in enumerate(roll)))]
        for hold in range(32)
    ]
    for roll in ROLLS
]
BITS = [[byte >> bit & 1 for bit in range(8)] for byte in range(256)]
BLOCKED = 0.1, 0.35, 0.6, 0.35, 0.15


def missing(counts: list[int]) -> int:
    return counts.index(0) if counts[5] == 1 and sorted(counts)[1:] == [1] * 5 else 5


def word(numbers: list[int]) -> int:
    return sum((number & 255) << 8 * at for at, number in enumerate(numbers))


EXPECTED: dict[str, tuple[str, Any]] = {
    "core.actions.PAIRS": (
        "int8",
        [
            [*(pairs := [*combinations(range(n), 2)] * (n > 1)), *[(0, 0)] * (10 - len(pairs))]
            for n in range(6)
        ],
    ),
    "core.dice.INDEX_PARTS": ("uint16", [[comb(min(s, 6) + i, i + 1) for s in range(8)] for i in range(5)]),
    "core.dice.KEEPS": ("int8", KEEPS),
    "core.dice.KEEP_DICE": ("int8", [[-1 if face == 6 else face for face in keep] for keep in KEEPS]),
    "core.dice.COUNTS": ("uint8", COUNTS),
    "core.dice.DICE_WORDS": (
        "uint64",
        [word([-1 if face == 6 else face for face in keep]) for keep in KEEPS],
    ),
    "core.dice.COUNT_WORDS": ("uint64", [word(counts[:5]) for counts in COUNTS]),
    "core.dice.UNROLLED_DICE": ("uint8", THROWN),
    "core.dice.MISSING": ("uint8", [missing(counts) for counts in COUNTS]),
    "core.dice.HOLD_KEEP": ("uint16", HOLDS),
    "core.dice.LEGAL_HOLDS": (
        "uint64",
        [sum(1 << hold for hold, keep in enumerate(keeps) if keep not in keeps[:hold]) for keeps in HOLDS],
    ),
    "core.dice.THROW_SIZE": ("uint32", [6**n for n in THROWN]),
    "core.dice.THROW_START": ("uint32", [sum(6**n for n in THROWN[:i]) for i in range(462)]),
    "core.dice.THROW_ROLL": ("uint8", [roll for rolls in THROWS for roll in rolls]),
    "core.observation.ONE_HOT_DICE": (
        "uint64",
        [sum(1 << 6 * face + count for face, count in enumerate(counts)) for counts in COUNTS],
    ),
    "core.observation.SPACES": ("int8", [[int(i == j) for j in range(16)] for i in range(16)]),
    "planning.turn.MORE": (
        "uint16",
        [[INDEX[tuple(sorted((*keep[:-1], face)))] for face in range(6)] for keep in KEEPS[252:]],
    ),
    "planning.turn.FACES_SHOWN": ("uint8", [sum(count > 0 for count in counts) for counts in COUNTS]),
    "planning.values.BLOCKED_BY": (
        "float64",
        [sum(BLOCKED[space] for space in range(5) if mask >> space & 1) for mask in range(32)],
    ),
    "policies.random.ONES": ("uint64", [sum(bits) for bits in BITS]),
    "policies.random.PLACES": (
        "uint64",
        [sorted(range(8), key=lambda at: (1 - bits[at], at)) for bits in BITS],
    ),
    "solver.evaluate.ROLL_CHANCES": ("float64", [THROWS[461].count(roll) / 7776 for roll in range(252)]),
}

# made from Python's integers entry by entry, with a stated type; the exact solution is tested against other programs
ENTERED = {
    *(f"planning.{name}" for name in ("turn.FEWER", "values.WEIGHT", "values.POWER", "values.CLOSING")),
    "envs.starts.ALWAYS",
    "envs.starts.NO_LAYOUTS",
}


@pytest.mark.parametrize("table", EXPECTED)
def test_table_is_exact(table: str) -> None:
    module, name = table.rsplit(".", 1)
    found = getattr(importlib.import_module(f"wotd_env.{module}"), name)
    dtype, expected = EXPECTED[table]
    assert found.dtype == dtype
    assert found.tolist() == np.array(expected, object).tolist()


def test_every_table_of_the_compiled_packages_is_tested() -> None:
    tables = set()
    for package in ("core", "planning", "policies", "solver", "envs"):
        path = [f"{wotd_env.__path__[0]}/{package}"]
        for module in pkgutil.iter_modules(path, f"wotd_env.{package}."):
            if module.name in ("wotd_env.policies.sb3",):  # needs torch, and has no tables
                continue
            for name, value in vars(importlib.import_module(module.name)).items():
                if isinstance(value, np.ndarray) and not name.startswith("_"):
                    tables.add((id(value), f"{module.name.partition('.')[2]}.{name}"))
    known = {
        id(getattr(importlib.import_module(f"wotd_env.{t.rsplit('.', 1)[0]}"), t.rsplit(".", 1)[1]))
        for t in {*EXPECTED, *ENTERED}
    }
    assert not [name for table, name in sorted(tables, key=str) if table not in known]
