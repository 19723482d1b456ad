"""The exact solution against the rules engine: nothing here uses the solver's own passes or moves."""

from __future__ import annotations

import copy
import json
import os
import pickle
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from typer.testing import CliRunner

from tests.helpers.exact import before_roll, one_turn, random_positions
from wotd_env import Action, Game, Phase, Rules, make_policy, solver
from wotd_env.cli import app
from wotd_env.core import dice
from wotd_env.solver import turns
from wotd_env.solver.evaluate import write_ends
from wotd_env.solver.positions import write_layer_codes
from wotd_env.solver.storage import (
    DIGEST,
    HEADER,
    MAGIC,
    RULINGS,
    digest,
    finish,
    read_header,
    write_layer,
)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session", params=[0, 1])
def table(request, folder):
    return solver.solve(request.param, folder / f"{request.param}.wotd", threads=1)


@pytest.fixture(scope="session")
def whole(folder):
    """The table of the smallest board, made without disturbance; a session's tests only read it."""
    return solver.solve(0, folder / "whole.wotd")


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("player", [0, 1])
def test_values_satisfy_the_engines_rules(table, late, player):
    game = Game(Rules(spaces=table.spaces), skip_forced=False)
    mine, theirs = random_positions(table.spaces, 60, seed=3 + player, late=late)
    positions = before_roll(mine, theirs, player)
    expected = [one_turn(game, table, position) for position in positions]
    assert table.value(mine, theirs) == pytest.approx(expected, abs=1e-6)


def test_rolls_offer_the_ends_that_the_engine_has():
    """What the solver takes for granted about R3 and R6 to R8, asked of the engine roll by roll."""
    game = Game(Rules(), skip_forced=False)
    offered = set()
    # All pieces can move; all can be swapped; five dice can move none.
    for mine, theirs in (([0] * 5, [0] * 5), ([1] * 5, [2] * 5), ([0] * 5, [5] * 5)):
        state = np.repeat(before_roll([mine], [theirs]), dice.NUM_ROLLS)
        game.roll(state, dice.KEEPS[: dice.NUM_ROLLS])
        game.decide(state, np.full(dice.NUM_ROLLS, Action.STOP_ROLLING))
        rolls, actions = np.nonzero(game.legal_actions(state))
        after = state[rolls]
        game.decide(after, actions)
        ends = turns.ends_after(rolls, actions)
        extra = game.legal_actions(after)[:, Action.PERFECTION_TURN] == 1
        assert not np.isin(turns.End.PASS, ends[extra])
        offered |= set(zip(rolls.tolist(), ends.tolist(), strict=True))
        offered |= set(zip(rolls[extra].tolist(), turns.perfect(ends[extra]).tolist(), strict=True))
    moves = {(roll, int(end)) for roll, n in enumerate(turns.NUM_MOVES) for end in turns.MOVES[roll, :n]}
    swaps = {
        (int(roll), turns.End.SWAP_ON + path)
        for path, four in enumerate(turns.FOUR_DRAGONS)
        for roll in (four, turns.FIVE_DRAGONS)
    }
    assert {(roll, end) for roll, end in offered if end != turns.End.PASS} == moves | swaps


def test_value_of_a_finished_game_is_its_result(table):
    s = table.spaces
    # More points; fewer points; equal points, more numbered pieces; a tie, which no play reaches.
    mine = np.array([[5, 5, 5, 5, 5], [1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 2, 1, 2, 1]]) + s
    theirs = np.array([[4, 4, 4, 4, 4], [2, 2, 2, 2, 2], [5, 0, 0, 0, 0], [2, 1, 2, 1, 2]]) + s
    mine[3, 4], theirs[3, 4] = s + 3, s + 3 - 1
    theirs[3, 0] = s + 3
    state = before_roll(mine, theirs)
    state["phase"] = Phase.OVER
    expected = Game(Rules(spaces=s)).rewards(state)[:, 0]
    assert expected.tolist() == [1, -1, 1, 0]
    assert table.value(mine, theirs).tolist() == expected.tolist()


