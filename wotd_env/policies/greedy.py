"""`greedy`: a deterministic heuristic without search.

The *lead* of a seat is the value of its pieces minus the value of the best opponent's pieces. Winning or losing the
game counts more than any lead.

The policy collects the dice of its best path. The best path is the path with the most dice of its element; in a tie,
the path on which the seat's piece is farthest ahead. The policy stops rolling early if an equilibrium or a swap
increases its lead at least as much as an average move does. After the last roll, the policy plays the move that
increases its lead most.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import Action
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.dice import COUNTS, EQUILIBRIUM
from wotd_env.core.engine import BIT
from wotd_env.core.game import Game
from wotd_env.core.lanes import copy_game, trailing_zeros
from wotd_env.core.rules import DICE, DRAGON, PATHS, Phase, Power
from wotd_env.core.state import Int, Record, Records, States, scratch

SPACE = 2  # value of a plain space
NUMBER = 3  # value of every numbered space after number 1
TURN = 6  # gain of an average move; also the cost of a power, and the smallest gain that stops rolling early
POOR = 2  # if no move gains more than this, the seat uses the power of the tiger to roll again
END_OF_GAME = 1000
DIE = 16  # weight of a die in the choice of the best path; exceeds all spaces (at most 15), so spaces only break ties


class Greedy:
    """A policy that collects the dice of its best path, then maximizes its lead."""

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,), see `Policy.act`."""
        out = np.empty(len(state), np.int64)
        game.apply(choose_all, state, scratch, out)
        return out


@kernel
def choose_all(states: Records, config: Configs, scratch: Records, out: Any) -> None:
    """Write the action of every game to `out`, int64 (N,)."""
    for i in range(states.shape[0]):
        out[i] = choose(states[i], config[0], scratch[0])


@kernel
def choose(s: Record, rules: Config, after: Record) -> Any:
    """Return the action of the seat to act. `after` is scratch memory; `s` is not changed."""
    if s.phase == Phase.KEEP:
        return np.int64(hold(s, rules, after))
    if s.phase == Phase.MOVE:
        return best_move(s, rules, after)[0]
    if s.phase == Phase.EXTRA:
        if s.perfection:
            return np.int64(Action.PERFECTION_TURN)
        rebirth = engine.powers_of(s, rules, s.player) >> Power.REBIRTH & 1
        return np.int64(Action.REBIRTH_TURN if rebirth else Action.END_TURN)
    return np.int64(0)


@kernel
def hold(s: Record, rules: Config, after: Record) -> Any:
    """Return the bit mask of the dice to hold, which is also the number of the action."""
    roll = engine.dice_index(s)
    if roll == EQUILIBRIUM or COUNTS[roll, DRAGON] >= DICE - 1 or s.rolls_left == 0:
        gain = best_move(s, rules, after)[1]
        if gain >= TURN or (s.rolls_left == 0 and gain > POOR):
            return Action.STOP_ROLLING
    best = -1
    most = 0
    for path in range(PATHS):
        space = s.pieces[s.player, path]
        dice = np.int64(COUNTS[roll, path])
        if dice and space <= rules.spaces and dice * DIE + space > most:
            most = dice * DIE + space
            best = path
    held = 0
    for die in range(DICE):
        held |= (s.dice[die] == best) << die
    return held


@kernel
def best_move(s: Record, rules: Config, after: Record) -> Any:
    """Return the best move with the current dice, and its gain in lead, corrected for powers and extra turns."""
    roll = engine.dice_index(s)
    actions, swaps = engine.legal_moves(s, rules, roll)
    before = lead(s, rules, np.int64(s.player))
    best = np.int64(0)
    most = -2 * END_OF_GAME
    while actions or swaps:
        if actions:
            a = np.int64(trailing_zeros(actions))
            actions &= actions - BIT
        else:
            a = np.int64(Action.FIRST_SWAP) + np.int64(trailing_zeros(swaps))
            swaps &= swaps - BIT
        copy_game(after, s)
        engine.move(after, rules, roll, a)
        gain = lead(after, rules, np.int64(s.player)) - before
        if after.used != s.used:
            gain -= TURN
        if after.phase == Phase.EXTRA and after.perfection:
            gain += TURN
        if gain > most:
            most = gain
            best = a
    return best, most


@kernel
def lead(s: Record, rules: Config, seat: Any) -> Any:
    """Return the lead of a seat over the best opponent."""
    over = s.phase == Phase.OVER and engine.finished(s, rules)
    best: Int = -1
    for other in range(rules.players):
        if other != seat:
            best = max(best, engine.standing(s, rules, other) if over else worth(s, rules, other))
    if not over:
        return worth(s, rules, seat) - best
    own = engine.standing(s, rules, seat)
    return END_OF_GAME * (np.int64(own > best) - np.int64(own < best))


@kernel
def worth(s: Record, rules: Config, seat: Any) -> Any:
    """Return the value of a seat's pieces."""
    total = np.int64(0)
    for path in range(PATHS):
        space = np.int64(s.pieces[seat, path])
        number = space - rules.spaces
        total += SPACE * space if number <= 0 else SPACE * rules.spaces + NUMBER * (number - 1)
    return total
