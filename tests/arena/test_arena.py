"""Tournaments: paired dice, hidden streams, results that depend on the seed alone, forfeits, honest intervals."""

from __future__ import annotations

import csv
import json
import math
import re
import resource
import sqlite3
import subprocess
import sys
import zlib
from contextlib import closing
from datetime import UTC, datetime
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from tests.helpers import ROOT
from tests.helpers.arena_policies import Broken, Cheat, Gambler, Lowest, Seer
from tools import ladder
from wotd_env import STATE, Game, Phase, Rules, make_policy, models
from wotd_env.arena import BrokenPolicyError, Results, Tournament, replay, results_dtype, run, show
from wotd_env.arena import tournament as tournament_module
from wotd_env.arena.blocks import _Asker, play_block
from wotd_env.arena.luck import make_equity
from wotd_env.arena.results import share_error
from wotd_env.arena.store import Store, policy_digest
from wotd_env.arena.tournament import Block, game_seed, seatings
from wotd_env.arena.workers import Here
from wotd_env.cli import WRONG_USE, app

OWN = "tests.helpers.arena_policies:"
QUICK = Rules(spaces=0)
"""Games of few turns."""


def played(tournament: Tournament, block: Block, **options):
    policies = {name: make_policy(name) for name in block.matchup}
    return play_block(tournament, policies, block, **options)


def same(one: Results, other: Results) -> bool:
    """Whether two runs have the same results, whatever each of them found in its file."""
    return (
        one.games.keys() == other.games.keys()
        and all(one.games[matchup].tobytes() == other.games[matchup].tobytes() for matchup in one.games)
        and one.to_dict() | {"earlier": None} == other.to_dict() | {"earlier": None}
    )


# ------------------------------------------------------------------------------------------------ matchups and seats


@pytest.mark.parametrize(
    ("policies", "players", "matchups"),
    [
        ("abc", 2, ["ab", "ac", "bc"]),
        ("cba", 3, ["abc"]),
        ("abcd", 3, ["abc", "abd", "acd", "bcd"]),
        ("ab", 3, ["aab", "abb"]),
        ("abc", 4, ["aabc", "abbc", "abcc"]),
        ("a", 2, ["aa"]),
    ],
)
def test_every_choice_of_policies_meets(policies, players, matchups):
    tournament = Tournament(tuple(policies), Rules(players=players))
    assert ["".join(matchup) for matchup in tournament.matchups] == matchups


@pytest.mark.parametrize("players", [2, 3, 4, 5])
def test_everyone_sits_once_in_every_seat_of_a_duplicate(players):
    seats = seatings(np.arange(300), players)
    assert seats.shape == (300, players, players)
    assert (np.sort(seats, 1) == np.arange(players)[:, None]).all()  # over the games, in every seat
    assert (np.sort(seats, 2) == np.arange(players)).all()  # over the seats, in every game


@pytest.mark.parametrize("players", [3, 4])
def test_every_neighbourhood_comes_up(players):
    seats = seatings(np.arange(math.factorial(players - 1)), players)
    assert len({tuple(game) for game in seats.reshape(-1, players).tolist()}) == len(
        list(permutations(range(players)))
    )


@pytest.mark.parametrize(
    "rules", [QUICK, Rules(players=4, spaces=1, powers="any"), Rules(players=3, spaces=1)], ids=str
)
def test_the_games_of_a_duplicate_have_the_same_dice(rules):
    # a policy that meets only itself plays the same game from every seat
    matchup = ("greedy",) * rules.players
    games = played(Tournament(("greedy",), rules), Block(matchup, 0, 20)).games.reshape(20, rules.players)
    for field in ("turns", "points", "share", "rank"):
        assert (games[field] == games[field][:, :1]).all()
    assert len(np.unique(games["points"][:, 0], axis=0)) > 5  # and another one in every duplicate


def test_a_game_can_be_started_again_from_its_seed():
    tournament = Tournament(("first", "greedy"), QUICK, seed=5)
    matchup = tournament.matchups[0]
    games = played(tournament, Block(matchup, 256, 3)).games
    game, policies = Game(QUICK), [make_policy(name) for name in matchup]
    state = game.reset(1, seed=game_seed(5, matchup, 257))
    seats = seatings([257], 2)[0, 1]  # its second game
    while state["phase"][0] != Phase.OVER:
        game.step(state, policies[seats[state["player"][0]]].act(game, state, np.random.default_rng(0)))
    assert games[3]["duplicate"] == 257
    assert games[3]["points"].tolist() == game.scores(state)[0].tolist()
    assert games[3]["turns"] == state["turn"][0]


def test_matchups_and_seeds_have_dice_of_their_own():
    seeds = {
        game_seed(seed, matchup, 0) for seed in range(3) for matchup in (("a", "b"), ("a", "c"), ("ab",))
    }
    assert len(seeds) == 9
    assert (
        min(abs(a - b) for a in seeds for b in seeds if a != b) > 10**12
    )  # far more than a tournament's games


# ------------------------------------------------------------------------------------------------ the seed decides


@pytest.fixture(scope="module")
def reference() -> Results:
    """A tournament with policies that draw, several blocks and a part of one, in this process."""
    return run(_TOURNAMENT)


_TOURNAMENT = Tournament(("random", "greedy", OWN + "Gambler"), QUICK, games=1300, seed=3)


def test_workers_and_order_do_not_matter(reference):
    assert same(run(_TOURNAMENT, workers=2), reference)


def test_a_tournament_that_grows_plays_only_what_is_new(tmp_path, reference):
    file = tmp_path / "games.sqlite"
    for games in (40, 600):
        run(Tournament(_TOURNAMENT.policies, QUICK, games, seed=3), file)
    with Store(_TOURNAMENT, file) as store:
        for matchup in _TOURNAMENT.matchups:
            assert [i for i, _, _ in store.stored(matchup)] == [0]
    assert same(run(_TOURNAMENT, file), reference)


def test_a_policy_more_leaves_the_other_matchups_as_they_were(reference):
    pair = Tournament((OWN + "Gambler", "random"), QUICK, games=1300, seed=3)
    matchup = pair.matchups[0]
    assert np.array_equal(run(pair).games[matchup], reference.games[matchup])


def test_the_size_of_blocks_does_not_matter_to_policies_that_draw_nothing(monkeypatch):
    tournament = Tournament(("first", "greedy"), Rules(players=3, spaces=0), games=900)
    whole = run(tournament)
    monkeypatch.setattr(tournament_module, "BLOCK", 7)
    assert same(run(tournament), whole)


