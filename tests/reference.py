"""A second implementation of the rules: slow, plain Python, written only from the rulings R1..R16.

It shares no code with `wotd_env`. The differential test plays random games in both implementations and requires
the same legal actions and the same successors in every state. A difference means that one of them misreads a ruling.

A state is immutable. Its fields are those of `wotd_env.STATE` without the random stream, except that `dead`
is a set of spaces for each path instead of bits.
"""

from collections import Counter
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations

ELEMENTS = (WATER, FIRE, METAL, EARTH, WOOD) = (0, 1, 2, 3, 4)
DRAGON = 5

CHANCE, KEEP, MOVE, EXTRA, OVER = range(5)

# The power of a color has the number of the color (R12).
FEAR, REBIRTH, TIGER, ANXIETY, DRAGON_POWER = WATER, FIRE, METAL, EARTH, WOOD

# The action numbers. MOVE_ON, WOOD_ON and JUMP_ON are added to a path; `swap_number` computes 55 and above.
STOP_ROLLING = 31
MOVE_ON, WOOD_ON, JUMP_ON = 32, 37, 42
EQUILIBRIUM, WOOD_EQUILIBRIUM, EARTH_EQUILIBRIUM = 47, 48, 49
PASS, NO_MOVE_BY_FEAR = 50, 51
END_TURN, PERFECTION_TURN, REBIRTH_TURN = 52, 53, 54
FIRST_SWAP = 55


@dataclass(frozen=True)
class Rules:
    players: int = 2
    spaces: int = 7
    powers: str = "none"
    immunity: bool = False
    dead_pieces: int = 0
    max_turns: int = 1000


@dataclass(frozen=True)
class State:
    dead: tuple[frozenset[int], ...] = (frozenset(),) * 5
    turn: int = 0
    player: int = 0
    phase: int = CHANCE
    rolls_left: int = 2
    dice: tuple[int, ...] = (-1,) * 5
    pieces: tuple[tuple[int, ...], ...] = ((0,) * 5,) * 5
    color: tuple[int, ...] = ELEMENTS
    used: int = 0
    perfection: int = 0
    expired: int = 0


# ---------------------------------------------------------------------------------------------- the board


def occupied(state: State, path: int, space: int) -> bool:
    """Return whether a live or dead piece is on the space; off the board there is room for all (R3)."""
    if space == 0:
        return False
    return space in state.dead[path] or any(seat[path] == space for seat in state.pieces)


def is_numbered(rules: Rules, space: int) -> bool:
    return space > rules.spaces


def place(state: State, seat: int, path: int, space: int) -> State:
    pieces = [list(row) for row in state.pieces]
    pieces[seat][path] = space
    return replace(state, pieces=tuple(tuple(row) for row in pieces))


def move_target(rules: Rules, state: State, path: int, distance: int) -> int | None:
    """Return the destination of the acting seat's piece after `distance` spaces; None if illegal (R3, R4)."""
    here = state.pieces[state.player][path]
    if distance < 1 or is_numbered(rules, here):
        return None
    there = here + distance
    assert there <= rules.spaces + 5, "dice never overshoot (R4)"
    return None if occupied(state, path, there) else there


def jump_target(rules: Rules, state: State, path: int, distance: int) -> int | None:
    """Return the destination with anxiety: the next empty space beyond an occupied destination (R12, R4)."""
    here = state.pieces[state.player][path]
    if distance < 1 or is_numbered(rules, here) or not occupied(state, path, here + distance):
        return None
    for there in range(here + distance + 1, rules.spaces + 6):
        if not occupied(state, path, there):
            return there
    return None


def game_is_decided(rules: Rules, state: State) -> bool:
    """Return whether some player has all five pieces on numbered spaces (R9)."""
    return any(all(is_numbered(rules, s) for s in state.pieces[seat]) for seat in range(rules.players))


# ---------------------------------------------------------------------------------------------- the powers


