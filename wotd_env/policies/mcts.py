"""`mcts:PLAYOUTS`: Monte Carlo tree search with explicit chance nodes, a baseline for research.

It is UCT over states. A node of the tree is a decision. The dice that follow an action are drawn, and the state that
they lead to is looked up, so every outcome of the dice has a node of its own, and different ways to one state share
theirs. A playout goes down the tree to the first new state, lets `greedy` end the turn there, and ends with the
hand-made value of `planner`, or with the result if the game is over. On the way every seat maximises its own value
(max^n). The action that was tried most is played.

It is no strong player, because the dice leave few visits to a node (docs/policies.md has figures).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import check_integer
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase
from wotd_env.core.state import STATE, Record, Records, States, scratch
from wotd_env.planning.values import write_value
from wotd_env.policies import greedy

PLAYOUTS = 1000
MOST_PLAYOUTS = 100_000
"""They take some hundred megabytes."""
EXPLORATION = 0.1


class Mcts:
    """Plays the action that a tree search tried most.

    Args:
        playouts: playouts for each decision, also as text.

    Raises:
        ValueError: unless that is an integer from 1 to 100,000.
    """

    def __init__(self, playouts: int | str = PLAYOUTS) -> None:
        given = int(playouts) if isinstance(playouts, str) and playouts.isdecimal() else playouts
        self.playouts = check_integer("playouts", given, 1, MOST_PLAYOUTS)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`; every game uses 64 bits of `rng`, however the games are batched."""
        bits = rng.integers(0, 1 << 64, len(state), dtype=np.uint64)
        out = np.empty(len(state), np.int64)
        game.apply(self._search, state, bits, out)
        return out

    def _search(self, states: Records, config: Configs, bits: Any, out: Any) -> None:
        """Search a part of a batch, one state after the other in the same memory."""
        work = np.empty(1, STATE)
        nodes = 1 << (2 * self.playouts).bit_length()  # a power of two, at most half full
        actions = num_actions(int(config["players"][0]))
        tree = _Tree(
            np.empty(nodes, np.uint64),
            np.empty((nodes, actions)),
            np.empty((nodes, actions)),
            np.empty((self.playouts + 1, 3), np.int64),
        )
        _search_all(states, config, bits, self.playouts, work, work.view(np.uint64), scratch(), tree, out)


class _Tree(NamedTuple):
    """A tree with T places for nodes."""

    key: NDArray[np.uint64]  # (T,) what tells states apart, 0 for a free place
    tries: NDArray[np.float64]  # (T, A) how often an action was tried
    total: NDArray[np.float64]  # (T, A) the values it brought to the seat to act
    way: NDArray[np.int64]  # (playouts + 1, 3) the place, the action and the seat of every step of a playout


@kernel
def _search_all(
    states: Records,
    config: Configs,
    bits: Any,
    playouts: Any,
    work: Any,
    words: Any,
    scratch: Records,
    tree: Any,
    out: Any,
) -> None:
    """Choose for every game; `words` are those of the record `work`, `scratch` is what `greedy` needs."""
    rules = config[0]
    s = work[0]
    value = np.empty(rules.players)
    for i in range(states.shape[0]):
        work[0] = states[i]
        if s.phase == Phase.OVER:
            out[i] = 0
            continue
        tree.key[:] = 0
        _visit(tree, words)
        root = _place(tree, words)
        for playout in range(playouts):
            work[0] = states[i]
            s.rng = engine.mix(bits[i] + np.uint64(playout))
            _playout(s, rules, words, scratch, tree, value)
        out[i] = tree.tries[root].argmax()


@kernel
def _playout(s: Record, rules: Config, words: Any, scratch: Records, tree: Any, value: Any) -> None:
    """Play from a record that is in the tree to the first state that is not, and note what that is worth."""
    steps = 0
    new = False
    while not new and s.phase != Phase.OVER:
        place = _place(tree, words)
        action = _promising(s, rules, scratch, tree, place)
        way = tree.way[steps]
        way[0], way[1], way[2] = place, action, s.player
        steps += 1
        engine.step(s, rules, action)
        new = s.phase != Phase.OVER and _visit(tree, words)
    turn = s.turn
    while s.phase != Phase.OVER and s.turn == turn:
        engine.step(s, rules, greedy.choose(s, rules, scratch))
    if s.phase == Phase.OVER:
        engine.rewards(s, rules, value)
    else:
        write_value(s, rules, value)
    for step in range(steps):
        way = tree.way[step]
        tree.tries[way[0], way[1]] += 1
        tree.total[way[0], way[1]] += value[way[2]]


@kernel
def _promising(s: Record, rules: Config, scratch: Records, tree: Any, place: Any) -> Any:
    """Return the action with the highest upper confidence bound, or that of `greedy` if none has been tried."""
    tries, total = tree.tries[place], tree.total[place]
    tried = tries.sum()
    if tried == 0:
        return greedy.choose(s, rules, scratch)
    mean, spread = total.sum() / tried, np.log(tried + 1)
    actions, swaps = engine.legal(s, rules, engine.shown(s))
    best = np.int64(0)
    most = -np.inf
    for action in range(tries.size):
        if engine.contains(actions, swaps, action):
            # An action that has not been tried counts as tried once, with the mean of the others.
            bound = total[action] / tries[action] if tries[action] else mean
            bound += EXPLORATION * np.sqrt(spread / max(tries[action], 1))
            if bound > most:
                most = bound
                best = np.int64(action)
    return best


@kernel
def _place(tree: Any, words: Any) -> Any:
    """Return the place of a state in the tree, or a free one if it has none."""
    key = _key(words)
    last = np.uint64(tree.key.size - 1)
    place = key & last
    while tree.key[place] != key and tree.key[place] != 0:
        place = (place + engine.BIT) & last
    return np.int64(place)


@kernel
def _visit(tree: Any, words: Any) -> Any:
    """Make sure that a state is in the tree; return whether it is new."""
    place = _place(tree, words)
    if tree.key[place]:
        return False
    tree.key[place] = _key(words)
    tree.tries[place] = 0
    tree.total[place] = 0
    return True


@kernel
def _key(words: Any) -> Any:
    """Return a number that tells records apart, whatever their streams (word 0)."""
    key = np.uint64(0)
    for word in range(1, words.size):
        key = engine.mix(key ^ words[word])
    return key | engine.BIT
