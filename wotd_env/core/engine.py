"""The rules of Way of the Dragon, as compiled functions. Each function works on one game, a record of `STATE`.

The phases of a game, and the functions that lead to them:

    new_game -> CHANCE -- roll --> KEEP, MOVE -- decide --> CHANCE, MOVE, EXTRA, OVER

The rulings, with the functions that implement them (docs/reference/rulings.md has the full text):

    R1   who starts: most dragons in a roll-off, the loser of the last game, or a given seat    new_game, roll_off
    R2   five dice, then up to two re-rolls of any of them; keeping all stops the rolling       set_roll, hold
    R3   one piece moves a space per die of its element; only the destination must be empty     destination
    R4   no move goes beyond the end of a path                                                  destination
    R5   a player who can move must move, swap or use a power; otherwise passing is allowed     legal_moves
    R6   four or five dragons: swap two pieces on one path instead of moving                    legal_swaps, swap
    R7   five different elements: every movable piece of the player advances one space          legal_moves, advance_all
    R8   a move by five dice of one element earns one extra turn                                move, extra
    R9   the game ends when a player has five pieces on numbered spaces                         finished
    R10  most points win, then most pieces on numbered spaces; remaining ties are shared        standing, rewards
    R11  each power can be used once a game                                                     powers_of, use_power
    R12  the powers: fear, rebirth, eye of the tiger, the dragon, anxiety                       power_moves, jump, extra
    R13  the power of the dragon: dragons count as one element, also for R7 and R8              power_moves, move
    R14  immunity: a piece on the path of its own color cannot be swapped                       legal_swaps
    R15  dead pieces block plain spaces, never five in a row                                    place_dead_pieces
    R16  a game ends after max_turns turns, with no winner                                       end_turn, rewards

Functions change the record `s` in place. They trust that records are valid and actions are legal;
`wotd_env.core.game` checks records and actions that come from outside.

Two sets of bits represent the legal actions. Bit a of the first set stands for action a, which is below FIRST_SWAP. Bit
k of the second set stands for the swap FIRST_SWAP + k.

The dice of a game form a roll or a keep, which has an index (see wotd_env.core.dice). `dice_index` computes this *index
of the dice* from the record. Functions take and return the index, so that it is computed only once.
"""

from __future__ import annotations

# isort: off
import numpy as np

from wotd_env.core.actions import MOST_ACTIONS, PAIRS, Action, Bits
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import CONFIG as CONFIG  # re-exported for users of the engine
from wotd_env.core.config import LOSER, Config
from wotd_env.core.dice import (
    COUNT_WORDS, COUNTS, DICE_WORDS, EQUILIBRIUM, HOLD_KEEP, INDEX_PARTS, LEGAL_HOLDS, MISSING, NUM_KEEPS,
    THROW_ROLL, THROW_SIZE, THROW_START, Keep, Roll,
)  # fmt: skip
from wotd_env.core.lanes import (
    DEAD_AT, DICE_AT, EACH, FIVE, HIGH, MOST, PIECES_AT, gather, set_five, trailing_zeros, word_at,
)  # fmt: skip
from wotd_env.core.rules import (
    DICE, DRAGON, MAX_PLAYERS, NUMBERED, PATHS, POWER_MODES, REROLLS, Phase, Power, reward_of as share_to_reward,
)  # fmt: skip
from wotd_env.core.state import Flag, Floats, Int, Record
from wotd_env.core.stream import below
# isort: on

NO_POWERS, OWN_POWERS = POWER_MODES.index("none"), POWER_MODES.index("own")

NOTHING_KEPT = np.uint64(NUM_KEEPS - 1)
BIT = np.uint64(1)
reward_of = inlined(share_to_reward)
ALL_ACTIONS = np.uint64((1 << Action.FIRST_SWAP) - 1)
ALL_SWAPS = ~np.uint64(0)
ALL_POWERS = (1 << len(Power)) - 1


# ------------------------------------------------------------------------------------------------------------ questions