def holds(rules: Rules, state: State, power: int) -> bool:
    """Return whether the acting seat may still use the power (R11)."""
    if rules.powers == "none" or state.used >> state.player & 1:
        return False
    return rules.powers == "any" or state.color[state.player] == power


def spend(state: State) -> State:
    return replace(state, used=state.used | 1 << state.player)


# ------------------------------------------------------------------------------------------- legal actions


def legal_actions(rules: Rules, state: State) -> list[int]:
    """Return the acting seat's legal actions in ascending order; an empty list at CHANCE and OVER."""
    if state.phase == KEEP:
        return keep_actions(state)
    if state.phase == MOVE:
        return move_actions(rules, state)
    if state.phase == EXTRA:
        return extra_actions(rules, state)
    return []


def kept_faces(state: State, mask: int) -> tuple[int, ...]:
    return tuple(face for i, face in enumerate(state.dice) if mask >> i & 1)


def keep_actions(state: State) -> list[int]:
    """Return all subsets of the dice (R2). Of the masks that keep the same faces, only the smallest is legal."""
    smallest: dict[tuple[int, ...], int] = {}
    for mask in range(32):
        smallest.setdefault(kept_faces(state, mask), mask)
    return sorted(smallest.values())


def show_equilibrium(state: State) -> bool:
    return sorted(state.dice) == list(ELEMENTS)


def missing_element(state: State) -> int | None:
    """Return the element that a single dragon adds to four different ones (R13), or None."""
    absent = [e for e in ELEMENTS if e not in state.dice]
    return absent[0] if len(absent) == 1 and state.dice.count(DRAGON) == 1 else None


def power_free_moves(rules: Rules, state: State) -> list[int]:
    """Return the moves that rule out a pass: one piece by its element (R3), or all by one space (R7)."""
    if show_equilibrium(state):
        can_advance = any(move_target(rules, state, e, 1) for e in ELEMENTS)
        return [EQUILIBRIUM] if can_advance else []
    return [MOVE_ON + e for e in ELEMENTS if move_target(rules, state, e, state.dice.count(e))]


def move_actions(rules: Rules, state: State) -> list[int]:
    free = power_free_moves(rules, state)
    actions = free + swaps(rules, state)
    if not free:
        actions.append(PASS)  # R5
    elif holds(rules, state, FEAR):
        actions.append(NO_MOVE_BY_FEAR)  # R12
    if holds(rules, state, DRAGON_POWER):
        actions += wood_actions(rules, state)
    if holds(rules, state, ANXIETY):
        actions += earth_actions(rules, state)
    return sorted(actions)


def wood_actions(rules: Rules, state: State) -> list[int]:
    """Return the moves that count all rolled dragons, at least one, as the element (R13)."""
    dragons = state.dice.count(DRAGON)
    if dragons == 0:
        return []
    actions = []
    for e in ELEMENTS:
        if e == missing_element(state):
            if any(move_target(rules, state, path, 1) for path in ELEMENTS):
                actions.append(WOOD_EQUILIBRIUM)
        elif move_target(rules, state, e, state.dice.count(e) + dragons):
            actions.append(WOOD_ON + e)
    return actions


def earth_actions(rules: Rules, state: State) -> list[int]:
    if show_equilibrium(state):
        can_jump = any(jump_target(rules, state, e, 1) for e in ELEMENTS)
        return [EARTH_EQUILIBRIUM] if can_jump else []
    return [JUMP_ON + e for e in ELEMENTS if jump_target(rules, state, e, state.dice.count(e))]


def seat_pairs(rules: Rules) -> list[tuple[int, int]]:
    """Return the pairs of relative seats in the order of the swap actions."""
    return list(combinations(range(rules.players), 2))


def swap_number(rules: Rules, path: int, pair: tuple[int, int]) -> int:
    pairs = seat_pairs(rules)
    return FIRST_SWAP + path * len(pairs) + pairs.index(pair)


