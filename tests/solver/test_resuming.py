"""Interrupted, killed, resumed and concurrent solving all make the same table."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from filelock import FileLock

from tests.helpers.damage import no_room
from tests.helpers.tables import OTHER_RULES, flipped, same, with_header, without
from wotd_env import solver
from wotd_env.solver.storage import HEADER, read_header


def interrupted(file: Path) -> bytes:
    """Interrupt the solving of the smallest board halfway, and return the bytes of the unfinished file."""

    def interrupt(done, total):
        if done > total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solver.solve(0, file, progress=interrupt)
    return file.with_name(file.name + ".part").read_bytes()


def test_interrupted_solving_resumes(whole, tmp_path, caplog):
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
    """Return the bytes of an unfinished table file."""
    return interrupted(folder / "half.wotd")


def test_killed_solving_resumes(whole, tmp_path):
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
    assert "is damaged; it and all later layers are solved again" in caplog.text


@pytest.mark.parametrize("content", [b"", lambda half: half + bytes(10_000_000)])
def test_empty_and_overlong_unfinished_files_are_accepted(whole, half, tmp_path, content):
    (tmp_path / "0.wotd.part").write_bytes(content(half) if callable(content) else content)
    assert same(solver.solve(0, tmp_path / "0.wotd").file, whole.file)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda half: b"notes of mine", "not a table"),
        (lambda half: half[:100], "header of .* is damaged: remove it"),
        (lambda half: flipped(half, 300), "header of .* is damaged: remove it"),
        (lambda half: half.replace(b"values 2", b"values 1", 1), "format of another version .*: remove it"),
        (lambda half: with_header(half, rulings=1), "other rulings .* remove it"),
        (lambda half: with_header(half, rules=OTHER_RULES), "cannot be solved"),
        (
            lambda half: with_header(half, rules=OTHER_RULES | {"spaces": 1, "powers": "none"}),
            "1 plain spaces.* remove it",
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
def test_incompatible_unfinished_files_are_rejected_unchanged(half, tmp_path, spoil, message):
    part = tmp_path / "0.wotd.part"
    part.write_bytes(spoil(half))
    with pytest.raises(solver.TableError, match=message) as error:
        solver.solve(0, tmp_path / "0.wotd")
    assert str(part) in str(error.value)
    assert part.read_bytes() == spoil(half)
    assert not (tmp_path / "0.wotd").exists()


@pytest.mark.parametrize("room", [100, 5000, 600_000])
def test_solving_resumes_after_a_full_disk(whole, tmp_path, room):
    file = tmp_path / "0.wotd"
    with no_room(room), pytest.raises(OSError, match="File too large") as error:
        solver.solve(0, file)
    assert "0.wotd.part" in str(error.value)
    calls = []
    solver.solve(0, file, progress=lambda done, total: calls.append(done))
    assert same(file, whole.file)
    if room == 600_000:
        assert "layers are kept; the same command continues" in str(error.value)
        assert calls[0] > 100_000


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_solving_survives_a_hundred_kills(table, folder):
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
        "    else:\n"  # finished before the kill: start again
        "        assert os.WEXITSTATUS(status) == 0\n"
        "        os.replace(file, f'{file}.{kills}')\n"
        "solver.solve(spaces, file)\n"
    )
    arguments = [sys.executable, "-c", program, str(table.spaces), str(file)]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    assert "damaged" not in done.stderr
    finished = [file, *folder.glob(f"{file.name}.[0-9]*")]
    assert all(same(one, table.file) for one in finished)


# ------------------------------------------------------------------------------------------------ concurrent processes


def start_program(program: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a program that prints `ready` and waits for a line of input; return it once it is ready."""
    head = "import sys\nfrom wotd_env import solver\nprint('ready', flush=True)\ninput()\n"
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


def proceed(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def test_two_concurrent_solvers_make_one_table(whole, tmp_path):
    file = tmp_path / "0.wotd"
    both = [start_program("solver.solve(0, sys.argv[1], threads=1).values", file) for _ in range(2)]
    for process in both:
        proceed(process)
    for process in both:
        assert "Error" not in process.communicate(timeout=300)[1]
    assert [process.returncode for process in both] == [0, 0]
    assert same(file, whole.file)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["0.wotd", "0.wotd.lock"]


def test_a_waiting_process_logs_and_takes_over_after_a_kill(whole, tmp_path):
    file = tmp_path / "0.wotd"
    program = (
        "def stop(done, total):\n"
        "    if done > total // 2:\n"
        "        print('half', flush=True)\n"
        "        input()\n"
        "solver.solve(0, sys.argv[1], progress=stop)\n"
    )
    first = start_program(program, file)
    proceed(first)
    assert first.stdout
    assert first.stdout.readline() == "half\n"
    second = start_program("solver.solve(0, sys.argv[1])", file)
    proceed(second)
    assert second.stderr
    output = second.stderr.readline()
    assert f"another process is making {file} and holds the lock {file}.lock; waiting" in output
    first.kill()
    first.communicate()
    second.communicate(timeout=300)
    assert second.returncode == 0
    assert same(file, whole.file)


def test_a_finished_table_needs_no_lock(whole):
    with FileLock(f"{whole.file}.lock"):
        assert solver.solve(0, whole.file).start == whole.start
