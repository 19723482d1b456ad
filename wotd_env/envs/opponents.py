"""The policies of the seats that do not learn.

The policies `random` and `greedy` are *scripts*: they run in compiled code. The draws of `random` are derived from the
game's random stream, but do not advance it. So the dice do not depend on the policies, and scripts play the same moves
in every batch, process and interface.

All other policies run outside of compiled code. They draw from the random generator of the environment. They get copies
of the games with different random streams, so they cannot foresee the dice.

Relative seats are counted from the learner's seat in turn order: 1 is the seat after the learner.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game, IllegalActionError
from wotd_env.core.rules import Phase
from wotd_env.core.state import ROW, STATE, Record, Records, States, scratch
from wotd_env.core.stream import mix
from wotd_env.policies import Script, greedy, make_policy, random, script_of
from wotd_env.policy import Policy, ask, check_plays

SCRIPT_BITS = (len(Script) - 1).bit_length()


class Opponents:
    """The policies of the seats that do not learn.

    Args:
        game: the rules.
        opponents: one policy for all opponents, as an object or a name; or a list or tuple with one policy for each
            opponent, in turn order after the learner.

    Attributes:
        policies: the policies of the relative seats 1 to n - 1.
        scripts: the scripts of all relative seats as one integer, SCRIPT_BITS bits for each seat. A tuple or a record
            would be slower.
        outside: whether at least one policy is not a script.
    """

    def __init__(self, game: Game, opponents: str | Policy | Sequence[str | Policy]) -> None:
        others = game.rules.players - 1
        given: Sequence[Any] = opponents if isinstance(opponents, list | tuple) else [opponents] * others
        if len(given) != others:
            raise ValueError(
                f"opponents must be one policy, or {others} for {others + 1} players, got {len(given)}: {opponents!r}"
            )
        self.game = game
        self.policies: list[Policy] = [make_policy(opponent) for opponent in given]
        for policy in self.policies:
            check_plays(policy, game.rules)
        scripts = [script_of(policy) for policy in self.policies]
        self.scripts = sum(script << SCRIPT_BITS * seat for seat, script in enumerate(scripts, 1))
        self.outside = Script.OUTSIDE in scripts
        # distinct, so that `decide` calls each policy only once for all its seats
        self._players = list({id(policy): policy for policy in self.policies}.values())
        # for each relative seat, the index of its policy in _players
        self._player = np.array([-1, *(self._players.index(policy) for policy in self.policies)])

    def play(self, state: States, learner: int, rng: np.random.Generator) -> None:
        """Play one game until the seat `learner` is to decide or the game is over.

        Update `state`, STATE (1,), in place.
        """
        while not play_in_one(state, self.game.config, learner, self.scripts, scratch()):
            self.decide(state, np.array([learner], np.int8), np.zeros(1, np.int64), rng)

    def decide(
        self, state: States, learners: NDArray[np.int8], waiting: NDArray[np.int64], rng: np.random.Generator
    ) -> None:
        """Take one action in each game that waits for a policy outside of compiled code.

        `waiting` contains the indices of these games. `learners` contains the learner's seat in every game.

        Raises:
            ValueError: if a policy plays an illegal action. By then, other policies may have acted in other games.
        """
        rows = state.view(ROW)
        relative = (state["player"].take(waiting) - learners.take(waiting)) % self.game.rules.players
        players = self._player[relative]
        for player, policy in enumerate(self._players):
            chosen = waiting[players == player]
            if chosen.size:
                games = rows[chosen].view(STATE)
                try:
                    self.game.step(games, ask(policy, self.game, games, rng))
                except IllegalActionError as error:
                    raise ValueError(f"opponent {policy!r} plays an illegal action: {error}") from error
                rows[chosen] = games.view(ROW)


@kernel
def play_in_one(states: Records, config: Configs, learner: Any, scripts: Any, scratch: Records) -> Any:
    """Call `play_scripts` for one game, STATE (1,), and return its result."""
    return play_scripts(states[0], config[0], learner, scripts, scratch[0])


@kernel
def play_scripts(s: Record, rules: Config, learner: Any, scripts: Any, after: Record) -> Any:
    """Play the seats that have scripts until the learner or a seat without a script is to decide, or the game is over.

    Return False if a seat without a script is to decide.
    """
    while s.phase != Phase.OVER and s.player != learner:
        relative = s.player - learner
        relative += rules.players * (relative < 0)
        script = scripts >> SCRIPT_BITS * relative & (1 << SCRIPT_BITS) - 1
        if script == Script.OUTSIDE:
            return False
        # Two decisions never get the same bits: every roll advances the stream, and between two rolls each phase occurs
        # at most once. `starts.restart` uses this formula with phase 0, in which no seat decides.
        bits = mix(~s.rng ^ np.uint64(s.phase))
        engine.step(s, rules, choose(script, s, rules, after, bits))
    return True


@inlined
def choose(script: Any, s: Record, rules: Config, after: Record, bits: Any) -> Any:
    """Return the action of a compiled `Script` for the seat to act; `after` is working memory.

    Compiled code cannot look up a function in a table, so each script has a branch here.
    """
    if script == Script.GREEDY:
        return greedy.choose(s, rules, after)
    return random.choose(s, rules, bits)