def test_seeds_differ(reference):
    other = run(Tournament(_TOURNAMENT.policies, QUICK, games=1300, seed=4))
    assert not same(other, reference)


def test_a_matchup_stops_when_its_interval_is_narrow_enough(reference):
    tournament = Tournament(_TOURNAMENT.policies, QUICK, games=1300, seed=3, until=0.03)
    results = run(tournament)
    sizes = {matchup: len(games) for matchup, games in results.games.items()}
    assert min(sizes.values()) < 1300
    for matchup, games in results.games.items():
        assert np.array_equal(games, reference.games[matchup][: len(games)])
        assert len(games) == 1300 or share_error(matchup, games, luck=False) <= 0.03
        assert (
            len(games) == 512
            or share_error(matchup, games[: (len(games) - 1) // 512 * 512], luck=False) > 0.03
        )
    assert same(run(tournament, workers=2), results)


# ------------------------------------------------------------------------------------------------ interruptions


def _wotd(*arguments: object, **options) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "wotd_env.cli", *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, text=True, stderr=subprocess.PIPE, stdout=subprocess.PIPE, **options
    )


def _blocks(file: Path) -> list[tuple[object, ...]]:
    if not file.exists():
        return []
    with closing(sqlite3.connect(file, timeout=60)) as connection, connection:
        try:
            return connection.execute(
                "SELECT rowid, policies, first, size, games FROM block ORDER BY rowid"
            ).fetchall()
        except sqlite3.OperationalError:  # made, but without tables yet
            return []


@pytest.mark.parametrize("workers", [0, 2])
def test_a_killed_tournament_goes_on_where_it_was(tmp_path, workers):
    file = tmp_path / "games.sqlite"
    process = _wotd(
        "arena",
        "random",
        "greedy",
        "--spaces",
        0,
        "--games",
        10**7,
        "--file",
        file,
        "--workers",
        workers,
        "--quiet",
    )
    while len(_blocks(file)) < 3:
        assert process.poll() is None, process.communicate()
    process.kill()
    process.communicate()
    before = _blocks(file)
    tournament = Tournament(("random", "greedy"), QUICK, games=512 * (len(before) + 2))
    assert same(run(tournament, file), run(tournament))
    after = _blocks(file)
    assert after[: len(before)] == before  # nothing lost, nothing played again
    assert len(after) == len({row[1:4] for row in after}) >= len(before) + 1  # nothing counted twice


def test_tournaments_share_a_file_at_the_same_time(tmp_path):
    file = tmp_path / "games.sqlite"
    options = ("--spaces", 0, "--games", 1500, "--file", file, "--workers", 0, "--quiet")
    processes = [
        _wotd("arena", "random", "greedy", *options),
        _wotd("arena", "random", "greedy", *options),
        _wotd("arena", "random", "first", "greedy", *options),
        _wotd("arena", "random", "greedy", "--seed", 1, *options),
    ]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    rows = len(_blocks(file))
    assert rows == (3 + 1) * 3  # three pairings and one more seed, of three blocks each
    for policies, seed in ((("random", "greedy"), 1), (("random", "first", "greedy"), 0)):
        tournament = Tournament(policies, QUICK, 1500, seed)
        assert same(run(tournament, file), run(tournament))
    assert len(_blocks(file)) == rows  # all of it was there


def test_a_policy_is_known_by_all_sources_that_it_imports(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    sources = {
        "changing/__init__.py": "import json, numpy.linalg, wotd_env, sys\n",
        "changing/policy.py": "from . import helper\nfrom .deep.thing import Player\nimport changing_not_there\n",
        "changing/helper.py": "def late():\n    import changing_tools.first as tools\n",
        "changing/deep/__init__.py": "from ...beyond import nothing\n",
        "changing/deep/thing.py": "from ..helper import late\nfrom .. import policy\n",
        "changing_tools/first.py": "this is no Python\n",
    }
    for name, text in {**sources, "changing/other.py": "", "changing_tools/second.py": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    name = "changing.policy:Player"
    before = policy_digest(name)
    assert policy_digest(name) == before
    for name_of_source in sources:
        source = tmp_path / name_of_source
        text = source.read_text()
        source.write_text(text + "# changed\n")
        assert policy_digest(name) != before, source
        source.write_text(text)
    for unrelated in ("changing/other.py", "changing_tools/second.py"):
        (tmp_path / unrelated).write_text("# changed\n")
    assert policy_digest(name) == before
    assert "changing.policy" not in sys.modules


def test_policies_of_this_package_have_the_digest_of_their_file_too(tmp_path):
    file = tmp_path / "model.onnx"
    file.write_bytes(b"a")
    names = {policy_digest(f"onnx:{file}")}
    file.write_bytes(b"b")
    names.add(policy_digest(f"onnx:{file}"))
    (tmp_path / "model.onnx.data").write_bytes(b"weights")
    names |= {
        policy_digest(f"onnx:{file}"),
        policy_digest("greedy"),
        policy_digest("random"),
        policy_digest(OWN),
    }
    assert len(names) == 6


def test_games_of_earlier_runs_are_said_to_be_and_played_anew_when_asked(tmp_path, caplog):
    file = tmp_path / "games.sqlite"
    tournament = Tournament(("mine", "first"), QUICK, games=600)
    lowest, gambler = {"mine": Lowest()}, {"mine": Gambler()}

    def told() -> list[str]:
        return [text for text in caplog.messages if str(file) in text]

    begun = run(Tournament(("mine", "first"), QUICK, games=512), file, policies=lowest)
    assert begun.earlier == {}
    assert not told()
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    mixed = run(tournament, file, policies=gambler)  # what the object is made of cannot be known
    assert mixed.earlier == mixed.to_dict()["earlier"]
    assert list(mixed.earlier.values()) == [512]
    (date,) = mixed.earlier
    assert date <= today
    assert told() == [
        f"{file}: using 512 games of earlier runs ({date}); fresh=True, or --fresh, plays them anew"
    ]
    assert "512 games are of earlier runs (" in str(vars(show.tables(mixed)[0])["caption"])
    caplog.clear()
    truth = run(tournament, policies=gambler)
    assert not same(mixed, truth)
    anew = run(tournament, file, policies=gambler, fresh=True)
    assert same(anew, truth)
    assert anew.earlier == {}
    assert not told()
    again = run(tournament, file, policies=lowest)
    assert same(again, truth)  # replaced: nothing is left of the games before
    assert sum(again.earlier.values()) == 600
    assert len(_blocks(file)) == 2


def test_fresh_replaces_what_is_there_with_the_first_block_and_not_before(tmp_path):
    file = tmp_path / "games.sqlite"
    tournament = Tournament(("random", "first", "greedy"), QUICK, games=600)
    run(tournament, file)
    other = run(Tournament(("random", "first"), QUICK, games=600, seed=1), file)
    before = _blocks(file)

    def stop_at(most: int):
        def progress(done: int, total: int) -> None:
            if done >= most:
                raise KeyboardInterrupt

        return progress

    for most, left in ((0, before), (1, [row for row in before if row not in before[:6]])):
        with pytest.raises(KeyboardInterrupt):
            run(tournament, file, fresh=True, progress=stop_at(most))
        after = _blocks(file)
        assert [row for row in after if row in before] == left
    assert len(after) == len(left) + 1
    assert same(run(tournament, file), run(tournament))
    assert sum(run(Tournament(("random", "first"), QUICK, games=600, seed=1), file).earlier.values()) == 600
    assert not other.earlier


def test_an_object_is_not_taken_for_the_policy_whose_name_it_has(tmp_path):
    tournament = Tournament(("greedy", "random.policy"), QUICK, games=100)
    policies = {"greedy": make_policy("random"), "random.policy": make_policy("random")}
    file = tmp_path / "games.sqlite"
    first = run(tournament, file, policies=policies)
    assert abs(first.rows[0].share.value - 0.5) < 0.2
    honest = Tournament(("greedy", "random"), QUICK, games=100)
    assert same(run(honest, file), run(honest))


def test_foreign_files_are_left_alone(tmp_path):
    tournament = Tournament(("random", "first"), QUICK, games=10)
    text = tmp_path / "notes.txt"
    text.write_text("not a database, but long enough to look into" * 10)
    database = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute("CREATE TABLE block (a)")
    for file in (text, database):
        content = file.read_bytes()
        with pytest.raises(ValueError, match=f"{file.name} is no tournament file"):
            run(tournament, file)
        assert file.read_bytes() == content


# ------------------------------------------------------------------------------------------------ damage, no room


@pytest.fixture
def kept(tmp_path) -> Path:
    """The file of a tournament with four blocks, the last of which has forfeits."""
    file: Path = tmp_path / "games.sqlite"
    run(_KEPT, file)
    return file


_KEPT = Tournament((OWN + "Illegal", "first"), Rules(spaces=1), games=1700)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            "games = CAST(substr(games, 1, 99) || x'00' || substr(games, 101) AS BLOB)",
            "the checksum is wrong",
        ),
        ("games = substr(games, 1, 100)", "the checksum is wrong"),
        ("games = 7", "can't concat|must be|bytes-like"),
        ("forfeits = replace(forfeits, '999', '998')", "the checksum is wrong"),
        ("forfeits = CAST(x'ff' || forfeits AS TEXT)", "the checksum is wrong"),
        ("written = '2001-01-01T00:00:00+00:00'", "the checksum is wrong"),
        ("checksum = 0", "the checksum is wrong"),
    ],
)
def test_a_damaged_block_is_noticed_and_played_again(kept, caplog, change, why):
    truth = run(_KEPT)
    with closing(sqlite3.connect(kept)) as connection, connection:
        assert connection.execute(f"UPDATE block SET {change} WHERE first = 256").rowcount == 1
    again = run(_KEPT, kept)
    assert same(again, truth)
    assert sum(again.earlier.values()) == 1700 - 512
    told = caplog.records[0].getMessage()
    assert re.search(rf"games\.sqlite is damaged: games 512 to 1023 of .*Illegal .*again \(({why})", told)
    caplog.clear()
    assert sum(run(_KEPT, kept).earlier.values()) == 1700  # mended
    assert "is damaged" not in caplog.text


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("games", zlib.compress(b"")),
        ("games", zlib.compress(bytes(100_000_000))),
        ("games", zlib.compress(bytes(512 * 40))[:-20]),
        ("games", b"no zlib"),
        ("forfeits", "[" * 100_000),
        ("forfeits", "[1]"),
        ("forfeits", '[{"seats": 1}]'),
    ],
)
def test_rows_that_nobody_could_have_written_do_no_harm(kept, column, value):
    truth = run(_KEPT)
    with Store(_KEPT, kept) as store, closing(sqlite3.connect(kept)) as connection, connection:
        matchup = _KEPT.matchups[0]
        row = connection.execute("SELECT games, forfeits, written FROM block WHERE first = 0").fetchone()
        games, forfeits, written = row
        games, forfeits = (value, forfeits) if column == "games" else (games, value)
        checksum = store._checksum(
            store._policies(matchup), _KEPT.block(matchup, 0), games, forfeits, written
        )
        connection.execute(
            "UPDATE block SET games = ?, forfeits = ?, checksum = ? WHERE first = 0",
            (games, forfeits, checksum),
        )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert same(run(_KEPT, kept), truth)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < before + 50_000  # kB


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("DROP TABLE block", "is damaged (no such table: block). Delete it, or use another file"),
        ("PRAGMA user_version = 1", "has format 1, this version of wotd-env reads 2; use another file"),
        ("PRAGMA application_id = 1", "is no tournament file: it is a database of something else"),
    ],
)
def test_files_that_are_not_as_they_were_are_refused(kept, sql, message):
    with closing(sqlite3.connect(kept)) as connection, connection:
        connection.execute(sql)
    with pytest.raises(ValueError, match=re.escape(message)) as refused:
        run(_KEPT, kept)
    assert str(kept) in str(refused.value)


