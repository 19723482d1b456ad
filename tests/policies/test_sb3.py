"""Models that MaskablePPO saved."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from tests.helpers.tournaments import QUICK, same
from wotd_env import Rules, make_policy
from wotd_env.arena import Tournament, run
from wotd_env.arena.store import policy_digest
from wotd_env.cli import WRONG_USE, app


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
