"""The symmetries of the game: its paths can change places, and its seats can move on.

A position with its paths permuted, or with its players some seats on, is played like the first one: the same decisions
lead to the same positions, permuted or moved, and to the same rewards. A learner can make more data of the data it has,
and test what it has learnt.

Seats that move on change only records and what has a column for each seat, such as rewards (`np.roll(rewards, by, 1)`).
Observations and actions count seats from the one that sees or acts, and stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wotd_env.core.actions import Action, num_actions, pairs
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.checks import check_states
from wotd_env.core.dice import NUM_HOLDS, UNROLLED
from wotd_env.core.observation import ENCODINGS, layout, token_width
from wotd_env.core.rules import DICE, DRAGON, ELEMENTS, PATHS, Rules
from wotd_env.core.state import States

__all__ = [
    "permute_actions",
    "permute_dice",
    "permute_masks",
    "permute_observations",
    "permute_states",
    "rotate_seats",
]


def permute_states(rules: Rules, states: States, permutation: ArrayLike) -> States:
    """Return the games with their paths, and the elements on their dice, permuted.

    With immunity (R14) the colours of the seats change with the paths; otherwise they stay. Seats with the powers of
    their own colours would then change powers, so that under `powers="own"` with immunity the paths of the colours that
    are played must stay where they are.

    Args:
        rules: the rules of all games.
        states: STATE (N,); it stays as it is.
        permutation: integers (5,), or (N, 5) with one for each game: `permutation[e]` is the new path of path e.

    Returns:
        STATE (N,). The games keep their random streams, which do not show permuted dice: for equal play give
        `Game.roll` the dice.

    Raises:
        ValueError: for records that are no games of the rules, or a permutation that is none or breaks the rules.
    """
    moved_to = _checked(rules, states, permutation)
    permuted = states.copy()
    permuted["dead"] = _moved(states["dead"], moved_to, 1)
    permuted["pieces"] = _moved(states["pieces"], moved_to, 2)
    permuted["dice"] = permute_dice(states["dice"], moved_to)
    if rules.immunity:
        permuted["color"] = _recolored(states["color"], moved_to)
    return permuted


def permute_dice(dice: ArrayLike, permutation: ArrayLike) -> NDArray[np.int8]:
    """Return dice as permuted games show them.

    Args:
        dice: faces (N, 5), -1 for a die to be rolled.
        permutation: as for `permute_states`.

    Returns:
        Faces in ascending order and then -1, int8 (N, 5).

    Raises:
        ValueError: for anything else.
    """
    given = np.asarray(dice)
    if given.ndim != 2 or given.shape[1] != DICE or given.dtype.kind not in "iu":
        raise ValueError(f"dice must be an integer array (N, {DICE}), got {given.dtype} {given.shape}")
    if given.size and not (given.min() >= -1 and given.max() <= DRAGON):
        raise ValueError(f"dice must be faces from 0 to {DRAGON} or -1, got {given.min()} to {given.max()}")
    symbols = np.sort(_symbols(given, _permutations(permutation, len(given))), 1)
    return np.where(symbols == UNROLLED, -1, symbols).astype(np.int8)


def permute_actions(
    rules: Rules, states: States, actions: ArrayLike, permutation: ArrayLike
) -> NDArray[np.int64]:
    """Return the actions that do in permuted games what the given ones do in the games.

    Args:
        rules: the rules of all games.
        states: STATE (N,), the games before they are permuted: which dice a hold keeps follows from them.
        actions: integers (N,); legal ones become legal ones.
        permutation: as for `permute_states`.

    Returns:
        Actions, int64 (N,).

    Raises:
        ValueError: as by `permute_states`, or unless there is an action for every game.
    """
    given = np.asarray(actions)
    if given.shape != states.shape or given.dtype.kind not in "iu":
        raise ValueError(f"actions must be an integer array {states.shape}, got {given.dtype} {given.shape}")
    last = num_actions(rules.players) - 1
    if given.size and not (given.min() >= 0 and given.max() <= last):
        raise ValueError(f"actions must be from 0 to {last}, got {given.min()} to {given.max()}")
    numbers = _action_numbers(rules, states, _checked(rules, states, permutation))
    return np.take_along_axis(numbers, given[:, None].astype(np.int64), 1)[:, 0]


def permute_masks(rules: Rules, states: States, masks: ArrayLike, permutation: ArrayLike) -> NDArray[Any]:
    """Return action masks, or other numbers for each action such as probabilities, as they are in permuted games.

    Args:
        rules: the rules of all games.
        states: STATE (N,), the games before they are permuted.
        masks: any type (N, A).
        permutation: as for `permute_states`.

    Returns:
        The same type (N, A).

    Raises:
        ValueError: as by `permute_states`, or for another shape.
    """
    given = _rows("masks", masks, states.shape, num_actions(rules.players))
    permuted = np.empty_like(given)
    numbers = _action_numbers(rules, states, _checked(rules, states, permutation))
    np.put_along_axis(permuted, numbers, given, 1)
    return permuted


def permute_observations(
    rules: Rules, observations: ArrayLike, permutation: ArrayLike, encoding: str = "one_hot"
) -> NDArray[Any]:
    """Return what the same seats see of permuted games.

    Args:
        rules: the rules of all games.
        observations: any type (N, D).
        permutation: as for `permute_states`. Whether it breaks rules cannot be seen here.
        encoding: of the observations.

    Returns:
        The same type (N, D).

    Raises:
        ValueError: for another shape, an unknown encoding, or a permutation that is none.
    """
    parts = layout(rules, check_choice("encoding", encoding, ENCODINGS))
    games, size = np.shape(observations)[:1], max(part.stop for part in parts.values())
    permuted = _rows("observations", observations, games, size).copy()
    moved_to = _permutations(permutation, len(permuted))
    if encoding == "tokens":
        width = token_width(rules)
        _permute_tokens(rules, permuted.reshape(len(permuted), size // width, width), moved_to)
        return permuted

    def move(name: str, places: NDArray[np.int64] = moved_to, seats: int = 1) -> None:
        part = permuted[:, parts[name]]
        items = places.shape[1]
        by_item = part.reshape(len(part), seats, items, part.shape[1] // (seats * items))
        part[:] = _moved(by_item, places, 2).reshape(part.shape)

    move("dice", _faces(moved_to))
    if encoding == "features":
        for name in ("pieces", "rivals", "free", "goals", *(["home"] if rules.immunity else [])):
            move(name)
        return permuted
    move("pieces", seats=rules.players)
    move("dead")
    if rules.immunity and encoding == "one_hot":
        move("colors", seats=rules.players)
    elif rules.immunity:
        permuted[:, parts["colors"]] = _recolored(permuted[:, parts["colors"]], moved_to)
    return permuted


def _permute_tokens(rules: Rules, tokens: NDArray[Any], moved_to: NDArray[np.int64]) -> None:
    """Permute observations as tokens (N, T, width) in place."""
    dice, paths, pieces = (
        tokens[:, 1 : 1 + DICE],
        tokens[:, 1 + DICE : 1 + DICE + PATHS],
        tokens[:, 1 + DICE + PATHS :],
    )
    dice[:, :, 1] = np.sort(_symbols(dice[:, :, 1], moved_to), 1)
    paths[:, :, 2:] = _moved(paths[:, :, 2:], moved_to, 1)
    by_seat = pieces.reshape(len(tokens), rules.players, PATHS, tokens.shape[2])
    by_seat[..., 2] = _moved(by_seat[..., 2], moved_to, 2)
    if rules.immunity:
        pieces[:, :, 4] = _recolored(pieces[:, :, 4], moved_to)


def rotate_seats(rules: Rules, states: States, by: int) -> States:
    """Return the games with every player, its pieces, colour and power, some seats on.

    Args:
        rules: the rules of all games.
        states: STATE (N,); it stays as it is.
        by: seats; what seat k had seat `(k + by) % players` has then.

    Returns:
        STATE (N,). The games keep their random streams, so that they go on alike with the same actions.

    Raises:
        ValueError: for records that are no games of the rules, or a `by` that is no integer.
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
    """Return a permutation for each game, int64 (N, 5)."""
    given = np.asarray(permutation)
    if given.shape not in ((PATHS,), (games, PATHS)) or given.dtype.kind not in "iu":
        raise ValueError(
            f"permutation must be an integer array ({PATHS},) or ({games}, {PATHS}), got {permutation!r}"
        )
    wrong = (np.sort(given, -1) != np.arange(PATHS)).any(-1)
    if wrong.any():
        first = given.reshape(-1, PATHS)[np.argmax(wrong)]
        raise ValueError(f"permutation must have each path from 0 to {PATHS - 1} once, got {first.tolist()}")
    return np.broadcast_to(given.astype(np.int64), (games, PATHS))


