"""Checks of records that come from outside the package."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action, Bits
from wotd_env.core.arguments import kind_of
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import COLORS_AT, LIMITS_AT, Config, Configs, config
from wotd_env.core.dice import DICE_WORDS, LEGAL_HOLDS, NUM_ROLLS, Roll
from wotd_env.core.engine import BIT
from wotd_env.core.lanes import COLOR_AT, DICE_AT, EACH, FIVE, HIGH, MOST, PIECES_AT, above, word_at
from wotd_env.core.rules import DICE, DRAGON, MAX_PLAYERS, NUMBERED, PATHS, REROLLS, Phase, Power, Rules
from wotd_env.core.state import STATE, Flag, Int, Record, Records, States, as_state

CHECKS = (
    ("phase", "from 0 to 4"),
    ("player", "from 0 to {last_seat}"),
    ("turn", "below max_turns = {max_turns}, which only a game that is over may have reached"),
    ("dice", "five faces from 0 to 5 in ascending order or, if a roll is due, the kept ones and then -1"),
    ("rolls_left", "from 0 to 2"),
    ("rolls_left", "1 or 2 in phase KEEP, unless the seat to act holds the tiger"),
    ("pieces", "spaces from 0 to {last_space}, and 0 for seats that do not play"),
    ("dead", "bits of the spaces 1 to {spaces}"),
    ("pieces", "on spaces of their own, apart from dead pieces"),
    ("color", "the five colors in some order"),
    ("used", "from 0 to {all_seats}, a bit for each seat"),
    ("perfection", "0 or 1"),
    ("expired", "0 or, in a game that is over, 1"),
    ("players", "{players} as in the rules, or 0 if unknown"),
    ("_reserved", "0"),
)
"""Checks as pairs: a field of STATE, and the condition on this field as text for the error message."""
(
    PHASE, PLAYER, TURN, FACES, ROLLS_LEFT, TIGER, RANGE, DEAD, ALONE, COLOR, USED, PERFECTION, EXPIRED, PLAYERS,
    RESERVED,
) = range(len(CHECKS))  # fmt: skip


class IllegalActionError(ValueError):
    """The error for an illegal action. The method that raises this error leaves all games unchanged.

    Attributes:
        game: index of the game in its batch.
        action: the illegal action.
        legal: the legal actions in the game, ascending.
    """

    def __init__(self, game: int, action: int, legal: list[int], message: str) -> None:
        super().__init__(message)
        self.game, self.action, self.legal = game, action, legal

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.game, self.action, self.legal, str(self))


def contiguous(state: States) -> States:
    """Return the batch `state`, or a copy if the array is read-only or not contiguous.

    Raise ValueError if `state` is not a one-dimensional array of STATE.
    """
    # Compare with `!=`, not `is not`: the dtype of a batch from a file equals STATE but is another object.
    if isinstance(state, np.ndarray):
        state = as_state(state)
    if not isinstance(state, np.ndarray) or state.dtype != STATE or state.ndim != 1:
        raise ValueError(f"state must be a one-dimensional array of wotd_env.STATE, got {kind_of(state)}")
    return state if state.flags.carray else np.array(state, STATE)


def check_one(state: States) -> None:
    """Raise ValueError unless a batch contains exactly one game."""
    if len(contiguous(state)) != 1:
        raise ValueError(f"state must be one game, STATE (1,), got {len(state)}")


def check_states(rules: Rules, states: States) -> None:
    """Raise ValueError if a record is invalid under `rules`. The error names the first invalid record and field."""
    work = contiguous(states)
    if (game := first_fault(work, config(rules, True))) >= 0:
        raise describe_fault(rules, work, game)


def describe_fault(rules: Rules, states: NDArray[np.void], game: Int) -> ValueError:
    """Return the error for the invalid record `states[game]`."""
    one = as_state(states[game : game + 1]).copy()
    failed = int(faults(one[0], config(rules, True)[0]))
    field, words = CHECKS[(failed & -failed).bit_length() - 1]
    words = words.format(
        players=rules.players,
        last_seat=rules.players - 1,
        max_turns=rules.max_turns,
        spaces=rules.spaces,
        last_space=rules.spaces + NUMBERED,
        all_seats=(1 << rules.players) - 1,
    )
    return ValueError(f"game {game}: {field} must be {words}, got {one[field][0].tolist()}; rules: {rules}")


@kernel
def first_fault(states: Records, config: Configs) -> Int:
    """Return the index of the first invalid record, or -1 if all records are valid."""
    for i in range(states.shape[0]):
        if faults(states[i], config[0]):
            return i
    return -1


FOUR = FIVE >> np.uint64(8)
BYTE = np.uint64(8)


@kernel
def faults(s: Record, rules: Config) -> Int:
    """Return the checks that a record fails, as bits: bit i is set if the record fails CHECKS[i].

    Arithmetic replaces branches that depend on the record, because a processor would mispredict them.
    """
    n = rules.players
    phase = np.int64(s.phase)
    rolls_left = np.int64(s.rolls_left)
    over = phase == Phase.OVER
    seated = (s.player >= 0) & (s.player < n)
    failed = np.int64((phase < Phase.CHANCE) | (phase > Phase.OVER)) << PHASE
    failed |= np.int64(not seated) << PLAYER
    failed |= np.int64(s.turn >= rules.max_turns + over) << TURN

    dice = word_at(s, DICE_AT) & FIVE
    if phase == Phase.CHANCE or over:
        dice, fine = _unrolled_as_dragons(s, dice, over)
        failed |= np.int64(not fine) << FACES
    ascent = ((dice >> BYTE) | HIGH) - (dice & FOUR)  # the high bit of byte i is 0 if die i + 1 < die i
    failed |= np.int64((dice | (dice + EACH * (MOST - np.uint64(DRAGON)))) & HIGH != 0) << FACES
    failed |= np.int64(ascent & HIGH & FOUR != HIGH & FOUR) << FACES
    failed |= np.int64((rolls_left < 0) | (rolls_left > REROLLS)) << ROLLS_LEFT
    tiger = engine.powers_of(s, rules, s.player * seated) >> Power.TIGER & 1
    failed |= np.int64((phase == Phase.KEEP) & (rolls_left == 0) & (tiger == 0)) << TIGER

    beyond_path = EACH * (MOST - np.uint64(rules.spaces + NUMBERED))
    outside = np.uint64(0)
    shared = np.uint64(0)
    for seat in range(n):
        pieces = word_at(s, PIECES_AT + PATHS * seat) & FIVE
        outside |= (pieces | (pieces + beyond_path)) & HIGH
        on_board = pieces + EACH * MOST
        for other in range(seat):
            shared |= on_board & ~((pieces ^ (word_at(s, PIECES_AT + PATHS * other) & FIVE)) + EACH * MOST)
    for seat in range(n, MAX_PLAYERS):
        outside |= word_at(s, PIECES_AT + PATHS * seat) & FIVE
    failed |= np.int64(outside != 0) << RANGE
    failed |= np.int64(shared & HIGH != 0) << ALONE
    if engine.has_dead_pieces(s):
        failed |= _dead_pieces(s, rules)

    colors = np.int64(0)
    for seat in range(MAX_PLAYERS):
        colors |= np.int64(1) << (s.color[seat] & 31)
        colors |= np.int64(s.color[seat] & -32)  # a color outside 0 to 31 sets a bit above bit 4
    failed |= np.int64(colors != (1 << MAX_PLAYERS) - 1) << COLOR
    failed |= np.int64(s.used >> n != 0) << USED
    failed |= np.int64(s.perfection > 1) << PERFECTION
    failed |= np.int64(s.expired > over) << EXPIRED
    failed |= np.int64((s.players != 0) & (s.players != n)) << PLAYERS
    failed |= np.int64(s._reserved[0] | s._reserved[1] != 0) << RESERVED
    return failed


@inlined
def approves(s: Record, rules: Config, roll: Roll, action: Int) -> Flag:
    """Return whether a quick check shows that a record passes all CHECKS and that the action is legal.

    The quick check rejects some valid records and legal actions. So if `approves` returns False, call `faults` and
    `engine.legal`, which take much longer.
    """
    wrong = word_at(s, DICE_AT) & FIVE ^ DICE_WORDS[roll]
    wrong |= np.uint64(s.players) ^ np.uint64(rules.players)
    wrong |= (word_at(s, COLOR_AT) ^ word_at(rules, COLORS_AT)) & FIVE
    for seat in range(1, MAX_PLAYERS):
        if seat == rules.players:
            break
        pieces = word_at(s, PIECES_AT + PATHS * seat) & FIVE
        on_board = pieces + EACH * MOST
        for other in range(seat):
            same = ~((pieces ^ word_at(s, PIECES_AT + PATHS * other) & FIVE) + EACH * MOST)
            wrong |= on_board & same & HIGH
    if (
        above(s, rules, LIMITS_AT)
        | (wrong != 0)
        | (s.turn >= rules.max_turns)
        | (s.rolls_left < (s.phase == Phase.KEEP))
        | (s.phase != Phase.KEEP + (action > Action.STOP_ROLLING))
        | (roll >= NUM_ROLLS)
        | (action < 0)
        | (action > 63)
    ):
        return False
    # The action fits the phase, so one test of the union of all legal holds and moves suffices. A branch on the phase
    # would be mispredicted. Arithmetic with the phase is no alternative, because the compiler can turn it into such a
    # branch.
    moves = engine.power_free_moves(engine.open_paths(s, rules, roll), roll)
    return (LEGAL_HOLDS[roll] | moves) >> np.uint64(action) & BIT != 0


@kernel
def _unrolled_as_dragons(s: Record, dice: Bits, over: bool) -> tuple[Bits, Flag]:
    """Return the dice with dragons in place of unrolled dice, and whether the unrolled dice are valid."""
    kept = 0
    while kept < DICE and s.dice[kept] != -1:
        kept += 1
    to_roll = FIVE & ~((BIT << (BYTE * np.uint64(kept))) - BIT)
    fine = (over | (kept < DICE)) & (dice & to_roll == to_roll)
    return dice & ~to_roll | EACH * np.uint64(DRAGON) & to_roll, fine


@kernel
def _dead_pieces(s: Record, rules: Config) -> Int:
    """Return the checks that the dead pieces fail (R15), as bits."""
    plain = (np.int64(2) << rules.spaces) - 2
    failed = np.int64(0)
    for path in range(PATHS):
        dead = np.int64(s.dead[path])
        failed |= np.int64(dead & ~plain != 0) << DEAD
        for seat in range(rules.players):
            failed |= np.int64(dead >> (s.pieces[seat, path] & 15) & 1) << ALONE
    return failed
