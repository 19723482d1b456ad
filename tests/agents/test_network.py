"""The policy network."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch as th
from sb3_contrib import MaskablePPO

from agents.layers import KeptDice, Network, sorted_faces
from tests.helpers.training import VARIANTS
from wotd_env import Game, Phase, Rules, make_policy
from wotd_env.core.dice import HOLD_KEEP, KEEP_DICE, keep_index
from wotd_env.core.state import States
from wotd_env.planning.planner import plan

RANDOM = make_policy("random")


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


def positions(game: Game, count: int) -> States:
    """Return positions of random games after 25 to 55 decisions, at a hold or a move."""
    state, rng = game.reset(count, seed=7), np.random.default_rng(0)
    turns = rng.integers(25, 55, count)
    for step in range(turns.max()):
        going = turns > step
        part = state[going]
        game.step(part, RANDOM.act(game, part, rng))
        state[going] = part
    state["used"][::2] = 0  # random players use their powers early
    decisions: States = state[(state["phase"] == Phase.KEEP) | (state["phase"] == Phase.MOVE)]
    return decisions


def planned_scores(network: Network, observation: th.Tensor) -> tuple[np.ndarray, tuple[th.Tensor, ...]]:
    """Return the planned scores of all actions, and what `Afterstates` gets."""
    assert network.planned is not None
    scores, inputs = [], []
    hooks = [
        network.planned.register_forward_hook(lambda module, given, out: scores.append(out)),
        network.planned.afterstates.register_forward_pre_hook(lambda module, given: inputs.append(given)),
    ]
    with th.no_grad():
        network(observation)
    for hook in hooks:
        hook.remove()
    holds, moves, swaps, pathless = scores[0]
    return th.cat([holds, moves.transpose(1, 2).flatten(1), pathless, swaps.flatten(1)], 1).numpy(), inputs[0]


@pytest.mark.parametrize(
    "rules",
    [
        Rules(),
        Rules(powers="any"),
        Rules(players=3, powers="own", colors="random", immunity=True),
        Rules(players=4, powers="any", dead_pieces=5),
    ],
    ids=str,
)
def test_planned_scores_are_those_of_the_turn_planner(rules: Rules):
    th.manual_seed(0)
    game, network = Game(rules, skip_forced=False), Network(rules, 16, planned=True)
    state, n = positions(game, 300), rules.players
    observation = th.from_numpy(game.observe(state)).float()
    scores, inputs = planned_scores(network, observation)
    compared = np.zeros(game.num_actions, int)
    for i in range(len(state)):
        player = state["player"][i]
        seats = (player + np.arange(n)) % n

        def value(game: Game, afterstates: States, i: int = i, seats: Any = seats) -> np.ndarray:
            """Return the network's value of a pass in each position, before or after the use of a power."""
            player = seats[0]
            at = th.from_numpy(afterstates["pieces"][:, seats].astype(np.int64))
            rest = (x[i : i + 1].expand(len(at), *x.shape[1:]) for x in inputs[2:])
            with th.no_grad():
                plain, used = network.planned.afterstates(at, at[:, :1].expand(-1, 5, -1), *rest)  # type: ignore[union-attr]
            own = plain[3][:, 0].numpy().copy()
            if used:
                now_used = (afterstates["used"] & ~state["used"][i]) >> player & 1
                own = np.where(now_used, used[3][:, 0].numpy(), own)
            own[afterstates["player"] == player] = -500  # an extra turn is part of the value of an end
            values = np.repeat(-own[:, None] / (n - 1), n, 1)
            values[:, player] = own
            return values

        expected = plan(game, state[i : i + 1], value)[0][0]
        legal = np.flatnonzero(expected > -np.inf)
        np.testing.assert_allclose(scores[i, legal], expected[legal], rtol=1e-4, atol=1e-3)
        compared[legal] += 1
    kinds = [(0, 31), (32, 37)] + [(37, 42), (42, 47), (51, 52)] * (rules.powers != "none")
    assert all(compared[first:last].any() for first, last in kinds)


def test_moves_by_five_dice_have_the_value_of_an_extra_turn():
    game = Game(Rules(powers="any"), skip_forced=False)
    network, state = Network(game.rules, 16, planned=True), positions(game, 300)
    state = state[state["phase"] == Phase.MOVE]
    state["dice"] = [2, 2, 2, 2, 2]
    observation = th.from_numpy(game.observe(state)).float()
    before, _ = planned_scores(network, observation)
    with th.no_grad():
        network.planned.afterstates.again.add_(1)  # type: ignore[union-attr]
    changed = np.abs(planned_scores(network, observation)[0] - before) > 1e-3
    legal = game.legal_actions(state) == 1
    perfect = np.isin(np.arange(game.num_actions), [34, 44])  # a move, a jump
    assert changed[legal & perfect].all()
    assert (legal & perfect).any(0).sum() == 2
    assert not changed[legal & ~perfect].any()


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