def test_damage_anywhere_gives_the_right_results_or_an_error_that_names_the_file(kept):
    _damage(kept, attempts=40)


@pytest.mark.slow
def test_much_damage_anywhere_gives_the_right_results_or_an_error_that_names_the_file(kept):
    _damage(kept, attempts=1000)


def _damage(file: Path, attempts: int) -> None:
    """Cut the file, or change some of its bytes, again and again."""
    truth, whole, rng = run(_KEPT), file.read_bytes(), np.random.default_rng(0)
    refused = right = 0
    for attempt in range(attempts):
        content = bytearray(whole)
        if attempt % 4 == 0:
            del content[int(rng.integers(len(content))) :]
        else:
            start = int(rng.integers(len(content)))
            stop = start + int(rng.choice([1, 16, 512, 4096]))
            content[start:stop] = rng.bytes(len(content[start:stop]))
        file.write_bytes(content)
        try:
            results = run(_KEPT, file)
        except ValueError as error:
            refused += str(file) in str(error)
        else:
            right += same(results, truth)
    assert refused + right == attempts
    assert min(refused, right) > attempts / 10


@pytest.mark.usefixtures("reference")  # loads everything while all files can be read
def test_a_complete_file_is_read_where_nothing_can_be_written(powerless):
    file = powerless / "games.sqlite"
    tournament = Tournament(("random", "first"), QUICK, games=600)
    truth = run(tournament, file)
    file.chmod(0o400)
    powerless.chmod(0o500)
    assert same(run(tournament, file), truth)
    assert same(
        run(Tournament(("random", "first"), QUICK, games=512), file),
        run(Tournament(("random", "first"), QUICK, games=512)),
    )
    asked = []
    spy = Lowest()
    spy.act = lambda *arguments: asked.append(arguments)  # type: ignore[method-assign, assignment]
    with pytest.raises(sqlite3.OperationalError, match=r"games\.sqlite cannot be written: .*readonly"):
        run(Tournament(("mine", "first"), QUICK, games=600), file, policies={"mine": spy})
    with pytest.raises(sqlite3.OperationalError, match=r"other\.sqlite cannot be read: unable to open"):
        run(tournament, powerless / "other.sqlite")
    assert not asked