def test_paths_are_alike(table):
    mine, theirs = random_positions(table.spaces, 200, seed=7)
    paths = np.random.default_rng(8).permuted(np.tile(np.arange(5), (200, 1)), axis=1)
    shuffled = np.take_along_axis(mine, paths, 1), np.take_along_axis(theirs, paths, 1)
    assert np.array_equal(table.value(mine, theirs), table.value(*shuffled))


def test_to_be_on_turn_is_worth_something(table):
    mine, theirs = random_positions(table.spaces, 500, seed=9)
    on_turn, waiting = table.value(mine, theirs), -table.value(theirs, mine)
    assert np.abs(on_turn).max() <= 1
    assert on_turn.mean() > waiting.mean()


def test_no_game_of_two_players_is_tied(table):
    board = table.board
    tied, ended = [], []
    for total in range(len(board.sizes)):
        codes = np.empty((int(board.sizes[total]), 5), np.uint64)
        write_layer_codes(board, total, codes)
        after, results = np.empty((len(codes), turns.ENDS), np.int64), np.empty(len(codes))
        write_ends(table._layers, total, codes, after, results)
        tied.append(table.layout.base[total] + np.flatnonzero(results == 0))
        ended.append(np.unique(after[np.isnan(results)]))
    # They have values, though both players' five pieces stand on numbered spaces.
    assert len(np.concatenate(tied)) > 100
    assert not np.isin(np.concatenate(tied), np.concatenate(ended)).any()


@pytest.mark.parametrize(("spaces", "start"), [(0, 0.2735635), (1, 0.2678187)])
def test_values_are_those_of_the_rulings_that_the_files_name(folder, spaces, start):
    assert RULINGS == 2, "other values now? Then raise RULINGS, so that old tables are refused"
    assert solver.solve(spaces, folder / f"{spaces}.wotd").start == pytest.approx(start, abs=2e-6)


def test_verifying_measures_the_residual_and_writes_nothing(whole):
    before = whole.file.read_bytes()
    assert 0 < solver.verify(whole.file) < 1e-6
    assert whole.file.read_bytes() == before


def test_a_wrong_value_shows_in_the_residual(whole, tmp_path):
    values = whole.values.copy()
    values[1000] += 0.01
    file = tmp_path / "wrong.wotd"
    with file.open("w+b", buffering=0) as stream:
        for total, size in enumerate(whole.board.sizes):
            write_layer(stream, whole.layout, total, values[whole.layout.base[total] :][:size])
        finish(stream, whole.layout, whole.header)
    assert solver.verify(file) > 0.001


def test_values_do_not_depend_on_the_threads(folder):
    one = solver.solve(0, folder / "one.wotd", threads=1)
    three = solver.solve(0, folder / "three.wotd", threads=3)
    assert np.array_equal(one.values, three.values)


@pytest.mark.parametrize("threads", [0, -1, 1.5, 10**9])
def test_a_number_of_threads_that_cannot_be_is_named(whole, tmp_path, threads):
    for call in (
        lambda: solver.solve(0, tmp_path / "0.wotd", threads),
        lambda: solver.verify(whole.file, threads),
    ):
        with pytest.raises(ValueError, match=f"threads must be an integer from 1 to 1024, got {threads}"):
            call()
    result = CliRunner().invoke(
        app, ["solve", "--spaces", "0", "--out", str(tmp_path / "0.wotd"), "--threads", "-1"]
    )
    assert (result.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "threads must be an integer from 1 to 1024, got -1" in result.output


# --------------------------------------------------------------------------------------------------- damage to tables


def same(file: Path, other: Path) -> bool:
    """Return whether two files have the same checksums and values; headers tell of times."""
    contents = [one.read_bytes()[HEADER:] for one in (file, other)]
    return bool(contents[0] == contents[1])


def with_header(content: bytes, **changes) -> bytes:
    """Return the content of a file with another header whose checksum is right."""
    header = json.loads(content[len(MAGIC) : HEADER - DIGEST]) | changes
    return with_text(content, json.dumps(header).encode())


def with_text(content: bytes, text: bytes) -> bytes:
    """Return the content of a file with this in place of the JSON in its header, whose checksum is right."""
    text = (MAGIC + text).ljust(HEADER - DIGEST)
    return text + f"{digest(text)}\n".encode() + content[HEADER:]


def without(content: bytes, name: str) -> bytes:
    """Return the content of a file whose header lacks an entry."""
    header = json.loads(content[len(MAGIC) : HEADER - DIGEST])
    del header[name]
    return with_text(content, json.dumps(header).encode())


def flipped(content: bytes, at: int, bit: int = 0) -> bytes:
    return content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :]


