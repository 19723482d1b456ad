"""Agents and advisors at work: each in a thread of its own, asked about the games of all tables together."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wotd_env.analysis import Advisor
from wotd_env.core.game import Game
from wotd_env.core.rules import MAX_PLAYERS, Rules
from wotd_env.core.state import States
from wotd_env.policies import POLICIES, make_policy
from wotd_env.policy import Policy, ask, check_plays

__all__ = ["AGENTS", "Agents", "Asked", "advisor_of", "game_of", "in_thread"]

AGENTS = ("random", "greedy", "planner", "td", "deep", "ppo")
"""The policies that everybody may have at a table; whoever starts the server can add others."""

_TOGETHER = 256  # games that are asked about in one call
_INSTEAD = "greedy"  # what chooses for an agent that fails

_log = logging.getLogger("wotd_env.web")


@functools.lru_cache(maxsize=256)
def game_of(rules: Rules) -> Game:
    """Return the game of some rules, in which every decision is one, the forced ones too."""
    return Game(rules, skip_forced=False)


@functools.lru_cache(maxsize=64)
def advisor_of(rules: Rules) -> Advisor:
    """Return what knows the equities of games of some rules."""
    return Advisor(game_of(rules))


class Asked:
    """A function of a batch of games, asked from the event loop about single ones.

    It runs in a thread, for one batch at a time: what comes in meanwhile is the next batch. So a slow one keeps nobody
    waiting but those that want it, and one that never ends does not keep the server from stopping.

    Args:
        answer: `answer(game, states)` returns a sequence with what is to be known of each game, STATE (N,).
        patience: seconds after which an answer is no longer waited for.
    """

    def __init__(self, answer: Callable[[Game, States], Sequence[Any]], patience: float) -> None:
        self._answer, self._patience = answer, patience
        self._waiting: dict[Rules, list[tuple[States, asyncio.Future[Any]]]] = defaultdict(list)
        self._work: asyncio.Task[None] | None = None
        self._since = 0.0  # when the present batch was begun

    async def __call__(self, rules: Rules, state: States) -> Any:
        """Return what is to be known of a game, STATE (1,).

        Raises:
            TimeoutError: if it takes too long.
            Exception: whatever the function raises.
        """
        loop = asyncio.get_running_loop()
        if self._work and loop.time() - self._since > self._patience:
            raise TimeoutError(f"no answer in {self._patience:g} s")
        answered: asyncio.Future[Any] = loop.create_future()
        self._waiting[rules].append((state.copy(), answered))
        if self._work is None:
            self._since = loop.time()
            self._work = loop.create_task(self._go_on())
        return await asyncio.wait_for(answered, self._patience)

    async def _go_on(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self._waiting:
                rules = next(iter(self._waiting))
                asked = [each for each in self._waiting.pop(rules) if not each[1].done()]
                for first in range(0, len(asked), _TOGETHER):
                    self._since = loop.time()
                    await self._ask(rules, asked[first : first + _TOGETHER])
        finally:
            self._work = None

    async def _ask(self, rules: Rules, asked: list[tuple[States, asyncio.Future[Any]]]) -> None:
        states = np.concatenate([state for state, _ in asked])
        try:
            answers = await in_thread(lambda: self._answer(game_of(rules), states))
        except Exception as error:
            if len(asked) == 1:
                _set(asked[0][1], error)
            else:  # one game that it cannot do is no reason to leave the others without
                for each in asked:
                    await self._ask(rules, [each])
            return
        for (_, answered), answer in zip(asked, answers, strict=True):
            _set(answered, answer)


async def in_thread(work: Callable[[], Any]) -> Any:
    """Return what is worked out in a new thread, which does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def run() -> None:
        try:
            answer = work()
        except Exception as error:
            answer = error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(_set, done, answer)

    threading.Thread(target=run, daemon=True).start()
    return await done


def _set(answered: asyncio.Future[Any], answer: Any) -> None:
    """Give an answer, or an error in place of one, to whoever still waits for it."""
    if answered.done():
        return
    if isinstance(answer, Exception):
        answered.set_exception(answer)
    else:
        answered.set_result(answer)


class Agents:
    """What plays the seats without a person.

    Args:
        more: name -> policy, beside `AGENTS`.
        patience: seconds for a decision, after which another agent decides.

    Attributes:
        words: name of an agent -> what it does.
    """

    def __init__(self, more: dict[str, Policy] | None = None, patience: float = 10) -> None:
        self._patience = patience
        self._policies: dict[str, Policy] = dict(more or {})
        self.words = dict.fromkeys(self._policies, "an agent of this server")
        for name in AGENTS:
            if name not in self._policies:
                self._policies[name] = make_policy(name)
                self.words[name] = POLICIES[name].words.partition(";")[0]
        self._asked: dict[str, Asked] = {}

    def check(self, name: str, rules: Rules) -> None:
        """Make sure that an agent plays some rules.

        Raises:
            ValueError, ImportError: if it does not; the message says why.
        """
        check_plays(self._policies[name], rules)

    def players(self, name: str) -> list[int]:
        """Return the numbers of players for which an agent plays the basic game."""
        able = []
        for players in range(2, MAX_PLAYERS + 1):
            try:
                self.check(name, Rules(players=players))
            except (ValueError, ImportError, OSError):
                continue
            able.append(players)
        return able

    async def choose(self, name: str, rules: Rules, state: States) -> tuple[int, str | None]:
        """Return a legal action for a game, STATE (1,), and what there is to say of how it came about."""
        if name not in self._asked:
            rng = np.random.default_rng()
            choose = functools.partial(_choose, self._policies[name], rng)
            self._asked[name] = Asked(choose, self._patience)
        game = game_of(rules)
        try:
            action = int(await self._asked[name](rules, state))
            game.check(state, [action])
        except TimeoutError:
            what = "did not answer in time"
        except Exception as error:
            _log.warning("agent %s failed: %s: %.200s", name, type(error).__name__, error)
            what = "failed"
        else:
            return action, None
        instead = make_policy(_INSTEAD)
        action = int(ask(instead, game, state, np.random.default_rng())[0])
        return action, f"{name} {what}; {_INSTEAD} chose"


def _choose(policy: Policy, rng: np.random.Generator, game: Game, states: States) -> list[int]:
    actions: list[int] = ask(policy, game, states, rng).tolist()
    return actions