def test_a_full_disk_costs_only_what_is_under_way(tmp_path):
    file = tmp_path / "games.sqlite"
    command = ("arena", "random", "first", "--spaces", 0, "--games", 20_000, "--file", file, "--quiet")

    def full() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))

    process = _wotd(*command, "--workers", 0, preexec_fn=full)
    _, errors = process.communicate()
    assert process.returncode == 1
    assert f"Error: the tournament file {file} cannot be written: " in errors
    assert "What is written is kept" in errors
    assert "Traceback" not in errors
    blocks = len(_blocks(file))
    assert 5 < blocks < 40
    tournament = Tournament(("random", "first"), QUICK, games=20_000)
    results = run(tournament, file)
    assert sum(results.earlier.values()) == 512 * blocks
    assert same(results, run(tournament))


@pytest.mark.slow
def test_a_hundred_kills_change_nothing(tmp_path):
    file, out = tmp_path / "games.sqlite", tmp_path / "results.json"
    policies = ("random", "greedy", OWN + "Gambler")
    options = ("--spaces", 0, "--seed", 11, "--file", file, "--workers", 2, "--quiet", "--out", out)
    command = ("arena", *policies, *options, "--games")

    def count() -> int:
        try:
            with (
                closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=60)) as connection,
                connection,
            ):
                return int(connection.execute("SELECT count(*) FROM block").fetchone()[0])
        except sqlite3.OperationalError:  # not there yet, or to be mended by the next writer
            return blocks[-1]

    def still_runs(seconds: float) -> bool:
        try:
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            return True
        return False

    rng = np.random.default_rng(0)
    blocks = [0]
    for kill in range(100):
        process = _wotd(*command, 6_000_000)  # more than it can play until then
        if kill % 3 == 0:  # while it starts, as a rule
            still_runs(float(rng.uniform(0, 3)))
        else:  # after it has saved the first block, or the second
            while still_runs(0.02) and count() < blocks[-1] + kill % 3:
                pass
            still_runs(float(rng.uniform(0, 0.1)))
        assert process.poll() is None, process.communicate()
        process.kill()
        process.communicate()
        blocks.append(count())
        assert blocks[-1] >= blocks[-2]
        assert not out.exists()
    rows = _blocks(file)
    assert len(rows) >= max(blocks)
    last = max(int(str(first)) for _, _, first, _, _ in rows)
    tournament = Tournament(policies, QUICK, games=2 * (last + 256), seed=11)
    process = _wotd(*command, tournament.games)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "is damaged" not in errors
    document, truth = json.loads(out.read_text()), run(tournament, workers=2)
    assert sum(document["earlier"].values()) == 512 * len(rows)
    assert document | {"earlier": None} == json.loads(json.dumps(truth.to_dict())) | {"earlier": None}
    assert same(run(tournament, file), truth)
    with closing(sqlite3.connect(file)) as connection, connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


# ------------------------------------------------------------------------------------------------ hidden streams


def _true_streams(tournament: Tournament, block: Block) -> set[int]:
    """The streams of all games of a block at all decisions, for policies that play the lowest action."""
    game = Game(tournament.rules)
    state = game.reset(block.size, seed=game_seed(tournament.seed, block.matchup, block.first))
    streams: set[int] = set()
    while (state["phase"] != Phase.OVER).any():
        streams |= set(state["rng"].tolist())
        game.step(state, game.legal_actions(state).argmax(1))
    return streams


def test_peeking_is_impossible():
    rules = Rules(spaces=0, powers="any")
    tournament = Tournament(("cheat", "first"), rules, games=80, seed=8)
    block = Block(("cheat", "first"), 0, 40)
    cheat = Cheat()
    play_block(tournament, {"cheat": cheat, "first": make_policy("first")}, block)
    shown = np.concatenate(cheat.shown)
    assert len(shown) > 1000
    assert not set(shown["rng"].tolist()) & _true_streams(tournament, block)
    assert len(np.unique(shown["rng"])) == len(shown)  # nothing is told by two views of one game either
    assert all(view.base is None for view in cheat.shown)

    # what is shown does not depend on the stream: games that differ in nothing else look alike
    def views(streams: list[int]) -> np.ndarray:
        state = np.repeat(Game(rules).reset(1, seed=1), len(streams))
        state["rng"] = streams
        spy = Cheat()
        _Asker(Game(rules), [spy], [np.random.default_rng(0)], {}, lambda call: None)(0, state)
        return spy.shown[0]

    assert views([1, 2, 3]).tobytes() == views([7, 8, 9]).tobytes()


def test_a_roll_foreseen_in_what_is_shown_does_not_come():
    tournament = Tournament(("seer",), QUICK)
    arena, outside = Seer(), Seer()
    for first in range(100):
        block = Block(("seer", "seer"), first, 1)
        play_block(tournament, {"seer": arena}, block)
        game = Game(QUICK)
        state = game.reset(1, seed=game_seed(0, block.matchup, first))
        while state["phase"][0] != Phase.OVER:
            game.step(state, outside.act(game, state, np.random.default_rng(0)))
    assert np.mean(outside.right) == 1  # it sees the future where it is shown the stream
    assert min(len(arena.right), len(outside.right)) > 1000
    assert np.mean(arena.right) < 0.05


