"""Checks of arguments that come from outside, each with one error that names the argument and the value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

__all__ = ["check_choice", "check_integer", "kind_of"]


def check_integer(name: str, value: Any, low: int, high: int | None = None, why: str = "") -> int:
    """Return `value` as an int if it is a whole number (NumPy's included) in a range.

    Args:
        name: of the argument.
        value: its value.
        low: the least that is allowed.
        high: the most that is allowed, None for no limit.
        why: what the limits depend on, in words.

    Raises:
        ValueError: if it is none; True and False are none.
    """
    try:
        number = None if np.ndim(value) else operator.index(value)
    except TypeError:
        number = None
    if (
        number is None
        or isinstance(value, bool | np.bool_)
        or number < low
        or (high is not None and number > high)
    ):
        limits = f"of at least {low}" if high is None else f"from {low} to {_readable(high)}"
        raise ValueError(f"{name} must be an integer {limits}{' ' * bool(why)}{why}, got {value!r}")
    return int(number)


def _readable(limit: int) -> str:
    bits = limit.bit_length()
    return f"2**{bits} - 1" if bits > 32 and limit == (1 << bits) - 1 else str(limit)


def kind_of(value: Any) -> str:
    """Return what an argument is, for an error message."""
    return f"{value.dtype} {value.shape}" if isinstance(value, np.ndarray) else repr(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of the choices.

    Raises:
        ValueError: if it is none.
    """
    if isinstance(value, np.ndarray) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
