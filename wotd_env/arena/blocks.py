"""Play a block of games: all seatings of a duplicate have the same dice; a policy that breaks the rules forfeits."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.arena.asking import FORFEITED, Asker, BrokenPolicyError, Failure, own_traceback
from wotd_env.arena.luck import Equity, luck
from wotd_env.arena.tournament import Block, Tournament, game_seed, generator, seatings
from wotd_env.core import engine
from wotd_env.core.compilation import kernel
from wotd_env.core.config import Configs
from wotd_env.core.game import Game
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import Records, States
from wotd_env.policy import Policy, play_out


class Forfeit(NamedTuple):
    """A game that a policy forfeited. `game_seed` and `moves` are the arguments of `replay`."""

    policy: str
    seats: tuple[str, ...]
    """The policy in each seat."""
    seat: int
    duplicate: int
    game_seed: int
    moves: tuple[int, ...]
    """All actions of all seats before the forfeit."""
    reason: str
    traceback: str = ""
    """Traceback of the policy's first exception in the block; empty for later exceptions and for illegal actions."""

    def __str__(self) -> str:
        return (
            f"{self.policy} in seat {self.seat} of {', '.join(self.seats)}: {self.reason} "
            f"(game seed {self.game_seed}, after {len(self.moves)} actions)"
        )


GameResults = NDArray[np.void]  # results of G games, `results_dtype` (G,)


class PlayedBlock(NamedTuple):
    """The results of a block."""

    games: GameResults  # (size * n,), in order of duplicates
    forfeits: list[Forfeit]


def results_dtype(players: int) -> np.dtype[np.void]:
    """Return the dtype of a game's result."""
    return np.dtype(
        [
            ("duplicate", "i8"),
            ("turns", "u2"),
            ("truncated", "u1"),
            ("forfeit", "i1"),  # the seat that forfeited, or -1
            ("place", "i1", (players,)),  # [seat], index in the matchup of the policy in this seat
            ("points", "i1", (players,)),  # [seat]
            ("rank", "f4", (players,)),  # [seat], 1 is best; tied seats share the mean of their ranks
            ("share", "f4", (players,)),  # [seat], share of the win: 1/w for each of w winners, 0 for losers
            ("luck", "f4", (players,)),  # [seat], in units of `share`; 0 if not measured
        ]
    )


def replay(rules: Rules, game_seed: int, moves: tuple[int, ...]) -> States:
    """Start a game with `game_seed`, play the actions `moves` of all seats, and return the position, STATE (1,)."""
    game = Game(rules)
    state = game.reset(1, seed=game_seed)
    for action in moves:
        game.step(state, [action])
    return state


def play_block(
    tournament: Tournament,
    policies: Mapping[str, Policy],
    block: Block,
    *,
    equity: Equity | None = None,
    fatal_calls: Mapping[int, str] | None = None,
    on_call: Callable[[int], None] = lambda call: None,
    untried: frozenset[str] = frozenset(),
) -> PlayedBlock:
    """Play all games of a block side by side.

    If a policy raises, it is asked again for each game separately. A policy forfeits a game if it raises again, or if
    it returns an illegal action. A forfeited game ends at once: the forfeiting seat is last, and all other seats share
    the win.

    Args:
        tournament: provides the rules and the seed.
        policies: name -> policy; contains at least the policies of the matchup.
        block: the block to play.
        equity: estimates the equities that measure the luck of the dice; None measures no luck.
        fatal_calls: see `Asker`; the policy forfeits all games of a fatal call.
        on_call: see `Asker`.
        untried: policies that make their first decision in this block. BrokenPolicyError is raised if such a policy
            fails in every game of its first call.
    """
    rules, matchup, n = tournament.rules, block.matchup, tournament.rules.players
    game = Game(rules)
    duplicates = block.first + np.repeat(np.arange(block.size), n)
    places = seatings(np.arange(block.first, block.first + block.size), n).reshape(-1, n)
    first_seed = game_seed(tournament.seed, matchup, block.first)
    state = np.repeat(game.reset(block.size, seed=first_seed), n)

    names = sorted(set(matchup))
    sits = np.array([names.index(name) for name in matchup])[places]
    generators = [generator(tournament.seed, block, name) for name in names]
    asker = Asker(game, [policies[name] for name in names], generators, fatal_calls or {}, on_call)
    failures: dict[int, Failure] = {}  # index of the game -> failure, earliest first

    def choose(policy: int, games: NDArray[np.int64]) -> NDArray[np.int64]:
        """Ask a policy; end the games that it forfeits."""
        nonlocal untried
        actions, failed = asker(policy, state[games])
        if names[policy] in untried and len(failed) == len(games):
            reason = f"policy {names[policy]!r} failed in its first decision: {failed[0].reason}"
            raise BrokenPolicyError(reason + own_traceback(failed[0].error))
        untried -= {names[policy]}
        failures.update((int(games[i]), failure) for i, failure in failed.items())
        state["phase"][games[list(failed)]] = Phase.OVER
        return actions

    log = np.array([actions.astype(np.int16) for actions in play_out(game, state, sits, choose)]).T

    results = np.zeros(len(state), results_dtype(n))
    results["duplicate"], results["place"] = duplicates, places
    results["turns"], results["truncated"] = state["turn"], state["truncated"]
    results["points"] = game.scores(state)
    results["forfeit"] = -1
    results["forfeit"][list(failures)] = state["player"][list(failures)]
    _settle(game, state, results)
    if equity is not None:
        results["luck"] = luck(rules, equity, first_seed, places.shape, log)
    forfeits: dict[int, Forfeit] = {}
    traced: set[str] = set()  # policies whose first exception has been reported with its traceback
    for i, failure in failures.items():
        seats, seat = tuple(names[policy] for policy in sits[i]), int(state["player"][i])
        traceback = "" if seats[seat] in traced else own_traceback(failure.error).strip()
        if failure.error:
            traced.add(seats[seat])
        forfeits[i] = Forfeit(
            policy=seats[seat],
            seats=seats,
            seat=seat,
            duplicate=int(duplicates[i]),
            game_seed=game_seed(tournament.seed, matchup, int(duplicates[i])),
            moves=tuple(log[i][log[i] != FORFEITED].tolist()),
            reason=failure.reason,
            traceback=traceback,
        )
    return PlayedBlock(results, [forfeits[i] for i in sorted(forfeits)])


def _settle(game: Game, state: States, results: GameResults) -> None:
    """Write ranks and shares of the win (R10); in a truncated game all seats are tied (R16)."""
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
