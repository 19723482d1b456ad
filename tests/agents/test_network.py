"""The policy network."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from sb3_contrib import MaskablePPO

from agents.network import KeptDice, Network, sorted_faces
from tests.helpers.training import VARIANTS
from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.core.dice import HOLD_KEEP, KEEP_DICE, keep_index

RANDOM = make_policy("random")


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_network_outputs_depend_on_every_observation_part(rules: Rules):
    game = Game(rules)
    network = Network(rules, 16)
    observation = th.from_numpy(game.observe(game.reset(40, seed=0))).float().requires_grad_()
    logits, value = network(observation)
    assert logits.shape == (40, game.num_actions)
    assert value.shape == (40, 32)
    # Single features may be constant in this phase, but every part must have a gradient.
    (logits.square().sum() + value.sum()).backward()
    assert observation.grad is not None
    for name, part in game.observation_layout.items():
        assert observation.grad[:, part].any(), name


def test_hold_logits_are_sums_over_the_kept_dice():
    rng = np.random.default_rng(0)
    faces = np.sort(rng.integers(0, 6, (200, 5)), 1)
    counts = (faces[:, :, None] == np.arange(6)).sum(1)
    scores = rng.normal(size=(200, 8, 6)).astype(np.float32)
    dice = th.from_numpy((counts[:, :, None] == np.arange(6)).astype(np.float32))
    shown = sorted_faces(dice)
    np.testing.assert_array_equal(shown, faces)
    assert (sorted_faces(th.zeros(1, 6, 6)) == 6).all()  # before the first roll
    logits = KeptDice()(shown, th.from_numpy(scores).flatten(1)).numpy()
    for i in range(200):
        for hold in range(32):
            dice_kept = KEEP_DICE[HOLD_KEEP[keep_index(faces[i].tolist()), hold]]
            kept = [int((dice_kept == face).sum()) for face in range(6)]
            features = [*kept, sum(kept), sum(k > 0 for k in kept[:5])]
            expected = sum(scores[i, feature, number] for feature, number in enumerate(features))
            np.testing.assert_allclose(logits[i, hold], expected, rtol=1e-4, atol=1e-5)


def test_the_network_is_equivariant_to_path_permutations():
    game = Game(Rules(players=3))
    network = Network(game.rules, 16)
    state = game.reset(300, seed=5)
    rng = np.random.default_rng(0)
    for _ in range(30):
        game.step(state, RANDOM.act(game, state, rng))
    state = state[state["phase"] == Phase.MOVE]
    assert len(state)
    order = rng.permutation(5)  # path e of `state` is path order[e] of `other`
    other = state.copy()
    other["pieces"][:, :, order] = state["pieces"]
    other["color"] = np.argsort(np.argsort(order))[state["color"]]
    other["dice"] = np.sort(np.append(order, 5)[state["dice"]], 1)
    with th.no_grad():
        logits, value = network(th.from_numpy(game.observe(state)).float())
        others, value_of_other = network(th.from_numpy(game.observe(other)).float())
    np.testing.assert_allclose(value, value_of_other, atol=1e-5)
    for first, width in ((32, 1), (37, 1), (42, 1), (55, 3)):  # move, wild, jump, swaps
        one = logits[:, first : first + 5 * width].reshape(-1, 5, width)
        two = others[:, first : first + 5 * width].reshape(-1, 5, width)
        np.testing.assert_allclose(one, two[:, order], atol=1e-5)
    np.testing.assert_allclose(logits[:, 47:55], others[:, 47:55], atol=1e-5)


@pytest.mark.parametrize(("network", "mask_in"), [("MlpPolicy", "info"), ("MultiInputPolicy", "obs")])
def test_sb3_policies_play_what_sb3_predicts(tmp_path: Path, network: str, mask_in: str):
    env = gymnasium.make("wotd_env:wotd_env/WayOfTheDragon-v0", spaces=1, mask_in=mask_in)
    model = MaskablePPO(network, env, seed=0, device="cpu")
    model.save(tmp_path / "model.zip")
    game = Game(Rules(spaces=1))
    state = game.new(200, seed=1)
    for _ in range(6):
        observation, mask = game.observe(state), game.legal_actions(state)
        seen: Any = {"observation": observation, "action_mask": mask} if mask_in == "obs" else observation
        expected, _ = model.predict(seen, action_masks=mask, deterministic=True)
        policy = make_policy(f"sb3:{tmp_path / 'model.zip'}", trust=True)
        chosen = policy.act(game, state, np.random.default_rng(0))
        np.testing.assert_array_equal(chosen, expected)
        game.step(state, chosen)
    assert policy.act(game, state[:0], np.random.default_rng(0)).shape == (0,)
