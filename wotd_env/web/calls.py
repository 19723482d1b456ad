"""Slow calls, which run in threads beside the event loop: in batches, with deadlines."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any, TypeVar

import numpy as np

from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.web.games import game_of

_TOGETHER = 256  # maximum number of games in one call
_MAX_STUCK = 16  # maximum number of late calls of one function; each late call occupies a thread

Awaited = TypeVar("Awaited", bound=asyncio.Future[Any])
_log = logging.getLogger("wotd_env.web")


class Asked:
    """Collects requests, each about one game, and answers them in batches.

    The slow function `answer(game, states)` returns one answer for each position. It runs in a thread, on one batch at
    a time. A request waits at most `patience` seconds. If `answer` takes longer, the next batch gets a new thread.
    """

    def __init__(self, name: str, answer: Callable[[Game, States], Sequence[Any]], patience: float) -> None:
        self._name, self._answer, self._patience = name, answer, patience
        self._waiting: dict[Rules, list[tuple[States, asyncio.Future[Any]]]] = defaultdict(list)
        self._work: asyncio.Task[None] | None = None
        self._stuck: set[asyncio.Future[Any]] = set()

    async def __call__(self, rules: Rules, state: States) -> Any:
        """Return the answer for a game, STATE (1,); raise TimeoutError if the answer is late or too many calls hang."""
        if len(self._stuck) >= _MAX_STUCK:
            raise TimeoutError(f"{_MAX_STUCK} calls of {self._name} have not returned")
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._waiting[rules].append((state.copy(), answered))
        if self._work is None:
            self._work = asyncio.create_task(self._answer_all())
        return await asyncio.wait_for(answered, self._patience)

    async def _answer_all(self) -> None:
        try:
            while self._waiting:
                rules = next(iter(self._waiting))
                asked = [each for each in self._waiting.pop(rules) if not each[1].done()]
                for first in range(0, len(asked), _TOGETHER):
                    await self._answer_batch(rules, asked[first : first + _TOGETHER])
        finally:
            self._work = None

    async def _answer_batch(self, rules: Rules, asked: list[tuple[States, asyncio.Future[Any]]]) -> None:
        states = np.concatenate([state for state, _ in asked])
        call = in_thread(lambda: self._answer(game_of(rules), states))
        await asyncio.wait({call}, timeout=self._patience)
        answers: Sequence[Any]
        if not call.done():
            self._stuck.add(call)
            call.add_done_callback(self._stuck.discard)
            what = "%s has not answered in %g s: a new worker replaces the stuck one (%d of at most %d are stuck)"
            _log.error(what, self._name, self._patience, len(self._stuck), _MAX_STUCK)
            answers = [TimeoutError(f"no answer in {self._patience:g} s")] * len(asked)
        elif error := call.exception():
            if len(asked) > 1:  # ask for each game separately: a single game may have caused the error
                for each in asked:
                    await self._answer_batch(rules, [each])
                return
            answers = [error]
        else:
            answers = call.result()
        for (_, answered), answer in zip(asked, answers, strict=True):
            if answered.done():
                continue  # nobody waits for this answer
            if isinstance(answer, BaseException):
                answered.set_exception(answer)
            else:
                answered.set_result(answer)


def in_thread(work: Callable[[], Any]) -> asyncio.Future[Any]:
    """Call a function in a new daemon thread; return the function's result as a future."""
    done: Future[Any] = Future()
    done.set_running_or_notify_cancel()

    def run() -> None:
        try:
            done.set_result(work())
        except Exception as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return quiet(asyncio.wrap_future(done))


def quiet(future: Awaited) -> Awaited:
    """Return the future; keep asyncio from logging that its exception was never retrieved."""
    future.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return future
