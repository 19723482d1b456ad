"""Distillation: the positions, the fit, and the command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch as th

from agents.evaluate import FINAL
from experiments import distil
from experiments.distil import Settings, gather
from wotd_env import Game, Phase, Rules, analysis, solver
from wotd_env.planning import learned
from wotd_env.planning.learned import Features
from wotd_env.planning.playing import play_turns
from wotd_env.policies.planner import Planner
from wotd_env.solver import Table


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """The solution of the board without plain spaces."""
    return solver.solve(0, tmp_path_factory.mktemp("table") / "0.wotd", threads=1)


def tiny(table: Table, **changes: Any) -> Settings:
    few = {"games": 64, "turns": 20, "steps": 40, "batch_size": 64, "width": 32, "final_games": 20}
    return Settings(table=table.file, **few | changes)


def test_the_positions_are_those_that_perfect_play_compares(table: Table):
    settings = tiny(table, games=4, turns=3, explore=0.0, share=1.0, seed=3)
    positions = gather(table, settings)
    game = Game(Rules(spaces=0))
    features = Features.of(game.rules)
    state = game.reset(4, seed=3 << 32, roll=False)
    expected = []

    def value(game: Game, state: np.ndarray) -> np.ndarray:
        values = table.for_seats(game, state)
        for row, of, one in zip(features.write(game, state), values, state, strict=True):
            if one["phase"] != Phase.OVER:
                expected.append((*row.tolist(), of[one["player"]]))
        return values

    for _ in range(3):
        value(game, state)
        play_turns(game, state, value)
        game.reset(state, where=game.is_over(state), roll=False)
    found = [
        (*row.tolist(), of) for row, of in zip(positions.active.numpy(), positions.value.numpy(), strict=True)
    ]
    assert len(found) > 100
    assert found != expected  # the order is random
    assert sorted(found) == sorted(expected)


def test_equal_settings_give_equal_weights(table: Table):
    def weights(seed: int) -> list[np.ndarray]:
        settings = tiny(table, seed=seed)
        positions = gather(table, settings)
        return list(distil.fit(Rules(spaces=0), positions, settings).value().network)

    th.set_num_threads(1)
    assert all(map(np.array_equal, weights(1), weights(1)))
    assert not all(map(np.array_equal, weights(1), weights(2)))


def test_the_command_leaves_a_value_that_plays_nearly_perfectly(
    table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    folder = tmp_path / "run"
    options = {"games": 256, "turns": 30, "steps": 600, "batch-size": 512, "width": 32, "final-games": 100}
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    assert distil.main(["--table", str(table.file), "--folder", str(folder), *words]) == 0
    assert {path.name for path in folder.iterdir()} == {"config.json", "result.json", "value.npz"}
    told = capsys.readouterr().out
    assert "Against perfect play" in told
    assert f"td:{folder}" in told

    grades = analysis.grade(f"td:{folder}", table, games=100, seed=FINAL, opponent=f"oracle:{table.file}")
    result = json.loads((folder / "result.json").read_text())
    assert result["kinds"] == grades.as_dict()["kinds"]
    assert learned.load(folder / "value.npz").rules == Rules(spaces=0)
    made_by_hand = analysis.grade(Planner(), table, games=100, opponent=f"oracle:{table.file}")
    assert grades.all.regret < 0.3 * made_by_hand.all.regret

    assert distil.main(["--table", str(table.file), "--folder", str(folder), *words]) == 2
    assert "is not empty" in capsys.readouterr().err


def test_a_width_that_is_not_a_multiple_of_32_is_refused(table: Table):
    with pytest.raises(ValueError, match="width must be a multiple of 32, got 33"):
        tiny(table, width=33)


def test_a_missing_table_leaves_no_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "run"
    assert distil.main(["--table", str(tmp_path / "none.wotd"), "--folder", str(folder)]) == 2
    assert "none.wotd" in capsys.readouterr().err
    assert not folder.exists()
