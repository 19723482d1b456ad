"""Files from before the field `truncated` of a record was renamed to `expired` are still read."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from wotd_env import STATE, Game, Phase, Rules
from wotd_env.core.state import OLD_STATE
from wotd_env.envs.single import WayOfTheDragonEnv
from wotd_env.notation import parse_game, position, read_game

FOLDER = Path(__file__).parent / "old_formats"
RULES = Rules(max_turns=6)


@pytest.fixture
def old() -> np.ndarray:
    """All positions of a game that the turn limit ended, STATE (N,) with the old name of the field."""
    records: np.ndarray = np.load(FOLDER / "states.npy")
    assert records.dtype == OLD_STATE != STATE
    assert records["truncated"].tolist() == [0] * (len(records) - 1) + [1]
    return records


def test_every_question_about_old_records_has_the_same_answer(old: np.ndarray) -> None:
    game, new = Game(RULES), old.view(STATE)
    for question in (game.legal_actions, game.observe, game.rewards, game.scores, game.is_over):
        np.testing.assert_array_equal(question(old), question(new))
    assert not game.rewards(old).any()
    assert game.is_over(old)[-1]
    for i in range(len(old)):
        assert position(RULES, old[i : i + 1]) == position(RULES, new[i : i + 1])


@pytest.mark.parametrize("threads", [1, 2])
def test_old_records_change_in_place(old: np.ndarray, threads: int) -> None:
    game = Game(RULES, num_threads=threads)
    new = old.view(STATE).copy()
    actions = game.legal_actions(new).argmax(1)
    for batch in (old, new):
        game.step(batch, actions)
        game.reset(batch, where=game.is_over(batch))
    assert old.dtype == OLD_STATE
    np.testing.assert_array_equal(old.view(STATE), new)


def test_an_old_record_with_an_invalid_field_is_refused_by_its_new_name(old: np.ndarray) -> None:
    old["truncated"][3] = 1
    with pytest.raises(ValueError, match="game 3: expired must be 0 or"):
        Game(RULES).check(old)


def test_an_environment_continues_an_old_record(old: np.ndarray) -> None:
    env = WayOfTheDragonEnv(max_turns=6)
    for given in (old[5], old[5:6], pickle.loads(pickle.dumps(old))[5]):
        env.reset(options={"state": given})
        assert env.record.dtype == STATE


def test_jax_converts_old_records(old: np.ndarray) -> None:
    pytest.importorskip("jax")
    from wotd_env.jax import WayOfTheDragon

    state = WayOfTheDragon(RULES).from_records(old)
    assert state.terminated.tolist() == [False] * (len(old) - 1) + [True]
    assert not state.truncated.any()


def test_the_text_of_an_old_game_is_read() -> None:
    old = read_game(FOLDER / "game.txt")
    assert "truncated" in (FOLDER / "game.txt").read_text()
    assert (old.states["expired"][-1], old.states["phase"][-1]) == (1, Phase.OVER)
    assert " expired" in str(old)
    assert (parse_game(str(old)).states == old.states).all()


def test_an_old_recording_is_read_and_verified() -> None:
    pytest.importorskip("pyarrow")
    from wotd_env.recording import game_of, load, verify

    file = FOLDER / "games.parquet"
    decisions = load(file)
    assert verify(file) == (4, len(decisions.state))
    assert decisions.state.dtype == STATE
    assert game_of(file, 1).states["expired"].tolist()[-1] == 1
