"""Symmetries of the game: permutations of the paths and rotations of the seats.

A permuted or rotated game is equivalent to the original game: corresponding decisions lead to the same rewards. Use the
symmetries to augment training data, or to test whether a policy respects them.

Common arguments; the functions do not change them:

- `rules`: the rules of all games.
- `states`: STATE (N,), the games before the permutation or rotation.
- `permutation`: integers (5,), or (N, 5) with one permutation per game; path e becomes path `permutation[e]`.

Invalid arguments raise `ValueError`.

`rotate_seats` rotates records only. Rotate arrays with one column per seat yourself, e.g. rewards with
`np.roll(rewards, by, 1)`. A rotation does not change observations and actions, because they number the seats relative
to the seat that observes or acts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.actions import Action, num_actions, pairs
from wotd_env.core.arguments import check_choice, check_integer, check_integers
from wotd_env.core.checks import check_states
from wotd_env.core.dice import NUM_HOLDS, UNROLLED
from wotd_env.core.observation import ENCODINGS, layout, parts
from wotd_env.core.rules import DICE, DRAGON, ELEMENTS, PATHS, Rules
from wotd_env.core.state import States

__all__ = [
    "permute_actions", "permute_dice", "permute_masks", "permute_observations", "permute_states", "rotate_seats",
]  # fmt: skip


def permute_states(rules: Rules, states: States, permutation: ArrayLike) -> States:
    """Return the games, STATE (N,), with permuted paths and dice.

    Immunity (R14) ties each color to a path, so with immunity the colors of the seats are also permuted. The setting
    `powers="own"` ties each power to a color. With immunity and `powers="own"` the permutation must therefore not move
    the paths of the colors in play.

    The random streams do not change, so the next rolls are not permuted. For equivalent rolls, pass permuted dice to
    `Game.roll`.
    """
    moved_to = _checked(rules, states, permutation)
    permuted = states.copy()
    permuted["dead"] = _moved(states["dead"], moved_to, 1)
    permuted["pieces"] = _moved(states["pieces"], moved_to, 2)
    permuted["dice"] = permute_dice(states["dice"], moved_to)
    if rules.immunity:
        permuted["color"] = _renamed(states["color"], moved_to)
    return permuted


def permute_dice(dice: ArrayLike, permutation: ArrayLike) -> NDArray[np.int8]:
    """Return the dice of permuted games, int8 (N, 5): faces in ascending order, then -1 for each unrolled die.

    `dice` contains the dice of the original games, integers (N, 5), in any order.
    """
    given = check_integers("dice", dice, (*np.shape(dice)[:1], DICE), -1, DRAGON)
    symbols = np.sort(_renamed(given, _symbols(_permutations(permutation, len(given)))), 1)
    return np.where(symbols == UNROLLED, -1, symbols).astype(np.int8)


def permute_actions(
    rules: Rules, states: States, actions: ArrayLike, permutation: ArrayLike
) -> NDArray[np.int64]:
    """Convert `actions`, integers (N,), to the corresponding actions of the permuted games, int64 (N,).

    Legal actions stay legal. The number of a hold may change, because it depends on the order of the dice.
    """
    moved_to = _checked(rules, states, permutation)
    given = check_integers("actions", actions, states.shape, 0, num_actions(rules.players) - 1)
    permuted = _permuted_actions(rules, states, moved_to)
    return np.take_along_axis(permuted, given[:, None], 1)[:, 0]


def permute_masks(rules: Rules, states: States, masks: ArrayLike, permutation: ArrayLike) -> NDArray[Any]:
    """Permute action masks, or other arrays with one value per action.

    `masks` has the shape (N, A) and any dtype; the result has the same shape and dtype.
    """
    moved_to = _checked(rules, states, permutation)
    given = _rows("masks", masks, states.shape, num_actions(rules.players))
    permuted = np.empty_like(given)
    actions = _permuted_actions(rules, states, moved_to)
    np.put_along_axis(permuted, actions, given, 1)
    return permuted


def permute_observations(
    rules: Rules, observations: ArrayLike, permutation: ArrayLike, encoding: str = "one_hot"
) -> NDArray[Any]:
    """Convert observations of games to observations of the permuted games. The observing seats stay the same.

    `observations` has the shape (N, D) and any dtype; the result has the same shape and dtype. Unlike `permute_states`,
    this function does not check whether the permutation moves the paths of colors in play.
    """
    described = parts(rules, check_choice("encoding", encoding, ENCODINGS))
    slices = layout(rules, encoding)
    games, size = np.shape(observations)[:1], max(part.stop for part in slices.values())
    permuted = _rows("observations", observations, games, size).copy()
    moved_to = _permutations(permutation, len(permuted))
    moves = {"path": moved_to, "face": _symbols(moved_to)[:, :-1]}
    if rules.immunity:
        moves["color"] = moved_to
    for name, part in described.items():
        numbers = permuted[:, slices[name]].reshape(len(permuted), *part.axes.values())
        for axis, kind in enumerate(part.axes, 1):
            if kind in moves:
                numbers = _moved(numbers, moves[kind], axis)
        for column, kind in part.names.items():
            if kind == "face":
                numbers[..., column] = np.sort(_renamed(numbers[..., column], _symbols(moved_to)), 1)
            elif kind in moves:
                named = numbers[..., column].reshape(len(permuted), math.prod(numbers.shape[1:-1]))
                numbers[..., column] = _renamed(named, moved_to).reshape(numbers.shape[:-1])
        permuted[:, slices[name]] = numbers.reshape(len(permuted), len(part.highest))
    return permuted


def rotate_seats(rules: Rules, states: States, by: int) -> States:
    """Return the games, STATE (N,), with rotated seats. Pieces, colors and powers move with their players.

    The player in seat k moves to seat `(k + by) % players`. The rotated games have the same future rolls.
    """
    check_states(rules, states)
    n = rules.players
    by = check_integer("by", by, -(2**31), 2**31) % n
    rotated = states.copy()
    rotated["player"] = (states["player"] + by) % n
    rotated["pieces"][:, :n] = np.roll(states["pieces"][:, :n], by, 1)
    rotated["color"][:, :n] = np.roll(states["color"][:, :n], by, 1)
    bits = np.roll(states["used"][:, None] >> np.arange(n) & 1, by, 1)
    rotated["used"] = (bits << np.arange(n)).sum(1)
    return rotated


def _permutations(permutation: ArrayLike, games: int) -> NDArray[np.int64]:
    """Return the permutation of each game, int64 (N, 5)."""
    shape = (games, PATHS) if np.ndim(permutation) == 2 else (PATHS,)
    given = check_integers("permutation", permutation, shape)
    wrong = (np.sort(given, -1) != np.arange(PATHS)).any(-1)
    if wrong.any():
        first = given.reshape(-1, PATHS)[np.argmax(wrong)]
        raise ValueError(f"permutation must have each path from 0 to {PATHS - 1} once, got {first.tolist()}")
    return np.broadcast_to(given, (games, PATHS))


def _checked(rules: Rules, states: States, permutation: ArrayLike) -> NDArray[np.int64]:
    """Check the games, and return the permutation of each game, int64 (N, 5)."""
    check_states(rules, states)
    moved_to = _permutations(permutation, len(states))
    if rules.immunity and rules.powers == "own":
        colors = states["color"][:, : rules.players].astype(np.int64)
        wrong = (np.take_along_axis(moved_to, colors, 1) != colors).any(1)
        if wrong.any():
            game = int(wrong.argmax())
            played = ", ".join(ELEMENTS[color] for color in sorted(colors[game]))
            raise ValueError(
                f"game {game}: permutation must fix the paths of the colors in play ({played}), which these rules "
                f"tie to powers and immunity, got {moved_to[game].tolist()}"
            )
    return moved_to


def _moved(array: NDArray[Any], moved_to: NDArray[np.int64], axis: int) -> NDArray[Any]:
    """Return an array (N, ...) with moved entries, e.g. for axis 1: `moved[g, moved_to[g, i]] = array[g, i]`."""
    shape = [1] * array.ndim
    shape[0], shape[axis] = moved_to.shape
    moved = np.empty_like(array)
    np.put_along_axis(moved, moved_to.reshape(shape), array, axis)
    return moved


def _symbols(moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Extend the permutations by 5 -> 5 (dragon) and 6 -> 6 (unrolled die), int64 (N, 7)."""
    return np.concatenate([moved_to, np.broadcast_to([DRAGON, UNROLLED], (len(moved_to), 2))], 1)


