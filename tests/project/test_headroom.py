"""The table and the picture of the best agents of each track."""

from entries import entry, tables
from tools import headroom as page
from tools.headroom import WITH, WITHOUT


def test_every_measured_track_has_a_row():
    rows = tables.rows(entry.names())
    found = page.headroom(rows)
    names = {row.entry.track for row in rows if row.entry.track not in ("players", "generalization")}
    assert {f"`{name}`" for name in names} | {f"`players`, {n} players" for n in (3, 4, 5)} <= {*found}
    assert all(best["random"][0] > best["greedy"][0] > 0 for best in found.values())
    assert all(WITH in best or WITHOUT in best for best in found.values())


def test_the_best_agent_has_the_smallest_mean_regret():
    rows = tables.rows(["td", "td0", "template", "sb3_a2c"])
    found = page.headroom(rows)
    means = {(row.name, row.budget): row.mean("mean regret")[0] for row in rows}
    assert found["`time`"][WITH] == (means["td", 5], "TD(lambda)")
    assert WITHOUT not in found["`time`"]
    budgets = (100_000, 1_000_000, 10_000_000)
    best = min(means[name, budget] for name in ("template", "sb3_a2c") for budget in budgets)
    assert found["`samples`"][WITHOUT][0] == best
    assert WITH not in found["`samples`"]
    row = next(line for line in page.table(found).splitlines() if line.startswith("| `time` |"))
    assert row.endswith(f"|  | {means['td', 5]:.2f}, TD(lambda) |")


def test_the_picture_shows_all_tracks(tmp_path):
    page.draw(page.headroom(tables.rows(entry.names())), tmp_path / "headroom.svg")
    assert (tmp_path / "headroom.svg").stat().st_size > 10_000