def swap_of(rules: Rules, state: State, action: int) -> tuple[int, int, int]:
    """Return (path, seat, seat) of a swap action."""
    pairs = seat_pairs(rules)
    path, k = divmod(action - FIRST_SWAP, len(pairs))
    one, other = ((state.player + relative) % rules.players for relative in pairs[k])
    return path, one, other


def swaps(rules: Rules, state: State) -> list[int]:
    """Return the legal swaps: calling the dragon (R6, R14)."""
    dragons = state.dice.count(DRAGON)
    if dragons < 4:
        return []
    paths = ELEMENTS if dragons == 5 else [e for e in ELEMENTS if e in state.dice]
    actions = []
    for path in paths:
        for pair in seat_pairs(rules):
            action = swap_number(rules, path, pair)
            seats = swap_of(rules, state, action)[1:]
            on_the_path = all(state.pieces[seat][path] >= 1 for seat in seats)
            immune = rules.immunity and any(state.color[seat] == path for seat in seats)
            if on_the_path and not immune:
                actions.append(action)
    return actions


def extra_actions(rules: Rules, state: State) -> list[int]:
    actions = [END_TURN]
    if state.perfection:
        actions.append(PERFECTION_TURN)
    if holds(rules, state, REBIRTH):
        actions.append(REBIRTH_TURN)
    return actions


# ----------------------------------------------------------------------------------- decisions and rolls


def decide(rules: Rules, state: State, action: int) -> State:
    """Return the state after a legal action: at CHANCE, at OVER, or at the same seat's next decision."""
    if state.phase == KEEP:
        return decide_keep(rules, state, action)
    if state.phase == MOVE:
        return decide_move(rules, state, action)
    assert state.phase == EXTRA, "only KEEP, MOVE and EXTRA ask for a decision"
    if action == REBIRTH_TURN:
        state = spend(state)
    return finish_turn(rules, state, same_seat=action != END_TURN)


def decide_keep(rules: Rules, state: State, action: int) -> State:
    if action == STOP_ROLLING:
        return replace(state, phase=MOVE, rolls_left=0)
    kept = kept_faces(state, action)
    dice = tuple(sorted(kept)) + (-1,) * (5 - len(kept))
    if state.rolls_left == 0:
        state = spend(state)  # the eye of the tiger (R12)
    return replace(state, phase=CHANCE, dice=dice, rolls_left=max(0, state.rolls_left - 1))


def decide_move(rules: Rules, state: State, action: int) -> State:
    earned = False  # R8: only by a piece that moves
    if MOVE_ON <= action < WOOD_ON or JUMP_ON <= action < JUMP_ON + 5:
        earned = len(set(state.dice)) == 1
    elif WOOD_ON <= action < JUMP_ON:  # R13: dragons count as the element
        earned = all(face in (action - WOOD_ON, DRAGON) for face in state.dice)
    state = replace(state, perfection=int(earned))

    state = move_pieces(rules, state, action)
    uses_power = (
        WOOD_ON <= action < JUMP_ON + 5
        or action in (WOOD_EQUILIBRIUM, EARTH_EQUILIBRIUM)
        or action == NO_MOVE_BY_FEAR
    )
    if uses_power:
        state = spend(state)

    if action not in (PASS, NO_MOVE_BY_FEAR) and game_is_decided(rules, state):
        return replace(state, phase=OVER)
    if extra_actions(rules, state) != [END_TURN]:
        return replace(state, phase=EXTRA)
    return finish_turn(rules, state, same_seat=False)