def test_what_a_policy_does_to_what_it_is_shown_changes_nothing():
    tournament = Tournament((OWN + "Vandal", "greedy"), QUICK)
    vandal = played(tournament, Block(tournament.matchups[0], 0, 50))
    policies = {OWN + "Vandal": make_policy(OWN + "Lowest"), "greedy": make_policy("greedy")}
    honest = play_block(tournament, policies, Block(tournament.matchups[0], 0, 50))
    assert np.array_equal(vandal.games, honest.games)
    assert not vandal.forfeits


# ------------------------------------------------------------------------------------------------ forfeits


@pytest.mark.parametrize("players", [2, 3])
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Illegal", r"illegal action 999 \(no such action\)"),
        ("Raises", "raised KeyError: 'turn four'"),
        ("Malformed", r"raised ValueError: act must return integers \(1,\), got int64 \(2,\)"),
    ],
)
def test_a_policy_that_breaks_the_rules_forfeits_the_game_alone(name, reason, players):
    rules = Rules(players=players, spaces=1)
    bad = OWN + name
    tournament = Tournament((bad, "greedy", "first")[:players], rules, games=120, seed=1)
    results = run(tournament)
    games = results.games[tournament.matchups[0]]
    lost = games["forfeit"] >= 0
    assert 0 < lost.sum() == len(results.forfeits)
    if name != "Malformed":
        assert lost.sum() < len(games)  # not those in which the fourth turn is another's
    for game in games[lost]:
        loser = int(game["forfeit"])
        assert tournament.matchups[0][game["place"][loser]] == bad
        assert game["share"][loser] == 0
        assert game["rank"][loser] == players
        assert np.delete(game["share"], loser) == pytest.approx(np.full(players - 1, 1 / (players - 1)))
    assert games["share"].sum(1) == pytest.approx(np.ones(len(games)))
    for forfeit in results.forfeits:
        assert re.fullmatch(reason, forfeit.reason)
        assert forfeit.policy == forfeit.seats[forfeit.seat] == bad
        position = replay(rules, forfeit.game_seed, forfeit.moves)
        assert position.dtype == STATE
        assert position["player"][0] == forfeit.seat
        if name != "Malformed":
            assert position["turn"][0] == 3
    traced = [forfeit.traceback for forfeit in results.forfeits if forfeit.traceback]
    assert len(traced) == (name == "Raises")  # one in the only block, by the policy's own fault
    for words in traced:
        assert words.startswith("Traceback")
        assert words.endswith("KeyError: 'turn four'")
        assert 'raise KeyError("turn four")' in words
        assert "blocks.py" not in words
    assert next(row for row in results.rows if row.policy == bad).forfeits == len(results.forfeits)


def test_a_policy_that_hangs_forfeits_and_the_tournament_goes_on(tmp_path):
    bad = OWN + "Hangs"
    tournament = Tournament((bad, "first"), QUICK, games=80)
    file = tmp_path / "games.sqlite"
    results = run(tournament, file, workers=1, time_limit=3)
    assert {forfeit.policy for forfeit in results.forfeits} == {bad}
    assert {forfeit.reason for forfeit in results.forfeits} == {"took more than 3 s"}
    for forfeit in results.forfeits:
        position = replay(QUICK, forfeit.game_seed, forfeit.moves)
        assert position["player"][0] == forfeit.seat
        assert position["turn"][0] <= 1
    games = results.games[tournament.matchups[0]]
    assert 0 < len(results.forfeits) == (games["forfeit"] >= 0).sum() < len(games)
    assert same(
        run(tournament, file), results
    )  # what was forfeited is kept: nothing is played, nothing hangs


def test_a_policy_that_ends_its_process_forfeits():
    bad = OWN + "Dies"
    results = run(Tournament((bad, "first"), QUICK, games=4), workers=1)
    assert {forfeit.policy for forfeit in results.forfeits} == {bad}
    assert {forfeit.reason for forfeit in results.forfeits} == {"ended the process (exit code 7)"}
    assert len(results.forfeits) == 4


@pytest.mark.parametrize(
    ("name", "workers", "message"),
    [
        ("Broken", 0, "raised ZeroDivisionError: nothing can be divided by it"),
        ("Broken", 2, "raised ZeroDivisionError: nothing can be divided by it"),
        ("Nonsense", 0, r"illegal action 999 \(no such action\)"),
        ("Stuck", 1, "took more than 3 s"),
        ("Deadly", 1, r"ended the process \(exit code 9\)"),
    ],
)
def test_a_policy_that_fails_in_its_first_decision_stops_the_tournament(tmp_path, name, workers, message):
    bad = OWN + name
    tournament = Tournament(("random", bad, "first"), QUICK, games=2000)
    file = tmp_path / "games.sqlite"
    with pytest.raises(BrokenPolicyError) as stopped:
        run(tournament, file, workers=workers, time_limit=3)
    first, *traceback = str(stopped.value).splitlines()
    assert re.fullmatch(f"policy '{bad}' failed in its first decision: {message}", first)
    if name == "Broken":
        assert traceback[1] == "Traceback (most recent call last):"
        assert re.search(r'arena_policies\.py", line \d+, in act$', traceback[2])  # nothing of ours before it
        assert re.search(r"in _helper$", "\n".join(traceback), re.MULTILINE)
    else:
        assert not traceback
    assert not [row for row in _blocks(file) if bad in str(row[1])]  # no game that it forfeited is kept


def test_whether_a_policy_is_broken_is_decided_in_the_first_block_that_it_plays():
    tournament = Tournament(("bad", "first"), QUICK)
    policies = {"bad": Broken(), "first": make_policy("first")}
    block = Block(("bad", "first"), 0, 3)
    with pytest.raises(BrokenPolicyError, match="policy 'bad' failed in its first decision"):
        play_block(tournament, policies, block, untried=frozenset({"bad", "first"}))
    assert len(play_block(tournament, policies, block, untried=frozenset({"first"})).forfeits) == 6

    asked = []

    class Pool(Here):
        def submit(self, block, untried):
            asked.append((block.matchup, block.first, set(untried)))
            return super().submit(block, untried)

    tournament = Tournament(("first", "greedy", "random"), QUICK, games=600)
    run(tournament, pool=Pool(tournament, {name: make_policy(name) for name in tournament.policies}))
    assert asked[:2] == [(("first", "greedy"), 0, {"first", "greedy"}), (("first", "random"), 0, {"random"})]
    assert not any(untried for _, _, untried in asked[2:])


