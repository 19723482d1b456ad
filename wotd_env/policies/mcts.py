"""`mcts:PLAYOUTS`: Monte Carlo tree search with explicit chance nodes, a baseline for research.

The search is UCT over states. A node is a decision. Each outcome of the dice leads to its own node, and transpositions
share a node. A playout descends to the first state that is not in the tree; from there, `greedy` finishes the turn. The
playout then adds the value of the position after this turn to every visited node. If the turn ends the game, the value
is the reward. Every seat maximizes its own value (max^n).

The policy is weak: the dice have many outcomes, so each node gets few visits. The results are in
docs/results/experiments.md.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import check_integer
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import STATE, Record, Records, States, scratch
from wotd_env.core.stream import mix
from wotd_env.planning import learned
from wotd_env.planning.learned import Features, Weights
from wotd_env.planning.values import write_value
from wotd_env.planning.vectors import BLOCK
from wotd_env.policies import greedy
from wotd_env.policies.td import BundledValue

PLAYOUTS = 1000
MOST_PLAYOUTS = 100_000  # the tree of this many playouts takes several hundred megabytes
EXPLORATION = 0.1


class Mcts:
    """A policy that plays the most visited action of a tree search.

    Args:
        playouts: number of playouts for each decision, 1 to 100,000, as an integer or text.
        learned: use the values of the bundled `td` networks instead of the hand-made value.
    """

    def __init__(self, playouts: int | str = PLAYOUTS, learned: bool = False) -> None:
        given = int(playouts) if isinstance(playouts, str) and playouts.isdecimal() else playouts
        self.playouts = check_integer("playouts", given, 1, MOST_PLAYOUTS)
        self.learned = learned

    def check_rules(self, rules: Rules) -> None:
        """If the policy uses learned values, check that a network for these rules is bundled."""
        if self.learned:
            self._network(rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,). Each game uses 64 bits of `rng`, whatever the batch size."""
        bits = rng.integers(0, 1 << 64, len(state), dtype=np.uint64)
        out = np.empty(len(state), np.int64)
        game.apply(functools.partial(self._search, *self._network(game.rules)), state, bits, out)
        return out

    def _network(self, rules: Rules) -> tuple[Features, Weights]:
        """Return the network. If `learned` is false, `rows` is empty, and the search uses the hand-made value."""
        if self.learned:
            value = BundledValue().for_rules(rules)
            return value.features, value.network
        shapes = {**learned.shapes(rules, BLOCK), "rows": (0, BLOCK)}
        weights = (np.empty(shape, np.float32) for shape in shapes.values())
        return Features.of(rules), Weights(*weights)

    def _search(
        self, features: Features, network: Weights, states: Records, config: Configs, bits: Any, out: Any
    ) -> None:
        """Search from every state in `states`, which is one thread's part of the batch."""
        state = np.empty(1, STATE)
        nodes = 1 << (2 * self.playouts).bit_length()  # a power of two; at most half of the slots are used
        actions = num_actions(int(config["players"][0]))
        tree = _Tree(
            key=np.empty(nodes, np.uint64),
            tries=np.empty((nodes, actions)),
            total=np.empty((nodes, actions)),
            way=np.empty((self.playouts + 1, 3), np.int64),
            state=state,
            words=state.view(np.uint64),
            scratch=scratch(),
            features=features,
            network=network,
        )
        _search_all(states, config, bits, tree, out)


class _Tree(NamedTuple):
    """The data of a search: a tree with T slots for nodes, scratch memory, and the network that evaluates states."""

    key: NDArray[np.uint64]  # (T,) hash of the state in each slot, 0 for a free slot
    tries: NDArray[np.float64]  # (T, A) visits of each action
    total: NDArray[np.float64]  # (T, A) sum of playout values after each action, for the seat to act
    way: NDArray[np.int64]  # (playouts + 1, 3) the slot, the action and the seat at every step of a playout
    state: States  # STATE (1,), the state of the playout
    words: NDArray[np.uint64]
    scratch: States  # STATE (2,), memory for `greedy`
    features: Features
    network: Weights


@kernel
def _search_all(states: Records, config: Configs, bits: Any, tree: _Tree, out: Any) -> None:
    """Write the action of every game to `out`, int64 (N,). `bits`, uint64 (N,), seed the dice of the playouts."""
    s = tree.state[0]
    values = np.empty((1, config[0].players))
    for i in range(states.shape[0]):
        tree.state[0] = states[i]
        if s.phase == Phase.OVER:
            out[i] = 0
            continue
        tree.key[:] = 0
        _visit(tree)
        root = _slot(tree)
        for playout in range(tree.way.shape[0] - 1):
            tree.state[0] = states[i]
            s.rng = mix(bits[i] + np.uint64(playout))
            _playout(s, config, tree, values)
        out[i] = tree.tries[root].argmax()


@kernel
def _playout(s: Record, config: Configs, tree: _Tree, values: Any) -> None:
    rules, after, value = config[0], tree.scratch[0], values[0]
    steps = 0
    new = False
    while not new and s.phase != Phase.OVER:
        slot = _slot(tree)
        action = _promising(s, rules, after, tree, slot)
        way = tree.way[steps]
        way[0], way[1], way[2] = slot, action, s.player
        steps += 1
        engine.step(s, rules, action)
        new = s.phase != Phase.OVER and _visit(tree)
    turn = s.turn
    while s.phase != Phase.OVER and s.turn == turn:
        engine.step(s, rules, greedy.choose(s, rules, after))
    if s.phase == Phase.OVER:
        engine.rewards(s, rules, value)
    elif tree.network.rows.size:
        learned.write_values(tree.state, config, tree.features, tree.network, values)
    else:
        write_value(s, rules, value)
    for step in range(steps):
        way = tree.way[step]
        tree.tries[way[0], way[1]] += 1
        tree.total[way[0], way[1]] += value[way[2]]


@kernel
def _promising(s: Record, rules: Config, after: Record, tree: Any, slot: Any) -> Any:
    """Return the action with the highest upper confidence bound, or the action of `greedy` if no action has visits."""
    tries, total = tree.tries[slot], tree.total[slot]
    tried = tries.sum()
    if tried == 0:
        return greedy.choose(s, rules, after)
    mean, spread = total.sum() / tried, np.log(tried + 1)
    actions, swaps = engine.legal(s, rules, engine.dice_index(s))
    best = np.int64(0)
    most = -np.inf
    for action in range(tries.size):
        if engine.contains(actions, swaps, action):
            bound = total[action] / tries[action] if tries[action] else mean
            bound += EXPLORATION * np.sqrt(spread / max(tries[action], 1))
            if bound > most:
                most = bound
                best = np.int64(action)
    return best


@kernel
def _slot(tree: Any) -> Any:
    """Return the slot of `tree.state`, or a free slot if the tree does not contain this state."""
    key = _key(tree.words)
    last = np.uint64(tree.key.size - 1)
    slot = key & last
    while tree.key[slot] != key and tree.key[slot] != 0:
        slot = (slot + engine.BIT) & last
    return np.int64(slot)


@kernel
def _visit(tree: Any) -> Any:
    """Add `tree.state` to the tree, and return whether it is new."""
    slot = _slot(tree)
    if tree.key[slot]:
        return False
    tree.key[slot] = _key(tree.words)
    tree.tries[slot] = 0
    tree.total[slot] = 0
    return True


@kernel
def _key(words: Any) -> Any:
    """Return a nonzero hash of all words of a record except word 0, the random stream."""
    key = np.uint64(0)
    for word in range(1, words.size):
        key = mix(key ^ words[word])
    return key | engine.BIT
