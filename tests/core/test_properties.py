"""Properties of all reachable positions, for random rules and dice."""

import numpy as np
from hypothesis import given

from tests.helpers.strategies import BATCH, any_rules, decisions, seeds
from wotd_env import Action, Phase, Power, Rules
from wotd_env.core.actions import power_of

FIRST_SWAP = 55


def occupants(state: np.ndarray) -> np.ndarray:
    """Return the number of pieces, dead ones included, on each space: int (N, path, space)."""
    spaces = np.arange(16)
    alive = (state["pieces"][:, :, :, None] == spaces).sum(1)
    dead = state["dead"][:, :, None] >> spaces & 1
    return np.asarray(alive + dead)


@given(any_rules(), seeds)
def test_no_two_pieces_share_a_space(rules: Rules, seed: int) -> None:
    for game, state, _, after in decisions(rules, seed):
        assert (occupants(after)[:, :, 1:] <= 1).all()
        pieces = after["pieces"]
        assert (pieces >= 0).all()
        assert (pieces <= game.rules.spaces + 5).all()
        assert (pieces[:, rules.players :] == 0).all(), "unused seats have no pieces on the board"
        assert (after["dead"] == state["dead"]).all(), "dead pieces never move"
        assert (after["color"] == state["color"]).all()


@given(any_rules(), seeds)
def test_actions_spend_exactly_their_own_power(rules: Rules, seed: int) -> None:
    for _, state, actions, after in decisions(rules, seed):
        powers = np.array([power_of(action) is not None for action in actions.tolist()])
        tiger = (state["phase"] == Phase.KEEP) & (state["rolls_left"] == 0) & (actions < Action.STOP_ROLLING)
        used = after["used"] != state["used"]
        np.testing.assert_array_equal(used, (powers | tiger) & (state["phase"] != Phase.OVER))
        if rules.powers == "own":
            colors = state["color"][np.arange(BATCH), state["player"]]
            expected = [
                Power.TIGER if by_hold else power_of(action)
                for by_hold, action in zip(tiger, actions, strict=True)
            ]
            assert [expected[i] for i in np.flatnonzero(used)] == colors[used].tolist()


@given(any_rules(), seeds)
def test_scores_and_rewards_stay_in_their_bounds(rules: Rules, seed: int) -> None:
    for game, _, _, after in decisions(rules, seed):
        scores, rewards = game.scores(after), game.rewards(after)
        assert scores.shape == rewards.shape == (BATCH, rules.players)
        assert (scores >= 0).all()
        assert (scores <= 25).all()
        assert (scores.sum(1) <= 5 * (1 + 2 + 3 + 4 + 5)).all(), "every number counts once on each path"
        assert (np.abs(rewards) <= 1).all()
        np.testing.assert_allclose(rewards.sum(1), 0, atol=1e-6)
        assert (rewards[after["phase"] != Phase.OVER] == 0).all()
        assert (rewards[after["expired"] == 1] == 0).all()


@given(any_rules(), seeds)
def test_there_is_always_a_legal_action(rules: Rules, seed: int) -> None:
    for game, state, _, _ in decisions(rules, seed):
        mask = game.legal_actions(state)
        assert mask.dtype == np.int8
        assert mask.shape == (BATCH, game.num_actions)
        assert ((mask == 0) | (mask == 1)).all()
        assert mask.any(1).all()
        assert mask[state["phase"] == Phase.OVER].all()
        running = state["phase"] != Phase.OVER
        assert not mask[running].all(1).any()


@given(any_rules(), seeds)
def test_only_swaps_move_pieces_backward(rules: Rules, seed: int) -> None:
    for _, state, actions, after in decisions(rules, seed):
        swap = (actions >= FIRST_SWAP) & (state["phase"] == Phase.MOVE)
        old, new = state["pieces"].astype(int), after["pieces"].astype(int)
        assert (new >= old)[~swap].all()
        others = np.arange(5) != state["player"][:, None]
        assert (new == old)[~swap[:, None] & others].all(), "only the acting seat's pieces move"
        assert (np.sort(new, axis=1) == np.sort(old, axis=1))[swap].all(), "a swap keeps the occupied spaces"
        assert ((new != old).sum((1, 2)) == 2)[swap].all()


@given(any_rules(), seeds)
def test_turns_phases_and_dice_stay_valid(rules: Rules, seed: int) -> None:
    for _, state, _, after in decisions(rules, seed):
        assert (state["phase"] != Phase.CHANCE).all(), "step continues to the next decision"
        assert ((state["dice"] >= 0) & (state["dice"] <= 5)).all()
        assert (np.diff(state["dice"], axis=1) >= 0).all()
        over = state["phase"] == Phase.OVER
        assert (after[over] == state[over]).all(), "finished games do not change"
        assert (state["turn"] <= rules.max_turns).all()
        assert (state["expired"] == 1)[over].sum() == (over & (state["turn"] == rules.max_turns)).sum()
        assert (state["expired"] == 0)[~over].all()
        assert (state["player"] < rules.players).all()
        rolling = after[after["phase"] == Phase.CHANCE]
        for dice in rolling["dice"]:
            kept = dice[dice >= 0]
            assert (np.diff(kept) >= 0).all()
            assert (dice[len(kept) :] == -1).all(), "kept dice first"
            assert len(kept) < 5
