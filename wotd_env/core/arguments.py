"""Checks of arguments. Every error names the argument and its value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray


def check_integer(name: str, value: Any, low: int, high: float = np.inf, why: str = "") -> int:
    """Return `value` as an int. Raise ValueError unless it is an integer from `low` to `high`; booleans are invalid.

    The error message contains `why`, the reason for the limits, e.g. "for 3 players".
    """
    try:
        number = None if np.ndim(value) or isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None or not low <= number <= high:
        limits = f"of at least {low}" if high == np.inf else f"from {low} to {_readable(high)}"
        raise ValueError(f"{name} must be an integer {limits}{' ' * bool(why)}{why}, got {value!r}")
    return int(number)


def check_integers(
    name: str, value: Any, shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf
) -> NDArray[np.int64]:
    """Return `value` as an int64 array.

    Raise ValueError unless `value` has the shape `shape` and contains only integers from `low` to `high`.
    """
    given = np.asarray(value)
    if given.shape != shape or (given.size and given.dtype.kind not in "iu"):
        raise ValueError(f"{name} must be an integer array {shape}, got {kind_of(given)}")
    if given.size and not low <= given.min() <= given.max() <= high:
        raise ValueError(f"{name} must be from {low} to {high}, got {given.min()} to {given.max()}")
    return given.astype(np.int64)


def _readable(limit: float) -> str:
    bits = int(limit).bit_length()
    return f"2**{bits} - 1" if bits > 32 and limit == 2**bits - 1 else str(limit)


def kind_of(value: Any) -> str:
    """Return text for error messages: the dtype and shape of an array, the repr of any other object."""
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of the choices; otherwise raise ValueError."""
    if isinstance(value, np.ndarray) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
