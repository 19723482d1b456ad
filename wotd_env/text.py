"""The game for agents that read and write text, such as language models.

    game = TextGame(Rules(spaces=1), opponents="oracle")
    message = game.reset(seed=0)
    while True:
        message, reward, terminated, truncated, info = game.step(model(message))

`TextTable` seats a text agent on every seat. `decisions` yields single positions with the equity of every legal action.

The action of a reply is the text of its last `<action>...</action>`, a word of `wotd_env.notation`. All other text of a
reply is ignored. No message repeats a reply or contains the name of an opponent.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from wotd_env import notation, symmetry
from wotd_env.core.arguments import check_choice, check_integer, check_integers, check_seed
from wotd_env.core.game import Game
from wotd_env.core.position import SEATS, letters
from wotd_env.core.rules import PATHS, Phase, Rules
from wotd_env.core.state import States
from wotd_env.envs.opponents import other_seats
from wotd_env.envs.starts import ANY_SEAT, fixed_seat
from wotd_env.notation.games import outcome
from wotd_env.notation.messages import describe, explain
from wotd_env.notation.words import sort_kept
from wotd_env.planning.planner import TIE
from wotd_env.policy import Policy, ask, check_plays
from wotd_env.wrappers.judge import Judge, Source

__all__ = ["LONGEST", "TextGame", "TextTable", "decisions", "explain", "grade", "read_reply"]

LONGEST = 100_000  #: characters at the end of a reply that are read
_ACTION = re.compile(r"<action>([^<>]*)</action>")
Layout = str | Sequence[int] | None


class TextTable:
    """A game in which every seat can be a text agent.

    Example::

        table = TextTable(Rules(spaces=1))
        table.reset(seed=0)
        while not table.over:
            info = table.reply(models[table.seat](table.message()))

    Decisions with one legal action are taken at once. The same seed gives the same dice as in every other interface.

    Args:
        rules: the rules; by default the basic game of two players.
        reward: `"regret"` for minus the regret of each decision, or `"result"` for the result of the game at its end.
        retries: how many replies without a legal action a seat may give in each decision. The next such reply forfeits
            the game: with `"regret"`, it costs as much as a certain loss.
        show_legal: whether messages list the legal actions.
        layout: a permutation of the paths' names in all messages: path e has the name of path `layout[e]`.
            `"random"` draws a new permutation in each game. See `wotd_env.symmetry`.
        source: the judge of decisions, see `wotd_env.wrappers.Judge`; only used with `reward="regret"`.

    Raises:
        ValueError: for an invalid argument, or rules without a solution.
        FileNotFoundError: if there is no table for the rules; the message has the command that makes it.
    """

    def __init__(
        self, rules: Rules | None = None, *, reward: str = "regret", retries: int = 1, show_legal: bool = True,
        layout: Layout = None, source: Source = "table",
    ) -> None:  # fmt: skip
        self.rules = Rules() if rules is None else rules
        # Forced decisions are taken here, so that messages show them.
        self.game = Game(self.rules, skip_forced=False)
        self.retries = check_integer("retries", retries, 0, 1000)
        self.show_legal, self.layout = show_legal, check_layout(layout)
        self.reward = check_choice("reward", reward, ("regret", "result"))
        self._judge = Judge(self.game, source) if reward == "regret" else None
        self._state: States | None = None

    def reset(self, seed: int | None = None) -> None:
        """Start a game. Raise ValueError for an invalid seed."""
        number = _seed(seed)
        self._state = self.game.reset(1, seed=number)
        self._moved_to = draw_layout(self.rules, self._state, self.layout, np.random.default_rng(number))
        self._events: list[tuple[str, str]] = []  # the turn and its seat; a roll or a decision
        # the number of events before the last reply of each seat
        self._seen = [-1] * self.rules.players
        self._left, self._fault, self._forfeited = self.retries, "", -1
        self._add_roll()
        self._take_forced()

    @property
    def state(self) -> States:
        """The game, STATE (1,), a copy, with the future dice and without the layout."""
        return self._started().copy()

    @property
    def seat(self) -> int:
        """The seat to act."""
        return int(self._started()["player"][0])

    @property
    def over(self) -> bool:
        """Whether the game has ended."""
        return bool(self._started()["phase"][0] == Phase.OVER) or self._forfeited >= 0

    @property
    def results(self) -> NDArray[np.float64]:
        """The result of each seat, float64 (n,); zeros before the end. If a seat forfeits, the other seats win."""
        if self._forfeited < 0:
            return np.array(self.game.rewards(self._started())[0], np.float64)
        loss = self.game.spec.min_reward
        results = np.full(self.rules.players, -loss / (self.rules.players - 1))
        results[self._forfeited] = loss
        return results

    def legal_words(self) -> list[str]:
        """Return the legal actions of the seat to act, in the layout of the messages."""
        return [] if self.over else list(notation.legal_words(self.game, self._shown()))

    def message(self, seat: int | None = None) -> str:
        """Return the message for a seat, by default the seat to act.

        It contains the rules until the first reply of the seat, the events since its last reply, and the position.
        """
        state, seat = self._started(), self.seat if seat is None else seat
        check_integer("seat", seat, 0, self.rules.players - 1)
        parts = []
        if self._seen[seat] < 0:
            parts.append(explain(self.rules, self.retries) + f"\n\nYou are {SEATS[seat]}.")
        if self._fault and seat == self.seat:
            parts.append(self._fault)
        lines: list[str] = []
        for head, event in self._events[max(self._seen[seat], 0) :]:
            if not lines or not lines[-1].startswith(f"{head} "):
                lines.append(head)
            lines[-1] += f" {event}"
        if lines:
            parts.append("\n".join(["Rolls and decisions:", *lines]))
        if self.over:
            parts.append(self._end())
        else:
            legal = self.show_legal and seat == int(state["player"][0])
            parts.append(describe(self.game, self._shown(), legal))
        return "\n\n".join(parts)

    def reply(self, text: str) -> dict[str, Any]:
        """Take the reply of the seat to act.

        Returns:
            A dict: `"seat"`; `"action"`, the word of the decision or None; `"fault"`, the reason why the reply has no
            legal action, or `""`; `"reward"`, the reward of the seat; `"result"`, the result of the seat, 0
            before the end. With `reward="regret"`, decisions and forfeits also have `"equity"`, the equity before the
            decision, and `"regret"`.

        Raises:
            ResetNeeded: if no game is running.
        """
        if self.over:
            raise ResetNeeded("no game is running: call reset() before reply()")
        state, seat, shown = self._started(), self.seat, self._shown()
        info: dict[str, Any] = {"seat": seat, "action": None, "fault": "", "reward": 0.0, "result": 0.0}
        words = notation.legal_words(self.game, shown)
        action = -1
        try:
            info["action"] = read_reply(text, words)
            back = np.argsort(self._moved_to)
            action = int(symmetry.permute_actions(self.rules, shown, [words[info["action"]]], back)[0])
        except ValueError as error:
            info["fault"] = str(error)
            if self._left:
                self._left -= 1
                self._seen[seat] = len(self._events)
                self._fault = f"{error} Attempts left for this decision: {self._left + 1}."
                return info
        if self._judge:
            equity, regret = self._judge(state, [action])
            info |= {"equity": float(equity[0]), "regret": float(regret[0])}
        if action < 0:
            self._forfeited = seat
        else:
            self.play(action)
        info["result"] = float(self.results[seat])
        info["reward"] = 0.0 - info["regret"] if self._judge else info["result"]
        return info

    def play(self, action: int) -> None:
        """Play an action for the seat to act. `action` is its number without the layout, as policies return it.

        Raises:
            IllegalActionError: if the action is illegal.
        """
        self.game.check(self._started(), [action])
        self._seen[self.seat] = len(self._events)
        self._left, self._fault = self.retries, ""
        self._decide(action)
        self._take_forced()

    def _decide(self, action: int) -> None:
        state, shown = self._started(), self._shown()
        (number,) = symmetry.permute_actions(self.rules, state, [action], self._moved_to)
        self._add(notation.action_text(self.game, shown, int(number)))
        self.game.decide(state, [action])
        if state["phase"][0] == Phase.CHANCE:
            self.game.roll(state)
            self._add_roll()

    def _take_forced(self) -> None:
        while not self.over:
            legal = np.flatnonzero(self.game.legal_actions(self._started())[0])
            if len(legal) > 1:
                return
            self._decide(int(legal[0]))

    def _add_roll(self) -> None:
        self._add(f"[{letters(self._shown()['dice'][0])}]")

    def _add(self, event: str) -> None:
        (record,) = self._started()
        self._events.append((f"{record['turn'] + 1}. {SEATS[record['player']]}", event))

    def _end(self) -> str:
        if self._forfeited >= 0:
            return f"The game is over. {SEATS[self._forfeited]} has forfeited it."
        end = outcome(self.game, self._started())
        return (
            f"The game is over. By seats, the result is {end['Result']}, and the points are {end['Points']}."
        )

    def _shown(self) -> States:
        return symmetry.permute_states(self.rules, self._started(), self._moved_to)

    def _started(self) -> States:
        if self._state is None:
            raise ResetNeeded("no game has started: call reset() first")
        return self._state


class TextGame:
    """A game of one text agent against policies, with the methods of a Gymnasium environment.

    Against a perfect opponent, the expected sum of the rewards is the expected result minus the value of the start, so
    no agent gains by forfeiting a game. Against weaker opponents, an agent that plays badly for a whole game can lose
    more than a forfeit costs.

    Args:
        rules: the rules; by default the basic game of two players.
        opponents: one policy for all opponents, as an object or a name, or a list with one policy for each opponent, in
            turn order after the agent. Policies get the state, not the text.
        seat: the agent's seat, or `"random"` to draw it for every game.
        **options: the keyword arguments of `TextTable`.

    Attributes:
        table: the table of the game.
        seat: the agent's seat in this game.
    """

    def __init__(
        self, rules: Rules | None = None, opponents: str | Policy | Sequence[str | Policy] = "greedy",
        seat: int | str = "random", **options: Any,
    ) -> None:  # fmt: skip
        self.table = TextTable(rules, **options)
        self._policies = other_seats(opponents, self.table.rules.players - 1)
        for policy in self._policies:
            check_plays(policy, self.table.rules)
        self._fixed_seat = fixed_seat(self.table.rules, seat)
        self.seat, self._ended = 0, True

    def reset(self, seed: int | None = None) -> str:
        """Start a game and return the agent's first message. Raise ValueError for an invalid seed."""
        seed = _seed(seed)
        self._rng = np.random.default_rng(seed)
        drawn = int(self._rng.integers(self.table.rules.players))
        self.seat = drawn if self._fixed_seat == ANY_SEAT else self._fixed_seat
        self.table.reset(seed)
        self._let_others_play()
        self._ended = False
        return self.table.message(self.seat)

    def step(self, reply: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Take the agent's reply.

        Returns:
            Message, reward, terminated, truncated (always False), info. The info is that of `TextTable.reply`.

        Raises:
            ResetNeeded: if no game is running.
        """
        if self._ended:
            raise ResetNeeded("no game is running: call reset() before step()")
        info: dict[str, Any]
        if self.table.over:  # before the agent's first decision
            info = dict.fromkeys(("reward", "result"), 0.0) | {"seat": self.seat, "action": None, "fault": ""}
        else:
            info = self.table.reply(reply)
            self._let_others_play()
        self._ended = self.table.over
        info["result"] = float(self.table.results[self.seat])
        if self.table.reward == "result":
            info["reward"] = info["result"]
        return self.table.message(self.seat), info["reward"], self._ended, False, info

    def _let_others_play(self) -> None:
        table = self.table
        # An error or Ctrl-C below ends the game; otherwise the next reply would be an opponent's.
        self._ended = True
        while not table.over and table.seat != self.seat:
            policy = self._policies[(table.seat - self.seat) % table.rules.players - 1]
            state = table.state
            table.play(int(ask(policy, table.game, state, self._rng)[0]))


def decisions(
    split: str = "test", rules: Rules | None = None, *, file: str | Path | None = None,
    size: int | None = None, layout: Layout = None, seed: int = 0, show_legal: bool = True,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Yield single decisions as questions, each a dict that `json.dumps` accepts.

    The keys of a question:

    - `prompt`: the rules and the position
    - `actions`: words of the legal actions
    - `equities`: their equities, exact with two players
    - `errors`: standard errors of the equities, 0 with two players
    - `gap`: difference of the best two equities
    - `loss`: equity of a certain loss, which an answer without a legal action gets
    - `kind`, `stage`: kind of the decision and third of the game, see `wotd_env.benchmark`
    - `game`: number of the game; decisions of the same game are dependent
    - `id`: name of the question

    Args:
        split: `"train"`, `"validation"` or `"test"`; only test positions are bundled, see `wotd_env.benchmark.load`.
        rules: the rules of the positions.
        file: a file written by `wotd positions`.
        size: number of positions for each pair of kind and stage; by default all.
        layout: see `TextTable`; `"random"` draws a layout for each position.
        seed: seed of the random layouts.
        show_legal: whether the prompt lists the legal actions.
    """
    from wotd_env.analysis import KINDS
    from wotd_env.benchmark import STAGES, load

    layout = check_layout(layout)
    positions = load(split, rules, file=file)
    if size is not None:
        positions = positions.first(check_integer("size", size, 1))
    rules = positions.rules
    game, rng = Game(rules), np.random.default_rng(_seed(seed))
    head = f"{rules.players}-{rules.powers}-{rules.spaces}-{split}"
    for row in range(len(positions.state)):
        state = positions.state[row : row + 1]
        moved_to = draw_layout(rules, state, layout, rng)
        shown = symmetry.permute_states(rules, state, moved_to)
        equities, errors = (
            symmetry.permute_masks(rules, state, values[row : row + 1], moved_to)[0]
            for values in (positions.equity, positions.error)
        )
        words = notation.legal_words(game, shown)
        legal = [*words.values()]
        best, second = -np.sort(-equities[legal].astype(np.float64))[:2]
        kind, stage = KINDS[positions.kind[row]], STAGES[positions.stage[row]]
        number = int(positions.game[row])
        yield {
            "prompt": f"{explain(rules, 0)}\n\nYou are {SEATS[state['player'][0]]}.\n\n"
            + describe(game, shown, show_legal),
            "actions": [*words],
            "equities": equities[legal].tolist(),
            "errors": errors[legal].tolist(),
            "gap": float(best - second),
            "loss": game.spec.min_reward,
            "kind": kind,
            "stage": stage,
            "game": number,
            "id": f"{head}-{number}-{kind.replace(' ', '-')}-{stage}",
        }


def grade(question: dict[str, Any], reply: str) -> dict[str, Any]:
    """Grade the reply to a question of `decisions`.

    Returns:
        A dict: `"action"`, the word of the decision or None; `"fault"`, as in `TextTable.reply`; `"regret"`, the equity
        that the decision loses, that of a certain loss if no legal action was given; `"agrees"`, whether no other
        action is better.
    """
    equities = dict(zip(question["actions"], question["equities"], strict=True))
    best, action, fault = max(equities.values()), None, ""
    try:
        action = read_reply(reply, equities)
    except ValueError as error:
        fault = str(error)
    regret = best - (question["loss"] if action is None else equities[action])
    return {
        "action": action,
        "fault": fault,
        "regret": regret,
        "agrees": action is not None and regret <= TIE,
    }


def read_reply(reply: str, words: Iterable[str]) -> str:
    """Return the legal word in the last `<action>...</action>` among the last `LONGEST` characters of a reply.

    Args:
        reply: the reply.
        words: the legal actions. The kept dice of a reply may be in another order.

    Raises:
        ValueError: if there is no such word. The message contains no part of the reply.
    """
    found = _ACTION.findall(reply[-LONGEST:]) if isinstance(reply, str) else []
    if not found:
        raise ValueError("The reply has no action: write it as <action>...</action>.")
    word = sort_kept(found[-1].strip())
    if word not in set(words):
        raise ValueError("The text in the last <action>...</action> is not a legal action.")
    return word


def _seed(seed: int | None) -> int:
    return secrets.randbits(63) if seed is None else int(check_seed(seed))


def check_layout(layout: Layout) -> Layout:
    """Return a layout. Raise ValueError for an invalid one."""
    if layout is None or (isinstance(layout, str) and layout == "random"):
        return layout
    order = None if isinstance(layout, str) else check_integers("layout", layout, (PATHS,)).tolist()
    if order is None or sorted(order) != list(range(PATHS)):
        raise ValueError(
            f"layout must be None, 'random' or each path from 0 to {PATHS - 1} once, got {layout!r}"
        )
    return tuple(order)


def draw_layout(rules: Rules, state: States, layout: Layout, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the new number of each path, int64 (5,), for one game, STATE (1,)."""
    order = np.arange(PATHS)
    if layout == "random":
        free = order
        if rules.immunity and rules.powers == "own":  # these rules tie the colors in play to their paths
            free = np.sort(state["color"][0, rules.players :]).astype(np.int64)
        order[free] = rng.permutation(free)
    elif layout is not None:
        order = np.array(layout, np.int64)
    return order