def test_objects_are_not_given_together_with_a_pool_that_goes_by_names():
    tournament = Tournament(("greedy", "first"), QUICK, games=10)
    policies = {"greedy": make_policy("random")}
    pool = Here(tournament, {name: make_policy(name) for name in tournament.policies})
    with pytest.raises(ValueError, match="policies cannot be given together with a pool"):
        run(tournament, policies=policies, pool=pool)


def test_a_block_is_kept_before_the_next_one_is_begun(tmp_path):
    file, begun = tmp_path / "games.sqlite", 0

    class Pool(Here):
        def submit(self, block, untried):
            nonlocal begun
            begun += 1
            assert len(_blocks(file)) == begun - 1
            return super().submit(block, untried)

    tournament = Tournament(("first", "random"), QUICK, games=512 * 3)
    run(tournament, file, pool=Pool(tournament, {name: make_policy(name) for name in tournament.policies}))
    assert begun == 3


def test_an_object_that_is_no_policy_is_refused_before_anything_is_played(tmp_path):
    file = tmp_path / "games.sqlite"
    wrong: Any
    for wrong in (Lowest, None, 5, "greedy"):
        with pytest.raises(
            ValueError, match=r"policy 'mine' must have a method act\(game, state, rng\), got "
        ):
            run(Tournament(("mine", "first"), QUICK, games=10), file, policies={"mine": wrong})
    assert not file.exists()


def test_an_object_that_cannot_be_sent_to_a_worker_is_refused():
    class Local(Lowest):
        pass

    with pytest.raises(ValueError, match=r"policy 'mine' cannot be sent to a worker process: .*workers=0"):
        run(Tournament(("mine", "first"), QUICK, games=10), policies={"mine": Local()}, workers=1)


def test_a_script_without_a_main_guard_is_told_so(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from wotd_env.arena import Tournament, run\nrun(Tournament(('random', 'first'), games=10), workers=1)\n"
    )
    done = subprocess.run([sys.executable, script], cwd=ROOT, text=True, capture_output=True, check=False)
    assert done.returncode == 1
    assert 'must call run under `if __name__ == "__main__":`' in done.stderr.splitlines()[-1]
    assert "AttributeError" not in done.stderr
    assert "memory" not in done.stderr


def test_a_worker_that_keeps_being_killed_is_given_up(monkeypatch):
    from wotd_env.arena import workers

    class Doomed(workers.Worker):
        starts = 0

        def _start(self):
            pipe = super()._start()
            self.starts += 1
            self._process.kill()
            self._process.join()
            return pipe

    worker = Doomed(Tournament(("random", "first"), QUICK), 60)
    with pytest.raises(RuntimeError, match=r"ended 3 times outside of any policy, .*\(exit code -9\)"):
        worker.play_block(Block(("first", "random"), 0, 2))
    assert worker.starts == 3


def test_a_worker_that_is_killed_from_outside_costs_no_game(monkeypatch):
    from wotd_env.arena import workers

    tournament = Tournament(("random", "first"), QUICK, games=1000)
    matchup = tournament.matchups[0]
    worker = workers.Worker(tournament, 60)
    try:
        for i in range(tournament.num_blocks):
            block = tournament.block(matchup, i)
            worker._start()
            worker._process.kill()
            worker._process.join()
            again = worker.play_block(block)
            assert not again.forfeits
            assert np.array_equal(again.games, played(tournament, block).games)
    finally:
        worker.close()


# ------------------------------------------------------------------------------------------------ results


def test_results_say_what_the_rules_say():
    tournament = Tournament(("greedy", "random"), Rules(players=3, spaces=1, max_turns=25), games=3000)
    for games in run(tournament).games.values():
        truncated = games["truncated"] == 1
        assert 0 < truncated.sum() < len(games)
        assert (games["turns"][truncated] == 25).all()
        assert games["share"][truncated] == pytest.approx(np.full((truncated.sum(), 3), 1 / 3))
        assert games["rank"].sum(1) == pytest.approx(np.full(len(games), 6))
        ended = games[~truncated]
        winners = ended["share"] > 0
        assert (ended["rank"][winners] < 2.5).all()
        assert (ended["points"].max(1, keepdims=True) == ended["points"])[winners].all()
        assert ended["share"].sum(1) == pytest.approx(np.ones(len(ended)))


def fake(
    tournament: Tournament, rng: np.random.Generator, strengths: dict[str, float], shared: float = 0.0
) -> Results:
    """Results whose finishing orders are drawn by strength (Plackett-Luce), the games of a duplicate sharing luck."""
    n = tournament.rules.players
    games = {}
    for matchup in tournament.matchups:
        size = tournament.duplicates
        places = seatings(np.arange(size), n)
        level = np.array([strengths[name] for name in matchup])[places] + rng.gumbel(size=places.shape)
        level[:, :, 0] += shared * rng.normal(
            size=(size, 1)
        )  # seat 0 is lucky or not in all games of a duplicate
        rank = n - level.argsort(2).argsort(2)
        records = np.zeros((size, n), results_dtype(n))
        records["duplicate"] = np.arange(size)[:, None]
        records["forfeit"] = -1
        records["place"], records["rank"], records["share"] = places, rank, rank == 1
        records["points"] = 10 - rank
        games[matchup] = records.ravel()
    return Results(tournament, games, [])


@pytest.mark.parametrize(
    ("players", "edge", "games"), [(2, 0.0, 200), (2, 1.0, 60), (3, 0.5, 300), (2, 4.0, 400)]
)
def test_intervals_cover_what_they_should(players, edge, games):
    tournament = Tournament(("a", "b", "c")[:players], Rules(players=players), games=games)
    strengths = {"a": edge, "b": 0.0, "c": 0.0}
    share = np.exp(edge) / (np.exp(edge) + players - 1)
    rng = np.random.default_rng(0)
    inside = {"share": 0, "seat": 0, "ahead": 0, "rating": 0, "rank": 0}
    trials = 400
    for _ in range(trials):
        results = fake(tournament, rng, strengths)
        row = next(row for row in results.rows if row.policy == "a" and row.seat is None)
        seat = next(row for row in results.rows if row.policy == "a" and row.seat == 1)
        ahead = results.ahead["a", "b"]
        rating = results.ratings["a"]
        truth = {
            "share": share,
            "seat": share,
            "ahead": np.exp(edge) / (np.exp(edge) + 1),
            "rating": (edge - edge / players) * 400 / np.log(10),
            "rank": players - (players - 1) * np.exp(edge) / (np.exp(edge) + 1),
        }
        estimates = {
            "share": row.share,
            "seat": seat.share,
            "ahead": ahead,
            "rating": rating,
            "rank": row.rank,
        }
        for name, estimate in estimates.items():
            inside[name] += estimate.low <= truth[name] <= estimate.high
    for name, hits in inside.items():
        assert 0.92 <= hits / trials <= 1.0, name
    if edge < 2:  # far from the ends they are not too wide either
        assert max(inside.values()) / trials < 0.985