def _renamed(names: NDArray[Any], moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the new numbers of paths, colors or faces, int64 (N, k)."""
    return np.take_along_axis(moved_to, names.astype(np.int64), 1)


def _permuted_actions(rules: Rules, states: States, moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the new number of every action in the permuted games, int64 (N, A)."""
    # If several holds keep the same faces, only the hold with the smallest number is legal. A stable sort keeps the
    # order of equal dice, so the legal hold also gets the smallest number in the permuted games.
    new_index = np.argsort(np.argsort(_renamed(states["dice"], _symbols(moved_to)), 1, kind="stable"), 1)
    kept = np.arange(NUM_HOLDS)[:, None] >> np.arange(DICE) & 1
    holds = (kept << new_index[:, None]).sum(2)
    moves = [first + moved_to for first in (Action.MOVE_ON, Action.WOOD_ON, Action.JUMP_ON)]
    fixed = np.arange(Action.EQUILIBRIUM, Action.FIRST_SWAP)
    others = np.broadcast_to(fixed, (len(states), len(fixed)))
    count = pairs(rules.players)
    swaps = Action.FIRST_SWAP + moved_to[:, :, None] * count + np.arange(count)
    return np.concatenate([holds, *moves, others, swaps.reshape(len(states), PATHS * count)], 1)


def _rows(name: str, values: ArrayLike, games: tuple[int, ...], width: int) -> NDArray[Any]:
    given = np.asarray(values)
    if given.shape != (*games, width):
        raise ValueError(f"{name} must be an array {(*games, width)}, got {given.dtype} {given.shape}")
    return given
