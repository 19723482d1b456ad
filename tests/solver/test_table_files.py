"""Table files: damage, copies and compact tables."""

import copy
import pickle

import numpy as np
import pytest

from tests.helpers.damage import no_room
from tests.helpers.exact import before_roll, random_positions
from tests.helpers.tables import OTHER_RULES, flipped, with_header, with_text
from wotd_env import Game, Rules, make_policy, solver
from wotd_env.solver import table as table_module
from wotd_env.solver.storage import HEADER

DAMAGE = {
    "empty": (lambda good: b"", "not a table"),
    "foreign": (lambda good: b"PK" + bytes(10_000), "not a table"),
    "zeros": (lambda good: bytes(len(good)), "not a table"),
    "first format": (lambda good: good.replace(b"values 2", b"values 1", 1), "format of another version"),
    "cut in the header": (lambda good: good[:2000], "header of .* is damaged"),
    "cut in the checksums": (lambda good: good[: HEADER + 100], "must have .* bytes"),
    "cut at the end": (lambda good: good[:-4], "must have .* bytes"),
    "too long": (lambda good: good + b"more", "must have .* bytes"),
    "header flipped": (lambda good: flipped(good, 300), "header of .* is damaged"),
    "padding of the header flipped": (lambda good: flipped(good, 3000), "header of .* is damaged"),
    "digest of the header flipped": (lambda good: flipped(good, 4090), "header of .* is damaged"),
    "checksum flipped": (lambda good: flipped(good, HEADER + 9), "checksums in .* are damaged"),
    "value flipped": (lambda good: flipped(good, len(good) // 2), "do not match their checksum"),
    "checksum missing": (lambda good: with_header(good, sha256=None), "unfinished"),
    "other rulings": (lambda good: with_header(good, rulings=1), "other rulings"),
    "different rules": (lambda good: with_header(good, rules=OTHER_RULES), "cannot be solved"),
    "rules missing": (lambda good: with_header(good, rules=None), "cannot be read"),
    "invalid board": (lambda good: with_header(good, rules={"spaces": 11}), "cannot be read"),
    "invalid layers": (lambda good: with_header(good, layers=-1), "cannot be read"),
    "fractional layers": (lambda good: with_header(good, layers=1.5), "cannot be read"),
    "deeply nested": (lambda good: with_text(good, b"[" * 3500), "cannot be read"),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_damaged_files_are_rejected(whole, tmp_path, damage):
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
        if damage not in ("empty", "foreign", "zeros", "different rules"):  # may belong to another program
            assert "remove it and solve again: wotd solve --spaces" in str(error.value)
    assert file.read_bytes() == before


def test_error_for_a_missing_file_names_the_solve_command(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"wotd solve --spaces S --out .*missing\.wotd"):
        solver.load(tmp_path / "missing.wotd")


def test_a_folder_is_rejected_as_a_table(tmp_path):
    for use in (solver.load, solver.verify, lambda file: solver.solve(0, file)):
        with pytest.raises(FileNotFoundError, match=r"it is a folder; name a table in it, such as .*\.wotd"):
            use(tmp_path)


def test_flipped_bits_are_detected(whole, tmp_path):
    good = whole.file.read_bytes()
    used = [*range(HEADER + 4 * whole.layout.blocks), *range(whole.layout.bytes, len(good))]
    rng = np.random.default_rng(1)
    file = tmp_path / "flipped.wotd"
    for at, bit in zip(rng.choice(used, 200), rng.integers(0, 8, 200), strict=True):
        file.write_bytes(flipped(good, int(at), int(bit)))
        with pytest.raises(solver.TableError):
            _ = solver.load(file).values


def test_only_requested_blocks_are_checked_and_damaged_ones_raise(whole, tmp_path):
    content = bytearray(whole.file.read_bytes())
    for block in range(whole.layout.blocks - 1):  # all except the block of the start position
        content[whole.layout.bytes + 4 * int(whole.layout.cuts[block])] ^= 1
    file = tmp_path / "flipped.wotd"
    file.write_bytes(content)
    table = solver.load(file)
    start = [[0] * 5]
    assert table.value(start, start) == whole.value(start, start)
    assert table._checked.sum() == 1
    mine, theirs = random_positions(0, 10, seed=3)
    for _ in range(2):  # a repeated request raises again
        with pytest.raises(solver.TableError, match="do not match their checksum"):
            table.value(mine, theirs)
        with pytest.raises(solver.TableError, match="do not match their checksum"):
            table.for_seats(Game(Rules(spaces=0)), before_roll(mine, theirs))
    assert table.value(start, start) == whole.value(start, start)


def test_a_small_table_survives_truncation_of_its_file(whole, tmp_path):
    file = tmp_path / "table.wotd"
    file.write_bytes(whole.file.read_bytes())
    table = solver.load(file)
    file.write_bytes(b"")  # a mapped file would end the process at the next look-up
    assert (table.values == whole.values).all()


def test_large_tables_are_mapped_and_have_the_same_values(whole, monkeypatch):
    monkeypatch.setattr(table_module, "MAPPED", 0)
    mapped = solver.load(whole.file)
    assert (mapped.values == whole.values).all()
    for values in (mapped.values, whole.values):
        assert not values.flags.writeable


def test_copied_and_pickled_tables_use_the_same_file(whole, tmp_path, monkeypatch):
    start = [[0] * 5]
    monkeypatch.chdir(whole.file.parent)
    table = solver.load(whole.file.name)
    copied, opened, sent = copy.deepcopy(table), copy.copy(table), pickle.dumps(table)
    assert np.shares_memory(copied.values, table.values)
    assert len(sent) < 1000
    monkeypatch.chdir("/")  # another process may run elsewhere
    for again in (copied, opened, pickle.loads(sent)):
        assert again.value(start, start) == whole.value(start, start)
    removed = tmp_path / "removed.wotd"
    removed.write_bytes(whole.file.read_bytes())
    sent = pickle.dumps(solver.load(removed))
    removed.unlink()
    with pytest.raises(FileNotFoundError, match="there is no table"):
        pickle.loads(sent)


def test_other_files_are_not_overwritten(whole, tmp_path):
    with pytest.raises(solver.TableError, match="0 plain spaces"):
        solver.solve(1, whole.file)
    with pytest.raises(ValueError, match="spaces"):
        solver.solve(11, tmp_path / "eleven.wotd")
    assert not list(tmp_path.iterdir())


def test_a_compact_table_halves_the_size_and_states_its_error(table, tmp_path):
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


def test_compacting_rejects_compact_tables_and_existing_files(whole, tmp_path):
    small = solver.compact(whole.file, tmp_path / "small.wotd")
    with pytest.raises(solver.TableError, match="compact already"):
        solver.compact(small.file, tmp_path / "other.wotd")
    with pytest.raises(solver.TableError, match="verify the original table"):
        solver.verify(small.file)
    with pytest.raises(FileExistsError, match="exists; remove it"):
        solver.compact(whole.file, small.file)
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".lock"] == ["small.wotd"]


def test_compacting_does_not_overwrite_an_unfinished_table(whole, tmp_path):
    part, half = tmp_path / "small.wotd.part", whole.file.read_bytes()[:100_000]
    part.write_bytes(half)
    with pytest.raises(solver.TableError, match=r"small\.wotd\.part is an unfinished table of `wotd solve`"):
        solver.compact(whole.file, tmp_path / "small.wotd")
    assert part.read_bytes() == half


def test_compacting_rejects_damaged_tables(whole, tmp_path):
    file, small = tmp_path / "flipped.wotd", tmp_path / "small.wotd"
    good = whole.file.read_bytes()
    file.write_bytes(flipped(good, len(good) - 1))
    with pytest.raises(solver.TableError, match="do not match their checksum"):
        solver.compact(file, small)
    solver.compact(whole.file, small)
    small.write_bytes(flipped(small.read_bytes(), small.stat().st_size - 1))
    with pytest.raises(solver.TableError, match="do not match their checksum"):
        _ = solver.load(small).start


def test_compacting_on_a_full_disk_leaves_no_partial_table(whole, tmp_path):
    with no_room(600_000), pytest.raises(OSError, match="File too large"):
        solver.compact(whole.file, tmp_path / "small.wotd")
    assert [each.name for each in tmp_path.iterdir()] == ["small.wotd.lock"]
    assert solver.compact(whole.file, tmp_path / "small.wotd").spaces == 0
