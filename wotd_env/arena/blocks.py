"""Play a block: every seating has the same dice, and a policy that breaks the rules forfeits its game."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.arena.luck import Equity, luck
from wotd_env.arena.tournament import Block, Tournament, game_seed, generator, seatings
from wotd_env.core import engine
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game, IllegalActionError
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import Records, States
from wotd_env.core.words import describe_action
from wotd_env.policy import Policy, ask, check_plays, play_out

__all__ = [
    "Blamed",
    "BrokenPolicyError",
    "Forfeit",
    "GameResults",
    "PlayedBlock",
    "play_block",
    "replay",
    "results_dtype",
]

_NO_ACTION = -1


class BrokenPolicyError(RuntimeError):
    """A policy failed. The message names it and ends with its traceback if it raised."""


class Blamed:
    """A policy whose errors name it.

    Args:
        name: name of the policy.
        policy: the policy.
    """

    def __init__(self, name: str, policy: Policy) -> None:
        self._name, self._policy = name, policy

    def check_rules(self, rules: Rules) -> None:
        """Check that the policy plays games with these rules, see `wotd_env.policy.check_plays`."""
        check_plays(self._policy, rules)

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return the actions of the policy.

        Raises:
            BrokenPolicyError: if it raises, or does not return actions.
            IllegalActionError: if it returns illegal ones.
        """
        before = state.copy()  # a policy may change its input
        try:
            actions = self._policy.act(game, state, rng)
        except Exception as error:
            words = f"{type(error).__name__}: {error}{_own_traceback(error)}"
            raise BrokenPolicyError(f"policy {self._name!r} failed: {words}") from error
        try:
            game.check(before, actions)
        except IllegalActionError as error:
            words = f"policy {self._name!r} failed: {error}"
            raise IllegalActionError(error.game, error.action, error.legal, words) from None
        except (ValueError, TypeError) as error:
            raise BrokenPolicyError(f"policy {self._name!r} failed: {error}") from None
        return actions


class Forfeit(NamedTuple):
    """A game that a policy forfeited, with the data to show it again with `replay`."""

    policy: str
    seats: tuple[str, ...]
    """The policy in each seat."""
    seat: int
    duplicate: int
    game_seed: int
    moves: tuple[int, ...]
    """All earlier actions, of all seats."""
    reason: str
    traceback: str = ""
    """Traceback of the policy in the first game of a block that it forfeits by raising; otherwise empty."""

    def __str__(self) -> str:
        return (
            f"{self.policy} in seat {self.seat} of {', '.join(self.seats)}: {self.reason} "
            f"(game seed {self.game_seed}, after {len(self.moves)} actions)"
        )


GameResults = NDArray[np.void]
"""Results of games: `results_dtype` (G,)."""


class PlayedBlock(NamedTuple):
    """The results of a block."""

    games: GameResults
    """(size * n,): the result of each game, in order."""
    forfeits: list[Forfeit]


def results_dtype(players: int) -> np.dtype[np.void]:
    """Return the dtype of a game's result."""
    return np.dtype(
        [
            ("duplicate", "i8"),
            ("turns", "u2"),
            ("truncated", "u1"),
            ("forfeit", "i1"),  # the seat that forfeited, or -1
            ("place", "i1", (players,)),  # [seat] -> index into the matchup
            ("points", "i1", (players,)),  # [seat]
            ("rank", "f4", (players,)),  # [seat], 1 is best; equals share the mean of their ranks
            ("share", "f4", (players,)),  # [seat], of the win: 1, or 1/w for each of w winners, or 0
            ("luck", "f4", (players,)),  # [seat], in units of `share`; 0 if not measured
        ]
    )


def replay(rules: Rules, game_seed: int, moves: tuple[int, ...]) -> States:
    """Return the position, STATE (1,), of a game started with `game_seed` after some actions of all seats."""
    game = Game(rules)
    state = game.reset(1, seed=game_seed)
    for action in moves:
        game.step(state, [action])
    return state


