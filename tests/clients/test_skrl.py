"""skrl's PPO learns with action masks, in one game and in the native vector environment."""

import functools
import warnings
from typing import Any

import gymnasium
import pytest

pytest.importorskip("skrl", reason="skrl is not installed: make test-clients", exc_type=ImportError)

import torch as th

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # skrl's own deprecation warnings
    from skrl.agents.torch.ppo import PPO, PPO_CFG
    from skrl.envs.wrappers.torch import wrap_env
    from skrl.memories.torch import RandomMemory
    from skrl.models.torch import CategoricalMixin, DeterministicMixin, Model
    from skrl.trainers.torch import SequentialTrainer
    from skrl.utils.spaces.torch import unflatten_tensorized_space

ID = "wotd_env:wotd_env/WayOfTheDragon-v0"
OPTIONS: dict[str, Any] = {"mask_in": "obs", "observation_dtype": "float32", "illegal": "raise", "spaces": 0}
STEPS = 96

client = functools.partial(pytest.mark.client, "skrl", "skrl")
pytestmark = pytest.mark.filterwarnings("default")  # skrl's own warnings are not errors


def masked(logits: th.Tensor, space: gymnasium.Space[Any], observations: th.Tensor) -> th.Tensor:
    """Set the logits of illegal actions to a large negative number."""
    mask = unflatten_tensorized_space(space, observations)["action_mask"]
    return logits.masked_fill(mask == 0, -1e9)


class Actor(CategoricalMixin, Model):  # type: ignore[misc]  # skrl may be missing
    def __init__(self, observation_space: Any, action_space: Any, device: Any) -> None:
        Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
        CategoricalMixin.__init__(self)
        self.network = th.nn.Linear(self.num_observations, self.num_actions)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[th.Tensor, dict[str, Any]]:
        seen = inputs["observations"]
        return masked(self.network(seen), self.observation_space, seen), {}


class Critic(DeterministicMixin, Model):  # type: ignore[misc]  # skrl may be missing
    def __init__(self, observation_space: Any, action_space: Any, device: Any) -> None:
        Model.__init__(self, observation_space=observation_space, action_space=action_space, device=device)
        DeterministicMixin.__init__(self)
        self.network = th.nn.Linear(self.num_observations, 1)

    def compute(self, inputs: dict[str, Any], role: str = "") -> tuple[th.Tensor, dict[str, Any]]:
        return self.network(inputs["observations"]), {}


@pytest.mark.parametrize(
    ("make", "games"),
    [
        pytest.param(gymnasium.make, {}, marks=client('wrap_env(gymnasium.make(ID, mask_in="obs"))', masked)),
        pytest.param(
            gymnasium.make_vec,
            {"num_envs": 4},
            marks=client('wrap_env(gymnasium.make_vec(ID, num_envs=4, mask_in="obs"))', masked),
        ),
    ],
)
def test_ppo_learns_with_action_masks(make, games, tmp_path):
    """Illegal actions raise."""
    th.manual_seed(0)
    env = wrap_env(make(ID, **OPTIONS, **games), verbose=False)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    models: dict[str, Any] = {
        "policy": Actor(**spaces, device=env.device),
        "value": Critic(**spaces, device=env.device),
    }
    config = PPO_CFG(rollouts=32, learning_epochs=2, mini_batches=2)
    config.experiment.directory = str(tmp_path)
    config.experiment.write_interval = config.experiment.checkpoint_interval = 0
    agent = PPO(
        models=models,
        memory=RandomMemory(memory_size=32, num_envs=env.num_envs, device=env.device),
        cfg=config,
        device=env.device,
        **spaces,
    )
    before = models["policy"].network.weight.detach().clone()
    options = {
        "timesteps": STEPS,
        "headless": True,
        "disable_progressbar": True,
        "close_environment_at_exit": False,
    }
    SequentialTrainer(env=env, agents=agent, cfg=options).train()
    env.close()
    assert not th.equal(before, models["policy"].network.weight)
