"""`onnx:FILE`: the most likely legal action of a network in an ONNX file (extra `arena`).

The network has the input `observation` (N, D) and optionally the input `action_mask` (N, A). An input can have any
integer, bool or float type. The logits (N, A) are the output `logits` or, if no output has this name, the first output.
The metadata may have three entries, which `agents.export` writes. `wotd_rules` contains the fields of `Rules` as JSON.
`wotd_encoding` is the encoding of the observations; the default is `one_hot`. `wotd_sha256` is the last entry of the
file, and contains the SHA-256 of the preceding bytes.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wotd_env.core.arguments import check_choice
from wotd_env.core.game import Game
from wotd_env.core.observation import ENCODINGS
from wotd_env.core.rules import Rules
from wotd_env.core.state import States
from wotd_env.extras import needed_for
from wotd_env.policy import check_made_for, seen_in

RULES = "wotd_rules"
ENCODING = "wotd_encoding"
DIGEST = b"wotd_sha256"

_INTEGERS = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_DTYPES = {f"tensor({name})": np.dtype(name) for name in ("float16", "bool", *_INTEGERS)}
_DTYPES |= {"tensor(float)": np.dtype(np.float32), "tensor(double)": np.dtype(np.float64)}


def sealed(content: bytes) -> bytes:
    """Return the content of an ONNX file with its SHA-256 as an additional last entry of the metadata.

    The entry is appended in the encoding of protocol buffers, so that the file can be checked without the package onnx.
    """
    value = hashlib.sha256(content).hexdigest().encode()
    entry = b"\x0a%c%b\x12%c%b" % (len(DIGEST), DIGEST, len(value), value)  # fields 1 and 2: key and value
    return content + b"\x72%c%b" % (len(entry), entry)  # the field 14 of a model: metadata_props


def is_intact(content: bytes) -> bool:
    """Return whether the content of an ONNX file matches its digest. Files without a digest are always intact."""
    return DIGEST not in content or sealed(content[: -len(sealed(b""))]) == content


class Onnx:
    """A policy that plays the legal action with the largest logit.

    Raises:
        ImportError: if onnxruntime is not installed.
        FileNotFoundError: if there is no such file.
        ValueError: if the file does not match its digest, or contains no network, or a network with unsuitable inputs,
            outputs or metadata.
    """

    def __init__(self, file: str | Path) -> None:
        with needed_for("an ONNX policy", "arena"):
            import onnxruntime
        self.file = Path(file)
        if not self.file.is_file():
            raise FileNotFoundError(f"no ONNX file {self.file}")
        if not is_intact(self.file.read_bytes()):
            raise ValueError(
                f"{self.file} does not match its digest: it was damaged or changed; restore a copy, or export it again"
            )
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1  # tournaments already use every core
        options.log_severity_level = 4  # errors are raised, not logged
        try:
            self._session = onnxruntime.InferenceSession(
                str(self.file), options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            self._inputs = {entry.name: entry for entry in self._session.get_inputs()}
            outputs = [entry.name for entry in self._session.get_outputs()]
        except Exception as error:  # the exceptions of onnxruntime have no narrower common base
            raise ValueError(f"{self.file} contains no network that onnxruntime can read: {error}") from error
        if "observation" not in self._inputs or not self._inputs.keys() <= {"observation", "action_mask"}:
            raise ValueError(
                f"the network of {self.file} must have the inputs observation and action_mask, "
                f"got {', '.join(self._inputs) or 'none'}"
            )
        if not outputs:
            raise ValueError(f"the network of {self.file} has no output")
        for entry in self._inputs.values():
            if entry.type not in _DTYPES or len(entry.shape) != 2:
                known = ", ".join(sorted(dtype.name for dtype in _DTYPES.values()))
                raise ValueError(
                    f"the input {entry.name} of the network of {self.file} must be a matrix of one of {known}; "
                    f"got {entry.type} with the shape {entry.shape}"
                )
        self._checked: Rules | None = None
        metadata = self._session.get_modelmeta().custom_metadata_map
        try:
            self._rules = Rules.from_dict(json.loads(metadata[RULES])) if RULES in metadata else None
        except (TypeError, ValueError, RecursionError) as error:
            raise ValueError(f"the network of {file} has invalid {RULES}: {error}") from error
        name = f"the network of {file}: {ENCODING}"
        self._encoding: str = check_choice(name, metadata.get(ENCODING, ENCODINGS[0]), ENCODINGS)
        self._output = "logits" if "logits" in outputs else outputs[0]

    def __reduce__(self) -> tuple[type[Onnx], tuple[Path]]:
        return type(self), (self.file.absolute(),)  # a session cannot be pickled: load the file again

    def act(self, game: Game, state: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Return an action for each state, int64 (N,). Raise ValueError if the network fails or returns no logits."""
        self.check_rules(game.rules)
        mask = game.legal_actions(state)
        if not len(state):
            return np.zeros(0, np.int64)
        given = {"observation": seen_in(self._encoding, game).observe(state), "action_mask": mask}
        inputs: dict[str, NDArray[np.generic]] = {
            name: given[name].astype(_DTYPES[entry.type]) for name, entry in self._inputs.items()
        }
        try:
            (logits,) = self._session.run([self._output], inputs)
        except Exception as error:
            raise ValueError(f"the network of {self.file} fails on {len(state)} games: {error}") from error
        if not isinstance(logits, np.ndarray) or logits.shape != mask.shape or logits.dtype.kind not in "fiu":
            known = isinstance(logits, np.ndarray)
            got = f"{logits.dtype} {logits.shape}" if known else type(logits).__name__
            raise ValueError(f"the network of {self.file} must return numbers {mask.shape}, got {got}")
        legal = np.where(mask, logits, -np.inf)
        if not (finite := np.isfinite(legal.max(1))).all():
            raise ValueError(
                f"the network of {self.file} must return a finite largest logit of the legal actions, got another one "
                f"for game {finite.argmin()}"
            )
        actions: NDArray[np.int64] = legal.argmax(1)
        return actions

    def check_rules(self, rules: Rules) -> None:
        """Check that the metadata and the input sizes of the network fit these rules."""
        if rules is self._checked:
            return
        if self._rules:
            check_made_for(f"the network of {self.file}", self._rules, rules)
        game = Game(rules, encoding=self._encoding)
        sizes = {"observation": game.observation_size, "action_mask": game.num_actions}
        for name, entry in self._inputs.items():
            width = entry.shape[1]
            if isinstance(width, int) and width != sizes[name]:
                raise ValueError(
                    f"the network of {self.file} takes {name} of size {width}, these rules have "
                    f"{sizes[name]} ({self._encoding}): it does not fit {rules}"
                )
        self._checked = rules
