"""The tool that makes docs/results/ladder.md."""

import json
import re
import shutil

import pytest

from tools import ladder
from wotd_env import Rules, models
from wotd_env.arena import Tournament, run
from wotd_env.policies import plays


def test_the_ladder_page_contains_pictures_and_ratings(tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "POLICIES", ("random", "first"))
    monkeypatch.setattr(ladder, "PLAYERS", (2, 3))
    ladder.main(["--games", "20", "--workers", "0", "--seed", "7", "--into", str(tmp_path)])
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
    assert f"| {100 * share.value:.2f} % ±{100 * share.error:.2f} |" in page
    (summary,) = re.findall(r"^\| 2 players, basic game \| .*$", page, flags=re.MULTILINE)
    assert f"| {100 * share.value:.2f} % |" in summary


@pytest.mark.parametrize(
    ("option", "words"), [("--games 0", "games must be"), ("--workers -1", "workers must be")]
)
def test_wrong_ladder_options_are_reported(tmp_path, capsys, option, words):
    with pytest.raises(SystemExit):
        ladder.main([*option.split(), "--into", str(tmp_path)])
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_trials_do_not_replace_the_published_page(monkeypatch, capsys):
    monkeypatch.setattr(ladder, "run", None)
    with pytest.raises(SystemExit) as stopped:
        ladder.main(["--games", "1000"])
    assert stopped.value.code == 2
    message = "--games makes another page than the published one: name a folder for it with --into FOLDER"
    assert message in capsys.readouterr().err


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
