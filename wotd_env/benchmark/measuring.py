"""Measure an agent by its regret in the bundled positions and by games against perfect play and reference policies."""

from __future__ import annotations

import math
import os
import platform
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

import wotd_env
from wotd_env.analysis import grade
from wotd_env.arena import Row, Tournament, run
from wotd_env.arena.asking import Blamed
from wotd_env.arena.estimates import Estimate
from wotd_env.arena.fingerprints import policy_digest
from wotd_env.benchmark.positions import Positions, bundled, describe_board, has_errors, load
from wotd_env.benchmark.results import Result, mean_regret
from wotd_env.core.arguments import check_choice, check_integer
from wotd_env.core.game import Game
from wotd_env.core.rules import MAX_PLAYERS, POWER_MODES, Rules
from wotd_env.policies import make_policy, plays
from wotd_env.policies.oracle import Oracle
from wotd_env.policy import Policy, ask, check_plays
from wotd_env.recording.writing import name_of
from wotd_env.solver import Table

REFERENCES = ("greedy", "planner", "td")  #: the opponents of every agent on boards that they play
GAMES = 1000  # games for each win rate

BATCH = 1024  # positions in one call of the agent


def measure(
    agent: str | Policy,
    rules: Rules | None = None,
    *,
    players: int = 2,
    powers: str = "none",
    games: int = GAMES,
    size: int | None = None,
    seed: int = 0,
    trust: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Result:
    """Measure an agent on one board.

    Args:
        agent: a policy, or its name, see `make_policy`.
        rules: rules that have bundled positions; by default the rules with the longest board that the agent plays with
            `players` and `powers`.
        players: number of players if `rules` is None.
        powers: mode of the powers if `rules` is None.
        games: games for each win rate.
        size: number of positions of each kind and stage to grade, for slow agents; by default all positions.
        seed: seed of the games and of the random choices of the agent.
        trust: see `make_policy`.
        progress: called with the number of finished games and the number of all games.

    Raises:
        ValueError: for a wrong argument, or if the agent plays none of the boards with bundled positions.
        IllegalActionError: if the agent chooses an illegal action in a position.
        BrokenPolicyError: if the agent fails in another way.
    """
    games = check_integer("games", games, 2, 1_000_000)
    seed = check_integer("seed", seed, 0, 2**63 - 1)
    name = name_of(agent)
    policy = make_policy(agent, trust=trust)
    blamed = Blamed(name, policy)
    rules = _longest_board(name, policy, players, powers) if rules is None else rules
    check_plays(policy, rules)
    positions = load(rules=rules)
    if size is not None:
        positions = positions.first(check_integer("size", size, 2))
    actions, speed = act(blamed, positions, seed)

    table = _table(rules)
    meetings = [
        (board, reference)
        for board in (replace(rules, players=players) for players in range(2, MAX_PLAYERS + 1))
        for reference in REFERENCES
        if reference != name and plays(reference, board) and plays(policy, board)
    ]
    total, done = games * (len(meetings) + (table is not None)), 0
    perfect = None
    if table is not None:
        own = grade(blamed, table, games, seed, opponent="oracle", progress=lambda n, _: progress(n, total))
        each = own.all
        share, error = each.share_against_perfect / 100, each.share_against_perfect_error / 100
        perfect, done = Estimate(share, share - error, share + error), games
    shares: dict[int, dict[str, Estimate]] = {}
    forfeits = 0
    for board, reference in meetings:
        row = meet(name, policy, reference, board, games, seed)
        shares.setdefault(board.players, {})[reference] = row.share
        forfeits += row.forfeits
        done += games
        progress(done, total)
    return Result(
        agent=name,
        agent_digest=policy_digest(name, policy, given=not isinstance(agent, str)),
        rules=rules,
        size=size,
        positions_digest=positions.digest(),
        actions=tuple(actions.tolist()),
        regret=mean_regret(positions, positions.regret(actions)),
        against_perfect=perfect,
        win_shares=shares,
        decisions_per_second=speed,
        games=games,
        seed=seed,
        forfeits=forfeits,
        versions={"wotd-env": wotd_env.__version__, **{each: version(each) for each in ("numpy", "numba")}},
        hardware=f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
    )


def act(policy: Policy, positions: Positions, seed: int) -> tuple[NDArray[np.int64], float]:
    """Return the actions of a policy and its decisions per second. A first call, which may compile, is not timed.

    The actions in the first `BATCH` positions do not depend on the other positions.
    """
    game, rng = Game(positions.rules), np.random.default_rng(seed)
    ask(policy, game, positions.state[:8], np.random.default_rng(seed))
    start = time.perf_counter()
    batches = range(0, len(positions.state), BATCH)
    actions = np.concatenate([ask(policy, game, positions.state[i : i + BATCH], rng) for i in batches])
    return actions, len(actions) / (time.perf_counter() - start)


def meet(name: str, policy: Policy, reference: str, rules: Rules, games: int, seed: int) -> Row:
    """Play games of the policy `name` against a reference in all possible seatings; return the policy's results."""
    tournament = Tournament((name, reference), rules, math.ceil(games / (rules.players - 1)), seed)
    return next(row for row in run(tournament, policies={name: policy}).rows if row.policy == name)


def _longest_board(name: str, policy: Policy, players: int, powers: str) -> Rules:
    check_integer("players", players, 2, MAX_PLAYERS)
    check_choice("powers", powers, POWER_MODES)
    have = "; ".join(map(describe_board, bundled()))
    boards = [rules for rules in bundled() if (rules.players, rules.powers) == (players, powers)]
    if not boards:
        raise ValueError(
            f"no positions of {players} players with {powers} powers are bundled; there are those for {have}"
        )
    for rules in reversed(boards):
        if plays(policy, rules):
            return rules
    raise ValueError(f"{name} plays on none of the boards with bundled positions, which have {have}")


def _table(rules: Rules) -> Table | None:
    """Return the solution of a board.

    Return None for more than two players. Return None also if the table is not in the cache folder and solving the
    board would take minutes.
    """
    if has_errors(rules):
        return None
    try:
        return Oracle().table(Game(rules))
    except FileNotFoundError:
        return None
