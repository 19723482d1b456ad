"""TorchRL makes the environments by ID, checks them, collects with masks and learns."""

import functools
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest

pytest.importorskip("torchrl", reason="TorchRL is not installed: make test-clients", exc_type=ImportError)

import torch as th

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # TorchRL's own deprecation warnings
    from tensordict.nn import TensorDictModule
    from torchrl.collectors import Collector
    from torchrl.data import LazyTensorStorage, ReplayBuffer
    from torchrl.envs import (
        ActionMask,
        EnvBase,
        GymEnv,
        GymWrapper,
        MarlGroupMapType,
        PettingZooWrapper,
        TransformedEnv,
        check_env_specs,
    )
    from torchrl.modules import MaskedCategorical, ProbabilisticActor, ValueOperator
    from torchrl.objectives import ClipPPOLoss
    from torchrl.objectives.value import GAE

from wotd_env import way_of_the_dragon_v0

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
OPTIONS: dict[str, Any] = {
    "mask_in": "obs",
    "mask_dtype": "bool",
    "observation_dtype": "float32",
    "illegal": "raise",
    "spaces": 0,
}

client = functools.partial(pytest.mark.client, "TorchRL", "torchrl")
pytestmark = pytest.mark.filterwarnings("default")  # TorchRL's own warnings are not errors


def masked(env: EnvBase) -> EnvBase:
    """Restrict actions to the masks."""
    return TransformedEnv(env, ActionMask())


def one() -> EnvBase:
    """Return the environment of one learner; illegal actions raise."""
    return masked(GymEnv(ID, categorical_action_encoding=True, **OPTIONS))


def native() -> EnvBase:
    """Return the native vector environment with four learners."""
    games = gymnasium.make_vec(ID, num_envs=4, autoreset_mode="Disabled", **OPTIONS)
    return masked(GymWrapper(games, categorical_action_encoding=True))


@client("GymEnv(ID)")
def test_gym_env_accepts_the_environment_id():
    check_env_specs(GymEnv(ID))


@client("PettingZooWrapper(way_of_the_dragon_v0.raw_env(), use_mask=True)")
@pytest.mark.parametrize("players", [2, 3])
@pytest.mark.parametrize("groups", [None, MarlGroupMapType.ALL_IN_ONE_GROUP], ids=["apart", "together"])
def test_all_seats_play_with_action_masks(players, groups):
    """`raw_env` raises on illegal actions."""
    game = way_of_the_dragon_v0.raw_env(players=players, spaces=0)
    env = PettingZooWrapper(game, use_mask=True, group_map=groups)
    check_env_specs(env)
    env.set_seed(0)
    played = env.rollout(300)
    total_reward = sum(played["next", group, "reward"].sum() for group in env.group_map)
    assert played["next", "done"][-1].all()
    assert total_reward == pytest.approx(0, abs=1e-6)


def actor_of(env: EnvBase) -> ProbabilisticActor:
    network = th.nn.Linear(env.observation_spec["observation"].shape[-1], env.action_spec.space.n)
    logits = TensorDictModule(network, in_keys=["observation"], out_keys=["logits"])
    return ProbabilisticActor(
        logits,
        spec=env.action_spec,
        in_keys={"logits": "logits", "mask": "action_mask"},
        distribution_class=MaskedCategorical,
        return_log_prob=True,
    )


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(one, marks=client('GymEnv(ID, mask_in="obs", mask_dtype="bool")', masked)),
        pytest.param(
            native,
            marks=client(
                'GymWrapper(gymnasium.make_vec(ID, num_envs=4, autoreset_mode="Disabled", '
                'mask_in="obs", mask_dtype="bool"))',
                masked,
            ),
        ),
    ],
)
def test_ppo_trains_on_collected_batches(make):
    th.manual_seed(0)
    env = make()
    check_env_specs(env)
    actor = actor_of(env)
    critic = ValueOperator(th.nn.Linear(actor[0].module.in_features, 1), in_keys=["observation"])
    advantage, loss = GAE(gamma=1.0, lmbda=0.95, value_network=critic), ClipPPOLoss(actor, critic)
    optimizer = th.optim.Adam(loss.parameters(), lr=0.01)
    before = actor[0].module.weight.detach().clone()
    collector = Collector(env, actor, frames_per_batch=128, total_frames=256)
    frames = 0
    for batch in collector:
        frames += batch.numel()
        advantage(batch)
        buffer = ReplayBuffer(storage=LazyTensorStorage(128), batch_size=64)
        buffer.extend(batch.reshape(-1))
        losses = loss(buffer.sample())
        total = losses["loss_objective"] + losses["loss_critic"] + losses["loss_entropy"]
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        assert np.isfinite(total.item())
    collector.shutdown()
    assert frames == 256
    assert not th.equal(before, actor[0].module.weight)


def test_gym_wrapper_rejects_next_step_autoreset():
    """docs/how-to/torchrl.md states this."""
    with pytest.raises(Exception, match=r"(?i)next.?step"):
        GymWrapper(gymnasium.make_vec(ID, num_envs=2))
