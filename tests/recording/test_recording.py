"""Recorded games contain every decision, and replays reproduce them bit for bit."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.helpers import ROOT
from tests.helpers.commands import wotd
from tests.helpers.damage import damaged, survive
from wotd_env import Game, IllegalActionError, Rules, analysis, make_policy, notation, recording
from wotd_env.policy import ask, play_out
from wotd_env.recording import writing
from wotd_env.recording.reading import schema

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

RULES = [
    Rules(spaces=1),
    Rules(players=3, spaces=2, powers="any", dead_pieces=4, colors="random", immunity=True, max_turns=40),
    Rules(players=5, spaces=0, powers="own", start=2, max_turns=60),
]
POLICIES = ("greedy", "random", "first", "random", "greedy")


@pytest.fixture(params=RULES, ids=lambda rules: f"{rules.players} players")
def recorded(request, tmp_path):
    """Record a file of games; return it with their rules."""
    rules: Rules = request.param
    file = tmp_path / "games.parquet"
    recording.record(POLICIES[: rules.players], file, 20, rules, seed=7)
    return file, rules


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(writing, "BLOCK", 8)


def test_recorded_rows_equal_the_decisions_of_the_games(recorded):
    file, rules = recorded
    decisions = recording.load(file)
    assert all(array.flags.writeable for array in decisions[2:])  # torch warns about read-only arrays
    names = POLICIES[: rules.players]
    game, rows = Game(rules), 0
    for first, count in ((0, 8), (8, 8), (16, 4)):  # replay each block without recording
        rng = np.random.default_rng([7, first])
        state = game.reset(count, seed=7 + first)
        seats = np.array(
            [[(k - i) % rules.players for k in range(rules.players)] for i in range(first, first + count)]
        )
        players = [make_policy(name) for name in names]
        steps = []

        def choose(player, games, state=state, players=players, rng=rng):
            return ask(players[player], game, state[games], rng)

        for actions in play_out(game, state, seats, choose):
            steps.append((state.copy(), actions))
        for i in range(count):
            mine = decisions.game == first + i
            played = [(states[i], actions[i]) for states, actions in steps if actions[i] >= 0]
            assert decisions.number[mine].tolist() == list(range(len(played)))
            assert decisions.state[mine].tobytes() == b"".join(one.tobytes() for one, _ in played)
            assert decisions.action[mine].tolist() == [action for _, action in played]
            seat = decisions.state["player"][mine]
            expected = [names[seats[i, k]] for k in seat]
            assert [decisions.policies[k] for k in decisions.policy[mine]] == expected
            assert decisions.reward[mine] == pytest.approx(game.rewards(state)[i, seat])
            assert set(decisions.seed[mine].tolist()) == {7 + first + i}
            rows += len(played)
    assert rows == len(decisions.game)
    assert (decisions.mask == game.legal_actions(decisions.state)).all()
    assert np.isnan(decisions.equity).all()
    assert np.isnan(decisions.regret).all()


def test_columns_equal_the_documented_ones(recorded):
    file, rules = recorded
    table = pq.read_table(file)
    page = (ROOT / "docs" / "how-to" / "record.md").read_text()
    named = [
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and line.count("|") == 4
    ]
    assert table.column_names == named == schema(rules).names
    decisions = recording.load(file)
    assert table["turn"].to_pylist() == decisions.state["turn"].tolist()
    assert table["phase"].to_pylist() == decisions.state["phase"].tolist()
    assert table["seat"].to_pylist() == decisions.state["player"].tolist()
    about = json.loads(table.schema.metadata[b"wotd_env"])
    assert Rules.from_dict(about["rules"]) == rules
    assert (about["seed"], about["games"]) == (7, 20)
    assert pq.ParquetFile(file).num_row_groups == 3


def test_load_filters_decisions_by_any_column(recorded):
    file, _ = recorded
    every = recording.load(file)
    some = recording.load(file, filters=[("policy", "=", "greedy"), ("turn", ">=", 2), ("phase", "=", 1)])
    chosen = (
        (np.array(every.policies)[every.policy] == "greedy")
        & (every.state["turn"] >= 2)
        & (every.state["phase"] == 1)
    )
    assert 0 < chosen.sum() == len(some.game)
    assert some.state.tobytes() == every.state[chosen].tobytes()
    assert some.mask.tobytes() == every.mask[chosen].tobytes()
    assert recording.load(file, filters=[("turn", ">", 60_000)]).mask.shape == (0, every.mask.shape[1])


def test_recorded_games_replay_bit_for_bit(recorded):
    file, rules = recorded
    rows = len(recording.load(file).game)
    assert recording.verify(file) == (20, rows)
    parts = list(recording.blocks(file))
    assert sum(len(part.game) for part in parts) == rows
    for number in (0, 19):
        game = recording.game_of(file, number)
        again = notation.parse_game(str(game))
        asked = Game(rules).legal_actions(again.states[:-1]).sum(1) > 1
        mine = recording.load(file, filters=[("game", "=", number)])
        assert again.states[:-1][asked].tobytes() == mine.state.tobytes()
        assert game.players == tuple(POLICIES[(k - number) % rules.players] for k in range(rules.players))
    with pytest.raises(ValueError, match=r"game must be one of .*, got 20"):
        recording.game_of(file, 20)


def change(file: Path, column: str, make: Any) -> None:
    table = pq.read_table(file)
    index = table.column_names.index(column)
    values = make(table.column(index).to_pylist())
    changed = table.set_column(
        index, table.schema.field(index), pa.array(values, table.schema.field(index).type)
    )
    writing.write_groups(file, table.schema, [changed])


@pytest.mark.parametrize(
    ("column", "make", "message"),
    [
        (
            "seed",
            lambda seeds: [seed + 1 for seed in seeds],
            "the state of decision 0 in game 0 is not the result of seed 8",
        ),
        (
            "reward",
            lambda values: [*values[:-1], -values[-1]],
            r"the reward of decision \d+ in game 19 is not",
        ),
        ("mask", lambda masks: [[1] * len(masks[0]), *masks[1:]], "the mask of decision 0 in game 0 is not"),
        ("state", lambda states: [states[1], *states[1:]], "decision 0 in game 0|illegal"),
        ("state", lambda states: [b"\xff" * 64, *states[1:]], "seats to act|game 0: "),
        ("action", lambda actions: [-1, *actions[1:]], "the action of decision 0 in game 0 is illegal"),
        (
            "action",
            lambda actions: [*actions[:40], 53, *actions[41:]],  # a power is illegal in the basic game
            r"games\.parquet: the action of decision \d+ in game [1-9]\d* is illegal",
        ),
        ("policy", lambda names: ["other", *names[1:]], "policies must be among"),
        *(
            (column, lambda values: [*values[:9], 1 + values[9], *values[10:]], f"the {column} of decision 9")
            for column in ("turn", "seat", "phase")
        ),
        (
            "decision",
            lambda numbers: [*numbers[:9], 10, *numbers[10:]],
            "the number of decision 10 in game 0",
        ),
        (
            "policy",
            lambda names: [*({"greedy", "random"} - {names[0]}), *names[1:]],
            "the policy of decision 0 in game 0",
        ),
        ("equity", lambda values: [[0.5], *values[1:]], "equities must be those of the legal actions"),
        ("game", lambda games: [game + 1 for game in games], "game 0 is missing before game 1"),
        (
            "game",
            lambda games: [game - (game == 19) for game in games],
            r"the state of decision \d+ in game 18",
        ),
    ],
)
def test_verify_finds_changed_values(tmp_path, column, make, message):
    file = tmp_path / "games.parquet"
    recording.record(["greedy", "random"], file, 20, Rules(spaces=0), seed=7)
    change(file, column, make)
    with pytest.raises(ValueError, match=message):
        recording.verify(file)


@pytest.mark.parametrize(
    ("games", "message"),
    [
        (range(19), "must contain 20 games according to its metadata, got 19"),
        ([*range(7), *range(8, 20)], "game 7 is missing before game 8"),
        ([*range(8), *range(20)], "game 8 is missing before game 0"),
        ([1, 0, *range(2, 20)], "game 0 is missing before game 1"),
        ([], "according to its metadata, got 0"),
    ],
)
def test_verify_finds_missing_doubled_and_moved_games(tmp_path, games, message):
    file = tmp_path / "games.parquet"
    recording.record(["greedy", "random"], file, 20, Rules(spaces=0))
    table = pq.read_table(file)
    every = [table.filter(pa.compute.equal(table["game"], game)) for game in range(20)]
    writing.write_groups(file, table.schema, [every[game] for game in games])
    with pytest.raises(ValueError, match=message):
        recording.verify(file)


def test_verify_finds_games_of_other_seeds(tmp_path):
    file, other = tmp_path / "games.parquet", tmp_path / "other.parquet"
    recording.record(["first"], file, 4, Rules(spaces=0), seed=1)
    recording.record(["first"], other, 4, Rules(spaces=0), seed=2)
    table = pq.read_table(other).replace_schema_metadata(pq.read_schema(file).metadata)
    writing.write_groups(file, table.schema, [table])
    with pytest.raises(ValueError, match="the seed of decision 0 in game 0 is not 1"):
        recording.verify(file)


@pytest.mark.parametrize("flips", [100, pytest.param(3000, marks=pytest.mark.slow)])
def test_damaged_recordings_are_refused(table, tmp_path, flips):
    file = tmp_path / "games.parquet"
    recording.record(["greedy", "random"], file, 20, Rules(spaces=0), table=table)

    def read(file):
        decisions, some = recording.load(file), recording.load(file, filters=[("turn", "<", 3)])
        recording.verify(file)
        return (
            [value.tobytes() for value in (*decisions[2:], *some[2:])],
            decisions[:2],
            str(recording.game_of(file, 3)),
        )

    assert survive(file, read, flips) > flips  # the digest covers all bytes


@pytest.mark.parametrize("flips", [20, pytest.param(100, marks=pytest.mark.slow)])
def test_damaged_finished_blocks_are_played_again(tmp_path, monkeypatch, flips):
    rules, file, whole = Rules(spaces=0), tmp_path / "games.parquet", tmp_path / "whole.parquet"
    recording.record(["random"], whole, 10, rules)

    def interrupted(done, total):
        if done:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        recording.record(["random"], file, 10, rules, progress=interrupted)
    block = tmp_path / "games.parquet.parts" / "000000000.parquet"
    for content in damaged(block.read_bytes(), flips):
        block.parent.mkdir(exist_ok=True)
        block.write_bytes(content)
        recording.record(["random"], file, 10, rules)
        assert file.read_bytes() == whole.read_bytes()


def test_recordings_without_a_digest_are_read(tmp_path):
    file = tmp_path / "games.parquet"
    recording.record(["first"], file, 2, Rules(spaces=0))
    table = pq.read_table(file)
    about = json.loads(table.schema.metadata[b"wotd_env"])
    for number in (1, 2):
        metadata = {b"wotd_env": json.dumps(about | {"format": number}).encode()}
        pq.write_table(table.replace_schema_metadata(metadata), file)
        if number == 1:
            assert recording.verify(file) == (2, len(table))
        else:
            with pytest.raises(ValueError, match=r"games\.parquet does not match its digest"):
                recording.load(file)


def test_invalid_files_raise_errors_that_name_them(tmp_path):
    file = tmp_path / "games.parquet"
    with pytest.raises(FileNotFoundError):
        recording.load(file)
    whole = tmp_path / "whole.parquet"
    recording.record(["first"], whole, 2, Rules(spaces=0))
    content = whole.read_bytes()
    for half in (b"", b"PAR1", content[:-20], content[: len(content) // 2], b"PAR1" + b"\0" * 100 + b"PAR1"):
        file.write_bytes(half)
        with pytest.raises(ValueError, match=r"games\.parquet cannot be read as recorded games"):
            recording.load(file)
    table = pq.read_table(whole)
    about = json.loads(table.schema.metadata[b"wotd_env"])
    for metadata in (
        {},
        {b"wotd_env": b"["},
        {b"wotd_env": b"[]"},
        {b"wotd_env": json.dumps(about | {"format": 3}).encode()},
        {b"wotd_env": json.dumps(about | {"rules": {"spaces": 99}}).encode()},
        {b"wotd_env": json.dumps(about | {"rules": {"players": 5}}).encode()},
        {b"wotd_env": json.dumps(about | {"policies": ["a", "b", "c"]}).encode()},
    ):
        pq.write_table(table.replace_schema_metadata(metadata), file)
        with pytest.raises(ValueError, match=r"games\.parquet must be a file written by wotd record, got"):
            recording.load(file)
    pq.write_table(table.drop_columns(["mask"]), file)
    with pytest.raises(ValueError, match="other columns"):
        recording.load(file)


def test_equities_equal_the_exact_solution(table, tmp_path):
    file = tmp_path / "games.parquet"
    recording.record(["greedy", "random"], file, 10, Rules(spaces=0), table=table)
    decisions = recording.load(file)
    exact = analysis.analyze(Game(decisions.rules), decisions.state, table)
    assert (decisions.equity == exact.actions).all()
    assert decisions.regret.max() > 0.05
    regret = analysis.regret(Game(decisions.rules), decisions.state, decisions.action, table)
    assert (decisions.regret == regret).all()
    assert recording.verify(file)[0] == 10
    with pytest.raises(ValueError, match="spaces"):
        recording.record(["greedy"], file, 10, Rules(spaces=1), table=table)


def test_the_same_call_resumes_an_interrupted_recording(tmp_path, monkeypatch):
    rules, file, whole = Rules(spaces=1), tmp_path / "games.parquet", tmp_path / "whole.parquet"
    recording.record(["random"], whole, 20, rules)
    file.write_text("mine")
    played = []
    play = writing.play_block

    def interrupted(*arguments):
        played.append(arguments[-2])
        if len(played) == 3:
            raise KeyboardInterrupt
        return play(*arguments)

    monkeypatch.setattr(writing, "play_block", interrupted)
    with pytest.raises(KeyboardInterrupt):
        recording.record(["random"], file, 20, rules)
    assert file.read_text() == "mine"
    (tmp_path / "games.parquet.parts" / "000000008.parquet").write_bytes(b"cut short")
    recording.record(["random"], file, 20, rules)
    assert played == [0, 8, 16, 8, 16]
    assert file.read_bytes() == whole.read_bytes()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["games.parquet", "whole.parquet"]
    recording.record(["random"], file, 20, rules, seed=1)
    assert played[5:] == [0, 8, 16]


def test_finished_blocks_are_reused_only_by_equal_calls(tmp_path, monkeypatch):
    file = tmp_path / "games.parquet"

    def full(file, *arguments):
        if file.suffix == ".parquet" and "parts" not in str(file.parent):
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(file, *arguments)

    write = writing.write_groups
    monkeypatch.setattr(writing, "write_groups", full)
    with pytest.raises(
        OSError,
        match=r"games\.parquet cannot be written: .*No space left.*Finished blocks are kept in .*parts",
    ):
        recording.record(["random", "greedy"], file, 10, Rules(spaces=0))
    monkeypatch.undo()
    other = tmp_path / "other.parquet"
    for policies, rules, seed in (
        (["greedy", "random"], Rules(spaces=0), 0),
        (["random", "greedy"], Rules(spaces=0, start=0), 0),
        (["random", "greedy"], Rules(spaces=0), 1),
    ):
        recording.record(policies, file, 10, rules, seed=seed)
        recording.record(policies, other, 10, rules, seed=seed)
        left, right = recording.load(file), recording.load(other)
        assert left.state.tobytes() == right.state.tobytes()


def test_invalid_calls_leave_no_files(tmp_path):
    file = tmp_path / "games.parquet"
    illegal: Any = type("Illegal", (), {"act": lambda self, game, state, rng: np.full(len(state), 54)})()
    for error, message, arguments in (
        (
            ValueError,
            "policies must be one for each of the 3 seats",
            (["random"] * 2, file, 1, Rules(players=3)),
        ),
        (ValueError, "games must be an integer from 1", (["random"], file, 0)),
        (ValueError, "policy must be one of", (["randm"], file, 2)),
        (IllegalActionError, "action 54", ([illegal], file, 2)),
        (OSError, "cannot be written: .*No such file", (["random"], tmp_path / "nowhere" / "a.parquet", 1)),
    ):
        with pytest.raises(error, match=message):
            recording.record(*arguments)
        assert list(tmp_path.iterdir()) == []
    with pytest.raises(ValueError, match="seed must be an integer"):
        recording.record(["random"], file, 2, seed=2**64 - 1)
    assert list(tmp_path.iterdir()) == []


def test_the_loser_of_the_lock_changes_nothing(tmp_path, monkeypatch):
    rules, file, parts = Rules(spaces=0), tmp_path / "games.parquet", tmp_path / "games.parquet.parts"
    lost = []

    def second(done, total):  # the first recording has the lock, and at first no finished block
        before = {each: each.read_bytes() for each in parts.iterdir()}
        with pytest.raises(OSError, match="is being written by another process"):
            recording.record(["random"], file, 20, rules)
        assert {each: each.read_bytes() for each in parts.iterdir()} == before
        lost.append(done)

    recording.record(["random"], file, 20, rules, progress=second)
    assert lost == [0, 8, 16, 20]
    assert recording.verify(file)[0] == 20
    assert list(tmp_path.iterdir()) == [file]


def test_files_of_others_in_the_folder_of_blocks_are_kept(tmp_path):
    file, parts = tmp_path / "games.parquet", tmp_path / "games.parquet.parts"
    parts.mkdir()
    mine = [parts / name for name in ("notes.txt", "other.parquet", ".part-mine")]
    for each in mine:
        each.write_text("mine")
    (parts / "000000099.parquet").write_text("a block of an earlier call")
    (parts / f".part-{'0' * 32}-000000000.parquet").write_text("left behind by a kill")
    recording.record(["first"], file, 2, Rules(spaces=0))
    assert sorted(parts.iterdir()) == sorted(mine)
    assert recording.verify(file)[0] == 2


# -------------------------------------------------------------------------------------------------------- commands


def test_wotd_record_and_wotd_replay_agree_with_the_api(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = wotd("record greedy random --games 9 --spaces 1 --seed 3 --out g.parquet --quiet")
    assert result.exit_code == 0, result.output
    decisions = recording.load("g.parquet")
    assert result.stdout == f"g.parquet: 9 games, {len(decisions.game):,} decisions\n"
    assert decisions.rules == Rules(spaces=1)
    result = wotd("replay g.parquet --quiet")
    assert result.exit_code == 0, result.output
    assert f"9 games, {len(decisions.game):,} decisions, all verified" in result.stdout
    assert wotd("replay g.parquet --game 4 --out game.txt").exit_code == 0
    assert str(notation.read_game("game.txt")) == str(recording.game_of("g.parquet", 4))
    shown = wotd("replay game.txt")
    assert shown.exit_code == 0, shown.output
    assert shown.stdout == wotd("replay g.parquet --game 4").stdout
    first, second = shown.stdout.splitlines()[:2]
    assert first.startswith("Roll-off for the start")
    assert second.startswith("Turn 1: ")
    assert "The game is over in turn" in shown.stdout
    assert wotd("replay game.txt --out game.html").exit_code == 0
    assert Path("game.html").read_text().startswith("<!doctype html>")
