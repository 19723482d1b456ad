"""Positions of the benchmark: their equities, games, files and metadata."""

import hashlib
import json
from collections import Counter

import numpy as np
import pytest

from tests.helpers.damage import survive
from tests.helpers.rollouts import precise
from wotd_env import STATE, Game, Rules, analysis, benchmark, make_policy, solver
from wotd_env.benchmark import SPLITS, STAGES, drawing
from wotd_env.benchmark.positions import write
from wotd_env.core.rules import Power


def same(one: benchmark.Positions, other: benchmark.Positions) -> bool:
    return one.digest() == other.digest() and one.rules == other.rules


def contains(large: benchmark.Positions, small: benchmark.Positions) -> bool:
    """Return whether all small positions are among the large ones, in the same order."""
    keys = [list(zip(each.game, each.kind, each.stage, strict=True)) for each in (large, small)]
    wanted = set(keys[1])
    return same(large.take(np.array([row for row, key in enumerate(keys[0]) if key in wanted])), small)


def test_equal_seeds_give_equal_files_in_any_batch(table, drawn, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "BLOCK", 37)
    benchmark.draw(table, tmp_path / "again.parquet", size=4)
    assert (tmp_path / "again.parquet").read_bytes() == drawn[0].read_bytes()
    other = benchmark.draw(table, tmp_path / "other.parquet", size=4, seed=1)
    assert other.digest() != drawn[1].digest()


def test_a_file_round_trips_and_contains_smaller_sizes(table, drawn, tmp_path):
    file, positions = drawn
    assert same(benchmark.load(file=file), positions)
    smaller = benchmark.draw(table, tmp_path / "small.parquet", size=2)
    assert contains(positions, smaller)


def test_kinds_and_stages_are_balanced(drawn):
    positions = drawn[1]
    cells = Counter(zip(positions.kind.tolist(), positions.stage.tolist(), strict=True))
    assert len(positions.game) == sum(cells.values())
    swap = analysis.KINDS.index("swap")
    assert all(cells[kind, stage] == 4 for kind in range(5) if kind != swap for stage in range(3))
    assert max(cells.values()) == 4
    game = Game(positions.rules)
    assert np.array_equal(positions.kind, analysis.kinds(game, positions.state))
    assert np.array_equal(positions.mask, game.legal_actions(positions.state))
    assert (positions.mask.sum(1) > 1).all()
    assert np.array_equal(np.isnan(positions.equity), positions.mask == 0)


def test_a_game_has_one_decision_of_each_kind_and_stage(drawn):
    positions = drawn[1]
    keys = np.stack([positions.game, positions.kind, positions.stage], 1)
    assert len(np.unique(keys, axis=0)) == len(keys)


def test_splits_have_different_games(table, tmp_path):
    games = [
        set(benchmark.draw(table, tmp_path / f"{each}.parquet", each, 2).game.tolist()) for each in SPLITS
    ]
    assert all(games)
    assert len(set.union(*games)) == sum(map(len, games))


def test_a_position_occurs_in_the_game_of_its_seed(table):
    game = Game(table.rules)
    state, number, _ = drawing._sample(game, table.for_seats, np.arange(100, 110))
    start = game.reset(10, seed=100)
    first = (state["turn"] == 0) & (state["rolls_left"] == 2)
    assert first.any()
    for each in np.flatnonzero(first):
        assert np.array_equal(state["dice"][each], start["dice"][number[each] - 100])


def test_positions_hide_future_dice(drawn):
    assert not drawn[1].state["rng"].any()


def test_equities_equal_the_analysis_of_the_table(table, drawn):
    positions = drawn[1]
    expected = analysis.analyze(Game(positions.rules), positions.state, table).actions
    assert np.array_equal(positions.equity[positions.mask == 1], expected[positions.mask == 1])


def test_regret_is_the_difference_from_the_best_equity(drawn):
    positions = drawn[1]
    best = np.nanargmax(positions.equity, 1)
    assert not positions.regret(best).any()
    worst = np.nanargmin(positions.equity, 1)
    spread = np.nanmax(positions.equity, 1).astype(float) - np.nanmin(positions.equity, 1)
    assert positions.regret(worst) == pytest.approx(spread)