_CALLERS = (__file__, ask.__code__.co_filename)
"""The files between the arena and a policy, which are left out of its traceback."""


class _FatalCallError(Exception):
    """The next call must not be made, because it is known not to return."""


def play_block(
    tournament: Tournament,
    policies: Mapping[str, Policy],
    block: Block,
    equity: Equity | None = None,
    fatal_calls: Mapping[int, str] | None = None,
    on_call: Callable[[int], None] = lambda call: None,
    untried: frozenset[str] = frozenset(),
) -> PlayedBlock:
    """Play all games of a block side by side.

    If a policy raises, it is asked again game by game. It forfeits the games for which it raises again, and those for
    which it returns an illegal action. A forfeited game ends at once: the policy is last, the others share the win.

    Args:
        tournament: rules and seed.
        policies: name -> policy, at least those of the matchup.
        block: the block.
        equity: measures the luck of the dice.
        fatal_calls: call -> why it must not be made: it is known not to return. Calls of `Policy.act` are numbered from
            1. All games of such a call are forfeited.
        on_call: called with the number of every call before it is made, and with 0 after it.
        untried: policies that make their first decision in this block.

    Raises:
        BrokenPolicyError: if an untried policy fails in every game that it is first asked about.
    """
    rules, matchup, n = tournament.rules, block.matchup, tournament.rules.players
    game = Game(rules)
    duplicates = block.first + np.repeat(np.arange(block.size), n)
    places = seatings(np.arange(block.first, block.first + block.size), n).reshape(-1, n)
    first_seed = game_seed(tournament.seed, matchup, block.first)
    state = np.repeat(game.reset(block.size, seed=first_seed), n)

    names = sorted(set(matchup))
    sits = np.array([names.index(name) for name in matchup])[places]
    asker = _Asker(
        game,
        [policies[name] for name in names],
        [generator(tournament.seed, block, name) for name in names],
        fatal_calls or {},
        on_call,
    )

    failed: dict[int, str] = {}  # game -> why
    raised: dict[int, str] = {}  # the first such game of a policy -> traceback

    def choose(policy: int, asked: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ask a policy; end the games that it forfeits."""
        nonlocal untried
        actions, reasons = asker(policy, state[asked])
        if names[policy] in untried and len(reasons) == asked.size:
            raise BrokenPolicyError(
                f"policy {names[policy]!r} failed in its first decision: {reasons[0]}"
                + _own_traceback(asker.error)
            )
        untried = untried - {names[policy]}
        failed.update((int(asked[i]), reason) for i, reason in reasons.items())
        raised.update((int(asked[i]), words) for i, words in asker.tracebacks.items())
        state["phase"][asked[list(reasons)]] = Phase.OVER
        return actions

    moves = [actions.astype(np.int16) for actions in play_out(game, state, sits, choose)]

    results = np.zeros(len(state), results_dtype(n))
    results["duplicate"], results["place"] = duplicates, places
    results["turns"], results["truncated"] = state["turn"], state["truncated"]
    results["points"] = game.scores(state)
    results["forfeit"] = -1
    results["forfeit"][list(failed)] = state["player"][list(failed)]
    _settle(game, state, results)
    log = np.array(moves).T
    if equity is not None:
        results["luck"] = luck(rules, equity, first_seed, places.shape, log)
    forfeits = []
    for i, reason in sorted(failed.items()):
        seats, seat = tuple(names[k] for k in sits[i]), int(state["player"][i])
        taken = tuple(log[i][log[i] != _NO_ACTION].tolist())
        seed = game_seed(tournament.seed, matchup, int(duplicates[i]))
        duplicate, words = int(duplicates[i]), raised.get(i, "")
        forfeits.append(Forfeit(seats[seat], seats, seat, duplicate, seed, taken, reason, words))
    return PlayedBlock(results, forfeits)


class _Asker:
    """Asks policies for actions and checks their answers."""

    def __init__(
        self,
        game: Game,
        policies: list[Policy],
        generators: list[np.random.Generator],
        fatal_calls: Mapping[int, str],
        on_call: Callable[[int], None],
    ) -> None:
        self.game, self.policies, self.generators = game, policies, generators
        self.fatal_calls, self.on_call = fatal_calls, on_call
        self.calls = 0
        self.error: Exception | None = None  # that was raised when a policy was asked last
        self.raised: set[int] = set()  # the policies that forfeited a game by raising
        self.tracebacks: dict[
            int, str
        ] = {}  # if the last call was the first to add to these: game -> traceback

    def __call__(self, policy: int, state: States) -> tuple[NDArray[np.int64], dict[int, str]]:
        """Return legal actions, or -1 for forfeited games; and the reasons of these: game -> reason."""
        self.error = None
        self.tracebacks = {}
        try:
            actions = self._act(policy, state)
        except _FatalCallError as error:
            return np.full(len(state), _NO_ACTION), dict.fromkeys(range(len(state)), str(error))
        except Exception as error:
            self.error = error
        if self.error:
            if len(state) == 1:
                words = f"{type(self.error).__name__}: {self.error}"
                if policy not in self.raised:
                    self.raised.add(policy)
                    self.tracebacks = {0: _own_traceback(self.error).strip()}
                return np.array([_NO_ACTION]), {0: f"raised {words[:500]}"}
            singly, tracebacks = [], {}
            for one in range(len(state)):
                singly.append(self(policy, state[one : one + 1]))
                if self.tracebacks:
                    tracebacks[one] = self.tracebacks[0]
            self.tracebacks = tracebacks
            return (
                np.concatenate([action for action, _ in singly]),
                {i: reasons[0] for i, (_, reasons) in enumerate(singly) if reasons},
            )
        known = (actions >= 0) & (actions < self.game.num_actions)
        legal = self.game.legal_actions(state)[np.arange(len(state)), np.where(known, actions, 0)]
        wrong = np.flatnonzero(~(known & (legal == 1)))
        reasons = {}
        for i in wrong:
            words = describe_action(int(actions[i]), self.game.rules) if known[i] else "no such action"
            reasons[int(i)] = f"illegal action {actions[i]} ({words})"
        actions[wrong] = _NO_ACTION
        return actions, reasons

    def _act(self, policy: int, state: States) -> NDArray[np.int64]:
        """Ask the policy, unless the call is known not to return."""
        self.calls += 1
        if self.calls in self.fatal_calls:
            raise _FatalCallError(self.fatal_calls[self.calls])
        self.on_call(self.calls)
        try:
            return ask(self.policies[policy], self.game, state, self.generators[policy])
        finally:
            self.on_call(0)


def _own_traceback(error: Exception | None) -> str:
    """Return the traceback of an error from the call of the policy on; empty if the arena raised it."""
    where = error.__traceback__ if error else None
    while where is not None and where.tb_frame.f_code.co_filename in _CALLERS:
        where = where.tb_next
    if error is None or where is None:
        return ""
    return "\n\n" + "".join(traceback.format_exception(error.with_traceback(where))).rstrip()


def _settle(game: Game, state: States, results: GameResults) -> None:
    """Write ranks and shares of the win (R10); in a truncated game all are equal (R16)."""
    n = game.rules.players
    standing = np.empty((len(state), n), np.int64)
    _standings(state, game.config, standing)
    standing[state["truncated"] == 1] = 0
    share = (1 + game.rewards(state) * (n - 1)) / n
    forfeited = np.flatnonzero(results["forfeit"] >= 0)
    standing[forfeited] = np.arange(n) != results["forfeit"][forfeited, None]
    share[forfeited] = standing[forfeited] / (n - 1)
    better = (standing[:, None, :] > standing[:, :, None]).sum(2)
    equal = (standing[:, None, :] == standing[:, :, None]).sum(2) - 1
    results["rank"] = 1 + better + equal / 2
    results["share"] = share


@kernel
def _standings(states: Records, config: Configs, out: Any) -> None:
    for i in range(states.shape[0]):
        for seat in range(config[0].players):
            out[i, seat] = engine.standing(states[i], config[0], seat)