def _checked(rules: Rules, states: States, permutation: ArrayLike) -> NDArray[np.int64]:
    """Return a permutation for each game, int64 (N, 5), under which the games are played alike."""
    check_states(rules, states)
    moved_to = _permutations(permutation, len(states))
    if rules.immunity and rules.powers == "own":
        colors = states["color"][:, : rules.players].astype(np.int64)
        wrong = (np.take_along_axis(moved_to, colors, 1) != colors).any(1)
        if wrong.any():
            game = int(wrong.argmax())
            played = ", ".join(ELEMENTS[color] for color in sorted(colors[game]))
            raise ValueError(
                f"game {game}: permutation must leave the paths of the colours that are played ({played}) where they "
                f"are, because these rules tie them to powers and to immunity, got {moved_to[game].tolist()}"
            )
    return moved_to


def _moved(array: NDArray[Any], places: NDArray[np.int64], axis: int) -> NDArray[Any]:
    """Return an array (N, ...) with what stands at place i of an axis at `places[game, i]`; `places` is (N, k)."""
    shape = [1] * array.ndim
    shape[0], shape[axis] = places.shape
    moved = np.empty_like(array)
    np.put_along_axis(moved, places.reshape(shape), array, axis)
    return moved


def _faces(moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where the faces of a die go, int64 (N, 6): dragons stay."""
    return np.concatenate([moved_to, np.full((len(moved_to), 1), DRAGON)], 1)


def _symbols(dice: NDArray[Any], moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the permuted faces of dice, int64 (N, 5), not yet in order; a die to be rolled is UNROLLED."""
    symbols = np.concatenate([_faces(moved_to), np.full((len(moved_to), 1), UNROLLED)], 1)
    return np.take_along_axis(symbols, dice.astype(np.int64) % (UNROLLED + 1), 1)


def _recolored(colors: NDArray[Any], moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return colours (N, k) as they change with the paths."""
    return np.take_along_axis(moved_to, colors.astype(np.int64), 1)


def _action_numbers(rules: Rules, states: States, moved_to: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number that every action has in the permuted games, int64 (N, A)."""
    # A stable sort keeps dice of one face in order, so that the smallest of equal holds stays the smallest.
    places = np.argsort(np.argsort(_symbols(states["dice"], moved_to), 1, kind="stable"), 1)
    kept = np.arange(NUM_HOLDS)[:, None] >> np.arange(DICE) & 1
    holds = (kept << places[:, None]).sum(2)
    moves = [first + moved_to for first in (Action.MOVE_ON, Action.WOOD_ON, Action.JUMP_ON)]
    others = np.broadcast_to(
        np.arange(Action.EQUILIBRIUM, Action.FIRST_SWAP),
        (len(states), Action.FIRST_SWAP - Action.EQUILIBRIUM),
    )
    count = pairs(rules.players)
    swaps = Action.FIRST_SWAP + moved_to[:, :, None] * count + np.arange(count)
    return np.concatenate([holds, *moves, others, swaps.reshape(len(states), PATHS * count)], 1)


def _rows(name: str, values: ArrayLike, games: tuple[int, ...], width: int) -> NDArray[Any]:
    """Return an array with a row for every game."""
    given = np.asarray(values)
    if given.shape != (*games, width):
        raise ValueError(f"{name} must be an array {(*games, width)}, got {given.dtype} {given.shape}")
    return given
