"""Measure an agent by its regret in the bundled positions and by games against perfect play and reference policies."""

from __future__ import annotations

import hashlib
import json
import math
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from types import UnionType
from typing import Any, get_type_hints

import numpy as np
from numba.core import event
from numpy.typing import NDArray

import wotd_env
from wotd_env.analysis import KINDS, grade
from wotd_env.arena import Row, Tournament, run
from wotd_env.benchmark.generalization import TEST, TRAIN, by_split
from wotd_env.benchmark.positions import STAGES, Positions, bundled, describe_board, has_errors, load
from wotd_env.core.arguments import check_integer
from wotd_env.core.checks import IllegalActionError
from wotd_env.core.game import Game
from wotd_env.core.rules import MAX_PLAYERS, Rules
from wotd_env.intervals import margin_of_ratio
from wotd_env.policies import make_policy, objection, plays
from wotd_env.policies.blamed import Blamed, BrokenPolicyError
from wotd_env.policies.identity import name_of, policy_digest
from wotd_env.policies.oracle import Oracle
from wotd_env.policy import Policy, ask, check_plays
from wotd_env.reporting import Estimate, Shown, percent, signed, thousandths
from wotd_env.solver import TableError

REFERENCES = ("greedy", "planner", "td")  #: opponents of the measured agent, on all boards that they can play
GAMES = 1000
BATCH = 1024  # number of positions that the agent gets in one call
PERFECT = "perfect play"  # the opponent that plays perfectly
ALL = "all"  # key for the mean over all kinds or all stages
REGRET = "Mean regret of a decision, in thousandths of equity"

_NOT_MADE_FOR = (
    "The other parts are measured. If the agent is not made for these games, choose its number of players with "
    "--players, or give it a method check_rules(rules), or give its FunctionPolicy the argument rules."
)

FORMAT = 2
WITHOUT_DIGEST = 1  # a format that is still read

Regrets = dict[str, dict[str, Estimate]]


