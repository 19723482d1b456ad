"""The agents of a server."""

from __future__ import annotations

import contextlib
import json
import logging
from dataclasses import fields, replace
from typing import Any

import numpy as np

from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.policies import POLICIES, STRENGTHS, make_policy
from wotd_env.policy import Policy, ask, check_plays
from wotd_env.web.calls import Asked
from wotd_env.web.games import game_of
from wotd_env.web.refused import Refused
from wotd_env.web.requests import invalid

AGENTS = ("random", "greedy", "planner", "td", "deep", "ppo")
"""The standard agents."""

_SUBSTITUTE = "greedy"

_log = logging.getLogger("wotd_env.web")


class Agents:
    """The agents of a server by name: `STRENGTHS`, `AGENTS`, and `more`, the operator's agents.

    `words` maps the name of each agent to its description.
    """

    def __init__(self, more: dict[str, Policy] | None = None, patience: float = 10) -> None:
        self._patience = patience
        self._policies = {name: make_policy(name) for name in (*STRENGTHS, *AGENTS)} | (more or {})
        words = {name: strength.words for name, strength in STRENGTHS.items()}
        words |= {name: POLICIES[name].words.partition(";")[0] for name in AGENTS}
        own = dict.fromkeys(more or {}, "an agent of this server")
        self.words = own | words | own  # the operator's agents come first and replace others of the same name
        self._asked: dict[str, Asked] = {}

    def listed(self, rules: Rules) -> list[dict[str, Any]]:
        """Return all agents as JSON, one object for each agent.

        `level` is the place of the agent in `STRENGTHS`, counted from 1, or None for other agents. `why` is the reason
        why the agent does not play these rules, see `Refused.content`, or None if it plays them.
        """
        levels = {name: level for level, name in enumerate(STRENGTHS, 1)}
        found = []
        for name, words in self.words.items():
            why = None
            try:
                self.check(name, rules, "agent")
            except Refused as refused:
                why = refused.content()
            found.append({"name": name, "words": words, "level": levels.get(name), "why": why})
        return found

    def check(self, name: str, rules: Rules, field: str) -> None:
        """Raise Refused, with the name of the field, if an agent is unknown or does not play these rules."""
        if name not in self._policies:
            names = ", ".join(self.words)
            raise invalid(field, f"agent must be one of {names}, got {json.dumps(name)}")
        try:
            check_plays(self._policies[name], rules)
        except ImportError as error:
            _log.warning(f"the agent {name} cannot play: {error}")
            raise Refused(400, "software", field, agent=name) from None
        except (ValueError, OSError):
            raise Refused(400, "agent", field, agent=name, rules=self._obstacle(name, rules)) from None

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

        If the agent is too slow or fails, `greedy` chooses the action, and the note is "late" or "failed".
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
            note = "late"
        except Exception as error:
            _log.warning("agent %s failed: %s: %.200s", name, type(error).__name__, error)
            note = "failed"
        substitute = make_policy(_SUBSTITUTE)
        action = int(ask(substitute, game, state, np.random.default_rng())[0])
        return action, note
