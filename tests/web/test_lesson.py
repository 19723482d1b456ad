"""The tutorial of the page: its positions, its wanted choices, and the claims of its texts."""

import json
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra web")

from wotd_env import Game, notation
from wotd_env.core.rules import Phase
from wotd_env.core.state import States
from wotd_env.web.app import STATIC

STEPS: list[dict[str, Any]] = json.loads((STATIC / "lesson.json").read_text())
TASKS = [task for step in STEPS for task in step["tasks"]]


def after(task: dict[str, Any]) -> tuple[Game, States, States]:
    """Return the game, the position of a task, and the position after its first wanted choice, before any roll."""
    rules, state = notation.parse_position(task["position"])
    game, decided = Game(rules, skip_forced=False), state.copy()
    game.decide(decided, [notation.parse_action(game, state, task["accept"][0])])
    return game, state, decided


def test_tutorial_has_eight_steps_on_one_board() -> None:
    assert len(STEPS) == 8
    assert {notation.parse_position(task["position"])[0].spaces for task in TASKS} == {3}


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task["position"])
def test_wanted_choices_are_legal_and_others_get_a_hint(task: dict[str, Any]) -> None:
    rules, state = notation.parse_position(task["position"])
    game = Game(rules, skip_forced=False)
    words = notation.legal_words(game, state)
    assert set(task["accept"]) <= set(words)
    assert bool(task["hint"]) == (len(words) > len(task["accept"]))


def test_dice_of_the_first_steps_are_one_turn() -> None:
    first, second, third = TASKS[:3]
    for before, then in ((first, second), (second, third)):
        _, state, decided = after(before)
        kept = [face for face in decided["dice"][0].tolist() if face >= 0]
        _, following = notation.parse_position(then["position"])
        rest = following["dice"][0].tolist()
        for face in kept:
            rest.remove(face)  # raises if a kept die is missing
        assert (following["pieces"] == state["pieces"]).all()
    assert int(following["rolls_left"][0]) == 0


def test_texts_state_true_points() -> None:
    game, _, moved = after(TASKS[2])
    assert game.scores(moved)[0].tolist() == [1, 0]  # "worth 1 point"
    game, before, swapped = after(TASKS[-2])
    assert (game.scores(before) - game.scores(swapped))[0].tolist() == [-4, 4]  # "lost 4 points"
    game, before, ended = after(TASKS[-1])
    assert game.scores(before)[0].tolist() == [10, 11]
    assert game.scores(ended)[0].tolist() == [12, 11]
    assert game.is_over(ended)[0]


def test_perfection_earns_the_extra_turn() -> None:
    perfection, extra = STEPS[5]["tasks"]
    _, _, moved = after(perfection)
    _, state = notation.parse_position(extra["position"])
    assert moved["phase"][0] == Phase.EXTRA
    assert moved["perfection"][0]
    assert np.array_equal(moved["pieces"], state["pieces"])


def test_equilibrium_moves_the_named_pieces() -> None:
    game, before, moved = after(STEPS[4]["tasks"][0])
    steps = (moved["pieces"] - before["pieces"])[0, 0].tolist()
    assert steps == [1, 0, 1, 1, 1]  # water, earth and the two waiting pieces
    assert game.rules.powers == "none"