def move_pieces(rules: Rules, state: State, action: int) -> State:
    if action in (PASS, NO_MOVE_BY_FEAR):
        return state
    if action in (EQUILIBRIUM, WOOD_EQUILIBRIUM, EARTH_EQUILIBRIUM):
        after = state
        for path in ELEMENTS:
            there = move_target(rules, state, path, 1)
            if action == EARTH_EQUILIBRIUM and there is None:
                there = jump_target(rules, state, path, 1)
            if there is not None:
                after = place(after, state.player, path, there)
        return after
    if action >= FIRST_SWAP:
        path, one, other = swap_of(rules, state, action)
        space_of_one, space_of_other = state.pieces[one][path], state.pieces[other][path]
        return place(place(state, one, path, space_of_other), other, path, space_of_one)
    path = (action - MOVE_ON) % 5
    shown = state.dice.count(path)
    if action >= JUMP_ON:
        there = jump_target(rules, state, path, shown)
    elif action >= WOOD_ON:
        there = move_target(rules, state, path, shown + state.dice.count(DRAGON))
    else:
        there = move_target(rules, state, path, shown)
    assert there is not None, f"action {action} is illegal"
    return place(state, state.player, path, there)


def finish_turn(rules: Rules, state: State, same_seat: bool) -> State:
    """Start the next turn or end the game (R16). Extra turns count as turns."""
    state = replace(state, turn=state.turn + 1)
    if state.turn == rules.max_turns:
        return replace(state, phase=OVER, expired=1)
    player = state.player if same_seat else (state.player + 1) % rules.players
    return replace(state, player=player, phase=CHANCE, rolls_left=2, dice=(-1,) * 5, perfection=0)


def roll(rules: Rules, state: State, dice: tuple[int, ...]) -> State:
    """Return the state after a roll to these five faces, which include the kept ones."""
    assert state.phase == CHANCE, "only CHANCE rolls"
    missing = Counter(face for face in state.dice if face >= 0) - Counter(dice)
    assert not missing, f"{dice} lacks kept faces of {state.dice}"
    asks = state.rolls_left > 0 or holds(rules, state, TIGER)
    return replace(state, phase=KEEP if asks else MOVE, dice=tuple(sorted(dice)))


# ------------------------------------------------------------------------------------------------- results


def is_over(state: State) -> bool:
    return state.phase == OVER


def scores(rules: Rules, state: State) -> list[int]:
    """Return the sum of the numbers under each player's pieces (R10)."""
    return [sum(max(0, s - rules.spaces) for s in state.pieces[seat]) for seat in range(rules.players)]


def standing(rules: Rules, state: State) -> list[tuple[int, int]]:
    """Return the ranking key of each seat (R10): points, then pieces on numbered spaces."""
    numbered = [sum(is_numbered(rules, s) for s in state.pieces[seat]) for seat in range(rules.players)]
    return list(zip(scores(rules, state), numbered, strict=True))


def winners(rules: Rules, state: State) -> list[int]:
    places = standing(rules, state)
    return [seat for seat in range(rules.players) if places[seat] == max(places)]


def last_placed(rules: Rules, state: State) -> list[int]:
    """Return the candidates for the starting player of the next game with `start="loser"` (R1)."""
    places = standing(rules, state)
    return [seat for seat in range(rules.players) if places[seat] == min(places)]


def rewards(rules: Rules, state: State) -> list[Fraction]:
    """Return zeros for running games and at the turn limit; otherwise the winners share what the others lose (R10)."""
    n = rules.players
    if not is_over(state) or state.expired:
        return [Fraction(0)] * n
    won = winners(rules, state)
    gain = (Fraction(n, len(won)) - 1) / (n - 1)
    return [gain if seat in won else Fraction(-1, n - 1) for seat in range(n)]


# --------------------------------------------------------------------------------------------------- set-up


def layout_is_allowed(rules: Rules, dead: tuple[frozenset[int], ...]) -> bool:
    """Return whether all dead pieces are on plain spaces, with no five in a row (R15)."""
    if sum(len(spaces) for spaces in dead) != rules.dead_pieces:
        return False
    if any(not 1 <= space <= rules.spaces for spaces in dead for space in spaces):
        return False
    rows_of_five = [set(range(first, first + 5)) for first in range(1, rules.spaces - 3)]
    return not any(row <= spaces for row in rows_of_five for spaces in dead)