@inlined
def dice_index(s: Record) -> Keep:
    """Return the index of the dice in the record."""
    return np.uint64(
        INDEX_PARTS[0, s.dice[0] & 7]
        + INDEX_PARTS[1, s.dice[1] & 7]
        + INDEX_PARTS[2, s.dice[2] & 7]
        + INDEX_PARTS[3, s.dice[3] & 7]
        + INDEX_PARTS[4, s.dice[4] & 7]
    )


@inlined
def powers_of(s: Record, rules: Config, seat: Int) -> Bits:
    """Return the powers that a seat can still use, as bits (R11)."""
    if rules.powers == NO_POWERS:
        return 0
    held = 1 << s.color[seat] if rules.powers == OWN_POWERS else ALL_POWERS
    return held * (1 - (s.used >> seat & 1))  # no branch, because a processor would mispredict it


@kernel
def occupied(s: Record, rules: Config, path: Int) -> Bits:
    """Return the occupied spaces of a path as bits, including spaces of dead pieces. Bit 0 has no meaning."""
    spaces = np.uint32(s.dead[path])
    for seat in range(MAX_PLAYERS):  # unused seats only set bit 0
        spaces |= np.uint32(1) << np.uint32(s.pieces[seat, path])
    return np.uint64(spaces)


@kernel
def destination(s: Record, rules: Config, path: Int, count: Int) -> Int:
    """Return the space to which `count` dice move the acting seat's piece, or 0 if this move is impossible (R3, R4)."""
    space = np.int64(s.pieces[s.player, path])
    goal = space + np.int64(count)
    blocked = occupied(s, rules, path) >> np.uint64(goal) & BIT
    # no branches, because a processor would mispredict them for random dice
    possible: bool = (count > 0) & (space <= rules.spaces) & (blocked == 0)
    return goal * possible


@kernel
def jump(s: Record, rules: Config, path: Int, count: Int) -> Int:
    """Return the first empty space beyond an occupied destination, or 0 if a jump is impossible (R12, anxiety)."""
    space = np.int64(s.pieces[s.player, path])
    if count == 0 or space > rules.spaces:
        return 0
    goal = space + np.int64(count)
    ahead = occupied(s, rules, path) >> np.uint64(goal)
    if not ahead & BIT:
        return 0
    while ahead & BIT:
        ahead >>= BIT
        goal += 1
    return goal if goal <= rules.spaces + NUMBERED else 0


@inlined
def legal(s: Record, rules: Config, keep: Keep) -> tuple[Bits, Bits]:
    """Return the legal actions and the legal swaps, as bits."""
    if s.phase == Phase.KEEP:
        return LEGAL_HOLDS[keep], np.uint64(0)
    if s.phase == Phase.MOVE:
        return legal_moves(s, rules, keep)
    if s.phase == Phase.EXTRA:
        rebirth = powers_of(s, rules, s.player) >> Power.REBIRTH & 1
        return np.uint64(
            1 << Action.END_TURN | s.perfection << Action.PERFECTION_TURN | rebirth << Action.REBIRTH_TURN
        ), np.uint64(0)
    if s.phase == Phase.OVER:
        return ALL_ACTIONS, ALL_SWAPS
    return np.uint64(0), np.uint64(0)


@kernel
def contains(actions: Bits, swaps: Bits, action: Int) -> Flag:
    """Return whether an action (any integer) is in one of the two sets that `legal` returns."""
    if action < 0:
        return False
    if action < Action.FIRST_SWAP:
        return actions >> np.uint64(action) & BIT != 0
    return action < MOST_ACTIONS and swaps >> np.uint64(action - Action.FIRST_SWAP) & BIT != 0


@kernel
def legal_moves(s: Record, rules: Config, roll: Roll) -> tuple[Bits, Bits]:
    """Return the legal actions and swaps of phase MOVE, as bits (R3, R5, R6, R7)."""
    movable = open_paths(s, rules, roll)
    moves = power_free_moves(movable, roll)
    powers = powers_of(s, rules, s.player)
    if powers:
        moves |= np.uint64(power_moves(s, rules, roll, powers, movable))
    swaps = np.uint64(0)
    if COUNTS[roll, DRAGON] >= DICE - 1:
        for path in range(PATHS):
            if COUNTS[roll, DRAGON] == DICE or COUNTS[roll, path]:
                swaps |= legal_swaps(s, rules, path)
    return moves, swaps


