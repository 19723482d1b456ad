"""The encodings of a game as a vector of small integers, seen from one seat, and of its legal actions as a mask."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action, Bits
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config
from wotd_env.core.dice import COUNTS, FACES, KEEPS, NUM_KEEPS, UNROLLED, Roll
from wotd_env.core.engine import powers_of
from wotd_env.core.rules import DICE, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules
from wotd_env.core.state import Record

ENCODINGS = ("one_hot", "compact", "tokens", "features")
"""Names of the encodings; `tools/tables.py` says in words what their parts are."""
ONE_HOT, COMPACT, TOKENS, FEATURES = range(len(ENCODINGS))

DEADLINE = 127
"""Turns before truncation from which the observation counts down."""

PHASES = len(Phase)
DICE_BLOCK = FACES * (DICE + 1)

ONE_HOT_DICE = (COUNTS[:, :, None] == np.arange(DICE + 1)).reshape(NUM_KEEPS, DICE_BLOCK).astype(np.int8)
"""int8 (462, 36): [face, how many dice show it] of every roll and keep."""

BYTES = ((np.arange(256)[:, None] >> np.arange(8)) & 1).astype(np.int8)
"""int8 (256, 8): the bits of a byte, lowest first."""


GAME_TOKEN, DIE_TOKEN, PATH_TOKEN, PIECE_TOKEN = range(4)
TOKEN_WIDTH = 6


def token_width(rules: Rules) -> int:
    """Return the numbers of a token: those of a piece, or as many as a path needs for its plain spaces."""
    return max(TOKEN_WIDTH, 2 + rules.spaces)


def parts(rules: Rules, encoding: str) -> dict[str, NDArray[np.int8]]:
    """Return the parts of an observation in order, each with the highest value of every number in it, int8 (k,).

    Seats are relative to the observer: 0 = the observer, 1 = the next seat, and so on.
    """
    n, last_space = rules.players, rules.spaces + NUMBERED
    if encoding == "one_hot":
        return {
            "pieces": _up_to(1, n * PATHS * (last_space + 1)),  # [seat, path, space] one-hot
            "dead": _up_to(1, PATHS * rules.spaces),  # [path, plain space - 1]
            "dice": _up_to(
                1, DICE_BLOCK
            ),  # [face, how many dice show it] one-hot; dice still to be rolled show none
            "rolls_left": _up_to(1, REROLLS + 1),  # one-hot
            "phase": _up_to(1, PHASES),  # one-hot
            "player": _up_to(1, n),  # [seat] the one to act, one-hot
            "powers": _up_to(1, n * PATHS),  # [seat, colour of the power] still held
            "perfection": _up_to(1),  # an extra turn is earned
            "colors": _up_to(1, n * MAX_PLAYERS),  # [seat, colour] one-hot
            "deadline": _up_to(
                DEADLINE
            ),  # 127 minus the turns left before truncation, 0 while there are more
        }
    if encoding == "compact":
        return {
            "pieces": _up_to(last_space, n * PATHS),  # [seat, path] space
            "dead": _up_to(1, PATHS * rules.spaces),  # [path, plain space - 1]
            "dice": _up_to(DICE, FACES),  # [face] how many dice show it
            "rolls_left": _up_to(REROLLS),
            "phase": _up_to(PHASES - 1),
            "player": _up_to(n - 1),  # the seat to act
            "powers": _up_to(1, n),  # [seat] it has not used its power yet
            "perfection": _up_to(1),
            "colors": _up_to(MAX_PLAYERS - 1, n),  # [seat]
            "deadline": _up_to(DEADLINE),
        }
    if encoding == "features":
        features = {
            "pieces": _up_to(last_space, PATHS),  # [path] the observer's
            "rivals": _up_to(last_space, PATHS),  # [path] the furthest of the other seats
            "free": _up_to(DICE, PATHS),  # [path] of the next five spaces
            "goals": _up_to(last_space, PATHS),  # [path] where the dice take the observer's piece
            "dice": _up_to(DICE, FACES),  # [face] how many dice show it
            "rolls_left": _up_to(REROLLS),
            "phase": _up_to(1, PHASES),  # one-hot
            "player": _up_to(1, n),  # [seat] the one to act, one-hot
            "perfection": _up_to(1),
            "deadline": _up_to(DEADLINE),
            "points": _up_to(PATHS * NUMBERED, n),  # [seat]
            "numbered": _up_to(PATHS, n),  # [seat] pieces on numbered spaces
            "progress": _up_to(PATHS * last_space, n),  # [seat] spaces in all
        }
        if rules.powers != "none":
            features["powers"] = _up_to(1, n)  # [seat] it has not used its power yet
            features["power"] = _up_to(1, PATHS)  # [colour of the power] the observer still holds it
        if rules.immunity:
            features["home"] = _up_to(1, PATHS)  # [path] of the observer's colour
        return features
    width = token_width(rules)
    dead = [1] * rules.spaces  # [plain space - 1]
    return {
        "game": _token(width, GAME_TOKEN, PHASES - 1, REROLLS, n - 1, 1, DEADLINE),
        "dice": np.tile(_token(width, DIE_TOKEN, UNROLLED), DICE),
        "paths": np.tile(_token(width, PATH_TOKEN, PATHS - 1, *dead), PATHS),
        "pieces": np.tile(
            _token(width, PIECE_TOKEN, PATHS - 1, last_space, n - 1, MAX_PLAYERS - 1, 1), n * PATHS
        ),
    }


def _up_to(highest: int, count: int = 1) -> NDArray[np.int8]:
    return np.full(count, highest, np.int8)


def _token(width: int, *highest: int) -> NDArray[np.int8]:
    return np.array([*highest, *[0] * (width - len(highest))], np.int8)


def layout(rules: Rules, encoding: str = "one_hot") -> dict[str, slice]:
    """Return the place of every part of the observation, in order."""
    sizes = {name: len(part) for name, part in parts(rules, encoding).items()}
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


@inlined
def encode_one_hot(s: Record, rules: Config, observer: Any, keep: Roll, row: Any) -> None:
    """Write the observation of a seat, int8 (D,), as zeros and ones; `keep` is what `engine.shown` returns."""
    n = rules.players
    spaces = np.uint64(rules.spaces)
    block = spaces + np.uint64(NUMBERED + 1)
    row[:] = 0
    at = np.uint64(0)
    seat = observer
    for _ in range(n):
        for path in range(PATHS):
            row[at + np.uint64(s.pieces[seat, path])] = 1
            at += block
        seat = after(seat, n)
    for path in range(PATHS):
        dead = s.dead[path] >> 1
        if dead:
            for space in range(rules.spaces):
                row[at + np.uint64(space)] = dead >> space & 1
        at += spaces
    for i in range(DICE_BLOCK):
        row[at + np.uint64(i)] = ONE_HOT_DICE[keep, i]
    at += np.uint64(DICE_BLOCK)
    row[at + np.uint64(s.rolls_left)] = 1
    at += np.uint64(REROLLS + 1)
    row[at + np.uint64(s.phase)] = 1
    at += np.uint64(PHASES)
    relative = s.player - observer
    row[at + np.uint64(relative + n * (relative < 0))] = 1
    at += np.uint64(n)
    if rules.powers:
        seat = observer
        for relative in range(n):
            held = powers_of(s, rules, seat)
            for power in range(PATHS):
                row[at + np.uint64(relative * PATHS + power)] = held >> power & 1
            seat = after(seat, n)
    at += np.uint64(n * PATHS)
    row[at] = s.perfection
    at += np.uint64(1)
    seat = observer
    for _ in range(n):
        row[at + np.uint64(s.color[seat])] = 1
        at += np.uint64(MAX_PLAYERS)
        seat = after(seat, n)
    row[at] = max(0, DEADLINE - (rules.max_turns - s.turn))


@kernel
def encode_integers(s: Record, rules: Config, observer: Any, keep: Roll, row: Any) -> None:
    """Write the observation of a seat, int8 (D,), in the other encodings."""
    if rules.encoding == COMPACT:
        encode_compact(s, rules, observer, keep, row)
    elif rules.encoding == TOKENS:
        encode_tokens(s, rules, observer, keep, row)
    else:
        encode_features(s, rules, observer, keep, row)


@kernel
def encode_compact(s: Record, rules: Config, observer: Any, keep: Roll, row: Any) -> None:
    """Write the observation of a seat, a number for each thing."""
    n = rules.players
    dead = n * PATHS
    dice = dead + PATHS * rules.spaces
    single = dice + FACES  # rolls left, phase, seat to act
    powers = single + 3
    colors = powers + n + 1
    seat = observer
    for relative in range(n):
        for path in range(PATHS):
            row[relative * PATHS + path] = s.pieces[seat, path]
        row[powers + relative] = powers_of(s, rules, seat) != 0
        row[colors + relative] = s.color[seat]
        seat = after(seat, n)
    for path in range(PATHS):
        for space in range(rules.spaces):
            row[dead + path * rules.spaces + space] = s.dead[path] >> (space + 1) & 1
    for face in range(FACES):
        row[dice + face] = COUNTS[keep, face]
    row[single] = s.rolls_left
    row[single + 1] = s.phase
    row[single + 2] = (s.player - observer + n) % n
    row[powers + n] = s.perfection
    row[colors + n] = max(0, DEADLINE - (rules.max_turns - s.turn))


@kernel
def encode_tokens(s: Record, rules: Config, observer: Any, keep: Roll, row: Any) -> None:
    """Write the observation of a seat as tokens of equal width: the game, its dice, its paths, its pieces."""
    n = rules.players
    width = max(TOKEN_WIDTH, 2 + rules.spaces)
    row[:] = 0
    row[0] = GAME_TOKEN
    row[1] = s.phase
    row[2] = s.rolls_left
    row[3] = (s.player - observer + n) % n
    row[4] = s.perfection
    row[5] = max(0, DEADLINE - (rules.max_turns - s.turn))
    at = width
    for die in range(DICE):
        row[at] = DIE_TOKEN
        row[at + 1] = KEEPS[keep, die]
        at += width
    for path in range(PATHS):
        row[at] = PATH_TOKEN
        row[at + 1] = path
        for space in range(rules.spaces):
            row[at + 2 + space] = s.dead[path] >> (space + 1) & 1
        at += width
    seat = observer
    for relative in range(n):
        for path in range(PATHS):
            row[at] = PIECE_TOKEN
            row[at + 1] = path
            row[at + 2] = s.pieces[seat, path]
            row[at + 3] = relative
            row[at + 4] = s.color[seat]
            row[at + 5] = powers_of(s, rules, seat) != 0
            at += width
        seat = after(seat, n)


@kernel
def encode_features(s: Record, rules: Config, observer: Any, keep: Roll, row: Any) -> None:
    """Write the observation of a seat as what a person would look at."""
    n = rules.players
    row[:] = 0
    acts = observer == s.player and s.phase in (Phase.KEEP, Phase.MOVE)
    for path in range(PATHS):
        space = np.int64(s.pieces[observer, path])
        row[path] = space
        rival = 0
        for seat in range(n):
            if seat != observer:
                rival = max(rival, s.pieces[seat, path])
        row[PATHS + path] = rival
        if space <= rules.spaces:
            ahead = engine.occupied(s, rules, path) >> np.uint64(space + 1)
            free = 0
            for i in range(DICE):
                free += ahead >> np.uint64(i) & np.uint64(1) == 0
            row[2 * PATHS + path] = free
        if acts:
            row[3 * PATHS + path] = engine.destination(s, rules, path, np.int64(COUNTS[keep, path]))
    at = 4 * PATHS
    for face in range(FACES):
        row[at + face] = COUNTS[keep, face]
    at += FACES
    row[at] = s.rolls_left
    row[at + 1 + s.phase] = 1
    at += 1 + PHASES
    row[at + (s.player - observer + n) % n] = 1
    at += n
    row[at] = s.perfection
    row[at + 1] = max(0, DEADLINE - (rules.max_turns - s.turn))
    at += 2
    seat = observer
    for relative in range(n):
        numbered = 0
        progress = 0
        for path in range(PATHS):
            numbered += s.pieces[seat, path] > rules.spaces
            progress += s.pieces[seat, path]
        row[at + relative] = engine.score(s, rules, seat)
        row[at + n + relative] = numbered
        row[at + 2 * n + relative] = progress
        seat = after(seat, n)
    at += 3 * n
    if rules.powers:
        seat = observer
        for relative in range(n):
            row[at + relative] = powers_of(s, rules, seat) != 0
            seat = after(seat, n)
        for power in range(PATHS):
            row[at + n + power] = powers_of(s, rules, observer) >> power & 1
        at += n + PATHS
    if rules.immunity:
        row[at + s.color[observer]] = 1


@inlined
def after(seat: Any, n: Any) -> Any:
    """Return the next seat; a division would cost more than the rest."""
    return seat + 1 if seat + 1 < n else 0


@inlined
def write_mask(actions: Bits, swaps: Bits, row: Any) -> None:
    """Write the legal actions, int8 (A,), from their bits."""
    for i in range(7):
        byte = (actions >> np.uint64(8 * i)) & np.uint64(255)
        for j in range(8):
            row[8 * i + j] = BYTES[byte, j]
    for k in range(row.shape[0] - Action.FIRST_SWAP):
        row[Action.FIRST_SWAP + k] = (swaps >> np.uint64(k)) & np.uint64(1)
