"""The rules as functions of JAX arrays. Each function handles one game; `jax.vmap` maps it over games.

All integers have a fixed size, so `JAX_ENABLE_X64` changes neither dtypes nor games.

Under `vmap` JAX computes both sides of a branch for all games, so no function branches on a state. Pieces are
stored by relative seat: row 0 belongs to the seat to act. This order avoids lookups.

The tests in tests/jax compare this module with the engine (`wotd_env.core`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from wotd_env.core import dice
from wotd_env.core.actions import PAIRS, Action, num_actions, pairs
from wotd_env.core.config import config
from wotd_env.core.layouts import dead_of
from wotd_env.core.observation import DEADLINE
from wotd_env.core.rules import (
    DICE,
    DRAGON,
    MAX_PLAYERS,
    NUMBERED,
    PATHS,
    REROLLS,
    Phase,
    Power,
    Rules,
    reward_of,
)

NOTHING_KEPT = dice.NUM_KEEPS - 1
ALL_PATHS = np.arange(PATHS, dtype=np.int32)

COLORS = np.array(list(permutations(range(MAX_PLAYERS))), np.int32)
"""int32 (120, 5): all permutations of the colors. The first n colors of a row belong to seats 0 to n - 1."""

_COUNTS = dice.COUNTS.astype(np.int32)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class State:
    """The state of a game, with the public fields of pgx's states; `jax.vmap` adds batch axes in front."""

    current_player: Array  #: seat to act, int32
    observation: Array  #: observation of the seat to act, int8 (D,), in the encoding "one_hot"
    rewards: Array  #: rewards of the last step, by seat, float32 (n,)
    terminated: Array  #: whether the game has ended
    truncated: Array  #: always false, because the turn limit is a rule and ends the game (R16)
    legal_action_mask: Array  #: whether each action is legal, bool (A,); all true after the end
    _step_count: Array
    _pieces: Array  # int32 (n, 5): [relative seat, path] -> space
    _dead: Array  # int32 (5,), by path: bit t is set if a dead piece is on space t
    _colors: Array  # int32: index of a row of COLORS
    _used: Array  # int32: bit k means that seat k has used its power
    _keep: Array  # int32: row of dice.KEEPS with the current roll or, if a roll is due, the kept dice
    _rolls_left: Array
    _phase: Array
    _perfection: Array  # bool
    _expired: Array  # bool: whether the turn limit has ended the game
    _turn: Array
    _legal: Array  # uint32 (W,): the result of `legal_actions`; stored so that XLA computes it only once

    def replace(self, **changes: Any) -> State:
        """Return a copy with some fields changed."""
        return replace(self, **changes)


class Moves(NamedTuple):
    """The moves of a state in phase MOVE. A destination is the space that a piece reaches, or 0 for an illegal move."""

    legal: Array  # uint32: bit i is set if action MOVE_ON + i is legal; the last of these actions is NO_MOVE_BY_FEAR
    swaps: Array  # uint32 (5,), by path: bit i is set if the i-th pair of seats can swap pieces
    jumps: Array  # int32 (5,), by path: destinations of jumps over pieces (anxiety)
    ones: Array  # int32 (5,), by path: destinations of moves by one space


# ------------------------------------------------------------------------------------------------------------ questions


def held(rules: Rules, s: State, power: Power) -> Array:
    """Return whether the seat to act can still use `power` (R11)."""
    unused = (s._used >> s.current_player & 1) == 0
    if rules.powers == "none":
        return jnp.zeros_like(unused)
    return unused & (colors(rules, s)[0] == power) if rules.powers == "own" else unused


def colors(rules: Rules, s: State) -> Array:
    """Return the color of each relative seat, int32 (n,)."""
    n = rules.players
    seats = (np.arange(n)[:, None] + np.arange(n)) % n
    return jnp.asarray(COLORS[:, seats])[s._colors, s.current_player]