@dataclass(frozen=True)
class Result:
    """The measurements of an agent on one board."""

    agent: str  #: name of the agent
    agent_digest: str  #: digest of the agent's sources and files, see `wotd_env.policies.identity`
    rules: Rules  #: rules of the positions; the games of `win_shares` have the same rules, but 2 to 5 players
    size: int | None  #: number of graded positions for each pair of kind and stage, or None for all positions
    positions_digest: str  #: digest of the graded positions, see `Positions.digest`
    actions: tuple[int, ...]  #: the agent's action in each position
    regret: Regrets  #: kind or `"all"` -> stage or `"all"` -> mean regret of a decision, in equity
    against_perfect: Estimate | None  #: win share against perfect play; None without a solved table
    win_shares: dict[int, dict[str, Estimate]]  #: number of players -> opponent -> win share
    decisions_per_second: float  #: speed of the agent on one thread, with BATCH positions per call
    games: int  #: number of games per win share
    seed: int  #: seed of the games
    forfeits: int  #: number of games that the agent lost because of an error
    versions: dict[str, str]  #: package -> version
    hardware: str  #: description of the machine
    left_out: dict[str, str] = field(default_factory=dict)
    """The parts without a result -> reason. The parts are "perfect play", "N players", and "OPPONENT, N players"."""
    training_minutes: float | None = None
    """Processor time of the training without compilation; None if unknown"""

    @property
    def score(self) -> Estimate:
        """The mean regret of all decisions; in the track `generalization`, only of those in test layouts."""
        return self.regret.get(TEST, self.regret[ALL])[ALL]

    def to_json(self) -> str:
        """Return the result as JSON."""
        values = vars(self) | {
            "rules": asdict(self.rules),
            "regret": {kind: _plain(by_stage) for kind, by_stage in self.regret.items()},
            "against_perfect": self.against_perfect and self.against_perfect._asdict(),
            "win_shares": {players: _plain(shares) for players, shares in self.win_shares.items()},
            "left_out": {part: _without_folders(why) for part, why in self.left_out.items()},
            "actions": " ".join(map(str, self.actions)),  # a list would take one line per action
        }
        plain = json.loads(json.dumps({"format": FORMAT, **values}, allow_nan=False))  # with texts as keys
        return json.dumps(plain | {"digest": _digest(plain)}, indent=1) + "\n"

    @classmethod
    def read(cls, file: str | Path) -> Result:
        """Read a result file.

        Raises:
            OSError: if the file cannot be read.
            ValueError: if it is not a result file, or does not match its digest.
        """
        try:
            values = json.loads(Path(file).read_text("utf-8"))
            digest = values.pop("digest", None)
            if (found := values["format"]) not in (WITHOUT_DIGEST, FORMAT):
                raise ValueError(f"it has format {found}, this version reads {FORMAT}")
            if (digest is not None or found == FORMAT) and digest != _digest(values):
                raise ValueError("it does not match its digest: it was damaged or changed")
            del values["format"]
            perfect = values["against_perfect"]
            values |= {
                "rules": Rules.from_dict(values["rules"]),
                "left_out": dict(values.get("left_out", {})),  # missing in older files
                "training_minutes": values.get("training_minutes"),
                "actions": tuple(map(int, values["actions"].split())),
                "regret": {kind: _estimates(by_stage) for kind, by_stage in values["regret"].items()},
                "against_perfect": None if perfect is None else _estimate(perfect),
                "win_shares": {int(n): _estimates(shares) for n, shares in values["win_shares"].items()},
                "versions": dict(values["versions"]),
            }
            for name, kind in get_type_hints(cls).items():
                if isinstance(kind, type | UnionType) and not isinstance(values[name], kind):
                    raise TypeError(f"{name} must be of type {kind}, got {values[name]!r}")
            return cls(**values)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise ValueError(f"{file} must be a result file of wotd benchmark, got: {error!r}") from error

    def positions(self) -> Positions:
        """Return the graded positions.

        Raises:
            ValueError: if the bundled positions are not the graded positions, or an action is illegal.
        """
        positions = load(rules=self.rules)
        if self.size is not None:
            positions = positions.first(self.size)
        if positions.digest() != self.positions_digest:
            raise ValueError(
                f"the result of {self.agent} is for other positions than the bundled ones: measure it again"
            )
        Game(self.rules).check(positions.state, self.actions)
        return positions


def _without_folders(text: str) -> str:
    """Return text without the working folder, and with `~` for the home folder, because result files are published."""
    text = text.replace(f"{os.getcwd()}{os.sep}", "")
    home = os.path.expanduser("~")
    return text.replace(f"{home}{os.sep}", f"~{os.sep}") if len(home) > 1 else text


def mean_regret(positions: Positions, regret: NDArray[np.float64], low: float = 0.0) -> Regrets:
    """Return the mean regret for each pair of kind and stage that has decisions from at least two games.

    In positions of the track `generalization`, training layouts and test layouts are two more kinds.

    The confidence intervals treat all decisions of a game as one sample, because these decisions may be dependent. No
    interval extends below `low`.
    """
    everything = {ALL: np.ones(len(regret), np.bool_)}
    of_kind = everything | {name: positions.kind == i for i, name in enumerate(KINDS)}
    of_kind |= by_split(positions.rules, positions.state)
    of_stage = everything | {name: positions.stage == i for i, name in enumerate(STAGES)}
    means: Regrets = {}
    for kind, here in of_kind.items():
        for stage, now in of_stage.items():
            rows = here & now
            games, game = np.unique(positions.game[rows], return_inverse=True)
            if len(games) > 1:
                sums, counts = np.bincount(game, regret[rows]).astype(np.float64), np.bincount(game)
                mean, error = float(regret[rows].mean()), margin_of_ratio(sums, counts)
                means.setdefault(kind, {})[stage] = Estimate(mean, max(low, mean - error), mean + error)
    return means