@inlined
def open_paths(s: Record, rules: Config, roll: Roll) -> Bits:
    """Return the paths on which the acting seat's piece can move, as bits.

    The result agrees with `destination`, but all five paths are computed at once.
    """
    counts = COUNT_WORDS[roll]
    pieces = word_at(s, PIECES_AT + PATHS * np.int64(s.player)) & FIVE
    goals = pieces + counts
    movable = (counts + EACH * MOST) & ~(pieces + EACH * (MOST - np.uint64(rules.spaces))) & HIGH
    for seat in range(MAX_PLAYERS):  # constant bound, so that LLVM unrolls the loop
        if seat == rules.players:
            break
        movable &= (goals ^ word_at(s, PIECES_AT + PATHS * seat) & FIVE) + EACH * MOST
    paths = gather(movable)
    if has_dead_pieces(s):
        for path in range(PATHS):
            goal = goals >> np.uint64(8 * path) & np.uint64(15)
            paths &= ~(np.uint64(s.dead[path] >> goal & 1) << np.uint64(path))
    return paths


@inlined
def has_dead_pieces(s: Record) -> Flag:
    """Return whether dead pieces are on the board (R15)."""
    return word_at(s, DEAD_AT) != 0 or s.dead[PATHS - 1] != 0


@inlined
def power_free_moves(movable: Bits, roll: Roll) -> Bits:
    """Return the legal actions of phase MOVE that are neither swaps nor powers, as bits (R5, R7).

    `movable` is the result of `open_paths`.
    """
    if roll == EQUILIBRIUM and movable:
        return np.uint64(1 << Action.EQUILIBRIUM)
    return movable << np.uint64(Action.MOVE_ON) | np.uint64(movable == 0) << np.uint64(Action.PASS)


@kernel
def power_moves(s: Record, rules: Config, roll: Roll, powers: Bits, movable: Bits) -> Bits:
    """Return the legal actions of phase MOVE that use a power, as bits (R12, R13)."""
    moves = 0
    if powers >> Power.FEAR & 1 and movable:
        moves |= 1 << Action.NO_MOVE_BY_FEAR
    if powers >> Power.ANXIETY & 1:
        jumps = 0
        for path in range(PATHS):
            if jump(s, rules, path, np.int64(COUNTS[roll, path])):
                jumps |= 1 << path
        if roll != EQUILIBRIUM:
            moves |= jumps << Action.JUMP_ON
        elif jumps:
            moves |= 1 << Action.EARTH_EQUILIBRIUM
    if powers >> Power.DRAGON & 1 and COUNTS[roll, DRAGON]:
        for path in range(PATHS):
            wild = destination(s, rules, path, np.int64(COUNTS[roll, path]) + np.int64(COUNTS[roll, DRAGON]))
            if wild and path != MISSING[roll]:
                moves |= 1 << (Action.WOOD_ON + path)
            if MISSING[roll] != DRAGON and destination(s, rules, path, np.int64(1)):
                moves |= 1 << Action.WOOD_EQUILIBRIUM
    return moves


@kernel
def legal_swaps(s: Record, rules: Config, path: Int) -> Bits:
    """Return the legal swaps on a path as bits, assuming that the dice allow swaps on this path (R6, R14)."""
    n = rules.players
    pairs = n * (n - 1) // 2
    swaps = np.uint64(0)
    for pair in range(pairs):
        one = (s.player + PAIRS[n, pair, 0]) % n
        other = (s.player + PAIRS[n, pair, 1]) % n
        immune = rules.immunity and (s.color[one] == path or s.color[other] == path)
        if s.pieces[one, path] and s.pieces[other, path] and not immune:
            swaps |= BIT << np.uint64(path * pairs + pair)
    return swaps


@inlined
def finished(s: Record, rules: Config) -> Flag:
    """Return whether some seat has all five pieces on numbered spaces (R9)."""
    done = False
    beyond = EACH * (MOST - np.uint64(rules.spaces))
    for seat in range(MAX_PLAYERS):
        if seat == rules.players:
            break
        done |= (word_at(s, PIECES_AT + PATHS * seat) & FIVE) + beyond & HIGH == HIGH
    return done