def test_shared_dice_are_not_taken_for_independent_games():
    tournament = Tournament(("a", "b"), games=400)
    rng = np.random.default_rng(1)
    errors, values = [], []
    for _ in range(300):
        results = fake(tournament, rng, {"a": 0.0, "b": 0.0}, shared=5.0)
        errors.append(results.rows[0].share.error)
        values.append(next(row for row in results.rows if row.policy == "a").share.value)
    # who holds the lucky seat wins: once each, so the share is known far better than from 400 single games
    assert np.mean(errors) < 0.6 * 1.96 * 0.5 / np.sqrt(400)
    assert 1.96 * np.std(values) == pytest.approx(np.mean(errors), rel=0.2)


def test_ratings_recover_strengths_and_stay_finite():
    strengths = {"a": 1.0, "b": 0.3, "c": 0.0, "d": -1.3}
    for players in (2, 3):
        results = fake(
            Tournament(tuple(strengths), Rules(players=players), games=4000),
            np.random.default_rng(0),
            strengths,
        )
        assert list(results.ratings) == list(strengths)
        for name, rating in results.ratings.items():
            assert rating.value == pytest.approx(strengths[name] * 400 / np.log(10), abs=20)
            assert rating.error < 20
    results = fake(Tournament(("a", "b"), games=1000), np.random.default_rng(0), {"a": 100.0, "b": 0.0})
    assert results.rows[0].share.value == 1
    assert 2 * results.ratings["a"].low < 1000  # at 973 points a thousand wins in a row come once in 40 times
    assert 400 < results.ratings["a"].low < results.ratings["a"].value < results.ratings["a"].high < 2000


def test_luck_is_fair_and_narrows_the_interval():
    tournament = Tournament((OWN + "Gambler", "first"), QUICK, games=600, luck=OWN + "Gambler")
    results = run(tournament)
    games = results.games[tournament.matchups[0]]
    luck = games["luck"].astype(float)
    assert luck.sum(1) == pytest.approx(np.zeros(len(games)), abs=1e-5)
    by_duplicate = luck.reshape(-1, 2, 2)[:, 0, 0]
    assert abs(by_duplicate.mean()) < 4 * by_duplicate.std() / np.sqrt(len(by_duplicate))
    row = results.rows[0]
    assert row.adjusted is not None
    assert row.adjusted.error <= row.share.error
    assert row.adjusted.low < row.share.value < row.adjusted.high
    plain = run(Tournament(tournament.policies, QUICK, games=600))
    for field in ("share", "points", "turns"):  # measuring changes no game
        assert np.array_equal(games[field], plain.games[tournament.matchups[0]][field])


def test_luck_that_explains_the_result_is_taken_out():
    tournament = Tournament(("a", "b"), games=2000, luck="a")
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(100):
        results = fake(Tournament(("a", "b"), games=2000), rng, {"a": 0.4, "b": 0.0})
        games = results.games["a", "b"]
        mine = games["share"] - np.exp(0.4 * (1 - 2 * games["place"])) / (
            1 + np.exp(0.4 * (1 - 2 * games["place"]))
        )
        games["luck"] = mine * 0.5 + rng.normal(scale=0.05, size=(len(games), 1)) * (1, -1)
        row = next(row for row in Results(tournament, {("a", "b"): games}, []).rows if row.policy == "a")
        assert row.adjusted is not None
        assert row.adjusted.error < 0.35 * row.share.error
        inside += row.adjusted.low <= 1 / (1 + np.exp(-0.4)) <= row.adjusted.high
    assert inside >= 88


def test_one_policy_alone_shows_what_a_seat_is_worth():
    results = run(Tournament(("greedy",), QUICK, games=400))
    assert results.rows[0].share.value == 0.5
    assert results.rows[0].share.error < 0.01
    seats = [row for row in results.rows if row.matchup is None and row.seat is not None]
    assert sum(row.share.value for row in seats) == pytest.approx(1)
    assert seats[0].share.error > 0.03


# ------------------------------------------------------------------------------------------------ what is written


def test_results_are_written_as_json_csv_and_parquet(tmp_path, reference):
    from pyarrow import parquet

    for ending in show.FORMATS:
        show.write(reference, tmp_path / f"results{ending}")
    document = json.loads((tmp_path / "results.json").read_text())
    table = parquet.read_table(tmp_path / "results.parquet").to_pylist()
    with (tmp_path / "results.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert document["rows"] == table == reference.to_rows()
    assert [float(line["share"]) for line in lines] == [row.share.value for row in reference.rows]
    assert document["tournament"]["rules"]["spaces"] == 0
    with pytest.raises(ValueError, match=r"\.json, \.csv, \.parquet, got results\.xls"):
        show.write(reference, "results.xls")


def test_the_picture_is_drawn(tmp_path, reference):
    for ending in ("svg", "pdf", "png"):
        for name in ("results", "again"):
            show.draw(reference, tmp_path / f"{name}.{ending}", "three players")
        assert (tmp_path / f"results.{ending}").read_bytes() == (tmp_path / f"again.{ending}").read_bytes()
    drawn = (tmp_path / "results.svg").read_text()
    assert drawn.startswith("<?xml")
    assert len(drawn) > 10_000


# ------------------------------------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": ()}, "policies must be at least one name"),
        ({"policies": ("random", "random")}, "got 'random' twice"),
        ({"games": 0}, "games must be an integer from 1 to"),
        ({"games": 10.5}, "games must be an integer"),
        ({"games": 10**8}, "games must be an integer from 1 to 20000000, got 100000000"),
        ({"games": 10**7, "policies": tuple("abcdef")}, "from 1 to 1333333 with 15 matchups, got 10000000"),
        ({"policies": "greedy"}, r"policies must be a tuple of names, got 'greedy': write \('greedy',\)"),
        ({"seed": -1}, "seed must be an integer from 0 to"),
        ({"until": 0.0}, "until must be between 0 and 0.5"),
    ],
)
def test_wrong_tournaments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Tournament(**{"policies": ("random", "first"), **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"workers": -1}, "workers must be an integer of at least 0"),
        ({"time_limit": 0}, "time_limit must be more than 0 seconds"),
        (
            {"policies": {"other": Lowest()}},
            r"policies must be among those of the tournament, got \['other'\]",
        ),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        run(Tournament(("random", "first"), QUICK, games=10), **options)


