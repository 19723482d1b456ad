"""The tool that makes docs/results/ladder.md."""

import json
import re
import shutil
import sys

import pytest

from tools import ladder
from wotd_env import Rules, models
from wotd_env.arena import Tournament, run
from wotd_env.policies import plays


@pytest.fixture
def page(tmp_path, monkeypatch):
    """A copy of the page; all files of the tool are beside it, and its tournaments are small."""
    page = tmp_path / "ladder.md"
    shutil.copy(ladder.PAGE, page)
    small = {"PAGE": page, "RATINGS": tmp_path / "ladder.json", "STORE": tmp_path / "store" / "ladder.sqlite"}
    for name, value in (small | {"POLICIES": ("random", "first"), "GAMES": 20, "SEED": 7}).items():
        monkeypatch.setattr(ladder, name, value)
    return page


def test_a_tournament_renews_its_section_the_summary_and_the_ratings(page, monkeypatch):
    before = page.read_text()
    monkeypatch.setattr(sys, "argv", ["ladder", "basic_2"])
    ladder.main()
    after = page.read_text()
    changed = {name for name, text in parts(before).items() if parts(after)[name] != text}
    assert changed == {"basic_2", "shares"}
    (picture,) = re.findall(r"!\[.*\]\((.*)\)", parts(after)["basic_2"])
    assert (page.parent / picture).is_file()
    results = run(Tournament(("random", "first"), games=20, seed=7))
    shipped = json.loads((page.parent / "ladder.json").read_text())["ratings"]
    assert shipped == {name: rating._asdict() for name, rating in results.ratings.items()}
    share = next(row.share for row in results.rows if row.policy == "first")
    assert f"| {100 * share.value:.2f} % ±{100 * share.error:.2f} |" in parts(after)["basic_2"]
    (summary,) = re.findall(r"^\| 2 players, basic game \| .*$", after, flags=re.MULTILINE)
    assert f"| {100 * share.value:.2f} % |" in summary


def parts(page):
    return dict(re.findall(r"<!-- table: (\w+) -->\n(.*?)\n<!-- end -->", page, flags=re.DOTALL))


def test_the_page_has_a_part_for_every_tournament():
    assert set(parts(ladder.PAGE.read_text())) == {*ladder.TOURNAMENTS, "shares"}


def test_the_published_summary_has_the_win_shares_of_the_sections():
    assert parts(ladder.PAGE.read_text())["shares"] == ladder.shares()


def test_the_ladder_skips_policies_without_a_model(tmp_path, monkeypatch):
    rules = Rules(powers="own", colors="random")
    models_of = {"td": (Rules(), Rules(players=3)), "ppo": (Rules(),)}
    for policy, known in models_of.items():
        for each in known:
            shutil.copy(models.find(policy, each), tmp_path)
    monkeypatch.setattr(models, "FOLDER", tmp_path)
    for each in (Rules(), Rules(players=3), rules):
        assert [name for name in ladder.POLICIES if not plays(name, each)] == [
            policy for policy, known in models_of.items() if each not in known
        ]