@kernel
def score(s: Record, rules: Config, seat: Int) -> Int:
    """Return a seat's points: the sum of the numbers under the seat's pieces (R10)."""
    points = 0
    for path in range(PATHS):
        points += max(s.pieces[seat, path] - rules.spaces, 0)
    return points


@kernel
def numbered(s: Record, rules: Config, seat: Int) -> Int:
    """Return the number of a seat's pieces on numbered spaces."""
    count = 0
    for path in range(PATHS):
        count += s.pieces[seat, path] > rules.spaces
    return count


@kernel
def standing(s: Record, rules: Config, seat: Int) -> Int:
    """Return a number that ranks seats: first by points, then by pieces on numbered spaces (R10)."""
    return score(s, rules, seat) * (PATHS + 1) + numbered(s, rules, seat)


@kernel
def rewards(s: Record, rules: Config, out: Floats) -> None:
    """Write the reward of every seat (R10, R16)."""
    n = rules.players
    if s.phase != Phase.OVER or s.expired:
        for seat in range(n):
            out[seat] = 0
        return
    best: Int = 0
    winners = 0
    for seat in range(n):
        place = standing(s, rules, seat)
        if place > best:
            best = place
            winners = 0
        winners += place == best
    for seat in range(n):
        out[seat] = reward_of(standing(s, rules, seat) == best, n, winners)


# -------------------------------------------------------------------------------------------------------------- changes


@kernel
def new_game(s: Record, rules: Config, starter: Int) -> None:
    """Start a new game in a record, and stop before the first roll; the random stream continues (R1, R15).

    `starter` is a seat, DRAGONS or LOSER. For LOSER, the record must contain the previous game. If there is no previous
    game, all pieces in the record must be at 0; then all players take part in the roll-off.
    """
    n = rules.players
    candidates = (1 << n) - 1
    if starter == LOSER:
        worst = standing(s, rules, np.int64(0))
        for seat in range(n):
            worst = min(worst, standing(s, rules, seat))
        for seat in range(n):
            if standing(s, rules, seat) != worst:
                candidates &= ~(1 << seat)

    s.turn = 0
    s.used = s.expired = 0
    s.players = n
    s._reserved[:] = 0
    for seat in range(MAX_PLAYERS):
        s.color[seat] = rules.colors[seat]
        for path in range(PATHS):
            s.pieces[seat, path] = 0
    if rules.random_colors:
        for seat in range(MAX_PLAYERS - 1):
            other = seat + below(s, MAX_PLAYERS - seat)
            s.color[seat], s.color[other] = s.color[other], s.color[seat]
    place_dead_pieces(s, rules)

    if starter < 0:
        starter = roll_off(s, candidates)
    begin_turn(s, starter)


@kernel
def move_seats(s: Record, rules: Config, by: Int) -> None:
    """Move the pieces of every seat k to seat (k + by) % players (R1).

    Call this function if the players change seats between games, so that `new_game` finds the loser in the new seat.
    """
    n = rules.players
    for path in range(PATHS):
        for _ in range(by):
            last = s.pieces[n - 1, path]
            for seat in range(n - 1, 0, -1):
                s.pieces[seat, path] = s.pieces[seat - 1, path]
            s.pieces[0, path] = last


@kernel
def place_dead_pieces(s: Record, rules: Config) -> None:
    """Place the dead pieces: those of a layout, or on random distinct plain spaces, never five in a row (R15)."""
    while True:
        for path in range(PATHS):
            s.dead[path] = rules.dead[path]
        placed = 0
        while placed < rules.dead_pieces:
            chosen = below(s, np.int64(PATHS))
            bit = 1 << (1 + below(s, rules.spaces))
            if not s.dead[chosen] & bit:
                s.dead[chosen] |= bit
                placed += 1
        blocked = 0
        for path in range(PATHS):
            blocked |= impassable(s.dead[path])
        if not blocked:
            return