def test_stages_divide_the_progress_of_the_leader():
    rules = Rules(spaces=2)
    state = np.zeros(4, STATE)
    state["pieces"][0, 0] = [0, 0, 0, 0, 4]  # spaces after the first numbered one do not count
    state["pieces"][1, 1] = [1, 1, 1, 1, 1]
    state["pieces"][2, 0] = [3, 3, 3, 1, 0]
    state["pieces"][3, 0] = [3, 3, 3, 3, 3]
    assert [STAGES[i] for i in benchmark.stages(rules, state)] == ["opening", "middle", "endgame", "endgame"]


@pytest.mark.parametrize("rules", benchmark.bundled(), ids=benchmark.positions.describe_board)
def test_bundled_positions_are_legal_and_complete(rules):
    positions = benchmark.load(rules=rules)
    assert np.array_equal(positions.mask, Game(rules).legal_actions(positions.state))
    assert positions.first(drawing.SIZE).digest() == positions.digest()
    if rules.players == 2:
        assert len(positions.game) > 10_000
        assert np.nanmax(positions.error) == 0
    else:
        assert len(positions.game) > 50
        assert precise(positions.equity, positions.error)


def test_bundled_positions_are_small_and_belong_to_solved_boards():
    bundled = benchmark.bundled()
    assert {rules.spaces for rules in bundled} >= {0, 1, 2, 3}
    assert Rules(spaces=3, powers="any") in bundled
    assert {rules.players for rules in bundled} == {2, 3, 4, 5}
    size = sum(file.stat().st_size for file in benchmark.positions.FOLDER.glob("*.parquet"))
    assert size < 7_000_000


def test_positions_with_powers_have_every_kind_and_exact_equities(tmp_path):
    table = solver.solve(Rules(spaces=0, powers="any"), tmp_path / "any.wotd")
    positions = benchmark.draw(table, tmp_path / "any.parquet", size=4)
    assert same(benchmark.load(file=tmp_path / "any.parquet"), positions)
    assert set(positions.kind.tolist()) == set(range(len(analysis.KINDS)))
    used = positions.state["used"]
    assert (used == 0).any()
    assert (used != 0).any()
    oracle = make_policy(f"oracle:{table.file}")
    best = oracle.act(Game(table.rules), positions.state, np.random.default_rng(0))
    assert positions.regret(best).max() == 0
    # An action that ends the turn leaves the value of the table to the other player, who then moves.
    game, checked = Game(table.rules, skip_forced=False), 0
    everything = (1 << len(Power)) - 1
    for row in np.flatnonzero(positions.stage == 2):
        for action in np.flatnonzero(positions.mask[row]):
            state, mover = positions.state[[row]].copy(), positions.state["player"][row]
            game.decide(state, [action])
            if game.is_over(state)[0] or state["player"][0] == mover:
                continue
            mine, theirs = state["pieces"][:, 1 - mover].astype(int), state["pieces"][:, mover].astype(int)
            held = (everything * (~state["used"][0] >> seat & 1) for seat in (1 - mover, mover))
            expected = -table.value(mine, theirs, tuple(map(int, held)))[0]
            assert positions.equity[row, action] == pytest.approx(expected, abs=1e-6)
            checked += 1
    assert checked > 10


def test_bundled_positions_start_with_those_of_the_command(drawn):
    bundled = benchmark.load(rules=Rules(spaces=0))
    assert contains(bundled, drawn[1])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"split": "dev"}, "split must be one of"),
        (
            {"split": "train", "rules": Rules(spaces=0)},
            "wotd positions --players 2 --spaces 0 --powers none --split train",
        ),
        (
            {"rules": Rules(players=3, spaces=1)},
            "no test positions for 3 players, 1 plain space are bundled",
        ),
        ({"rules": Rules(players=3, powers="own")}, "7 plain spaces with own powers and random colors"),
    ],
)
def test_missing_positions_raise_errors_with_a_cure(arguments, message):
    with pytest.raises(ValueError, match=message):
        benchmark.load(**arguments)


