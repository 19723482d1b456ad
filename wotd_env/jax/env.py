"""The game as an environment with the interface of pgx."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from wotd_env.core import batch, dice
from wotd_env.core.actions import num_actions
from wotd_env.core.arguments import check_seed
from wotd_env.core.game import Game
from wotd_env.core.observation import layout
from wotd_env.core.rules import Phase, Rules, rules_for
from wotd_env.core.state import STATE, States, as_state
from wotd_env.jax import rules as play
from wotd_env.jax.rules import COLORS, Moves, State

_THROWS = [np.bincount(dice.rolls_after(keep), minlength=dice.NUM_ROLLS) for keep in range(dice.NUM_KEEPS)]
with np.errstate(divide="ignore"):
    CHANCE_LOGITS = np.log(np.array(_THROWS) / dice.THROW_SIZE[:, None]).astype(np.float32)
"""float32 (462, 252): entry [k, r] is the log-probability of roll r when all dice outside keep k are rolled."""

INTEGERS = ("dead", "turn", "phase", "rolls_left", "used")
"""Integer fields with the same values in a STATE record and in a `State`."""


class WayOfTheDragon:
    """Way of the Dragon with the interface of pgx's environments.

    All methods except `from_records` and `to_records` work under `jax.jit` and `jax.vmap`.
    If a move is the only legal action, `step` plays it at once, as `wotd_env.Game` does.

    Args:
        rules: the rules; `start="loser"` is not supported, because a state does not contain the loser of the last game.
        **fields: the fields of `Rules`, if `rules` is not given.

    Attributes:
        num_players: the number n of players.
        num_actions: the number A of actions.
        observation_shape: the shape (D,) of an observation.
        observation_layout: a dict from the name of each part of an observation to its slice, in order.
    """

    id = "way_of_the_dragon"
    version = "v0"

    def __init__(self, rules: Rules | None = None, **fields: Any) -> None:
        self.rules = rules = rules_for(WayOfTheDragon, fields, rules)
        if rules.start == "loser":
            raise ValueError("start must be 'dragons' or a seat number in JAX, got 'loser'")
        self.num_players = rules.players
        self.num_actions = num_actions(rules.players)
        self.observation_layout = layout(rules)
        self.observation_shape = (max(part.stop for part in self.observation_layout.values()),)
        self._completed = jax.jit(jax.vmap(self._complete))

    def __reduce__(self) -> tuple[type[WayOfTheDragon], tuple[Rules]]:
        return type(self), (self.rules,)  # a jitted function cannot be pickled

    def init(self, key: Array) -> State:
        """Return a new game at its first decision (R1, R15).

        The starting player is the seat `rules.start`. With `start="dragons"`, the starting player is uniformly random.
        """
        return self._complete(play.new_game(self.rules, key))

    def step(self, state: State, action: Array, key: Array) -> State:
        """Take an action, roll the dice if a roll is due, and continue to the next decision.

        An illegal action ends the game: the seat to act gets -1, and the other seats get equal shares of 1. A
        game that is over does not change, and its rewards are 0.
        """
        bits = jax.random.bits(key, (2,), jnp.uint32)
        return self._after(state, action, *play.advance(self.rules, state, action, bits))

    def decide(self, state: State, action: Array) -> State:
        """Take an action, but do not roll. This method is the first half of `step`, for tree search.

        If the new state waits for a roll, call `throw` next. Illegal actions end the game as in `step`.
        """
        return self._after(state, action, *play.decide(self.rules, state, action))

    def throw(self, state: State, roll: Array) -> State:
        """Set the dice of a game that waits for a roll. `roll` is an index of `chance_logits(state)`, 0 to 251.

        This method is the second half of `step`, but does not play a move that is the only legal action. If no roll is
        due, it only sets the rewards to 0.
        """
        rewards = jnp.zeros_like(state.rewards)
        return self._complete(play.throw(self.rules, state, roll).replace(rewards=rewards))

    def chance_logits(self, state: State) -> Array:
        """Return the log-probabilities of the 252 rolls, float32 (252,).

        The faces of roll i are `wotd_env.core.dice.KEEPS[i]`. If no roll is due, the current roll has probability 1.
        """
        return jnp.asarray(CHANCE_LOGITS)[state._keep]

    def observe(self, state: State, player: Array | int | None = None) -> Array:
        """Return the observation, int8 (D,), of the seat `player` or, by default, of the seat to act."""
        return play.observe(self.rules, state, player)

    def from_records(self, records: States) -> State:
        """Convert games of the engine, STATE (N,), to states with a batch axis. The random streams are ignored.

        Raises:
            ValueError: for an invalid record.
        """
        game = Game(self.rules)
        game.check(records)
        records = as_state(records)
        n, player = self.num_players, records["player"].astype(np.int32)
        seats = (player[:, None] + np.arange(n)) % n
        order = (records["color"][:, None] == COLORS).all(2).argmax(1)
        faces = records["dice"] & 7
        integers = {
            **{f"_{name}": records[name] for name in INTEGERS},
            "current_player": player,
            "_step_count": np.zeros_like(player),
            "_pieces": np.take_along_axis(records["pieces"], seats[:, :, None], 1),
            "_colors": order,
            "_keep": dice.INDEX_PARTS[np.arange(faces.shape[1]), faces].sum(1),
        }
        state = State(
            **{name: jnp.asarray(value, jnp.int32) for name, value in integers.items()},
            rewards=jnp.asarray(game.rewards(records)),
            terminated=jnp.asarray(records["phase"] == Phase.OVER),
            truncated=jnp.zeros(len(records), bool),
            _perfection=jnp.asarray(records["perfection"] != 0),
            _expired=jnp.asarray(records["expired"] != 0),
            observation=jnp.zeros(len(records)),  # `_completed` sets this and the next two fields
            legal_action_mask=jnp.zeros(len(records)),
            _legal=jnp.zeros(len(records)),
        )
        completed: State = self._completed(state)
        return completed

    def to_records(self, state: State, seed: int = 0) -> States:
        """Convert states to games of the engine, STATE (N,). A state without a batch axis becomes one game.

        For a game lost by an illegal action, the record contains the position before this action. `seed` is the seed
        of the random streams, as in `wotd_env.Game.reset`.
        """
        axes = np.ndim(state.current_player)
        every: Any = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(-1, *leaf.shape[axes:]), state)
        games, n = len(every.current_player), self.num_players
        records = np.zeros(games, STATE)
        batch.seed(records, np.ones(games, bool), check_seed(seed))
        seats = (np.arange(n) - every.current_player[:, None]) % n
        records["pieces"][:, :n] = np.take_along_axis(every._pieces, seats[:, :, None], 1)
        records["players"] = n
        records["player"] = every.current_player
        records["color"] = COLORS[every._colors]
        records["dice"] = dice.KEEP_DICE[every._keep]
        for name in (*INTEGERS, "perfection", "expired"):
            records[name] = getattr(every, f"_{name}")
        return records

    def _after(self, state: State, action: Array, new: State, moves: Moves) -> State:
        """Return the state after a step: handle illegal actions and ended games, and set the rewards."""
        over = state.terminated
        illegal = ~over & ~play.is_legal(self.rules, state._legal, action)
        refused = over | illegal
        new = jax.tree.map(lambda old, new: jnp.where(refused, old, new), state, new)
        ended = new.terminated & ~over
        n = self.num_players
        penalty = jnp.where(np.arange(n) == state.current_player, -1.0, np.float32(1 / (n - 1)))
        result = jnp.where(ended, play.rewards(self.rules, new), 0.0)
        new = new.replace(
            rewards=jnp.where(illegal, penalty, result),
            terminated=new.terminated | illegal,
            _step_count=state._step_count + ~over,
        )
        return self._complete(new, moves)

    def _complete(self, state: State, moves: Moves | None = None) -> State:
        """Fill in the observation and the legal actions."""
        legal = play.legal_actions(self.rules, state, moves or play.moves_of(self.rules, state))
        return state.replace(
            _legal=legal,
            legal_action_mask=play.mask_of(self.rules, legal),
            observation=play.observe(self.rules, state),
        )


def auto_reset(
    step: Callable[[State, Array, Array], State], init: Callable[[Array], State]
) -> Callable[[State, Array, Array], State]:
    """Return a step function that starts a new game when a game ends, like pgx's `auto_reset`.

    The last step of a game returns the first state of the new game. Only `rewards` and `terminated` are from
    the finished game.
    """

    def stepped(state: State, action: Array, key: Array) -> State:
        no = jnp.zeros((), bool)
        state = step(state.replace(terminated=no), action, key)
        over = state.terminated
        new = init(jax.random.fold_in(key, 1))
        new = new.replace(rewards=state.rewards, terminated=over)
        chosen: State = jax.tree.map(lambda old, new: jnp.where(over, new, old), state, new)
        return chosen

    return stepped