OTHER_RULES = {"players": 2, "spaces": 0, "powers": "own", "immunity": False, "dead_pieces": 0}

DAMAGE = {
    "empty": (lambda good: b"", "not a table"),
    "foreign": (lambda good: b"PK" + bytes(10_000), "not a table"),
    "zeros": (lambda good: bytes(len(good)), "not a table"),
    "of the first format": (lambda good: good.replace(b"values 2", b"values 1", 1), "another format"),
    "cut in the header": (lambda good: good[:2000], "header of .* is damaged"),
    "cut in the checksums": (lambda good: good[: HEADER + 100], "must have .* bytes"),
    "cut at the end": (lambda good: good[:-4], "must have .* bytes"),
    "longer": (lambda good: good + b"more", "must have .* bytes"),
    "header flipped": (lambda good: flipped(good, 300), "header of .* is damaged"),
    "padding of the header flipped": (lambda good: flipped(good, 3000), "header of .* is damaged"),
    "digest of the header flipped": (lambda good: flipped(good, 4090), "header of .* is damaged"),
    "checksum flipped": (lambda good: flipped(good, HEADER + 9), "checksums in .* are damaged"),
    "value flipped": (lambda good: flipped(good, len(good) // 2), "do not match their checksum"),
    "without checksum": (lambda good: with_header(good, sha256=None), "unfinished"),
    "of other rulings": (lambda good: with_header(good, rulings=1), "other rulings"),
    "of other rules": (lambda good: with_header(good, rules=OTHER_RULES), "other rules"),
    "of no rules": (lambda good: with_header(good, rules=None), "cannot be read"),
    "of no board": (lambda good: with_header(good, rules={"spaces": 11}), "cannot be read"),
    "with wrong entries": (lambda good: with_header(good, layers=-1), "cannot be read"),
    "with part of a layer": (lambda good: with_header(good, layers=1.5), "cannot be read"),
    "nested without end": (lambda good: with_text(good, b"[" * 3500), "cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_wrong_with_a_file_is_said(whole, tmp_path, damage):
    spoil, message = DAMAGE[damage]
    file = tmp_path / "broken.wotd"
    file.write_bytes(spoil(whole.file.read_bytes()))
    before = file.read_bytes()
    for use in (
        lambda: solver.load(file).values,
        lambda: solver.verify(file),
        lambda: solver.solve(0, file).values,
    ):
        with pytest.raises(solver.TableError, match=message) as error:
            use()
        assert str(file) in str(error.value)
        if damage not in ("empty", "foreign", "zeros", "of other rules"):  # those may be anything
            assert "remove it and solve again: wotd solve --spaces" in str(error.value)
    assert file.read_bytes() == before


def test_a_missing_file_comes_with_the_command_that_makes_it(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"wotd solve --spaces S --out .*missing\.wotd"):
        solver.load(tmp_path / "missing.wotd")


def test_a_folder_is_no_table(tmp_path):
    for use in (solver.load, solver.verify, lambda file: solver.solve(0, file)):
        with pytest.raises(
            FileNotFoundError, match=r"that is a folder; name a table in it, such as .*\.wotd"
        ):
            use(tmp_path)


def test_no_flipped_bit_goes_unnoticed(whole, tmp_path):
    good = whole.file.read_bytes()
    used = [*range(HEADER + 4 * whole.layout.blocks), *range(whole.layout.bytes, len(good))]
    rng = np.random.default_rng(1)
    file = tmp_path / "flipped.wotd"
    for at, bit in zip(rng.choice(used, 200), rng.integers(0, 8, 200), strict=True):
        file.write_bytes(flipped(good, int(at), int(bit)))
        with pytest.raises(solver.TableError):
            _ = solver.load(file).values


def test_only_what_is_asked_for_is_read_and_no_damaged_value_is_returned(whole, tmp_path):
    content = bytearray(whole.file.read_bytes())
    for block in range(whole.layout.blocks - 1):  # all but that of the start
        content[whole.layout.bytes + 4 * int(whole.layout.cuts[block])] ^= 1
    file = tmp_path / "flipped.wotd"
    file.write_bytes(content)
    table = solver.load(file)
    start = [[0] * 5]
    assert table.value(start, start) == whole.value(start, start)
    assert table._checked.sum() == 1
    mine, theirs = random_positions(0, 10, seed=3)
    for _ in range(2):  # asked again, it is refused again
        with pytest.raises(solver.TableError, match="do not match their checksum"):
            table.value(mine, theirs)
        with pytest.raises(solver.TableError, match="do not match their checksum"):
            table.for_seats(Game(Rules(spaces=0)), before_roll(mine, theirs))
    assert table.value(start, start) == whole.value(start, start)


def test_a_table_that_is_copied_or_sent_stays_its_file(whole, tmp_path, monkeypatch):
    start = [[0] * 5]
    monkeypatch.chdir(whole.file.parent)
    table = solver.load(whole.file.name)
    copied, opened, sent = copy.deepcopy(table), copy.copy(table), pickle.dumps(table)
    assert np.shares_memory(copied.values, table.values)
    assert len(sent) < 1000
    monkeypatch.chdir("/")  # as the other process may be
    for again in (copied, opened, pickle.loads(sent)):
        assert again.value(start, start) == whole.value(start, start)
    gone = tmp_path / "gone.wotd"
    gone.write_bytes(whole.file.read_bytes())
    sent = pickle.dumps(solver.load(gone))
    gone.unlink()
    with pytest.raises(FileNotFoundError, match="there is no table"):
        pickle.loads(sent)


def test_other_files_are_not_overwritten(whole, tmp_path):
    with pytest.raises(solver.TableError, match="0 spaces"):
        solver.solve(1, whole.file)
    with pytest.raises(ValueError, match="spaces"):
        solver.solve(11, tmp_path / "eleven.wotd")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------- interrupted and resumed


def interrupted(file: Path) -> bytes:
    """Leave the solving of the smallest board half done, and return what the unfinished file contains."""

    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(0, file, progress=interrupt)
    return file.with_name(file.name + ".part").read_bytes()


def test_a_run_that_is_interrupted_goes_on_where_it_was(whole, tmp_path, caplog):
    file = tmp_path / "interrupted.wotd"
    interrupted(file)
    assert not file.exists()
    with pytest.raises(
        solver.TableError, match=r"unfinished .* wotd solve --spaces 0 --out .*interrupted\.wotd$"
    ):
        solver.load(f"{file}.part")
    calls = []
    table = solver.solve(0, file, progress=lambda done, total: calls.append(done))
    assert calls[0] > table.board.positions // 2
    assert calls[-1] == table.board.positions
    assert same(file, whole.file)
    assert not caplog.messages


@pytest.fixture(scope="session")
def half(folder):
    """An unfinished file."""
    return interrupted(folder / "half.wotd")


def test_a_killed_run_goes_on_where_it_was(whole, tmp_path):
    file = tmp_path / "killed.wotd"
    program = (
        "import os, signal, sys\n"
        "from wotd_env import solver\n"
        "solver.solve(0, sys.argv[1], progress=lambda d, t: d > t // 2 and os.kill(os.getpid(), signal.SIGKILL))\n"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(file)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert read_header(tmp_path / "killed.wotd.part")["layers"] > 0
    solver.solve(0, file)
    assert same(file, whole.file)


PART_DAMAGE = {
    "the first layer": lambda half, at: flipped(half, at.bytes),
    "a layer in the middle": lambda half, at: flipped(half, at.bytes + 4 * int(at.base[25])),
    "a checksum": lambda half, at: flipped(half, HEADER + 4 * int(at.block[25])),
    "the last layer": lambda half, at: half[:-1] + bytes([half[-1] ^ 1]),
    "cut in the last layer": lambda half, at: half[:-5],
    "cut in the values": lambda half, at: half[: at.bytes + 10_001],
    "cut in the checksums": lambda half, at: half[: HEADER + 10],
    "cut after the header": lambda half, at: half[:HEADER],
}


@pytest.mark.parametrize("damage", PART_DAMAGE)
def test_a_damaged_layer_is_solved_again(whole, half, tmp_path, caplog, damage):
    file = tmp_path / "0.wotd"
    (tmp_path / "0.wotd.part").write_bytes(PART_DAMAGE[damage](half, whole.layout))
    solver.solve(0, file)
    assert same(file, whole.file)
    assert "is damaged: it and those after it are solved again" in caplog.text


@pytest.mark.parametrize("content", [b"", lambda half: half + bytes(10_000_000)])
def test_an_unfinished_file_may_be_empty_or_too_long(whole, half, tmp_path, content):
    (tmp_path / "0.wotd.part").write_bytes(content(half) if callable(content) else content)
    assert same(solver.solve(0, tmp_path / "0.wotd").file, whole.file)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda half: b"notes of mine", "not a table"),
        (lambda half: half[:100], "header of .* is damaged: remove it"),
        (lambda half: flipped(half, 300), "header of .* is damaged: remove it"),
        (lambda half: half.replace(b"values 2", b"values 1", 1), "another format: remove it"),
        (lambda half: with_header(half, rulings=1), "other rulings .* remove it"),
        (lambda half: with_header(half, rules=OTHER_RULES), "other rules"),
        (
            lambda half: with_header(half, rules=OTHER_RULES | {"spaces": 1, "powers": "none"}),
            "1 spaces.* remove it",
        ),
        (lambda half: with_header(half, compact_error=0.1), "left by `wotd solve --compact`: remove it"),
        (lambda half: with_header(half, layers=1.5), "layers must be an integer .* got 1.5.*: remove it"),
        (lambda half: with_header(half, layers=True), "layers must be an integer .* got True.*: remove it"),
        (lambda half: with_header(half, seconds="x"), "seconds must be a float, got 'x'.*: remove it"),
        (
            lambda half: with_header(half, cpu_seconds=None),
            "cpu_seconds must be a float, got None.*: remove it",
        ),
        (lambda half: without(half, "seconds"), "seconds must be a float, got None.*: remove it"),
    ],
)
def test_an_unfinished_file_of_something_else_is_left_alone(half, tmp_path, spoil, message):
    part = tmp_path / "0.wotd.part"
    part.write_bytes(spoil(half))
    with pytest.raises(solver.TableError, match=message) as error:
        solver.solve(0, tmp_path / "0.wotd")
    assert str(part) in str(error.value)
    assert part.read_bytes() == spoil(half)
    assert not (tmp_path / "0.wotd").exists()


@pytest.mark.parametrize("room", [100, 5000, 600_000])
def test_a_full_disk_is_said_and_the_same_call_goes_on(whole, tmp_path, room):
    resource = pytest.importorskip("resource")
    file = tmp_path / "0.wotd"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large") as error:
            solver.solve(0, file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "0.wotd.part" in str(error.value)
    calls = []
    solver.solve(0, file, progress=lambda done, total: calls.append(done))
    assert same(file, whole.file)
    if room == 600_000:
        assert "layers are kept, and the same command goes on" in str(error.value)
        assert calls[0] > 100_000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_hundred_kills_change_nothing(table, folder):
    file = folder / f"{table.spaces}-killed.wotd"
    program = (
        "import os, random, signal, sys, time, traceback\n"
        "from wotd_env import solver\n"
        "spaces, file, kills = int(sys.argv[1]), sys.argv[2], 0\n"
        "began = time.perf_counter()\n"
        "solver.solve(spaces, file + '.warm', threads=1)\n"  # compiled before the forks, and timed
        "longest = (time.perf_counter() - began) / 6\n"
        "rng = random.Random(0)\n"
        "while kills < 100:\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        try:\n"
        "            solver.solve(spaces, file, threads=1)\n"
        "            os._exit(0)\n"
        "        except BaseException:\n"
        "            traceback.print_exc()\n"
        "            os._exit(1)\n"
        "    time.sleep(rng.uniform(0, longest))\n"
        "    os.kill(child, signal.SIGKILL)\n"
        "    status = os.waitpid(child, 0)[1]\n"
        "    if os.WIFSIGNALED(status):\n"
        "        kills += 1\n"
        "    else:\n"  # it was done before the kill: once more from the beginning
        "        assert os.WEXITSTATUS(status) == 0\n"
        "        os.replace(file, f'{file}.{kills}')\n"
        "solver.solve(spaces, file)\n"
    )
    arguments = [sys.executable, "-c", program, str(table.spaces), str(file)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert "damaged" not in done.stderr
    finished = [file, *folder.glob(f"{file.name}.[0-9]*")]
    assert all(same(one, table.file) for one in finished)


@pytest.mark.slow
def test_sixty_flips_in_unfinished_files_change_nothing(whole, half, tmp_path):
    rng = np.random.default_rng(2)
    for number, at in enumerate(rng.integers(HEADER, len(half), 60).tolist()):
        file = tmp_path / f"{number}.wotd"
        (tmp_path / f"{file.name}.part").write_bytes(flipped(half, at))
        assert same(solver.solve(0, file).file, whole.file)


# ------------------------------------------------------------------------------------------------------- two at once


def started(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program that says `ready` and waits for a line of input; return it when it is ready."""
    head = "import sys\nfrom wotd_env import Game, Rules, make_policy, solver\nprint('ready', flush=True)\ninput()\n"
    process = subprocess.Popen(
        [sys.executable, "-c", head + program, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    assert process.stdout.readline() == "ready\n"
    return process


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_solvers_at_once_make_one_table(whole, tmp_path):
    file = tmp_path / "0.wotd"
    both = [started("solver.solve(0, sys.argv[1], threads=1).values", file) for _ in range(2)]
    for process in both:
        go(process)
    for process in both:
        assert "Error" not in process.communicate(timeout=300)[1]
    assert [process.returncode for process in both] == [0, 0]
    assert same(file, whole.file)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0.wotd", "0.wotd.lock"]


def test_four_oracles_at_once_make_one_table(whole, tmp_path):
    program = (
        "from pathlib import Path\n"
        "from wotd_env.policies import oracle\n"
        "oracle.cache_file = lambda spaces: Path(sys.argv[1]) / f'{spaces}.wotd'\n"
        "game = Game(Rules(spaces=0))\n"
        "state = game.reset(100, seed=1)\n"
        "print(make_policy('oracle').act(game, state, None).tolist())\n"
    )
    four = [started(program, tmp_path) for _ in range(4)]
    for process in four:
        go(process)
    said = {process.communicate(timeout=300)[0] for process in four}
    assert [process.returncode for process in four] == [0] * 4
    game = Game(Rules(spaces=0))
    best = make_policy(f"oracle:{whole.file}").act(game, game.reset(100, seed=1), np.random.default_rng(0))
    assert said == {f"{best.tolist()}\n"}
    assert same(tmp_path / "0.wotd", whole.file)


def test_who_waits_says_so_and_takes_over_when_the_other_one_is_killed(whole, tmp_path):
    file = tmp_path / "0.wotd"
    program = (
        "def stop(done, total):\n"
        "    if done > total // 2:\n"
        "        print('half', flush=True)\n"
        "        input()\n"
        "solver.solve(0, sys.argv[1], progress=stop)\n"
    )
    first = started(program, file)
    go(first)
    assert first.stdout
    assert first.stdout.readline() == "half\n"
    second = started("solver.solve(0, sys.argv[1])", file)
    go(second)
    assert second.stderr
    said = second.stderr.readline()
    assert f"another process is making {file} and holds the lock {file}.lock; waiting" in said
    first.kill()
    first.communicate()
    second.communicate(timeout=300)
    assert second.returncode == 0
    assert same(file, whole.file)


def test_a_finished_table_needs_no_lock(whole):
    with FileLock(f"{whole.file}.lock"):
        assert solver.solve(0, whole.file).start == whole.start


@pytest.mark.parametrize(
    ("mine", "theirs", "message"),
    [
        ([[0] * 4], [[0] * 4], "integer arrays"),
        ([[0] * 5], [[0] * 5] * 2, "integer arrays"),
        ([[0] * 5], [[0, 0, 0, 6, 0]], r"theirs\[0, 3\]"),
        ([[0, 2, 0, 0, 0]], [[0, 2, 0, 0, 0]], r"mine\[0, 1\]"),
        ([[0.5] * 5], [[0.5] * 5], "integer arrays"),
    ],
)
def test_positions_that_cannot_be_are_named(folder, mine, theirs, message):
    table = solver.solve(0, folder / "asked.wotd")
    with pytest.raises(ValueError, match=message):
        table.value(mine, theirs)


@pytest.mark.parametrize(
    ("field", "value"), [("player", 2), ("player", -1), ("pieces", 6), ("pieces", -1), ("pieces", 1)]
)
def test_states_that_have_no_value_are_named(whole, field, value):
    state = before_roll([[0] * 5] * 3, [[0] * 5] * 3)
    state[field][1] = value
    with pytest.raises(
        ValueError, match="game 1: player must be 0 or 1, and pieces on spaces of their own from 0 to 5"
    ):
        whole.for_seats(Game(Rules(spaces=0)), state)
    with pytest.raises(ValueError, match="state must be a one-dimensional array"):
        whole.for_seats(Game(Rules(spaces=0)), np.zeros(3))


# ---------------------------------------------------------------------------------------------------------- the oracle


def play(game: Game, policies, games: int, seed: int) -> np.ndarray:
    """Return the results of seat 0, who begins, (games,)."""
    state = game.reset(games, seed=seed, starting_player=0)
    rng = np.random.default_rng(seed)
    while (state["phase"] != Phase.OVER).any():
        actions = np.zeros(games, np.int64)
        for seat, policy in enumerate(policies):
            due = (state["phase"] != Phase.OVER) & (state["player"] == seat)
            actions[due] = policy.act(game, state[due], rng)
        game.step(state, actions)
    return game.rewards(state)[:, 0]


def interval(results: np.ndarray) -> float:
    """Return 4.5 standard errors of the mean: a true value lies outside once in 150,000 tests."""
    return float(4.5 * results.std() / len(results) ** 0.5)


def test_perfect_players_reach_the_start_value(table):
    oracle = make_policy(f"oracle:{table.file}")
    results = play(Game(Rules(spaces=table.spaces)), [oracle, oracle], 10_000, seed=1)
    assert results.mean() == pytest.approx(table.start, abs=interval(results))


@pytest.mark.parametrize("opponent", ["random", "first", "greedy"])
def test_oracle_does_no_worse_than_the_value_promises(table, opponent):
    oracle, other = make_policy(f"oracle:{table.file}"), make_policy(opponent)
    game = Game(Rules(spaces=table.spaces))
    begins = play(game, [oracle, other], 4000, seed=2)
    follows = -play(game, [other, oracle], 4000, seed=3)
    assert begins.mean() > table.start - interval(begins)
    assert follows.mean() > -table.start - interval(follows)


def test_oracle_makes_small_tables_when_they_are_needed(tmp_path, monkeypatch):
    monkeypatch.setattr("wotd_env.policies.oracle.cache_file", lambda spaces: tmp_path / f"{spaces}.wotd")
    oracle = make_policy("oracle")
    game = Game(Rules(spaces=0))
    play(game, [oracle, make_policy("random")], 3, seed=1)
    assert solver.load(tmp_path / "0.wotd").spaces == 0
    state = Game(Rules(spaces=7)).reset(1)
    with pytest.raises(FileNotFoundError, match=r"wotd solve --spaces 7 .*GB.*minutes"):
        oracle.act(Game(Rules(spaces=7)), state, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ({"players": 3}, "players"),
        ({"powers": "own"}, "powers"),
        ({"immunity": True}, "immunity"),
        ({"dead_pieces": 1, "spaces": 1}, "dead_pieces"),
        ({"spaces": 2}, "plain spaces"),
    ],
)
def test_oracle_says_which_games_it_does_not_know(table, rules, message):
    game = Game(Rules(**{"spaces": table.spaces, **rules}))
    with pytest.raises(ValueError, match=message):
        make_policy(f"oracle:{table.file}").act(game, game.reset(4), np.random.default_rng(0))


def test_tables_are_kept_where_the_platform_keeps_caches():
    assert solver.cache_file(7).name == "perfect-7.wotd"
    assert "wotd-env" in solver.cache_file(7).parts


def test_a_compact_table_is_half_as_large_and_says_how_far_it_is_off(table, tmp_path):
    small = solver.compact(table.file, tmp_path / "small.wotd")
    assert (
        small.file.stat().st_size - table.layout.bytes
        == (table.file.stat().st_size - table.layout.bytes) // 2
    )
    mine, theirs = random_positions(table.spaces, 500, seed=5, late=False)
    differences = np.abs(small.value(mine, theirs) - table.value(mine, theirs))
    assert 0 < differences.max() <= small.header["compact_error"] < 1.6e-5
    assert small.start == pytest.approx(table.start, abs=small.header["compact_error"])
    game = Game(Rules(spaces=table.spaces))
    state = game.reset(200, seed=1)
    rng = np.random.default_rng(0)
    one, other = (make_policy(f"oracle:{each.file}").act(game, state, rng) for each in (table, small))
    assert (one == other).mean() > 0.95


def test_what_cannot_be_made_compact_is_named(whole, tmp_path):
    small = solver.compact(whole.file, tmp_path / "small.wotd")
    with pytest.raises(solver.TableError, match="compact already"):
        solver.compact(small.file, tmp_path / "other.wotd")
    with pytest.raises(solver.TableError, match="verify the table that it was made of"):
        solver.verify(small.file)
    with pytest.raises(FileExistsError, match="there already"):
        solver.compact(whole.file, small.file)
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".lock"] == ["small.wotd"]


def test_an_unfinished_table_is_not_overwritten_by_a_compact_one(whole, tmp_path):
    part, half = tmp_path / "small.wotd.part", whole.file.read_bytes()[:100_000]
    part.write_bytes(half)
    with pytest.raises(solver.TableError, match=r"small\.wotd\.part is an unfinished table of `wotd solve`"):
        solver.compact(whole.file, tmp_path / "small.wotd")
    assert part.read_bytes() == half


def test_what_is_damaged_is_not_made_compact(whole, tmp_path):
    file, small = tmp_path / "flipped.wotd", tmp_path / "small.wotd"
    good = whole.file.read_bytes()
    file.write_bytes(flipped(good, len(good) - 1))
    with pytest.raises(solver.TableError, match="do not match their checksum"):
        solver.compact(file, small)
    solver.compact(whole.file, small)
    small.write_bytes(flipped(small.read_bytes(), small.stat().st_size - 1))
    with pytest.raises(solver.TableError, match="do not match their checksum"):
        _ = solver.load(small).start


def test_a_full_disk_leaves_no_half_of_a_compact_table(whole, tmp_path):
    resource = pytest.importorskip("resource")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            solver.compact(whole.file, tmp_path / "small.wotd")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [each.name for each in tmp_path.iterdir()] == ["small.wotd.lock"]
    assert solver.compact(whole.file, tmp_path / "small.wotd").spaces == 0
