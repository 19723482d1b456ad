"""The study of rewards: one small run, and the table of its page."""

import multiprocessing
from dataclasses import replace
from multiprocessing.pool import ThreadPool
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'wotd-env[train]'")

from tools import process_reward as study


def test_a_run_is_measured_ten_times_against_perfect_play(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(study, "LEARNER", replace(study.LEARNER, total_timesteps=20 * 2048, num_envs=32))
    monkeypatch.setattr(study, "GAMES", 20)
    run = study.Run("exact regret", spaces=0, seed=0)
    same, rows = study.curve(run)
    decisions, seconds, regret, share = np.array(rows).T
    assert same == run
    assert decisions.tolist() == [4096.0 * (1 + i) for i in range(10)]
    assert (np.diff(seconds) > 0).all()
    assert (regret > 0).all()
    assert (share < 50).all()


def test_runs_are_saved_and_not_repeated(tmp_path, monkeypatch):
    runs = [study.Run("exact regret", 2, seed) for seed in range(2)]
    file = tmp_path / "results.json"
    file.write_text('{\n"exact regret, 2 plain spaces, seed 0": [[1.0, 2.0]]\n}\n')
    trained = []

    def measure(run):
        trained.append(run)
        return run, [[0.25, 60.00049]]

    threads = SimpleNamespace(Pool=lambda *_, **__: ThreadPool(1))
    monkeypatch.setattr(multiprocessing, "get_context", lambda _: threads)
    study.run_missing(measure, runs, file)
    assert trained == runs[1:]
    assert study.finished(file) == {
        "exact regret, 2 plain spaces, seed 0": [[1.0, 2.0]],
        "exact regret, 2 plain spaces, seed 1": [[0.25, 60.0]],
    }
    study.run_missing(measure, runs, file)
    assert trained == runs[1:]


def test_the_table_has_means_over_the_seeds():
    points = np.array([[1e5, 60.0, 30.0, 10.0], [1e6, 600.0, 20.0, 25.0]])
    runs = {
        study.Run(name, spaces, seed): points + np.array([0, 0, seed, seed])
        for name in study.REWARDS
        for spaces in study.SPACES
        for seed in range(3)
    }
    _, _, first, *others = study.tables(runs).splitlines()
    assert first == "| result of the game | 2 | 3 | 31.0 ± 2.5 | 21.0 ± 2.5 | 26.0 ± 2.5 | 600 ± 0 |"
    assert len(others) + 1 == len(study.REWARDS) * len(study.SPACES)
