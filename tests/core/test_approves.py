"""The quick check of a decision (`checks.approves`) accepts only what the full checks accept."""

from typing import Any

import numba
import numpy as np
import pytest

from wotd_env import STATE, Game, Rules
from wotd_env.core.batch import first_wrong, is_legal
from wotd_env.core.checks import approves, faults
from wotd_env.core.engine import dice_index

VARIANTS = (
    Rules(),
    Rules(players=5, spaces=2, powers="own"),
    Rules(players=3, spaces=10, powers="any", max_turns=300),
    Rules(players=4, spaces=0, colors=("wood", "fire", "metal", "water")),
    Rules(players=3, spaces=4, immunity=True, dead_pieces=5, colors="random"),
)
GAMES = 2000


@numba.njit
def judge(states: Any, config: Any, actions: Any, quick: Any, full: Any) -> None:
    """Write the results of the quick check and of the full checks."""
    for i in range(len(states)):
        quick[i] = approves(states[i], config[0], dice_index(states[i]), actions[i])
        full[i] = faults(states[i], config[0]) == 0 and is_legal(states[i], config[0], actions[i])


def verdicts(game: Game, states: np.ndarray, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    quick, full = np.empty(len(states), np.bool_), np.empty(len(states), np.bool_)
    judge(states, game.config, actions, quick, full)
    return quick, full


def played(rules: Rules, seed: int, steps: int) -> tuple[Game, np.ndarray, np.ndarray]:
    """Return games after random decisions, with a legal action for each."""
    game, rng = Game(rules, skip_forced=False), np.random.default_rng(seed)
    states = game.reset(GAMES, seed=seed)
    for step in range(steps + 1):
        actions = (rng.random((GAMES, game.num_actions)) * game.legal_actions(states)).argmax(1)
        if step < steps:
            game.step_autoreset(states, actions)
    return game, states, actions


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
@pytest.mark.parametrize("steps", [0, 7, 90])
def test_quick_check_accepts_only_what_the_full_checks_accept(rules, steps):
    game, states, actions = played(rules, 1, steps)
    rng = np.random.default_rng(2)
    for _ in range(40):
        wrong, chosen = states.copy(), actions.copy()
        rows = wrong.view(np.uint8).reshape(GAMES, STATE.itemsize)
        for games in np.array_split(rng.permutation(GAMES), 4)[:3]:  # one to three wrong bytes a game
            places = rng.integers(8, STATE.itemsize, len(games))
            small, any_byte = rng.integers(-2, 12, len(games)), rng.integers(0, 256, len(games))
            rows[games, places] = np.where(rng.random(len(games)) < 0.8, small, any_byte).astype(np.uint8)
        other = rng.random(GAMES) < 0.5
        chosen[other] = rng.integers(-3, 120, other.sum())
        chosen[rng.integers(0, GAMES, 8)] = rng.choice([-(2**63), 2**62, 64, 95, 256 + 31], 8)
        quick, full = verdicts(game, wrong, chosen)
        assert not (quick & ~full).any()
        first = np.flatnonzero(~full)[0] if not full.all() else -1
        assert first_wrong(wrong, game.config, chosen, np.empty(len(wrong), np.uint16)) == first


@pytest.mark.parametrize("rules", VARIANTS[:2], ids=str)
def test_quick_check_covers_most_decisions(rules):
    quick, full = verdicts(*played(rules, 3, 90))
    assert full.all()
    assert quick.mean() > 0.8


def test_errors_name_the_wrong_record_after_failed_quick_checks():
    game, states, actions = played(VARIANTS[2], 4, 90)
    quick, _ = verdicts(game, states, actions)
    slow = np.flatnonzero(~quick)
    states["used"][slow[-1]] = 99
    before = states.copy()
    with pytest.raises(ValueError, match=f"game {slow[-1]}: used must be"):
        game.step_autoreset(states, actions)
    assert states.tobytes() == before.tobytes()