@kernel
def impassable(dead: Bits) -> Flag:
    """Return whether a path has five dead pieces in a row, which no piece could pass (R15)."""
    return dead & dead >> 1 & dead >> 2 & dead >> 3 & dead >> 4 != 0


@kernel
def roll_off(s: Record, candidates: Bits) -> Int:
    """Return the seat among `candidates` (bits) that rolls the most dragons; tied seats roll again (R1)."""
    while True:
        candidates = roll_off_round(s, candidates)
        if candidates & (candidates - 1) == 0:
            return np.int64(trailing_zeros(np.uint64(candidates)))


@kernel
def roll_off_round(s: Record, candidates: Bits) -> Bits:
    """Roll five dice for each seat in `candidates`; return the seats with the most dragons."""
    most = np.int64(-1)
    leaders = 0
    for seat in range(MAX_PLAYERS):
        if candidates >> seat & 1:
            dragons = np.int64(COUNTS[throw(s, NOTHING_KEPT), DRAGON])
            if dragons > most:
                most = dragons
                leaders = 0
            if dragons == most:
                leaders |= 1 << seat
    return leaders


@inlined
def begin_turn(s: Record, seat: Int) -> None:
    """Begin the turn of a seat, with all dice unrolled (R2)."""
    s.player = seat
    s.phase = Phase.CHANCE
    s.rolls_left = REROLLS
    s.perfection = 0
    set_dice(s, NOTHING_KEPT)


@inlined
def set_dice(s: Record, keep: Keep) -> None:
    """Set the dice of the record to a roll or keep."""
    set_five(s, DICE_AT, DICE_WORDS[keep])


@inlined
def throw(s: Record, keep: Keep) -> Roll:
    """Roll the unrolled dice of a keep with the game's random stream."""
    return np.uint64(THROW_ROLL[THROW_START[keep] + below(s, np.int64(THROW_SIZE[keep]))])


@inlined
def set_roll(s: Record, rules: Config, roll: Roll) -> None:
    """Set the dice of the record to a roll, and set the phase (R2, R12)."""
    set_dice(s, roll)
    tiger = powers_of(s, rules, s.player) >> Power.TIGER & 1
    s.phase = Phase.KEEP if s.rolls_left > 0 or tiger else Phase.MOVE


@inlined
def decide(s: Record, rules: Config, keep: Keep, action: Int) -> Keep:
    """Take a legal action without rolling."""
    if s.phase == Phase.KEEP:
        return hold(s, rules, keep, action)
    if s.phase == Phase.MOVE:
        move(s, rules, keep, action)
    elif s.phase == Phase.EXTRA:
        extra(s, rules, action)
    return dice_after(s, keep)


@inlined
def dice_after(s: Record, keep: Keep) -> Keep:
    """Return the index of the dice after phase MOVE or EXTRA."""
    return NOTHING_KEPT if s.phase == Phase.CHANCE else keep


@inlined
def hold(s: Record, rules: Config, roll: Roll, action: Int) -> Keep:
    """Take a legal action of phase KEEP; return the index of the resulting keep (R2, R12).

    The field `dice` stays unchanged until `run` sets it.
    """
    keep = np.uint64(HOLD_KEEP[roll, action])
    if action == Action.STOP_ROLLING:
        s.rolls_left = 0
        s.phase = Phase.MOVE
    else:
        if s.rolls_left > 0:
            s.rolls_left -= 1
        else:
            use_power(s)
        s.phase = Phase.CHANCE
    return keep


@kernel
def extra(s: Record, rules: Config, action: Int) -> None:
    """Take a legal action of phase EXTRA (R8, R12)."""
    if action == Action.REBIRTH_TURN:
        use_power(s)
    end_turn(s, rules, action != Action.END_TURN)


@kernel
def use_power(s: Record) -> None:
    """Mark the power of the seat to act as used (R11)."""
    s.used |= np.uint8(1 << s.player)


