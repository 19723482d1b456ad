"""The agents of a server, and the advisor, which computes equities."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wotd_env.analysis import Advisor
from wotd_env.core.game import Game
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.planning.planner import plan
from wotd_env.planning.values import hand_made
from wotd_env.policies import POLICIES, make_policy
from wotd_env.policy import Policy, ask, check_plays
from wotd_env.solver import TableError, cache_file, load

AGENTS = ("random", "greedy", "planner", "td", "deep", "ppo")
"""The standard agents."""

_TOGETHER = 256  # maximum number of games in one call of an agent
_SUBSTITUTE = "greedy"
_MAX_STUCK = 16  # maximum number of late calls of one agent; each late call occupies a thread

Awaited = TypeVar("Awaited", bound=asyncio.Future[Any])
_log = logging.getLogger("wotd_env.web")


@functools.lru_cache(maxsize=256)
def game_of(rules: Rules) -> Game:
    """Return the engine for these rules. It does not skip forced decisions."""
    return Game(rules, skip_forced=False)


@functools.lru_cache(maxsize=64)
def advisor_of(rules: Rules) -> Advisor:
    """Return the advisor for these rules."""
    return Advisor(game_of(rules))


@functools.lru_cache(maxsize=8)
def guarantor_of(rules: Rules) -> Advisor | None:
    """Return an advisor whose equities are guarantees: a seat can force them against a coalition of the other seats.

    Return None unless the game has three players and this machine has the solved table of `rules`.
    """
    try:
        return Advisor(game_of(rules), load(cache_file(rules))) if rules.players == 3 else None
    except (ValueError, OSError):
        return None


def guarantees(game: Game, states: States) -> list[float | None]:
    """Return the equity that the seat to act can force in each position, STATE (N,); None if it is unknown."""
    guarantor = guarantor_of(game.rules)
    try:
        return guarantor.analyze(states).equity.tolist() if guarantor else [None] * len(states)
    except TableError as error:  # damage in the table is found only when the damaged part is read
        _log.error("%s", error)
        return [None] * len(states)


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


@dataclass
class Sampled:
    """Samples actions with probabilities proportional to exp(equity / temperature), using the equities of `planner`."""

    temperature: float  # positive, in units of equity

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return a sampled action for each game, int64 (N,)."""
        equity = plan(game, state, hand_made)[0]
        noise = rng.gumbel(size=equity.shape)  # Gumbel-max trick: the argmax is a sample of the softmax
        actions: NDArray[np.int64] = (equity / self.temperature + noise).argmax(1)
        return actions


class Strength(NamedTuple):
    """An agent. `plays` is the name of its policy, or the temperature of `Sampled`."""

    words: str
    plays: str | float

    def make(self) -> Policy:
        """Return the policy of the agent."""
        return make_policy(self.plays) if isinstance(self.plays, str) else Sampled(self.plays)


STRENGTHS = {
    "learner": Strength("plays at random", "random"),
    "newcomer": Strength("has a vague idea of a good move", 0.25),
    "beginner": Strength("often overlooks the best move", 0.09),
    "very easy": Strength("sometimes overlooks the best move", 0.045),
    "easy": Strength("collects the dice of one path, without looking ahead", "greedy"),
    "strong": Strength("plans each turn", "planner"),
    "near perfect": Strength("plans each turn with a learned value", "td"),
}
"""The agents that are named after their strength, weakest first.

`Sampled` fills the gap in strength between `random` and `greedy`.
"""


class Agents:
    """The agents of a server by name: `STRENGTHS`, `AGENTS`, and `more`, the operator's agents.

    `words` maps the name of each agent to its description.
    """

    def __init__(self, more: dict[str, Policy] | None = None, patience: float = 10) -> None:
        self._patience = patience
        self._policies = {name: strength.make() for name, strength in STRENGTHS.items()}
        self._policies |= {name: make_policy(name) for name in AGENTS} | (more or {})
        words = {name: strength.words for name, strength in STRENGTHS.items()}
        words |= {name: POLICIES[name].words.partition(";")[0] for name in AGENTS}
        own = dict.fromkeys(more or {}, "an agent of this server")
        self.words = own | words | own  # the operator's agents come first and replace others of the same name
        self._asked: dict[str, Asked] = {}

    def listed(self, rules: Rules) -> list[dict[str, Any]]:
        """Return all agents as JSON, one object for each agent.

        `level` is the place of the agent in `STRENGTHS`, counted from 1, or None for other agents. `plays` is True if
        the agent plays these rules. If not, `why` is the reason.
        """
        levels = {name: level for level, name in enumerate(STRENGTHS, 1)}
        found = []
        for name, words in self.words.items():
            level, why = levels.get(name), self.why_not(name, rules)
            found.append({"name": name, "words": words, "level": level, "plays": not why, "why": why})
        return found

    def why_not(self, name: str, rules: Rules) -> str:
        """Return the reason why an agent does not play these rules, or an empty string if it plays them."""
        try:
            check_plays(self._policies[name], rules)
        except ImportError as error:
            _log.warning(f"the agent {name} cannot play: {error}")
            return f"{name} needs software that this server does not have"
        except (ValueError, OSError):
            return f"{name} is not made for {self._obstacle(name, rules)}"
        return ""

    def _obstacle(self, name: str, rules: Rules) -> str:
        """Return the one rule that an agent cannot play, such as "spaces=6", or "these rules" if there are several."""
        for field in fields(Rules):
            with contextlib.suppress(ValueError, ImportError, OSError):
                usual: dict[str, Any] = {field.name: field.default}
                check_plays(self._policies[name], replace(rules, **usual))
                return f"{field.name}={getattr(rules, field.name)}"
        return "these rules"

    async def choose(self, name: str, rules: Rules, state: States) -> tuple[int, str | None]:
        """Return an agent's action in the game `state`, STATE (1,), and a note, which is normally None.

        If the agent fails or is too slow, `greedy` chooses the action, and the note is the reason.
        """
        if name not in self._asked:
            rng, policy = np.random.default_rng(), self._policies[name]
            self._asked[name] = Asked(
                f"agent {name}", lambda game, states: ask(policy, game, states, rng).tolist(), self._patience
            )
        game = game_of(rules)
        try:
            action = int(await self._asked[name](rules, state))
            game.check(state, [action])
            return action, None
        except TimeoutError:
            what = "did not answer in time"
        except Exception as error:
            _log.warning("agent %s failed: %s: %.200s", name, type(error).__name__, error)
            what = "failed"
        substitute = make_policy(_SUBSTITUTE)
        action = int(ask(substitute, game, state, np.random.default_rng())[0])
        return action, f"{name} {what}; {_SUBSTITUTE} chose"
