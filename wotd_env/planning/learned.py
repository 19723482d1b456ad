"""A learned value function for positions before a turn: a small compiled network and its file format.

The input is a set of *features* of the position, seen from the seat to act. A feature is a combination of values, e.g.
"on a path, the seat to act is on space 3 and the next seat on space 5". A position has these features:

- for each path and each pair of players: the spaces of the two players' pieces on this path (with `immunity`, also
  whether one of the two pieces is immune);
- for each player, its *standing*: the number of its pieces on numbered spaces, the largest number of pieces that any
  other player has on numbered spaces, and the player's lead in points. In games of two players, only the standing of
  the seat to act is a feature;
- with `powers`, for each player: the power that the player still holds;
- with `dead_pieces`, for each path and player: the space of the player's piece on this path, and a mask of the dead
  pieces on the next five spaces.

    x = relu(sum of the rows of the position's features)                                                     (width,)
    y = relu(x @ hidden + hidden_bias)                                                                       (HIDDEN,)
    probabilities to win = softmax(concatenate(x, y) @ output + output_bias)                                      (n,)

The probabilities are in turn order, starting with the seat to act. All paths share the same rows of weights, so the
order of the paths does not change a value. The number of the turn is not an input, so the value ignores the turn limit
(R16).
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.game import Game
from wotd_env.core.observation import next_seat
from wotd_env.core.rules import NUMBERED, PATHS, Rules
from wotd_env.core.state import Int, Record, Records, States
from wotd_env.planning.values import CheckedValue
from wotd_env.planning.vectors import ABREAST, BLOCK, dot, relu_of_products, relu_of_rows
from wotd_env.policy import check_made_for

HIDDEN = BLOCK

LEAD = 8  # leads in points are clipped to -LEAD..LEAD
AHEAD = np.uint64(31)  # a mask for the next five spaces
FORMAT = "wotd-env value 1"
# Largest allowed size of an unpacked file, in bytes. Without a limit, a small compressed file could fill the memory.
MOST_BYTES = 256_000_000


class Features(NamedTuple):
    """The number of features under given rules, and the first index of each kind of feature.

    The features of pairs of players start at index 0.
    """

    total: int  # R, the number of possible features
    active: int  # K, the number of features of a position
    standing: int
    power: int
    dead: int

    @classmethod
    def of(cls, rules: Rules) -> Features:
        """Return the numbers and the first indices for these rules."""
        n, spaces = rules.players, rules.spaces + NUMBERED + 1
        pairs = n * (n - 1) // 2
        seats = 1 if n == 2 else n
        standing = pairs * (1 + rules.immunity) * spaces**2
        power = standing + seats * (PATHS + 1) ** 2 * (2 * LEAD + 1)
        dead = power + (rules.powers != "none") * n * (PATHS + 1)
        total = dead + (rules.dead_pieces != 0) * n * spaces * (int(AHEAD) + 1)
        active = PATHS * pairs + seats + (rules.powers != "none") * n + (rules.dead_pieces != 0) * n * PATHS
        return cls(total, active, standing, power, dead)

    def write(self, game: Game, state: States) -> NDArray[np.int64]:
        """Return the indices of the features of every position, int64 (N, K)."""
        out = np.empty((len(state), self.active), np.int64)
        game.apply(_write_features, state, self, out)
        return out


class Weights(NamedTuple):
    """The weights of the network for R features and n players, all float32."""

    rows: NDArray[np.float32]  # (R, width), where width is a multiple of 32
    hidden: NDArray[np.float32]  # (width, HIDDEN)
    hidden_bias: NDArray[np.float32]  # (HIDDEN,)
    output: NDArray[np.float32]  # (n, width + HIDDEN)
    output_bias: NDArray[np.float32]  # (n,)


def shapes(rules: Rules, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights of a network with `width` units in its first layer."""
    n = rules.players
    return {
        "rows": (Features.of(rules).total, width),
        "hidden": (width, HIDDEN),
        "hidden_bias": (HIDDEN,),
        "output": (n, width + HIDDEN),
        "output_bias": (n,),
    }


