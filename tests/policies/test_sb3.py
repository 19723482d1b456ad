"""Models saved by MaskablePPO."""

from pathlib import Path

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.helpers import run_python
from tests.helpers.tournaments import QUICK, same
from wotd_env import Game, Rules, make_policy
from wotd_env.arena import Tournament, run
from wotd_env.cli import WRONG_USE, app
from wotd_env.policies.identity import policy_digest
from wotd_env.policies.sb3 import Trained
from wotd_env.policy import check_plays


def test_sb3_models_play_with_consent(tmp_path):
    contrib = pytest.importorskip("sb3_contrib")
    environment = gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=0)
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
        assert ("consent with trust=True or --trust" in result.stderr) == (code == WRONG_USE)
        assert (tmp_path / "a.sqlite").exists() == (code == 0)


def test_invalid_model_files_are_refused(tmp_path):
    pytest.importorskip("sb3_contrib")
    (tmp_path / "model.zip").write_text("no zip")
    with pytest.raises(ValueError, match=r"model\.zip contains no model that MaskablePPO can read"):
        make_policy(f"sb3:{tmp_path / 'model.zip'}", trust=True)
    with pytest.raises(FileNotFoundError, match=r"no SB3 file missing\.zip"):
        make_policy("sb3:missing.zip")


@pytest.fixture(scope="module")
def compact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the file of a model for observations in the encoding `compact`."""
    contrib = pytest.importorskip("sb3_contrib")
    environment = gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=0, encoding="compact")
    file: Path = tmp_path_factory.mktemp("model") / "model.zip"
    contrib.MaskablePPO("MlpPolicy", environment, seed=0, device="cpu").save(file)
    return file


def test_the_encoding_is_inferred_from_the_size_or_named(compact: Path):
    game, rng = Game(QUICK), np.random.default_rng(0)
    state = game.reset(20, seed=0)
    found, named = (make_policy(f"sb3:{name}", trust=True) for name in (compact, f"compact:{compact}"))
    np.testing.assert_array_equal(found.act(game, state, rng), named.act(game, state, rng))
    assert isinstance(found, Trained)
    assert found.encoding == "compact"
    with pytest.raises(ValueError, match=r"takes observations \(\d+,\), these rules have \(\d+,\) as tokens"):
        check_plays(make_policy(f"sb3:tokens:{compact}", trust=True), QUICK)


def test_files_are_refused_before_torch_is_imported(tmp_path: Path):
    (tmp_path / "model.zip").write_text("")
    code = (
        "import sys, wotd_env\n"
        "for name in ('sb3:missing.zip', 'sb3:model.zip', 'model.zip'):\n"
        "    try: wotd_env.make_policy(name)\n"
        "    except (ValueError, FileNotFoundError) as error: print(error)\n"
        "print('torch' in sys.modules)\n"
    )
    missing, consent, bare, imported = run_python("-c", code, cwd=tmp_path).stdout.splitlines()
    assert missing == "no SB3 file missing.zip"
    assert consent.startswith("reading model.zip can run code")
    assert bare.endswith("write 'sb3:model.zip' for the policy in this file")
    assert imported == "False"
