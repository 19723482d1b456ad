"""Checks of arguments. Every error names the argument and its value."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

INT64 = np.dtype(np.int64)
_ILLEGAL = 1 << 62


def check_integer(name: str, value: object, low: int, high: float = np.inf, why: str = "") -> int:
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
    name: str, value: object, shape: tuple[int, ...], low: float = -np.inf, high: float = np.inf
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


def check_names(name: str, value: object, players: int) -> None:
    """Raise ValueError unless `value` is a list or tuple with a string for each player."""
    if (
        not isinstance(value, list | tuple)
        or len(value) != players
        or not all(isinstance(x, str) for x in value)
    ):
        raise ValueError(f"{name} must be a list of {players} strings, one for each seat, got {value!r}")


def _readable(limit: float) -> str:
    bits = int(limit).bit_length()
    return f"2**{bits} - 1" if bits > 32 and limit == 2**bits - 1 else str(limit)


def kind_of(value: Any) -> str:
    """Return text for error messages: the dtype and shape of an array or tensor, the repr of any other object."""
    if getattr(value, "shape", ()) and hasattr(value, "dtype"):
        return f"{value.dtype} {tuple(value.shape)}"
    return _short(value)


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def check_bool(name: str, value: object) -> bool:
    """Return `value` as a bool. Raise ValueError unless it is True, False, 1 or 0."""
    if not isinstance(value, bool | int | np.bool_) or value not in (True, False):
        raise ValueError(f"{name} must be True or False, got {kind_of(value)}")
    return bool(value)


def check_choice(name: str, value: Any, choices: Sequence[Any]) -> Any:
    """Return `value` if it is one of the choices; otherwise raise ValueError."""
    if isinstance(value, np.ndarray) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return value


def check_seed(seed: object) -> np.uint64:
    """Return a seed as uint64. Raise ValueError unless the seed is an integer from 0 to 2^64 - 1."""
    return np.uint64(check_integer("seed", seed, 0, 2**64 - 1))


def as_actions(actions: ArrayLike, games: int) -> NDArray[np.int64]:
    """Return `actions` for kernels, int64 (N,) and contiguous. Raise ValueError unless they are N = `games` integers.

    An integer that does not fit into int64 becomes an illegal action that fits.
    """
    given: Any = actions
    whole = isinstance(given, np.ndarray) and given.dtype is INT64 and given.shape == (games,)
    if whole and given.flags.carray:
        return given  # type: ignore[no-any-return]
    chosen = as_integers("actions", actions, (games,))
    if chosen.dtype.kind == "O" or chosen.dtype == np.uint64:
        chosen = np.array([min(max(-1, action), _ILLEGAL) for action in chosen.tolist()], np.int64)
    return np.array(chosen, np.int64)  # kernels are compiled for contiguous writable arrays


def as_seats(name: str, seats: ArrayLike, games: int, players: int) -> NDArray[np.int64]:
    """Return one seat for all games, or a seat for each game, as int64 (N,). Raise ValueError for invalid seats."""
    if np.ndim(seats):
        return check_integers(name, seats, (games,), 0, players - 1)
    return np.full(games, check_integer(name, seats, 0, players - 1), np.int64)


def as_output(name: str, out: Any, shape: tuple[int, ...], dtype: Any, optional: bool = False) -> Any:
    """Check and return `out`. If `out` is None, return a new array; this array is empty if `optional` is true."""
    if out is None:
        return np.empty((0,) * len(shape) if optional else shape, dtype)
    if isinstance(out, np.ndarray) and out.dtype == dtype and out.shape == shape and out.flags.carray:
        return out
    raise ValueError(f"{name} must be a writable C-contiguous {dtype} array {shape}, got {kind_of(out)}")