class LearnedValue(CheckedValue):
    """A value function computed by a network. The constructor raises ValueError if the weights do not fit the rules."""

    def __init__(self, rules: Rules, network: Weights) -> None:
        width = network.rows.shape[-1] if network.rows.ndim else 0
        if width % BLOCK or not width:
            raise ValueError(f"rows must have a multiple of {BLOCK} columns, got {network.rows.shape}")
        for (name, shape), array in zip(shapes(rules, width).items(), network, strict=True):
            if array.dtype != np.float32 or array.shape != shape or not np.isfinite(array).all():
                got = f"{array.dtype} {array.shape}"
                raise ValueError(f"{name} must be finite numbers, float32 {shape} for {rules}, got {got}")
        self.rules, self.features = rules, Features.of(rules)
        self.network = Weights(*map(np.ascontiguousarray, network))

    def unchecked(self, game: Game, afterstates: States) -> NDArray[np.float32]:
        """Return the values without checking the records; raise ValueError if the game has other rules."""
        self.check_rules(game.rules)
        values = np.empty((len(afterstates), game.rules.players), np.float32)
        write_values(afterstates, game.config, self.features, self.network, values)
        return values

    def check_rules(self, rules: Rules) -> None:
        """Raise ValueError if the network does not fit these rules."""
        if rules is not self.rules:
            check_made_for("the learned value", self.rules, rules)


def save(value: LearnedValue, dtype: type[np.floating[Any]] = np.float32) -> bytes:
    """Return a NumPy archive (`.npz`) as bytes. It contains the weights, the rules and the version of the format.

    Args:
        value: the value function to save.
        dtype: float32, or float16 for a file of half the size.
    """
    buffer = io.BytesIO()
    about = {"format": np.array(FORMAT), "rules": np.array(json.dumps(asdict(value.rules)))}
    weights = {name: array.astype(dtype) for name, array in value.network._asdict().items()}
    np.savez_compressed(buffer, allow_pickle=False, **about, **weights)
    return buffer.getvalue()


def load(file: str | Path) -> LearnedValue:
    """Read a learned value function from a file. Loading runs no code from the file.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is damaged or contains no learned value function.
    """
    file = Path(file)
    if not file.is_file():
        raise FileNotFoundError(f"no file {file} with a learned value")
    try:
        with zipfile.ZipFile(file) as archive:
            if (size := sum(member.file_size for member in archive.infolist())) > MOST_BYTES:
                raise ValueError(
                    f"its arrays take {size / 1e6:,.0f} MB; at most {MOST_BYTES / 1e6:,.0f} MB are allowed"
                )
            if damaged := archive.testzip():
                raise ValueError(f"{damaged} does not match its checksum")
        with np.load(file, allow_pickle=False) as content:
            if str(content["format"]) != FORMAT:
                raise ValueError(f"its format is not {FORMAT!r}")
            rules = Rules.from_dict(json.loads(str(content["rules"])))
            weights = [content[name] for name in Weights._fields]
            halved = [w.astype(np.float32) if w.dtype == np.float16 else w for w in weights]
            return LearnedValue(rules, Weights(*halved))
    except Exception as error:  # a damaged file can raise almost any exception
        raise ValueError(f"{file} contains no valid learned value: {error}") from error