@inlined
def move(s: Record, rules: Config, roll: Roll, action: Int) -> None:
    """Take a legal action of phase MOVE (R3, R4, R6, R7, R8, R9, R12, R13)."""
    dice = np.int64(0)
    if action >= Action.FIRST_SWAP:
        swap(s, rules, action - Action.FIRST_SWAP)
    elif action < Action.WOOD_ON:
        path = action - Action.MOVE_ON
        dice = np.int64(COUNTS[roll, path])
        s.pieces[s.player, path] += dice
    elif action < Action.JUMP_ON:
        path = action - Action.WOOD_ON
        dice = np.int64(COUNTS[roll, path]) + np.int64(COUNTS[roll, DRAGON])
        s.pieces[s.player, path] += dice
        use_power(s)
    elif action < Action.EQUILIBRIUM:
        path = action - Action.JUMP_ON
        dice = np.int64(COUNTS[roll, path])
        s.pieces[s.player, path] = jump(s, rules, path, dice)
        use_power(s)
    elif action < Action.PASS:
        advance_all(s, rules, action == Action.EARTH_EQUILIBRIUM)
        if action != Action.EQUILIBRIUM:
            use_power(s)
    elif action == Action.NO_MOVE_BY_FEAR:
        use_power(s)

    s.perfection = dice == DICE  # R8: a piece must move by all five dice
    if finished(s, rules):
        s.phase = Phase.OVER
    elif s.perfection or powers_of(s, rules, s.player) >> Power.REBIRTH & 1:
        s.phase = Phase.EXTRA
    else:
        end_turn(s, rules, False)


@kernel
def swap(s: Record, rules: Config, k: Int) -> None:
    """Swap two pieces on a path; `k` is the action minus FIRST_SWAP (R6)."""
    n = rules.players
    pairs = n * (n - 1) // 2
    path = k // pairs
    one = (s.player + PAIRS[n, k % pairs, 0]) % n
    other = (s.player + PAIRS[n, k % pairs, 1]) % n
    s.pieces[one, path], s.pieces[other, path] = s.pieces[other, path], s.pieces[one, path]


@kernel
def advance_all(s: Record, rules: Config, jumps: bool) -> None:
    """Advance each movable piece of the seat to act by one space. If `jumps` is true, blocked pieces jump (R7, R12)."""
    for path in range(PATHS):
        goal = destination(s, rules, path, np.int64(1))
        if jumps and not goal:
            goal = jump(s, rules, path, np.int64(1))
        if goal:
            s.pieces[s.player, path] = goal


@inlined
def end_turn(s: Record, rules: Config, again: bool) -> None:
    """End the game (R16) or begin the next turn, with the same seat if `again` is true (R8, R12)."""
    s.turn += np.uint16(1)
    if s.turn >= rules.max_turns:
        s.phase = Phase.OVER
        s.expired = 1
    else:
        begin_turn(s, s.player if again else (s.player + 1) % rules.players)


@inlined
def step(s: Record, rules: Config, action: Int) -> tuple[Bits, Bits, Keep]:
    """Take a legal action, roll if due, and play to the next decision; return the result of `run`."""
    return run(s, rules, decide(s, rules, dice_index(s), action), True)


@inlined
def roll_if_due(s: Record, rules: Config, keep: Keep) -> Keep:
    """Roll if the phase is CHANCE, and return the index of the dice."""
    if s.phase == Phase.CHANCE:
        keep = throw(s, keep)
        set_roll(s, rules, keep)
    return keep


@inlined
def run(s: Record, rules: Config, keep: Keep, chance: bool) -> tuple[Bits, Bits, Keep]:
    """Play to the next decision. If `chance` is false, stop before the next roll.

    Return the legal actions, the legal swaps, and the new index of the dice. If `rules.skip_forced` is true, take
    every move that is the only legal action. In the phases KEEP and EXTRA, several actions are always legal.
    """
    while True:
        if s.phase == Phase.CHANCE and not chance:
            set_dice(s, keep)
            return np.uint64(0), np.uint64(0), keep
        keep = roll_if_due(s, rules, keep)
        actions, swaps = legal(s, rules, keep)
        if s.phase != Phase.MOVE or not rules.skip_forced or swaps or actions & (actions - BIT):
            return actions, swaps, keep
        move(s, rules, keep, np.int64(trailing_zeros(actions)))
        keep = dice_after(s, keep)
