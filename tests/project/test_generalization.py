"""Learners on unseen layouts: small runs, and the tables of the page."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: pip install 'wotd-env[train]'")

from tools import generalization as study
from tools.generalization import EMPTY, Run
from wotd_env import STATE, Game, Rules, benchmark, solver
from wotd_env.benchmark import positions
from wotd_env.benchmark.generalization import BOARDS, TRAIN
from wotd_env.core.layouts import dead_of

TINY = {
    "td": {"games": 16, "updates": 1, "batches": 2},
    "ppo": {"num_envs": 8, "critic_turns": 64, "updates": 1},
    "sb3": {"total_timesteps": 512, "num_envs": 8, "batch_size": 512, "milestones": 1},
    "mlp": {},
}


@pytest.mark.parametrize("layouts", [TRAIN, EMPTY])
@pytest.mark.parametrize("learner", TINY)
def test_trained_agents_play_all_layouts(learner, layouts, monkeypatch):
    monkeypatch.setattr(study, "SETTINGS", TINY)
    monkeypatch.setattr(study, "DECISIONS", 4096)
    policy = study.train(Run(2, learner, layouts, seed=1))
    game, rng = Game(BOARDS[2]), np.random.default_rng(0)
    state = game.reset(500, seed=3)
    actions = policy.act(game, state, rng)
    game.check(state, actions)
    if layouts == EMPTY and learner != "td":  # the planner knows the possible moves
        bare = state.copy()
        bare["dead"] = 0  # all games are at their first decision, which is a hold
        same = actions == policy.act(game, bare, rng)
        assert same.all() or learner == "mlp"  # its features count free spaces


def of_paths(dead: str, *pieces: tuple[int, int]):
    state = np.zeros(1, STATE)
    state["dead"] = dead_of(dead)
    state["pieces"][0, :2] = np.array(pieces).T
    return state


@pytest.mark.parametrize(
    ("state", "same"),
    [
        (of_paths("##/##/##/##/#.", *[(0, 0)] * 5), False),
        (of_paths("##/##/##/##/#.", *[(0, 3)] * 5), False),
        (of_paths("##/##/##/##/#.", *[(3, 4)] * 5), True),  # as on the empty board
        (of_paths("##/##/##/##/#.", *[(0, 0)] * 4, (2, 3)), True),  # as in ##/##/##/##/..
        (of_paths("##/##/##/##/#.", *[(0, 0)] * 4, (0, 2)), False),
        (of_paths("##/../../../..", (0, 3), *[(0, 0)] * 4), False),
        (of_paths("##/../../../..", (3, 4), *[(0, 0)] * 4), True),
    ],
)
def test_dead_pieces_behind_both_pieces_do_not_matter(state, same):
    assert study.shared(2, state).tolist() == [same]


def test_a_run_has_a_name_in_the_results():
    assert str(Run(2, "td", EMPTY, 0)) == "2, td, empty board, 0"


def test_the_table_has_means_over_the_seeds(monkeypatch):
    known = {str(Run(2, "td", TRAIN, seed)): [1.0 + seed, 3.0 + seed, 60.0] for seed in range(3)}
    monkeypatch.setattr(study, "BOARDS", {2: BOARDS[2]})
    monkeypatch.setattr(study, "finished", lambda _: known)
    monkeypatch.setattr(study, "regrets", lambda policy, spaces: [5.0, 4.0])
    head, _, first, *_, last = study.Findings().results().splitlines()
    assert head.startswith("| plain spaces | agent | trained on | seeds | training layouts | test layouts |")
    assert first == "| 2 | `random` |  | 1 | 5.0 | 4.0 | -1.0 | 0.0 |"
    assert last == "| 2 | `td` | training layouts | 3 | 2.0 ± 2.5 | 4.0 ± 2.5 | 2.0 ± 0.0 | 1.0 |"


def test_drawn_positions_have_all_graded_layouts(tmp_path, monkeypatch):
    layouts = ["##/##/##/##/#.", "##/##/##/##/##"]
    monkeypatch.setattr(study, "graded", lambda spaces: layouts)
    monkeypatch.setattr(positions, "FOLDER", tmp_path)
    monkeypatch.setattr(solver, "cache_file", lambda rules: tmp_path / f"{rules.dead_pieces.count('#')}.wotd")
    study.draw_positions(BOARDS[2], size=2)
    drawn = benchmark.load(rules=BOARDS[2])
    assert {*map(tuple, drawn.state["dead"].tolist())} == {
        tuple(dead_of(layout).tolist()) for layout in layouts
    }
    assert len(drawn.game) == len(drawn.first(2).game) > 2 * 2 * 10
    greedy = benchmark.measure("greedy", BOARDS[2], games=2)
    assert greedy.positions().digest() == drawn.digest()
    assert replace(BOARDS[2], dead_pieces=0) == Rules(spaces=2)