def tables(result: Result) -> list[Shown]:
    """Return a table of the regrets and a table of the win shares."""
    regrets = [
        [kind, *(thousandths(by_stage.get(stage)) for stage in (ALL, *STAGES))]
        for kind, by_stage in result.regret.items()
    ]
    if TEST in result.regret:
        train, test = result.regret[TRAIN], result.regret[TEST]
        rows = [signed(difference(test[stage], train[stage]), 2, 1000) for stage in (ALL, *STAGES)]
        regrets.append(["test minus training", *rows])
    shares = []
    if result.against_perfect or PERFECT in result.left_out:
        share = percent(result.against_perfect) or "left out"
        shares.append([PERFECT, share, *[""] * (len(result.win_shares) - 1)])
    for name in dict.fromkeys(name for each in result.win_shares.values() for name in each):
        shares.append([name, *(percent(each.get(name)) for each in result.win_shares.values())])
    players = [f"{players} players" for players in result.win_shares] or ["2 players"]
    speed = f"{result.decisions_per_second:,.0f} decisions/s"
    title = f"{result.agent} on {describe_board(result.rules)}, {speed}"
    return [
        Shown(f"{title}\n{REGRET}", ["decision", ALL, *STAGES], regrets),
        Shown("Win share by opponent", ["opponent", *players], shares),
    ]


def compare(one: Result, other: Result) -> Shown:
    """Return a table of two results, their differences and the confidence intervals of the differences.

    Regrets are compared position by position, so the intervals of their differences are narrow. The win shares of
    the two results are treated as independent.

    Raises:
        ValueError: if the results are for different positions.
    """
    if one.positions_digest != other.positions_digest:
        raise ValueError(
            f"results must be for the same positions, got {len(one.actions)} on {describe_board(one.rules)} "
            f"and {len(other.actions)} on {describe_board(other.rules)}: measure both with equal options"
        )
    positions, _ = one.positions(), other.positions()  # both check the actions
    regrets = [positions.regret(np.array(each.actions)) for each in (one, other)]
    mine, its = (mean_regret(positions, regret) for regret in regrets)
    paired, rows = mean_regret(positions, regrets[0] - regrets[1], -math.inf), []
    for kind, stage in [*((kind, ALL) for kind in paired), *((ALL, s) for s in STAGES if s in paired[ALL])]:
        cells = (thousandths(of[kind][stage]) for of in (mine, its))
        rows.append([kind if stage == ALL else stage, *cells, signed(paired[kind][stage], 2, 1000)])
    theirs = dict(_shares(other))
    for name, share in _shares(one):
        if name in theirs:
            both = percent(share), percent(theirs[name])
            rows.append([name, *both, f"{signed(difference(share, theirs[name]), 1, 100)} %"])
    speeds = (f"{each.decisions_per_second:,.0f}" for each in (one, other))
    rows.append(["decisions/s", *speeds, ""])
    title = f"{one.agent} and {other.agent} on {describe_board(one.rules)}\n{REGRET}"
    return Shown(title, ["measure", one.agent, other.agent, "first minus second"], rows)


def difference(one: Estimate, other: Estimate) -> Estimate:
    """Return the difference between independent estimates."""
    return Estimate.around(one.value - other.value, math.hypot(one.error, other.error))


def _plain(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, float]]:
    return {name: estimate._asdict() for name, estimate in estimates.items()}


def _digest(values: dict[str, Any]) -> str:
    """Return the SHA-256 of a result file without its digest. It does not depend on the layout of the JSON."""
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()


def _estimates(values: Any) -> dict[str, Estimate]:
    return {name: _estimate(estimate) for name, estimate in values.items()}


def _estimate(values: Any) -> Estimate:
    estimate = Estimate(**values)
    if not all(map(math.isfinite, estimate)):
        raise ValueError(f"an estimate must be finite, got {estimate}")
    return estimate


def _shares(result: Result) -> Iterable[tuple[str, Estimate]]:
    if result.against_perfect:
        yield "win share, perfect play", result.against_perfect
    for players, shares in result.win_shares.items():
        for name, share in shares.items():
            yield f"win share, {name}, {players} players", share