def occupied(rules: Rules, s: State) -> Array:
    """Return the occupied spaces of each path as bits, int32 (5,): bit t for space t; bit 0 has no meaning."""
    spaces = s._dead
    for seat in range(rules.players):
        spaces = spaces | 1 << s._pieces[seat]
    return spaces


def destinations(rules: Rules, s: State, counts: Array | int) -> Array:
    """Return the destinations of moves by `counts` spaces, int32 (5,), for the seat to act; 0 if illegal (R3, R4)."""
    mine = s._pieces[0]
    goals = mine + counts
    free = (occupied(rules, s) >> goals & 1) == 0
    return jnp.where(free & (jnp.asarray(counts) > 0) & (mine <= rules.spaces), goals, 0)


def jump_destinations(rules: Rules, s: State, counts: Array) -> Array:
    """Return the destinations of jumps, int32 (5,), for the seat to act; 0 if illegal (R12, anxiety)."""
    mine = s._pieces[0]
    goals = mine + counts
    blocked = occupied(rules, s) >> goals
    # `run`: number of consecutive occupied spaces, starting at `goals`.
    run = jax.lax.population_count(blocked & ~(blocked + 1))
    goals = goals + run
    legal = (run > 0) & (counts > 0) & (mine <= rules.spaces) & (goals <= rules.spaces + NUMBERED)
    return jnp.where(legal, goals, 0)


def moves_of(rules: Rules, s: State) -> Moves:
    """Return the moves that the dice allow (R3, R5, R7, R12, R13)."""
    counts = jnp.asarray(_COUNTS)[s._keep]
    elements, dragons = counts[:PATHS], counts[DRAGON]
    equilibrium = s._keep == dice.EQUILIBRIUM
    can_move = destinations(rules, s, elements) > 0
    movable = can_move.any()
    actions = bits(Action.MOVE_ON, can_move & ~equilibrium)
    actions |= bits(Action.EQUILIBRIUM, equilibrium & movable) | bits(Action.PASS, ~movable)
    jumps = ones = jnp.zeros(PATHS, jnp.int32)
    if rules.powers != "none":
        missing = jnp.asarray(dice.MISSING, jnp.int32)[s._keep]
        ones = destinations(rules, s, 1)
        dragon = held(rules, s, Power.DRAGON) & (dragons > 0)
        wood = dragon & (destinations(rules, s, elements + dragons) > 0) & (missing != ALL_PATHS)
        jumps = jump_destinations(rules, s, elements)
        jumping = held(rules, s, Power.ANXIETY) & (jumps > 0)
        actions |= bits(Action.WOOD_ON, wood) | bits(Action.JUMP_ON, jumping & ~equilibrium)
        actions |= bits(Action.WOOD_EQUILIBRIUM, dragon & (missing != DRAGON) & (ones > 0).any())
        actions |= bits(Action.EARTH_EQUILIBRIUM, equilibrium & jumping.any())
        actions |= bits(Action.NO_MOVE_BY_FEAR, held(rules, s, Power.FEAR) & movable)
    return Moves(actions, legal_swaps(rules, s, elements, dragons), jumps, ones)


def bits(first: int, legal: Array) -> Array:
    """Return `legal` as bits, uint32. Entry i of `legal` is for action `first + i`; bit 0 is for action MOVE_ON."""
    places = np.arange(first, first + legal.size, dtype=np.uint32) - np.uint32(Action.MOVE_ON)
    return (legal.astype(jnp.uint32).reshape(-1) << places).sum(dtype=jnp.uint32)


def legal_swaps(rules: Rules, s: State, elements: Array, dragons: Array) -> Array:
    """Return the pairs of seats that can swap pieces on each path, uint32 (5,), one bit for each pair (R6, R14)."""
    on_board = s._pieces > 0
    if rules.immunity:
        on_board = on_board & (colors(rules, s)[:, None] != ALL_PATHS)
    paths = (dragons == DICE) | ((dragons == DICE - 1) & (elements > 0))
    swaps = jnp.zeros(PATHS, jnp.uint32)
    for pair, (one, other) in enumerate(PAIRS[rules.players, : pairs(rules.players)].tolist()):
        swaps |= (on_board[one] & on_board[other] & paths).astype(jnp.uint32) << pair
    return swaps


