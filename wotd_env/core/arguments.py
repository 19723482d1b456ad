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
    number = None if getattr(value, "ndim", 0) else as_integer(value)
    if number is None or not low <= number <= high:
        limits = f"of at least {low}" if high == np.inf else f"from {low} to {_readable(high)}"
        raise ValueError(f"{name} must be an integer {limits}{' ' * bool(why)}{why}, got {_short(value)}")
    return number


def as_integer(value: Any) -> int | None:
    """Return an integer, or an array or tensor that contains one integer, as an int; return None for other values.

    Booleans are not integers, even in arrays and tensors, although Python converts some of them to an index.
    """
    one = value.item() if isinstance(value, np.ndarray) and value.size == 1 else value
    if isinstance(one, bool) or str(getattr(one, "dtype", "")).endswith("bool"):
        return None
    try:
        return operator.index(one)
    except (TypeError, ValueError, RuntimeError):  # RuntimeError: a tensor with several numbers
        return None


def check_integers(
    name: str, value: Any, shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf
) -> NDArray[np.int64]:
    """Return `value` as an int64 array.

    Raise ValueError unless `value` has the shape `shape` and contains only integers from `low` to `high`.
    """
    given = as_integers(name, value, shape)
    if given.size and not low <= given.min() <= given.max() <= high:
        raise ValueError(f"{name} must be from {low} to {high}, got {given.min()} to {given.max()}")
    return given.astype(np.int64)


def as_integers(name: str, value: Any, shape: tuple[int, ...]) -> NDArray[Any]:
    """Return integers as an array of the shape `shape`, of an integer dtype or, for any Python integers, object.

    An array or tensor may also be a column, such as (N, 1) instead of (N,). Raise ValueError for anything else.
    """
    # NumPy would turn [True, 2] into integers, and large integers into floats.
    plain = hasattr(value, "dtype") or (isinstance(value, list) and set(map(type, value)) == {int})
    wrong = f"{name} must be an integer array {shape}, got {kind_of(value)}"
    try:
        given = np.asarray(value, None if plain else object)
    except (TypeError, ValueError, RuntimeError) as error:  # such as a tensor on a GPU
        raise ValueError(f"{wrong}: {error}") from None
    if given.shape == (*shape, 1) and hasattr(value, "dtype"):
        given = given.reshape(shape)
    if given.dtype.kind not in "iu":
        numbers = [as_integer(each) for each in np.asarray(value, object).flat]
        if None in numbers or len(numbers) != given.size:
            raise ValueError(wrong)
        given = np.array(numbers, object).reshape(given.shape)
    if given.shape != shape:
        raise ValueError(wrong)
    return given


def check_names(name: str, value: Any, players: int) -> None:
    """Raise ValueError unless `value` is a list or tuple with a text for each player."""
    if (
        not isinstance(value, list | tuple)
        or len(value) != players
        or not all(isinstance(x, str) for x in value)
    ):
        raise ValueError(f"{name} must be a list of {players} texts, one for each seat, got {value!r}")


def _readable(limit: float) -> str:
    bits = int(limit).bit_length()
    return f"2**{bits} - 1" if bits > 32 and limit == 2**bits - 1 else str(limit)


def kind_of(value: Any) -> str:
    """Return text for error messages: the dtype and shape of an array or tensor, the repr of any other object."""
    if getattr(value, "shape", ()) and hasattr(value, "dtype"):
        return f"{value.dtype} {tuple(value.shape)}"
    return _short(value)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def check_bool(name: str, value: Any) -> bool:
    """Return `value` as a bool. Raise ValueError unless it is True, False, 1 or 0."""
    if not isinstance(value, bool | int | np.bool_) or value not in (True, False):
        raise ValueError(f"{name} must be True or False, got {kind_of(value)}")
    return bool(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of the choices; otherwise raise ValueError."""
    if isinstance(value, np.ndarray) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value
