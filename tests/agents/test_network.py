"""The policy network and its ONNX export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from sb3_contrib import MaskablePPO

from agents.layers import KeptDice, sorted_faces
from agents.ppo import Network
from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.core.dice import HOLD_KEEP, KEEP_DICE, keep_index

GREEDY, RANDOM, FIRST = (make_policy(name) for name in ("greedy", "random", "first"))


VARIANTS = [
    Rules(spaces=3),
    Rules(players=3, spaces=3, powers="any"),
    Rules(players=5, spaces=3, powers="own", immunity=True, colors="random"),
    Rules(players=4, spaces=3, dead_pieces=5, start="loser"),
]


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
@pytest.mark.parametrize("planned", [False, True])
def test_network_outputs_depend_on_every_observation_part(rules: Rules, planned: bool):
    game = Game(rules)
    network = Network(rules, 16, planned)
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


@pytest.mark.parametrize("planned", [False, True])
def test_the_network_is_equivariant_to_path_permutations(planned: bool):
    game = Game(Rules(players=3))
    network = Network(game.rules, 16, planned)
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


@pytest.mark.parametrize(
    "rules",
    [Rules(), Rules(players=3, powers="own", immunity=True, spaces=2), Rules(players=4, dead_pieces=5)],
    ids=str,
)
def test_turn_ends_are_scored_by_their_afterstates(rules: Rules):
    game, network = Game(rules, skip_forced=False), Network(rules, 16, planned=True)
    state, rng = game.reset(300, seed=7), np.random.default_rng(0)
    for _ in range(120):
        going = np.flatnonzero(state["phase"] != Phase.OVER)
        part = state[going]
        game.step(part, RANDOM.act(game, part, rng))
        state[going] = part
    state = state[state["phase"] == Phase.MOVE]
    planned, layout = network.planned, network.layout
    assert planned is not None
    afterstates = planned.afterstates
    of_path = th.randn(5, afterstates.path.in_features)
    of_board = th.randn(afterstates.board.in_features)

    def ends(states: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return the values of the ends, the possible moves, and the pairs of pieces that cannot be swapped."""
        count, observation = len(states), th.from_numpy(game.observe(states)).float()
        pieces = observation[:, layout["pieces"]].reshape(count, rules.players, 5, -1)
        free = planned.free(pieces, observation[:, layout["dead"]].reshape(count, 5, -1))
        at = (pieces @ planned.space).long()
        with th.no_grad():
            worth = afterstates(at, of_path.expand(count, -1, -1), of_board.expand(count, -1), free)
        still = planned.still(pieces, observation[:, layout["colors"]])
        return *(x.numpy() for x in worth), free.numpy(), still.numpy()

    moved, swapped, advanced, passed, free, still = ends(state)
    pairs, dragon = swapped.shape[2], 5
    # Dice, an action, the values of its end, and the positions in which it is legal.
    cases = [([0, 1, 2, 3, 4], 47, advanced[:, 0], free[:, :, 0].any(1))]
    for path in range(5):
        for count in range(1, 6):
            dice = [path] * count + [dragon] * (5 - count)
            cases.append((dice, 32 + path, moved[:, path, count - 1], free[:, path, count - 1] > 0))
        for pair in range(pairs):
            action = 55 + path * pairs + pair
            cases.append(([path, *[dragon] * 4], action, swapped[:, path, pair], ~still[:, path, pair]))
    for dice, action, worth, possible in cases:
        shown = state.copy()
        shown["dice"] = dice
        np.testing.assert_array_equal(game.legal_actions(shown)[:, action] == 1, possible)
        left = shown[possible]
        game.decide(left, np.full(len(left), action))
        there = state[possible]
        there["pieces"] = left["pieces"]
        np.testing.assert_allclose(worth[possible], ends(there)[3][:, 0], rtol=1e-4, atol=1e-4)
    with th.no_grad():
        afterstates.again.add_(1)  # five dice earn a further turn, so only those ends change
    changed = np.abs(ends(state)[0] - moved) > 1e-3
    assert changed[:, :, 4].any()
    assert not changed[:, :, :4].any()
    for now, before in zip(ends(state)[1:4], (swapped, advanced, passed), strict=True):
        np.testing.assert_array_equal(now, before)


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
