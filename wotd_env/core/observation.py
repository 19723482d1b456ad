"""Observations (vectors of small integers, in four encodings) and action masks."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action, Bits
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config
from wotd_env.core.dice import COUNTS, FACES, KEEPS, UNROLLED, Keep
from wotd_env.core.engine import BIT, has_dead_pieces, powers_of
from wotd_env.core.lanes import DEFAULT_SPACES, PIECES_AT, copy_16, put_bits, put_pieces, word_at
from wotd_env.core.rules import DICE, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Rules
from wotd_env.core.state import Int, Record

ENCODINGS = ("one_hot", "compact", "tokens", "features")
"""Names of the encodings; docs/reference/encodings.md describes their parts."""
ONE_HOT, COMPACT, TOKENS, _ = range(len(ENCODINGS))

DEADLINE = 127  # the entry `deadline` counts the last 127 turns before the turn limit

PHASES = len(Phase)
DICE_BLOCK = FACES * (DICE + 1)

ONE_HOT_DICE = np.array(
    [sum(1 << face * (DICE + 1) + count for face, count in enumerate(counts)) for counts in COUNTS.tolist()],
    np.uint64,
)
"""uint64 (462,): the one-hot block `dice` of every keep. Bit 6 * face + count is 1 if `count` dice show the face."""

SPACES = np.eye(16, dtype=np.int8)
"""int8 (16, 16): SPACES[s] is the one-hot block of a piece on space s, padded with zeros."""

GAME_TOKEN, DIE_TOKEN, PATH_TOKEN, PIECE_TOKEN = range(4)
Entries = NDArray[np.int8]  # an observation or an action mask, or a row of them for each game

TOKEN_WIDTH = 6  # a token has max(TOKEN_WIDTH, 2 + spaces) entries


class Part(NamedTuple):
    """A part of an observation: an array that is flattened into the observation vector."""

    highest: NDArray[np.int8]  # int8 (k,): highest value of each of the k entries
    axes: dict[str, int]  # lengths of the axes, by name; on the axis "seat", index 0 is the observer
    names: dict[int, str]  # e.g. {1: "face"}: entries [..., 1] are faces; other names: "path", "color"


def parts(rules: Rules, encoding: str) -> dict[str, Part]:
    """Return the parts of an observation by name, in the order of the vector."""
    n, last, colors = rules.players, rules.spaces + NUMBERED, MAX_PLAYERS
    if encoding in ("one_hot", "compact"):
        both = {
            "pieces": (_part(1, seat=n, path=PATHS, space=last + 1), _part(last, seat=n, path=PATHS)),
            "dead": (_part(1, path=PATHS, space=rules.spaces), _part(1, path=PATHS, space=rules.spaces)),
            "dice": (_part(1, face=FACES, count=DICE + 1), _part(DICE, face=FACES)),
            "rolls_left": (_part(1, number=REROLLS + 1), _part(REROLLS)),
            "phase": (_part(1, phase=PHASES), _part(PHASES - 1)),
            "player": (_part(1, seat=n), _part(n - 1)),
            "powers": (_part(1, seat=n, power=PATHS), _part(1, seat=n)),
            "perfection": (_part(1), _part(1)),
            "colors": (_part(1, seat=n, color=colors), _part(colors - 1, {0: "color"}, seat=n, number=1)),
            "deadline": (_part(DEADLINE), _part(DEADLINE)),
        }
        return {name: pair[encoding == "compact"] for name, pair in both.items()}
    if encoding == "features":
        features = {
            "pieces": _part(last, path=PATHS),
            "rivals": _part(last, path=PATHS),
            "free": _part(DICE, path=PATHS),
            "goals": _part(last, path=PATHS),
            "dice": _part(DICE, face=FACES),
            "rolls_left": _part(REROLLS),
            "phase": _part(1, phase=PHASES),
            "player": _part(1, seat=n),
            "perfection": _part(1),
            "deadline": _part(DEADLINE),
            "points": _part(PATHS * NUMBERED, seat=n),
            "numbered": _part(PATHS, seat=n),
            "progress": _part(PATHS * last, seat=n),
        }
        if rules.powers != "none":
            features |= {"powers": _part(1, seat=n), "power": _part(1, power=PATHS)}
        return features | ({"home": _part(1, path=PATHS)} if rules.immunity else {})
    dead = [1] * rules.spaces
    piece = PIECE_TOKEN, PATHS - 1, last, n - 1, colors - 1, 1
    return {
        "game": _tokens(rules, (GAME_TOKEN, PHASES - 1, REROLLS, n - 1, 1, DEADLINE), {}),
        "dice": _tokens(rules, (DIE_TOKEN, UNROLLED), {1: "face"}, die=DICE),
        "paths": _tokens(rules, (PATH_TOKEN, PATHS - 1, *dead), {1: "path"}, path=PATHS),
        "pieces": _tokens(rules, piece, {1: "path", 4: "color"}, seat=n, path=PATHS),
    }


def _part(highest: int, names: dict[int, str] | None = None, **axes: int) -> Part:
    return Part(np.full(math.prod(axes.values()), highest, np.int8), axes, names or {})


def _tokens(rules: Rules, highest: tuple[int, ...], names: dict[int, str], **axes: int) -> Part:
    width = max(TOKEN_WIDTH, 2 + rules.spaces)
    token = np.array([*highest, *[0] * (width - len(highest))], np.int8)
    return Part(np.tile(token, math.prod(axes.values())), {**axes, "number": width}, names)


def layout(rules: Rules, encoding: str = "one_hot") -> dict[str, slice]:
    """Return the slice of each part in the observation vector, by name, in the order of the vector."""
    sizes = {name: len(part.highest) for name, part in parts(rules, encoding).items()}
    ends = np.cumsum(list(sizes.values())).tolist()
    return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}


@inlined
def encode_one_hot(s: Record, rules: Config, observer: Int, keep: Keep, row: Entries) -> None:
    """Write the one-hot observation of a seat to `row`, int8 (D,)."""
    # Constant sizes make the compiled code faster.
    if rules.players == 2 and rules.spaces == 7:
        write_one_hot(s, rules, observer, keep, row, (np.int64(2), np.int64(7)))
    elif rules.players == 5 and rules.spaces == 7:
        write_one_hot(s, rules, observer, keep, row, (np.int64(5), np.int64(7)))
    else:
        write_one_hot(s, rules, observer, keep, row, (rules.players, rules.spaces))


@inlined
def write_one_hot(
    s: Record, rules: Config, observer: Int, keep: Keep, row: Entries, sizes: tuple[Int, Int]
) -> None:
    """Write the one-hot observation; `sizes` is a pair: the number of seats and the number of plain spaces."""
    n, spaces = sizes
    # Each write fills 16 or 32 entries, which can be more than the block needs. Blocks are written in ascending order,
    # so the next write replaces the excess entries.
    block = spaces + NUMBERED + 1
    at = np.int64(0)
    seat = observer
    for _ in range(n):
        pieces = word_at(s, PIECES_AT + PATHS * seat)
        if spaces == DEFAULT_SPACES:
            put_pieces(row, at, pieces)
            at += PATHS * block
        else:
            for path in range(PATHS):
                copy_16(row, at, SPACES, np.int64(pieces >> np.uint64(8 * path) & np.uint64(15)))
                at += block
        seat = next_seat(seat, n)
    put_bits(row, at, np.uint32(0))
    put_bits(row, at + 32, np.uint32(0))
    if has_dead_pieces(s):
        dead = np.uint64(0)
        for path in range(PATHS):
            dead |= np.uint64(s.dead[path] >> 1) << np.uint64(path * spaces)
        put_bits(row, at, np.uint32(dead))
        put_bits(row, at + 32, np.uint32(dead >> np.uint64(32)))
    at += PATHS * spaces
    dice = ONE_HOT_DICE[keep]
    put_bits(row, at, np.uint32(dice))
    put_bits(row, at + 32, np.uint16(dice >> np.uint64(32)))
    at += DICE_BLOCK

    relative = s.player - observer
    # The blocks from `rolls_left` to `colors` fit into 64 bits: they have 9 + 11 * n bits, 64 for five players.
    rest = BIT << np.uint64(s.rolls_left)
    rest |= BIT << np.uint64(REROLLS + 1 + s.phase)
    powers = REROLLS + 1 + PHASES + n
    rest |= BIT << np.uint64(powers - n + relative + n * (relative < 0))
    colors = powers + n * PATHS + 1
    rest |= np.uint64(s.perfection) << np.uint64(colors - 1)
    seat = observer
    for _ in range(n):
        rest |= np.uint64(powers_of(s, rules, seat)) << np.uint64(powers)
        rest |= BIT << np.uint64(colors + s.color[seat])
        powers += PATHS
        colors += PATHS
        seat = next_seat(seat, n)
    put_bits(row, at, np.uint32(rest))
    last = max(colors - 32, 0)
    put_bits(row, at + last, np.uint32(rest >> np.uint64(last)))
    row[at + colors] = deadline(s, rules)


@kernel
def encode_integers(s: Record, rules: Config, observer: Int, keep: Keep, row: Entries) -> None:
    """Write the observation of a seat to `row`, int8 (D,), in an encoding other than one-hot."""
    if rules.encoding == COMPACT:
        encode_compact(s, rules, observer, keep, row)
    elif rules.encoding == TOKENS:
        encode_tokens(s, rules, observer, keep, row)
    else:
        encode_features(s, rules, observer, keep, row)


@kernel
def encode_compact(s: Record, rules: Config, observer: Int, keep: Keep, row: Entries) -> None:
    """Write an observation in the encoding "compact"."""
    n = rules.players
    dead = n * PATHS
    dice = dead + PATHS * rules.spaces
    single = dice + FACES
    powers = single + 3
    colors = powers + n + 1
    seat = observer
    for relative in range(n):
        for path in range(PATHS):
            row[relative * PATHS + path] = s.pieces[seat, path]
        row[powers + relative] = powers_of(s, rules, seat) != 0
        row[colors + relative] = s.color[seat]
        seat = next_seat(seat, n)
    for path in range(PATHS):
        for space in range(rules.spaces):
            row[dead + path * rules.spaces + space] = s.dead[path] >> (space + 1) & 1
    for face in range(FACES):
        row[dice + face] = COUNTS[keep, face]
    row[single] = s.rolls_left
    row[single + 1] = s.phase
    row[single + 2] = (s.player - observer + n) % n
    row[powers + n] = s.perfection
    row[colors + n] = deadline(s, rules)


@kernel
def encode_tokens(s: Record, rules: Config, observer: Int, keep: Keep, row: Entries) -> None:
    """Write an observation in the encoding "tokens"."""
    n = rules.players
    width = max(TOKEN_WIDTH, 2 + rules.spaces)
    row[:] = 0
    row[0] = GAME_TOKEN
    row[1] = s.phase
    row[2] = s.rolls_left
    row[3] = (s.player - observer + n) % n
    row[4] = s.perfection
    row[5] = deadline(s, rules)
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
        seat = next_seat(seat, n)


@kernel
def encode_features(s: Record, rules: Config, observer: Int, keep: Keep, row: Entries) -> None:
    """Write an observation in the encoding "features"."""
    n = rules.players
    row[:] = 0
    acts = observer == s.player and s.phase in (Phase.KEEP, Phase.MOVE)
    for path in range(PATHS):
        space = np.int64(s.pieces[observer, path])
        row[path] = space
        rival = 0
        for other in range(n):
            if other != observer:
                rival = max(rival, s.pieces[other, path])
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
    row[at + 1] = deadline(s, rules)
    at += 2
    seat = observer
    for relative in range(n):
        progress = 0
        for path in range(PATHS):
            progress += s.pieces[seat, path]
        row[at + relative] = engine.score(s, rules, seat)
        row[at + n + relative] = engine.numbered(s, rules, seat)
        row[at + 2 * n + relative] = progress
        seat = next_seat(seat, n)
    at += 3 * n
    if rules.powers:
        seat = observer
        for relative in range(n):
            row[at + relative] = powers_of(s, rules, seat) != 0
            seat = next_seat(seat, n)
        for power in range(PATHS):
            row[at + n + power] = powers_of(s, rules, observer) >> power & 1
        at += n + PATHS
    if rules.immunity:
        row[at + s.color[observer]] = 1


@inlined
def deadline(s: Record, rules: Config) -> Int:
    """Return `DEADLINE` minus the turns left before the turn limit (R16), at least 0."""
    return max(0, DEADLINE - (rules.max_turns - s.turn))


@inlined
def next_seat(seat: Int, players: Int) -> Int:
    """Return the next seat in turn order.

    The operator `%` would take more time than the rest of a caller's loop.
    """
    return seat + 1 if seat + 1 < players else 0


@inlined
def write_mask(actions: Bits, swaps: Bits, row: Entries) -> None:
    """Write the action mask, int8 (A,), from the two sets that `engine.legal` returns."""
    at, last = np.int64(0), np.int64(row.shape[0] - 32)
    while True:
        if at < Action.FIRST_SWAP:
            bits = actions >> np.uint64(at) | swaps << np.uint64(Action.FIRST_SWAP - at)
        else:
            bits = swaps >> np.uint64(at - Action.FIRST_SWAP)
        put_bits(row, at, np.uint32(bits))
        if at == last:
            break
        at = min(at + 32, last)