def test_a_value_without_equities_cannot_measure_luck():
    with pytest.raises(ValueError, match="luck must name a policy with a method equity"):
        Here(Tournament(("random", "first"), QUICK, luck="random"), {})


# ------------------------------------------------------------------------------------------------ policies from files


def test_models_of_sb3_play(tmp_path):
    contrib = pytest.importorskip("sb3_contrib")
    from gymnasium import make

    environment = make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=0)
    file = tmp_path / "model.zip"
    contrib.MaskablePPO("MlpPolicy", environment, seed=0, device="cpu").save(file)
    name = f"sb3:{file}"
    tournament = Tournament((name, "first"), QUICK, games=100)
    for workers in (0, 1):
        with pytest.raises(ValueError, match="can run code that it contains"):
            run(tournament, tmp_path / "games.sqlite", workers=workers)
    assert not (tmp_path / "games.sqlite").exists()
    results = run(tournament, trust=True)
    assert not results.forfeits
    assert same(run(tournament, workers=1, trust=True), results)
    assert policy_digest(name) != policy_digest("sb3:another.zip")
    with pytest.raises(ValueError, match="has 60 actions, these rules 70"):
        run(Tournament((name, "first", "random"), Rules(players=3, spaces=0), games=30), trust=True)
    for consent, code in (([], WRONG_USE), (["--trust"], 0)):
        options = f"--spaces 0 --games 100 --workers 0 --quiet --file {tmp_path / 'a.sqlite'}"
        result = CliRunner().invoke(app, ["arena", name, "first", *options.split(), *consent])
        assert result.exit_code == code, result.output
        assert ("consent by trust=True or --trust" in result.stderr) == (code == WRONG_USE)
        assert (tmp_path / "a.sqlite").exists() == (code == 0)


def test_files_that_are_no_model_are_refused(tmp_path):
    pytest.importorskip("sb3_contrib")
    (tmp_path / "model.zip").write_text("no zip")
    with pytest.raises(ValueError, match=r"model\.zip holds no model that MaskablePPO can read"):
        make_policy(f"sb3:{tmp_path / 'model.zip'}", trust=True)
    with pytest.raises(FileNotFoundError, match=r"no SB3 file missing\.zip"):
        make_policy("sb3:missing.zip")


@pytest.mark.parametrize("luck", ["planner", "oracle"])
def test_who_knows_equities_halves_the_interval(luck):
    tournament = Tournament(("greedy", "planner"), QUICK, games=600, luck=luck)
    results = run(tournament)
    row = results.rows[0]
    assert row.adjusted is not None
    assert row.adjusted.error < 0.6 * row.share.error
    assert row.share.low < row.adjusted.value < row.share.high
    mean = results.games[tournament.matchups[0]]["luck"][:, 0].reshape(-1, 2).mean(1)
    assert abs(mean.mean()) < 4 * mean.std() / math.sqrt(len(mean))


def test_equities_of_rolls_to_come_are_means_over_them():
    game = Game(QUICK, skip_forced=False)
    state = game.reset(30, seed=2, roll=False)
    for name in ("planner", "oracle"):
        equity = make_equity(name)
        faces, probabilities = game.chance_outcomes(5)
        rolled = np.repeat(state, len(faces))
        game.roll(rolled, np.tile(faces, (len(state), 1)))
        after = equity(game, rolled).reshape(len(state), -1) @ probabilities
        assert equity(game, state) == pytest.approx(after, abs=1e-5)


def test_the_ladder_is_written_with_its_pictures_and_ratings(tmp_path):
    options = ("--games", "20", "--policies", "random", "first", "--players", "2", "3", "--workers", "0")
    ladder.main([*options, "--seed", "7", "--into", str(tmp_path)])
    page = (tmp_path / "ladder.md").read_text()
    for title in ("2 players, basic game", "2 players, powers", "3 players, basic game", "3 players, powers"):
        assert f"## {title}\n" in page
    pictures = re.findall(r"!\[.*\]\((.*)\)", page)
    assert len(pictures) == 4
    assert all((tmp_path / picture).is_file() for picture in pictures)
    results = run(Tournament(("random", "first"), games=20, seed=7))
    shipped = json.loads((tmp_path / "ladder.json").read_text())["ratings"]
    assert shipped == {name: rating._asdict() for name, rating in results.ratings.items()}
    share = next(row.share for row in results.rows if row.policy == "first")
    assert f"| {share.value:.2%} ±{100 * share.error:.2f} |" in page


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--games 0", "games must be"),
        ("--players 6", "players must be"),
        ("--workers -1", "workers must be"),
        ("--policies nobody", "policy must be one of"),
    ],
)
def test_a_ladder_that_cannot_be_made_is_named(tmp_path, capsys, option, words):
    with pytest.raises(SystemExit):
        ladder.main([*option.split(), "--into", str(tmp_path)])
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--games 1000", "--players 2", "--policies first random"])
def test_a_trial_of_the_ladder_does_not_replace_the_one_that_is_shipped(monkeypatch, capsys, option):
    monkeypatch.setattr(ladder, "run", None)
    with pytest.raises(SystemExit) as stopped:
        ladder.main(option.split())
    assert stopped.value.code == 2
    told = f"{option.split()[0]} makes another page than the one that is shipped: say by --into FOLDER"
    assert told in capsys.readouterr().err


def test_the_ladder_has_learnt_policies_where_there_are_models_for_them(tmp_path, monkeypatch):
    rules = Rules(powers="own", colors="random")
    models_of = {"td": (Rules(), Rules(players=3)), "ppo": (Rules(),)}
    for policy, known in models_of.items():
        for each in known:
            (tmp_path / f"{models.name_of(policy, each)}.npz").touch()
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    for each in (Rules(), Rules(players=3), rules):
        assert [name for name in ladder.POLICIES if not ladder.plays(name, each)] == [
            policy for policy, known in models_of.items() if each not in known
        ]