@inlined
def _features(s: Record, rules: Config, features: Features, out: Any) -> None:
    """Write the indices of the features of a position to `out`, int64 (K,)."""
    n = rules.players
    spaces = rules.spaces + NUMBERED + 1
    at = 0
    for path in range(PATHS):
        pair = 0
        one: Int = np.int64(s.player)
        for i in range(n - 1):
            other = one
            for _ in range(i + 1, n):
                other = next_seat(other, n)
                code = pair
                if rules.immunity:
                    code = 2 * pair + (s.color[one] == path or s.color[other] == path)
                out[at] = (code * spaces + s.pieces[one, path]) * spaces + s.pieces[other, path]
                at += 1
                pair += 1
            one = next_seat(one, n)
    seat: Int = np.int64(s.player)
    for i in range(1 if n == 2 else n):
        points = engine.score(s, rules, seat)
        most: Int = 0
        best: Int = 0
        for other in range(n):
            if other != seat:
                most = max(most, engine.numbered(s, rules, other))
                best = max(best, engine.score(s, rules, other))
        lead = min(max(points - best, -LEAD), LEAD) + LEAD
        code = (i * (PATHS + 1) + engine.numbered(s, rules, seat)) * (PATHS + 1) + most
        out[at] = features.standing + code * (2 * LEAD + 1) + lead
        at += 1
        seat = next_seat(seat, n)
    if rules.powers:
        seat = np.int64(s.player)
        for i in range(n):
            held = 0
            if engine.powers_of(s, rules, seat):
                held = 1 + s.color[seat] if rules.powers == engine.OWN_POWERS else 1
            out[at] = features.power + i * (PATHS + 1) + held
            at += 1
            seat = next_seat(seat, n)
    if features.total > features.dead:  # with random dead pieces or a layout
        seat = np.int64(s.player)
        for i in range(n):
            for path in range(PATHS):
                space = s.pieces[seat, path]
                ahead = np.uint64(s.dead[path]) >> np.uint64(space + 1) & AHEAD
                out[at] = features.dead + ((i * spaces + space) << 5) + np.int64(ahead)
                at += 1
            seat = next_seat(seat, n)


@kernel
def _write_features(states: Records, config: Configs, features: Features, out: Any) -> None:
    for i in range(states.shape[0]):
        _features(states[i], config[0], features, out[i])


class Layers(NamedTuple):
    """Memory for the layers of the network, for ABREAST positions."""

    active: NDArray[np.int64]  # (K,)
    x: NDArray[np.float32]  # (ABREAST, width), initially finite
    y: NDArray[np.float32]  # (ABREAST, HIDDEN)


@kernel
def write_values(states: Records, config: Configs, features: Features, network: Weights, values: Any) -> None:
    """Write the values of every position of a batch to `values`, (N, n)."""
    active = np.empty(features.active, np.int64)
    x = np.zeros((ABREAST, network.rows.shape[1]), np.float32)
    y = np.empty((ABREAST, HIDDEN), np.float32)
    write_values_in(Layers(active, x, y), states, config, features, network, values)


@kernel
def write_values_in(
    layers: Layers, states: Records, config: Configs, features: Features, network: Weights, values: Any
) -> None:
    """Do the same as `write_values`, without allocating memory."""
    active, x, y = layers
    for start in range(0, states.shape[0], ABREAST):
        count = min(ABREAST, states.shape[0] - start)
        for j in range(count):
            _features(states[start + j], config[0], features, active)
            for first in range(0, x.shape[1], BLOCK):
                relu_of_rows(network.rows, active, first, x, j)
        relu_of_products(network.hidden_bias, x, network.hidden, y)
        for j in range(count):
            _write_value(states[start + j], network, x, y, j, values[start + j])


@inlined
def _write_value(s: Record, network: Weights, x: Any, y: Any, j: Any, values: Any) -> None:
    """Write the values of a position to `values`, (n,)."""
    n = values.shape[0]
    width = network.rows.shape[1]
    largest = np.float32(-np.inf)
    seat: Int = np.int64(s.player)
    for k in range(n):
        logit = network.output_bias[k] + dot(network.output, k, width, y, j, 0)
        for first in range(0, width, BLOCK):
            logit += dot(network.output, k, first, x, j, first)
        values[seat] = logit
        largest = max(largest, logit)
        seat = next_seat(seat, n)
    total = np.float32(0)
    for _ in range(n):  # add in turn order, so that the rounding does not depend on the seats
        values[seat] = math.exp(values[seat] - largest)
        total += values[seat]
        seat = next_seat(seat, n)
    for k in range(n):
        values[k] = engine.reward_of(values[k], n, total)
