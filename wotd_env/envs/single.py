"""The Gymnasium environment: a learner plays one seat, and policies play the other seats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.spaces import Discrete
from numpy.typing import DTypeLike, NDArray

from wotd_env.core.arguments import as_actions, check_choice
from wotd_env.core.game import Game, final_rewards
from wotd_env.core.rules import Phase, rules_for
from wotd_env.core.state import States
from wotd_env.envs.common import Format, OneGame, as_integer, take_action, warn_of_illegal
from wotd_env.envs.opponents import Given, Opponents
from wotd_env.envs.results import NO_ACTION, NOT_LOST, no_result, result_of
from wotd_env.envs.starts import Draws, fixed_seat, read_layouts
from wotd_env.rendering import FPS, RENDER_MODES, Renderer

# an int, because comparisons with the enumeration member are slow
_OVER = int(Phase.OVER)


class WayOfTheDragonEnv(OneGame, gymnasium.Env[Any, Any]):
    """Way of the Dragon for one learner: `gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0")`.

    A step is one decision of the learner, followed by the decisions of the other seats until the learner decides again
    or the game ends. The reward of the last step is the result of the learner's seat (R10); all earlier rewards are 0.
    The turn limit `max_turns` also terminates a game, with the reward 0 (R16). Copies made with `copy.deepcopy` or
    `pickle` continue the running game with the same dice.

    Observations are int8 (D,), and `info["action_mask"]` is int8 (A,) at every reset and step. With `mask_in="obs"`
    observations are `{"observation": int8 (D,), "action_mask": int8 (A,)}`. The mask is all ones after the end.

    Every info also contains `"seat"`, int8, the learner's seat; and `"illegal_action"`, int64, which is -1 unless the
    learner lost by an illegal action. The entries `"scores"` and `"places"`, int8 (n,), and `"winners"`, bool (n,), are
    zeros until the step that terminates the game; then they contain the points of every seat, its place from 1, and
    whether it has won.

    With dead pieces (`layouts`, or the rule `dead_pieces`), `"layout"` is the field `dead` of the record, uint16 (5,).
    Layouts that differ only in the order of their paths are equal after `np.sort(layout)`.

    A game may end before the learner's first decision. In this case `reset` returns the final position. The next step
    ignores its action and returns the reward.

    Args:
        opponents: one policy for all opponents, as an object or a name; or a list with one policy for each opponent, in
            turn order after the learner; or a `wotd_env.envs.opponents.Pool`. With a pool, `info["opponent"]` is the
            name of the policy in this game. Policies other than `random` and `greedy` draw from `np_random`. No policy
            can foresee the dice.
        seat: the learner's seat, or `"random"` to draw it for every game.
        mask_in: the place of the action mask, `"info"` or `"obs"`.
        observation_dtype: `int8` or `float32`, as a NumPy dtype or its name.
        mask_dtype: `int8` (needed by `Discrete.sample`) or `bool`, as a NumPy dtype or its name.
        encoding: `"one_hot"`, `"compact"`, `"tokens"` or `"features"`, see docs/reference/encodings.md.
        layouts: layouts of dead pieces, such as `"#./../../../.."` (R15). Each game draws one of them.
        illegal: the effect of an illegal action. `"lose"`: the game ends with the reward of a loss,
            `info["illegal_action"]` is the action, and a warning explains the first illegal action.
            `"raise"`: `IllegalActionError` is raised, and the game does not change.
        render_mode: one of `wotd_env.rendering.RENDER_MODES`, or None. `"human"` shows every reset and step in a
            window.
        **rules: the fields of `wotd_env.Rules`.

    Attributes:
        game: the `Game` that is played; `game.observation_layout` names the parts of an observation.
        layouts: the dead pieces of the layouts that games draw, uint16 (L, 5); L is 0 without the argument.

    Raises:
        TypeError: for an unknown argument.
        ValueError: for an invalid value.
    """

    metadata = {"render_modes": RENDER_MODES, "render_fps": FPS}  # noqa: RUF012  # as in Gymnasium

    def __init__(
        self,
        *,
        opponents: Given = "greedy",
        seat: int | str = "random",
        mask_in: str = "info",
        observation_dtype: DTypeLike = "int8",
        mask_dtype: DTypeLike = "int8",
        encoding: str = "one_hot",
        layouts: Sequence[str] | None = None,
        illegal: str = "lose",
        render_mode: str | None = None,
        **rules: Any,
    ) -> None:
        self.game = Game(rules_for(type(self), rules), encoding=encoding)
        self.layouts = read_layouts(self.game.rules, layouts)
        self._opponents = Opponents(Game(self.game.rules), opponents, self.layouts)
        self.illegal = check_choice("illegal", illegal, ("lose", "raise"))
        self.render_mode = render_mode
        self._renderer = Renderer(self.game, render_mode)
        self._format = Format(self.game, mask_in, observation_dtype, mask_dtype)
        self.observation_space = self._format.space()
        self.action_space = Discrete(self.game.num_actions)
        self._fixed_seat = fixed_seat(self.game.rules, seat)
        self._shows_layout = bool(len(self.layouts) or self.game.rules.dead_pieces)
        self._seat = self._choice = 0  # the learner's seat, and the choice of opponents in this game
        self._state: States | None = None
        self._ended = True
        self._lost = False  # whether the learner lost the game by an illegal action
        self._warned = False

    @property
    def opponents(self) -> Given:
        """The opponents of the next games. An assigned value has no effect on the running game.

        The argument `opponents` must have been a `Pool` if the assigned value is one, and vice versa, because the keys
        of the infos do not change.
        """
        return self._opponents.given

    @opponents.setter
    def opponents(self, opponents: Given) -> None:
        new = self._opponents.replaced(opponents)
        self._choice = int(new.keep(self._opponents, np.array([self._choice]))[0])
        self._opponents = new

    @property
    def seat(self) -> int:
        """The learner's seat in the running game or, after the end, in the last game."""
        self._started("seat")
        return self._seat

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start a game and let the other seats play up to the learner's first decision.

        Args:
            seed: the seed of the dice and of the opponents' draws. The dice are the same as after
                `Game.reset(1, seed=seed)`. Without a seed, dice and draws continue the random streams of the last game;
                the first game gets a random seed.
            options: `"starting_player"`, the seat that starts; or `"state"`, the record of a game to continue. A
                continued game keeps its future dice unless `seed` is given.

        Returns:
            The observation and the info.

        Raises:
            ValueError: for an invalid seed or option; the running game continues.
        """
        draws = Draws(self._fixed_seat, self._opponents.cumulative, self.layouts)
        state, self._seat, self._choice = self._next_game(seed, options, self._seat, self._lost, draws)
        super().reset(seed=None if seed is None else int(seed))  # Gymnasium rejects NumPy integers
        self._state, self._lost = state, False
        self._let_others_play(state)
        self._ended = False
        self._render_for_human()
        return self._look()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Take the learner's action.

        Returns:
            Observation, reward, terminated, truncated, info.

        Raises:
            ResetNeeded: before the first reset and after the end of a game.
            IllegalActionError: for an illegal action with `illegal="raise"`; nothing has changed.
            TypeError: for an action that is not an integer; nothing has changed.
        """
        if self._ended:
            raise ResetNeeded("no game is running: call reset() before step()")
        state = self._started("step")
        player = take_action(self.game, state, action)
        reward, terminated = 0.0, False
        if player < 0:
            if self.illegal == "raise":
                self.game.check(state, [as_integer(action)])  # raises IllegalActionError
            if not self._warned:
                self._warned = True
                warn_of_illegal(self.game.explain_illegal(state, as_integer(action)))
            reward, terminated = self.game.spec.min_reward, True
            self._lost = True
        elif player != self._seat:
            self._let_others_play(state)
            if state["phase"][0] == _OVER:
                reward = float(final_rewards(self.game, state)[0, self._seat])
                terminated = True
        self._ended = terminated
        observation, info = self._look()
        if self._lost:
            (info["illegal_action"],) = as_actions([as_integer(action)], 1)
        if terminated:
            info |= result_of(self.game, state, self._seat if self._lost else NOT_LOST)
        self._render_for_human()
        return observation, reward, terminated, False, info

    def _let_others_play(self, state: States) -> None:
        try:
            self._opponents.play(state, self._seat, self._choice, self.np_random)
        except BaseException:  # an error or Ctrl-C has interrupted the opponents' turns: end the game
            self._ended = True
            raise

    def _look(self) -> tuple[Any, dict[str, Any]]:
        """Return the learner's observation and the info."""
        observation, mask = self._view(self._seat, self._lost)
        info: dict[str, Any] = self._format.info(mask)
        info["seat"], info["illegal_action"] = np.int8(self._seat), NO_ACTION
        if self._shows_layout:
            info["layout"] = self._started("look")["dead"][0].copy()
        if self._opponents.names is not None:
            info["opponent"] = self._opponents.names[self._choice]
        return self._format.show(observation, mask), info | no_result(self.game.rules.players)

    def action_masks(self) -> NDArray[Any]:
        """Return the learner's action mask, `mask_dtype` (A,)."""
        return self._view(self._seat, self._ended)[1].view(self._format.mask_dtype)