def measure(
    agent: str | Policy,
    rules: Rules | None = None,
    *,
    players: int | None = None,
    powers: str | None = None,
    games: int = GAMES,
    size: int | None = None,
    seed: int = 0,
    trust: bool = False,
    progress: Callable[[int, int], None] = lambda done, total: None,
    finished: Callable[[Result], None] = lambda result: None,
) -> Result:
    """Measure an agent on one board: its decisions in the positions, and its games against each opponent.

    Games that the agent or the opponent cannot play are left out, see `Result.left_out`.

    Args:
        agent: a policy, or a name for `make_policy`.
        rules: rules with bundled positions. By default, they have `players`, `powers` and the longest board that the
            agent can play.
        players: number of players of the default rules and of all games. If None, the default rules have two players
            if the agent can play such games. The games then have two to five players, or two with dead pieces.
        powers: `Rules.powers` of the default rules; by default `"none"` if the agent can play such games.
        games: number of games for each win share.
        size: number of positions to grade for each pair of kind and stage; by default all positions.
        seed: seed of the games and of the random choices of the agent.
        trust: consent to read policy files that can run code, see `make_policy`.
        progress: called with the number of finished games and the number of all games.
        finished: called after each part with the result so far, whose `left_out` contains the other parts.

    Raises:
        ValueError: for a wrong argument, or if the agent cannot play any board that has bundled positions.
        IllegalActionError: if the agent chooses an illegal action in a position.
        BrokenPolicyError: if the agent fails in another way. If it fails in games, `finished` has received all other
            parts.
    """
    games = check_integer("games", games, 2, 1_000_000)
    seed = check_integer("seed", seed, 0, 2**63 - 1)
    name = name_of(agent)
    policy = make_policy(agent, trust=trust)
    blamed = Blamed(name, policy)
    rules = _longest_board(name, policy, players, powers) if rules is None else rules
    if players not in (None, rules.players):
        raise ValueError(f"players must be that of rules, {rules.players}, got {players!r}")
    check_plays(policy, rules)
    positions = load(rules=rules)
    if size is not None:
        positions = positions.first(check_integer("size", size, 2))
    actions, speed = act(blamed, positions, seed)

    left_out: dict[str, str] = {}
    parts: dict[str, tuple[Rules, str]] = {}  # the games to play -> rules and opponent
    table = None
    if not has_errors(rules) and not rules.dead_pieces:  # only a game with one layout has a table
        try:
            table = Oracle().table(Game(rules))
            parts[PERFECT] = rules, PERFECT
        except (FileNotFoundError, TableError) as error:  # it names the command that makes the table
            left_out[PERFECT] = str(error)
    for number in range(2, MAX_PLAYERS + 1) if players is None and not rules.dead_pieces else [rules.players]:
        board = replace(rules, players=number)
        if reason := objection(policy, board):
            left_out[f"{number} players"] = reason
            continue
        for reference in REFERENCES:
            if reference != name:
                parts[f"{reference}, {number} players"] = board, reference
                if reason := objection(reference, board):
                    left_out[f"{reference}, {number} players"] = reason
    parts = {part: game for part, game in parts.items() if part not in left_out}
    total, done = games * len(parts), 0
    result = Result(
        agent=name,
        agent_digest=policy_digest(name, policy, given=not isinstance(agent, str)),
        rules=rules,
        size=size,
        positions_digest=positions.digest(),
        actions=tuple(actions.tolist()),
        regret=mean_regret(positions, positions.regret(actions)),
        against_perfect=None,
        win_shares={},
        decisions_per_second=speed,
        games=games,
        seed=seed,
        forfeits=0,
        versions={"wotd-env": wotd_env.__version__, **{each: version(each) for each in ("numpy", "numba")}},
        hardware=f"{os.cpu_count()} cores, {platform.machine()}, {platform.system()}",
        left_out=left_out | dict.fromkeys(parts, "not measured yet"),
    )
    finished(result)
    failed: Exception | None = None
    for part, (board, reference) in parts.items():
        if part not in result.left_out:  # the agent has failed in games of this number of players
            continue
        left_out = {other: why for other, why in result.left_out.items() if other != part}
        try:
            if table is not None and part == PERFECT:
                own = grade(
                    blamed, table, games, seed, opponent="oracle", progress=lambda n, _: progress(n, total)
                )
                share, margin = own.all.share_against_perfect / 100, own.all.share_against_perfect_error / 100
                result = replace(result, against_perfect=Estimate.around(share, margin), left_out=left_out)
            else:
                row = meet(name, policy, reference, board, games, seed)
                shares = result.win_shares | {
                    board.players: result.win_shares.get(board.players, {}) | {reference: row.share}
                }
                forfeits = result.forfeits + row.forfeits
                result = replace(result, win_shares=shares, forfeits=forfeits, left_out=left_out)
        except (BrokenPolicyError, IllegalActionError) as caught:
            failed = failed or caught
            alike = [other for other, (rules, _) in parts.items() if rules == board]
            left_out = {other: why for other, why in left_out.items() if other not in alike}
            reason = str(caught).partition("\n")[0]
            result = replace(result, left_out=left_out | {f"{board.players} players": reason})
        finished(result)
        done += games
        progress(done, total)
    if failed:
        raise BrokenPolicyError(f"{failed}\n{_NOT_MADE_FOR}") from failed
    return result


