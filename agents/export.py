"""Load a trained network as a policy, and write networks as ONNX. Playing an ONNX file does not need torch."""

import copy
import json
import logging
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from numpy.typing import NDArray
from torch import nn

from agents import checkpoint
from agents.checkpoint import CHECKPOINT, CheckpointError
from agents.network import Network
from wotd_env import Game, Rules
from wotd_env.core.arguments import check_integer
from wotd_env.core.state import States
from wotd_env.policies.onnx import ENCODING, RULES, sealed
from wotd_env.policy import check_made_for, seen_in

PREFIXES = {"ppo": "network.", "sb3": "network.features_extractor.network."}
"""By learner: the start of the names of the network's weights in a checkpoint."""


class NetworkPolicy:
    """A policy that plays the legal action with the largest logit.

    Args:
        network: a module that maps observations, float (N, D), to a tuple. The first item is the logits, (N, A). The
            attribute `network.rules` contains the rules that the network was made for.
        sample: whether to draw a legal action from the softmax instead.
        encoding: the encoding of the observations.
    """

    def __init__(self, network: Any, sample: bool = False, encoding: str = "one_hot") -> None:
        self.network, self.sample, self.encoding = network, sample, encoding

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return actions, int64 (N,), for games STATE (N,); raise ValueError if the network is for other rules."""
        self.check_rules(game.rules)
        observation = th.from_numpy(seen_in(self.encoding, game).observe(state)).float()
        with th.no_grad():
            device = next(self.network.parameters()).device
            scores = self.network(observation.to(device))[0].cpu().numpy()
        logits = np.where(game.legal_actions(state), scores, -np.inf)
        if self.sample:  # the argmax of logits plus Gumbel noise is a draw from the softmax
            logits = logits + rng.gumbel(size=logits.shape)
        return np.asarray(logits.argmax(1))

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError unless the network was made for these rules."""
        check_made_for("the network", self.network.rules, rules)


class _Logits(nn.Module):
    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, observation: th.Tensor, action_mask: th.Tensor) -> th.Tensor:
        logits: th.Tensor = self.network(observation.float())[0]
        return logits.masked_fill(action_mask == 0, th.finfo(th.float32).min)


def to_onnx(network: Any) -> bytes:
    """Return a network as the content of an ONNX file.

    The inputs are `observation`, int8 (N, D), and `action_mask`, int8 (N, A). The output is `logits`, float32 (N, A);
    the logit of an illegal action is the most negative float32 number. The batch size N is dynamic. The metadata
    contain the rules, the encoding and a digest.
    """
    game = Game(network.rules)
    batch = th.export.Dim("batch")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the exporter warns about its own code
        program = th.onnx.export(
            _Logits(copy.deepcopy(network).cpu()).eval(),
            tuple(th.ones(2, size, dtype=th.int8) for size in (game.observation_size, game.num_actions)),
            input_names=["observation", "action_mask"],
            output_names=["logits"],
            dynamic_shapes=({0: batch}, {0: batch}),
            verbose=False,
        )
    assert program is not None
    model = program.model_proto
    # The metadata of the exporter contain local file paths.
    del model.graph.value_info[:]
    for node in model.graph.node:
        node.ClearField("doc_string")
        del node.metadata_props[:]
    for weights in model.graph.initializer:
        del weights.metadata_props[:]
    model.metadata_props.add(key=RULES, value=json.dumps(asdict(network.rules)))
    model.metadata_props.add(key=ENCODING, value="one_hot")
    return sealed(model.SerializeToString())


def load(run: Path | str) -> NetworkPolicy:
    """Return the policy in the last checkpoint of a run of `ppo` or `sb3`.

    For a run of TD(lambda), pass the run folder itself to `wotd_env.make_policy`.

    Raises:
        CheckpointError: if the checkpoint is missing or damaged, or if the run is of another learner.
    """
    path = Path(run) / CHECKPOINT
    tensors, facts = checkpoint.load(path)
    prefix = PREFIXES.get(facts.get("learner", ""))
    if prefix is None:
        why = "it is not a run of ppo or sb3. A run folder of train.py td is itself a policy name"
        raise CheckpointError(f"{path} cannot be used: {why}")
    weights = {name.removeprefix(prefix): each for name, each in tensors.items() if name.startswith(prefix)}
    try:
        settings = facts["settings"]
        network = Network(
            Rules.from_dict(settings["rules"]), check_integer("width", settings["width"], 1, 4096)
        )
        checkpoint.restore(weights, network.state_dict())
    except (KeyError, TypeError, ValueError) as error:
        raise checkpoint.unusable(path, error) from error
    return NetworkPolicy(network)
