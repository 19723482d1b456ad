"""OpenEnv serves games of one text agent against policies, for trainers such as TRL.

    from wotd_env.adapters.openenv import make_app

    app = make_app(Rules(spaces=1), opponents="greedy")  # for uvicorn

A client sends replies and gets messages; see `wotd_env.text.TextGame`. Each session has its own game. Sessions with the
same seed start the same game with the same dice, so all rollouts of a group can use one seed.
"""

from __future__ import annotations

import functools
from typing import Any
from uuid import uuid4

from openenv.core.env_server import Action, Environment, Observation, State, create_app
from pydantic import Field

from wotd_env import text
from wotd_env.core.rules import Rules


class TextAction(Action):
    """The reply of an agent."""

    reply: str = Field(max_length=10 * text.LONGEST, description="A reply with <action>...</action>")


class TextObservation(Observation):
    """The message of a game, with the fields `done` and `reward`; `metadata` is the info of `TextGame.step`."""

    message: str = Field(description="The rules, the rolls and decisions, and the position")


class TextEnvironment(Environment[TextAction, TextObservation, State]):
    """A game for OpenEnv. The arguments are those of `wotd_env.text.TextGame`."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, rules: Rules | None = None, **options: Any) -> None:
        super().__init__()
        self._game = text.TextGame(rules, **options)
        self._state = State()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> TextObservation:
        """Start the game of a seed."""
        message = self._game.reset(seed)
        self._state = State(episode_id=episode_id or str(uuid4()), step_count=0)
        return TextObservation(message=message, done=False, reward=None)

    def step(self, action: TextAction, timeout_s: float | None = None, **options: Any) -> TextObservation:
        """Take a reply."""
        message, reward, done, _, info = self._game.step(action.reply)
        self._state.step_count += 1
        return TextObservation(message=message, done=done, reward=reward, metadata=info)

    @property
    def state(self) -> State:
        """The episode and its number of steps; the game stays hidden, because it contains the future dice."""
        return self._state


def make_app(rules: Rules | None = None, *, sessions: int = 64, **options: Any) -> Any:
    """Return the ASGI application of a server.

    Args:
        rules: the rules; by default the basic game of two players.
        sessions: the largest number of concurrent games.
        **options: the other arguments of `wotd_env.text.TextGame`.

    Raises:
        ValueError, FileNotFoundError: see `TextGame`.
    """
    make = functools.partial(TextEnvironment, rules, **options)
    make()  # raises errors before the server starts
    return create_app(make, TextAction, TextObservation, env_name="wotd", max_concurrent_envs=sessions)