def test_wrong_files_raise_errors_with_their_names(drawn, tmp_path):
    with pytest.raises(FileNotFoundError):
        benchmark.load(file=tmp_path / "none.parquet")
    with pytest.raises(ValueError, match="has test positions"):
        benchmark.load("train", file=drawn[0])
    with pytest.raises(ValueError, match="not test positions"):
        benchmark.load(rules=Rules(spaces=1), file=drawn[0])
    damaged = tmp_path / "damaged.parquet"
    content = bytearray(drawn[0].read_bytes())
    damaged.write_bytes(content[:1000])
    with pytest.raises(ValueError, match=r"damaged.parquet must be a file written by wotd positions"):
        benchmark.load(file=damaged)


@pytest.mark.parametrize("flips", [200, pytest.param(3000, marks=pytest.mark.slow)])
def test_damaged_positions_are_refused_or_unchanged(drawn, tmp_path, flips):
    file = tmp_path / "positions.parquet"
    write(drawn[1].first(2), file, {})

    def read(file):
        positions = benchmark.load(drawn[1].split, file=file)
        return positions.rules, positions.split, [array.tobytes() for array in positions[2:]]

    survive(file, read, flips)


def test_changed_values_do_not_match_the_digest(drawn, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")
    table = pq.read_table(drawn[0])
    pq.write_table(table.slice(1), tmp_path / "changed.parquet")
    with pytest.raises(ValueError, match="digest"):
        benchmark.load(file=tmp_path / "changed.parquet")


def test_wrong_arguments_of_draw_raise_errors(table, tmp_path):
    file = tmp_path / "a.parquet"
    for wrong, message in (({"split": "a"}, "split"), ({"size": 0}, "size"), ({"seed": -1}, "seed")):
        with pytest.raises(ValueError, match=f"{message} must be"):
            benchmark.draw(table, file, **wrong)
    compact = solver.compact(table.file, tmp_path / "compact.wotd")
    with pytest.raises(ValueError, match="16 bits"):
        benchmark.draw(compact, file)
    assert not file.exists()


REQUIRED = (
    "@context", "@type", "conformsTo", "description", "license", "name", "url", "creator", "datePublished",
)  # fmt: skip
"""The required properties of a data set in Croissant 1.1, https://docs.mlcommons.org/croissant/docs/croissant-spec-1.1."""


def test_croissant_metadata_has_the_required_properties(drawn):
    made = benchmark.croissant([drawn[0]], "https://example.org/positions", "2026-11-25")
    assert json.loads(json.dumps(made)) == made
    assert all(made[name] for name in (*REQUIRED, "distribution"))
    assert made["@type"] == "sc:Dataset"
    assert "http://mlcommons.org/croissant/1.1" in made["conformsTo"]
    (file,) = made["distribution"]
    assert file["@type"] == "cr:FileObject"
    assert file["sha256"] == hashlib.sha256(drawn[0].read_bytes()).hexdigest()
    assert all(file[name] for name in ("@id", "contentUrl"))
    # the name by which mlcroissant reads the records
    assert file["encodingFormat"] == "application/x-parquet"


def test_croissant_fields_are_the_columns_of_the_file(drawn):
    pq = pytest.importorskip("pyarrow.parquet")
    made = benchmark.croissant([drawn[0]], "https://example.org/positions", "2026-11-25")
    (records,) = made["recordSet"]
    columns = [field["source"]["extract"]["column"] for field in records["field"]]
    assert columns == pq.read_schema(drawn[0]).names
    files = {each["@id"] for each in made["distribution"]}
    assert all(field["source"]["fileObject"]["@id"] in files for field in records["field"])
    identities = [records["@id"], *files, *(field["@id"] for field in records["field"])]
    assert len(set(identities)) == len(identities)
    prefixes = {
        word.partition(":")[0] for field in records["field"] for word in (field["@type"], field["dataType"])
    }
    assert prefixes <= set(made["@context"])