def legal_actions(rules: Rules, s: State, moves: Moves) -> Array:
    """Return the legal actions as the bits of W words, uint32 (W,).

    If a roll is due, no action is legal. After the end, all bits are set.
    """
    none = jnp.zeros((), jnp.uint32)
    choose = s._phase == Phase.MOVE
    extra = bits(
        Action.END_TURN, jnp.stack([jnp.ones((), bool), s._perfection, held(rules, s, Power.REBIRTH)])
    )
    words = [none] * -(-num_actions(rules.players) // 32)
    holds = jnp.asarray(dice.LEGAL_HOLDS.astype(np.uint32))[s._keep]
    words[0] = jnp.where(s._phase == Phase.KEEP, holds, none)
    words[1] = jnp.where(choose, moves.legal, jnp.where(s._phase == Phase.EXTRA, extra, none))
    for path in range(PATHS):
        swaps = jnp.where(choose, moves.swaps[path], none)
        word, place = divmod(Action.FIRST_SWAP + path * pairs(rules.players), 32)
        words[word] |= swaps << place
        if place + pairs(rules.players) > 32:
            words[word + 1] |= swaps >> 32 - place
    return jnp.where(s.terminated, np.uint32(2**32 - 1), jnp.stack(words))


def mask_of(rules: Rules, legal: Array) -> Array:
    """Return the result of `legal_actions` as a mask, bool (A,)."""
    mask = legal[:, None] >> np.arange(32, dtype=np.uint32) & 1 != 0
    return mask.reshape(-1)[: num_actions(rules.players)]


def is_legal(rules: Rules, legal: Array, action: Array) -> Array:
    """Return whether an action is legal. `action` can be any integer."""
    known = (action >= 0) & (action < num_actions(rules.players))
    action = jnp.where(known, action, 0)  # JAX would silently replace an index that is out of range
    return known & (legal[action // 32] >> (action % 32).astype(jnp.uint32) & 1 != 0)


def rewards(rules: Rules, s: State) -> Array:
    """Return the reward of each seat in a game that has ended (R10, R16), float32 (n,)."""
    n = rules.players
    points = jnp.maximum(s._pieces - rules.spaces, 0).sum(1)
    standing = points * (PATHS + 1) + (s._pieces > rules.spaces).sum(1)
    won = standing == standing.max()
    shares = np.array([0.0] + [reward_of(1, n, winners) for winners in range(1, n + 1)], np.float32)
    relative = jnp.where(won, jnp.asarray(shares)[won.sum()], np.float32(reward_of(0, n)))
    return jnp.where(s._expired, 0.0, relative[(np.arange(n) - s.current_player) % n])


def observe(rules: Rules, s: State, seat: Array | int | None = None) -> Array:
    """Return the observation, int8 (D,), of the seat `seat` or, by default, of the seat to act."""
    n, spaces = rules.players, rules.spaces
    ahead = 0 if seat is None else (seat - s.current_player) % n
    pieces, hues, actor = s._pieces, colors(rules, s), jnp.asarray(-ahead % n)
    seats = (s.current_player + ahead + np.arange(n)) % n
    if seat is not None:
        order = (np.arange(n) + ahead) % n
        pieces, hues = pieces[order], hues[order]
    unused = (s._used >> seats & 1) == 0
    held_by_seats: Any = np.full(PATHS, rules.powers == "any")
    if rules.powers == "own":
        held_by_seats = hues[:, None] == ALL_PATHS
    powers = unused[:, None] & held_by_seats

    def one_hot(numbers: Array, size: int) -> Array:
        return (numbers[..., None] == np.arange(size)).reshape(-1)

    bits = jnp.concatenate(
        [
            one_hot(pieces, spaces + NUMBERED + 1),
            (s._dead[:, None] >> np.arange(1, spaces + 1) & 1 != 0).reshape(-1),
            one_hot(jnp.asarray(_COUNTS)[s._keep], DICE + 1),
            one_hot(s._rolls_left, REROLLS + 1),
            one_hot(s._phase, len(Phase)),
            one_hot(actor, n),
            powers.reshape(-1),
            s._perfection[None],
            one_hot(hues, MAX_PLAYERS),
        ]
    )
    deadline = jnp.maximum(0, DEADLINE - (rules.max_turns - s._turn))
    return jnp.concatenate([bits.astype(jnp.int8), deadline[None].astype(jnp.int8)])


# -------------------------------------------------------------------------------------------------------------- changes


def new_game(rules: Rules, key: Array) -> State:
    """Return a game at its first decision; the caller fills its observation and mask (R1, R2, R15)."""
    starter_bits, color_bits, dice_bits = jax.random.bits(key, (3,), jnp.uint32)
    n = rules.players
    fixed_colors = (config(rules, True)["colors"][0] == COLORS).all(1).argmax()
    # All seats are equally likely to win a roll-off, so one draw replaces its rolls (R1).
    starter = rules.start if isinstance(rules.start, int) else starter_bits % n
    drawn = rules.colors == "random"
    zero, no = jnp.zeros((), jnp.int32), jnp.zeros((), bool)
    return State(
        current_player=jnp.asarray(starter, jnp.int32),
        observation=jnp.zeros(0, jnp.int8),
        rewards=jnp.zeros(n, jnp.float32),
        terminated=no,
        truncated=no,
        legal_action_mask=jnp.zeros(0, bool),
        _step_count=zero,
        # Without the barrier XLA makes the first observation a constant, and copies it for every game in every step.
        _pieces=jax.lax.optimization_barrier(  # type: ignore[no-untyped-call]
            jnp.zeros((n, PATHS), jnp.int32)
        ),
        _dead=dead_pieces(rules, jax.random.fold_in(key, 1)),
        _colors=jnp.asarray(color_bits % len(COLORS) if drawn else fixed_colors, jnp.int32),
        _used=zero,
        _keep=thrown(zero + NOTHING_KEPT, dice_bits),
        _rolls_left=zero + REROLLS,
        _phase=zero + Phase.KEEP,
        _perfection=no,
        _expired=no,
        _turn=zero,
        _legal=jnp.zeros(0, jnp.uint32),
    )


def dead_pieces(rules: Rules, key: Array) -> Array:
    """Draw the dead pieces as bits, int32 (5,). Repeat the draw if a path has five dead pieces in a row (R15)."""
    if isinstance(rules.dead_pieces, str):
        return jnp.asarray(dead_of(rules.dead_pieces), jnp.int32)
    if rules.dead_pieces == 0:
        return jnp.zeros(PATHS, jnp.int32)
    room = PATHS * rules.spaces

    def draw(key: Array) -> Array:
        chosen = jax.random.permutation(key, room)[: rules.dead_pieces]
        taken = jnp.zeros(room, jnp.int32).at[chosen].set(1).reshape(PATHS, rules.spaces)
        return (taken << np.arange(1, rules.spaces + 1, dtype=np.int32)).sum(1, dtype=jnp.int32)

    def blocked(carry: tuple[Array, Array]) -> Array:
        dead = carry[1]
        return (dead & dead >> 1 & dead >> 2 & dead >> 3 & dead >> 4 != 0).any()

    def again(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        key = jax.random.fold_in(carry[0], 0)
        return key, draw(key)

    return jax.lax.while_loop(blocked, again, (key, draw(key)))[1]


def thrown(keep: Array, bits: Array) -> Array:
    """Roll the dice that are not in `keep`, and return the new roll. `bits` is a random uint32.

    6 ** 5 does not divide 2 ** 32, so the probabilities of the rolls have a relative error below 2e-6.
    """
    throw = (bits % jnp.asarray(dice.THROW_SIZE)[keep]).astype(jnp.int32)
    first = jnp.asarray(dice.THROW_START, jnp.int32)[keep]
    return jnp.asarray(dice.THROW_ROLL)[first + throw].astype(jnp.int32)


def throw(rules: Rules, s: State, roll: Array) -> State:
    """Set the dice of a game in phase CHANCE to a roll; games in other phases do not change (R2, R12)."""
    chance, roll = s._phase == Phase.CHANCE, jnp.asarray(roll, jnp.int32)
    phase = jnp.where((s._rolls_left > 0) | held(rules, s, Power.TIGER), Phase.KEEP, Phase.MOVE)
    return s.replace(_keep=jnp.where(chance, roll, s._keep), _phase=jnp.where(chance, phase, s._phase))


def hold(rules: Rules, s: State, action: Array) -> State:
    """Take an action of phase KEEP; games in other phases do not change (R2, R12)."""
    keeping = s._phase == Phase.KEEP
    stop = keeping & (action == Action.STOP_ROLLING)
    again = keeping & ~stop
    tiger = again & (s._rolls_left == 0)
    kept = jnp.asarray(dice.HOLD_KEEP, jnp.int32)[s._keep, action % dice.NUM_HOLDS]
    return use_power(s, tiger).replace(
        _keep=jnp.where(again, kept, s._keep),
        _rolls_left=jnp.where(stop, 0, s._rolls_left - (again & ~tiger)),
        _phase=jnp.where(stop, Phase.MOVE, jnp.where(again, Phase.CHANCE, s._phase)),
    )


def use_power(s: State, where: Array) -> State:
    """If `where` is true, mark the power of the seat to act as used (R11)."""
    return s.replace(_used=s._used | where.astype(jnp.int32) << s.current_player)


def move(rules: Rules, s: State, moves: Moves, action: Array, where: Array) -> tuple[State, Array]:
    """If `where` is true, take an action of phase MOVE (R3, R6, R7, R8, R9, R12, R13).

    Also return whether the turn has ended.
    """
    counts = jnp.asarray(_COUNTS)[s._keep]
    elements, dragons = counts[:PATHS], counts[DRAGON]
    mine = s._pieces[0]
    plain = action == Action.MOVE_ON + ALL_PATHS
    wood = action == Action.WOOD_ON + ALL_PATHS
    jump = action == Action.JUMP_ON + ALL_PATHS
    moved_by = jnp.where(plain | jump, elements, 0) + jnp.where(wood, elements + dragons, 0)
    advance = destinations(rules, s, elements)  # in an equilibrium every element has one die
    goals = jnp.where(plain | wood, mine + moved_by, mine)
    goals = jnp.where((action == Action.EQUILIBRIUM) & (advance > 0), advance, goals)
    used = jnp.zeros((), bool)
    if rules.powers != "none":
        goals = jnp.where(jump, moves.jumps, goals)
        goals = jnp.where((action == Action.WOOD_EQUILIBRIUM) & (moves.ones > 0), moves.ones, goals)
        earth = jnp.maximum(advance, moves.jumps)  # a piece cannot both move and jump, so at least one is 0
        goals = jnp.where((action == Action.EARTH_EQUILIBRIUM) & (earth > 0), earth, goals)
        used = (action >= Action.WOOD_ON) & (action < Action.EQUILIBRIUM)
        used = used | (action == Action.WOOD_EQUILIBRIUM) | (action == Action.EARTH_EQUILIBRIUM)
        used = used | (action == Action.NO_MOVE_BY_FEAR)
    pieces = swap(rules, [goals, *s._pieces[1:]], action)
    pieces = jnp.where(where, pieces, s._pieces)
    perfection = (moved_by == DICE).any()  # R8
    finished = (pieces > rules.spaces).all(1).any()  # R9
    s = use_power(s, where & used)
    extra = ~finished & (perfection | held(rules, s, Power.REBIRTH))
    phase = jnp.where(finished, Phase.OVER, jnp.where(extra, Phase.EXTRA, s._phase))
    s = s.replace(
        _pieces=pieces,
        _perfection=jnp.where(where, perfection, s._perfection),
        _phase=jnp.where(where, phase, s._phase),
        terminated=s.terminated | where & finished,
    )
    return s, where & ~finished & ~extra


def swap(rules: Rules, pieces: list[Array], action: Array) -> Array:
    """If the action is a swap, swap its two pieces (R6). Return all pieces, int32 (n, 5)."""
    number = pairs(rules.players)
    before = list(pieces)
    for pair, (one, other) in enumerate(PAIRS[rules.players, :number].tolist()):
        chosen = action == Action.FIRST_SWAP + pair + number * ALL_PATHS
        gain = jnp.where(chosen, before[other] - before[one], 0)
        pieces[one], pieces[other] = pieces[one] + gain, pieces[other] - gain
    return jnp.stack(pieces)


def end_turn(rules: Rules, s: State, ended: Array, again: Array) -> State:
    """End the turn if `ended` is true. The next turn belongs to the same seat if `again` is true (R8, R16)."""
    turn = s._turn + ended
    over = ended & (turn >= rules.max_turns)
    begins = ended & ~over
    following = begins & ~again
    return s.replace(
        current_player=jnp.where(following, (s.current_player + 1) % rules.players, s.current_player),
        terminated=s.terminated | over,
        _expired=s._expired | over,
        _turn=turn,
        _pieces=jnp.where(following, jnp.roll(s._pieces, -1, 0), s._pieces),
        _keep=jnp.where(begins, NOTHING_KEPT, s._keep),
        _rolls_left=jnp.where(begins, REROLLS, s._rolls_left),
        _phase=jnp.where(begins, Phase.CHANCE, jnp.where(over, Phase.OVER, s._phase)),
        _perfection=s._perfection & ~begins,
    )


def finish(rules: Rules, s: State, moves: Moves, action: Array, where: Array, extra: Array) -> State:
    """Take an action of phase MOVE if `where` is true, or of phase EXTRA if `extra` is true (R8, R12)."""
    s = use_power(s, extra & (action == Action.REBIRTH_TURN))
    s, ended = move(rules, s, moves, action, where)
    return end_turn(rules, s, ended | extra, extra & (action != Action.END_TURN))


def decide(rules: Rules, s: State, action: Array) -> tuple[State, Moves]:
    """Take an action, but do not roll. Also return the moves of the new state."""
    choosing, extra = s._phase == Phase.MOVE, s._phase == Phase.EXTRA
    s = hold(rules, s, action)
    moves = moves_of(rules, s)
    return finish(rules, s, moves, action, choosing, extra), moves


def advance(rules: Rules, s: State, action: Array, bits: Array) -> tuple[State, Moves]:
    """Take an action, roll if a roll is due, and play a forced move. Also return the moves of the new state.

    The action, int32, must be legal. `bits`, uint32 (2,), are random numbers.
    """
    choosing, extra = s._phase == Phase.MOVE, s._phase == Phase.EXTRA
    s = hold(rules, s, action)
    s = throw(rules, s, thrown(s._keep, bits[0]))
    moves = moves_of(rules, s)
    single = (moves.legal & (moves.legal - 1) == 0) & ~(moves.swaps > 0).any()
    forced = (s._phase == Phase.MOVE) & ~choosing & single
    only = Action.MOVE_ON + jax.lax.population_count(moves.legal - 1).astype(jnp.int32)
    s = finish(rules, s, moves, jnp.where(forced, only, action), choosing | forced, extra)
    return throw(rules, s, thrown(jnp.full((), NOTHING_KEPT), bits[1])), moves