def act(policy: Policy, positions: Positions, seed: int) -> tuple[NDArray[np.int64], float]:
    """Return the actions of a policy, and its decisions per second. The time for compilation is not counted.

    The actions in the first `BATCH` positions do not depend on the other positions.
    """
    game, rng = Game(positions.rules), np.random.default_rng(seed)
    ask(policy, game, positions.state[:8], np.random.default_rng(seed))
    batches = range(0, len(positions.state), BATCH)
    with without_compilation(time.perf_counter) as seconds:
        actions = np.concatenate([ask(policy, game, positions.state[i : i + BATCH], rng) for i in batches])
        return actions, len(actions) / seconds()


@contextmanager
def without_compilation(clock: Callable[[], float]) -> Iterator[Callable[[], float]]:
    """Yield a function that returns the time since the start of the `with` block, without the time of compilation.

    `clock` returns a time in seconds. Only compilation by numba in this process is recognized.
    """
    start, listener = clock(), _Compilation(clock)
    with event.install_listener("numba:compile", listener):
        yield lambda: clock() - start - listener.spent


class _Compilation(event.Listener):
    """Adds up the time of compilations. A compilation may contain others."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock, self._depth, self.spent = clock, 0, 0.0

    def on_start(self, event: Any) -> None:
        if self._depth == 0:
            self._start = self._clock()
        self._depth += 1

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self.spent += self._clock() - self._start


def meet(name: str, policy: Policy, reference: str, rules: Rules, games: int, seed: int) -> Row:
    """Return the result row of the policy `name` in a tournament against a reference."""
    tournament = Tournament((name, reference), rules, math.ceil(games / (rules.players - 1)), seed)
    return next(row for row in run(tournament, policies={name: policy}).rows if row.policy == name)


def _longest_board(name: str, policy: Policy, players: int | None, powers: str | None) -> Rules:
    have = "; ".join(map(describe_board, bundled()))
    boards = sorted(bundled(), key=lambda rules: (rules.players, rules.powers != "none", -rules.spaces))
    if players is not None or powers is not None:
        players, powers = 2 if players is None else players, "none" if powers is None else powers
        boards = [rules for rules in boards if (rules.players, rules.powers) == (players, powers)]
    if not boards:
        raise ValueError(
            f"no positions of {players} players with {powers} powers are bundled; there are those for {have}"
        )
    for rules in boards:
        if plays(policy, rules):
            return rules
    raise ValueError(
        f"{name} plays on none of the boards with bundled positions, which have {have}: {objection(policy, boards[0])}"
    )
