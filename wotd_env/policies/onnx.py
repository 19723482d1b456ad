"""`onnx:FILE`: the most likely legal action of a network in an ONNX file (extra `arena`).

The network has the inputs `observation` (N, D) and, if it likes, `action_mask` (N, A), both of any number type, and the
output `logits` (N, A), or its logits as the first output.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.game import Game

_DTYPES = {
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(double)": np.float64,
    "tensor(int8)": np.int8,
    "tensor(int64)": np.int64,
    "tensor(bool)": np.bool_,
}


class Onnx:
    """Plays the legal action with the largest logit.

    Args:
        file: the ONNX file.

    Raises:
        ImportError: if onnxruntime is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if it holds no network, or one that has no input `observation`.
    """

    def __init__(self, file: str | Path = "") -> None:
        if not file:
            raise ValueError("policy 'onnx' needs a file: 'onnx:FILE'")
        try:
            import onnxruntime
        except ImportError as error:
            raise ImportError("an ONNX policy needs onnxruntime: pip install wotd-env[arena]") from error
        self.file = Path(file)
        if not self.file.is_file():
            raise FileNotFoundError(f"no ONNX file {self.file}")
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # tournaments run one game block on each core
        try:
            self._session = onnxruntime.InferenceSession(
                str(self.file), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime's own classes share no other base
            raise ValueError(f"{self.file} holds no network that onnxruntime can read: {error}") from error
        self._inputs = {entry.name: entry for entry in self._session.get_inputs()}
        if "observation" not in self._inputs or not self._inputs.keys() <= {"observation", "action_mask"}:
            raise ValueError(
                f"the network of {self.file} must have the inputs observation and action_mask, "
                f"got {', '.join(self._inputs)}"
            )
        outputs = [entry.name for entry in self._session.get_outputs()]
        self._output = "logits" if "logits" in outputs else outputs[0]

    def act(self, game: Game, state: NDArray[np.void], rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose actions, see `Policy.act`.

        Raises:
            ValueError: if the network was made for other rules.
        """
        mask = game.legal_actions(state)
        if not len(state):
            return np.zeros(0, np.int64)
        given = {"observation": game.observe(state), "action_mask": mask}
        for name, entry in self._inputs.items():
            width = entry.shape[-1]
            if isinstance(width, int) and width != given[name].shape[1]:
                raise ValueError(
                    f"the network of {self.file} takes {name} of size {width}, these rules have "
                    f"{given[name].shape[1]}: it was made for other rules than {game.rules}"
                )
        inputs: dict[str, NDArray[np.generic]] = {
            name: given[name].astype(_DTYPES[entry.type]) for name, entry in self._inputs.items()
        }
        logits = self._session.run([self._output], inputs)[0]
        if logits.shape != mask.shape:
            raise ValueError(
                f"the network of {self.file} must return logits {mask.shape}, got {logits.shape}"
            )
        actions: NDArray[np.int64] = np.where(mask, logits, -np.inf).argmax(1)
        return actions
