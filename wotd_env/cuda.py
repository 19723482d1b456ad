"""Many games on an NVIDIA GPU, played by the engine's own functions (extra `cuda`).

    import torch
    from wotd_env import Rules
    from wotd_env.cuda import CudaGame

    game = CudaGame(Rules(), 65_536)
    mask = torch.as_tensor(game.mask, device="cuda")  # the same memory, so each step changes it
    for _ in range(100):
        game.step(torch.multinomial(mask.float(), 1)[:, 0])

This module contains no rule: numba compiles the functions of `wotd_env.core.engine` for the GPU. docs/how-to/gpu.md
explains when to use it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from wotd_env.core import engine
from wotd_env.core.arguments import check_integer, kind_of
from wotd_env.core.compilation import inlined, kernel
from wotd_env.core.config import Config, Configs
from wotd_env.core.dice import Keep
from wotd_env.core.game import MOST_GAMES, Game
from wotd_env.core.lanes import trailing_zeros
from wotd_env.core.observation import ONE_HOT, Entries, encode_integers, encode_one_hot, write_mask
from wotd_env.core.rules import Phase, Rules
from wotd_env.core.state import STATE, Floats, Int, Record, States, as_state
from wotd_env.extras import MissingExtraError, needed_for

with needed_for("the game on a GPU", "cuda"):
    import numba_cuda  # noqa: F401  # replaces the module `numba.cuda` of numba, which NVIDIA no longer develops

try:
    from numba import cuda as cuda
except RuntimeError as error:  # also the simulator asks CUDA's runtime library for its version
    raise MissingExtraError(
        "the game on a GPU needs CUDA's runtime library, part of the extra cuda: pip install 'wotd-env[cuda]', "
        "or '.[cuda]' in a checkout"
    ) from error

SIMULATED = bool(numba.config.ENABLE_CUDASIM)  # type: ignore[attr-defined]
"""Whether numba's simulator runs the kernels on the processor (environment variable NUMBA_ENABLE_CUDASIM=1)."""

MOST_THREADS = 128  # threads of a block; each thread plays one game
MOST_SHARED = 48 << 10  # bytes of shared memory that every GPU offers to a block
OPTIONS: dict[str, Any] = {} if SIMULATED else {"max_registers": 80}  # of 65,536 on a multiprocessor
NOTHING = np.iinfo(np.int64).min  # in place of an action: only write the arrays

WORDS = STATE.itemsize // 8  # 64-bit words of a record
_FIELDS: Any = STATE.fields
_LAYOUT: Any = {
    "names": STATE.names,
    "formats": [_FIELDS[name][0] for name in STATE.names or ()],
    "offsets": [_FIELDS[name][1] for name in STATE.names or ()],
    "itemsize": 8 * (WORDS + 1),
}
PADDED = numba.from_dtype(np.dtype(_LAYOUT, align=True))
"""A record in shared memory. The padding puts the records of neighboring threads into different banks."""

DeviceArray = Any
"""An array on the GPU, which PyTorch, CuPy and JAX take without a copy. In the simulator it is an array of NumPy."""


class Arrays(NamedTuple):
    """The memory of N games on the GPU. Rows are also arrays of words, (M,), which include games that fill a block."""

    config: Configs
    states: NDArray[np.uint64]
    observation: NDArray[np.uint64]
    mask_words: NDArray[np.uint64]
    width: int  # entries of an observation, D
    mask: Entries
    rewards: Floats
    done: NDArray[np.bool_]
    refused: NDArray[np.bool_]
    player: NDArray[np.int64]


# ------------------------------------------------------------------------------------------------------------- one game


@inlined
def encode(s: Record, rules: Config, observer: Int, keep: Keep, row: Entries) -> None:
    """Write the observation of a seat, int8 (D,)."""
    if rules.encoding == ONE_HOT:
        encode_one_hot(s, rules, observer, keep, row)
    else:
        encode_integers(s, rules, observer, keep, row)


@kernel
def play(s: Record, arrays: Arrays, i: Int, action: Int, observation: Entries, mask: Entries) -> None:
    """Take the action of game i and write the results, as `wotd_env.core.batch.step_autoreset` does.

    An action outside the mask is refused, and the game stays unchanged. `s` is the record of the game. Its rows
    `observation`, int8 (D,), and `mask`, int8 (A,), are outside of `arrays`.
    """
    rules = arrays.config[0]
    refused = action < 0 or action >= mask.shape[0] or arrays.mask[i, action] == 0
    for seat in range(rules.players):
        arrays.rewards[i, seat] = 0
    keep, over = engine.dice_index(s), False
    if not refused:
        keep = engine.decide(s, rules, keep, action)
    while True:  # the second round starts a new game; without the loop there would be two copies of `run`
        legal, swaps, keep = engine.run(s, rules, keep, True)
        if over or refused or s.phase != Phase.OVER:
            break
        over = True
        engine.rewards(s, rules, arrays.rewards[i])
        engine.new_game(s, rules, rules.start)
        keep = engine.NOTHING_KEPT
    arrays.done[i] = over
    arrays.refused[i] = refused and action != NOTHING
    arrays.player[i] = s.player
    write_mask(legal, swaps, mask)
    encode(s, rules, np.int64(s.player), keep, observation)


@kernel
def look(s: Record, rules: Config, seat: Int, observation: Entries) -> None:
    """Write the observation of a seat, int8 (D,)."""
    encode(s, rules, np.int64(seat), engine.dice_index(s), observation)


# ----------------------------------------------------------------------------------------------------- a block of games

# The records and the rows of a block's games are in its shared memory while the games are played. The threads copy them
# together, word by word. If each thread copied its own row, every byte would be a transaction of the memory.


@cuda.jit(device=True)  # type: ignore[untyped-decorator]
def fetch(states: NDArray[np.uint64]) -> None:
    """Copy the records of a block's games to the start of the shared memory."""
    words = cuda.shared.array(0, numba.uint64)
    start = cuda.blockIdx.x * cuda.blockDim.x * WORDS
    for k in range(cuda.threadIdx.x, cuda.blockDim.x * WORDS, cuda.blockDim.x):
        words[k // WORDS * (WORDS + 1) + k % WORDS] = states[start + k]
    cuda.syncthreads()


@cuda.jit(device=True)  # type: ignore[untyped-decorator]
def store(states: NDArray[np.uint64]) -> None:
    """Copy the records of a block's games back from the shared memory."""
    words = cuda.shared.array(0, numba.uint64)
    start = cuda.blockIdx.x * cuda.blockDim.x * WORDS
    for k in range(cuda.threadIdx.x, cuda.blockDim.x * WORDS, cuda.blockDim.x):
        states[start + k] = words[k // WORDS * (WORDS + 1) + k % WORDS]


@cuda.jit(device=True)  # type: ignore[untyped-decorator]
def store_rows(first: int, width: int, target: NDArray[np.uint64]) -> None:
    """Copy the rows of a block's games, from word `first` of the shared memory, to an array of all games."""
    words = cuda.shared.array(0, numba.uint64)
    size = cuda.blockDim.x * width // 8
    for k in range(cuda.threadIdx.x, size, cuda.blockDim.x):
        target[cuda.blockIdx.x * size + k] = words[first + k]


def step_block(arrays: Arrays, actions: NDArray[np.integer[Any]]) -> None:
    """Take the actions of a block's games."""
    width, legal = arrays.width, arrays.mask.shape[1]
    records = cuda.shared.array(0, PADDED)
    memory = cuda.shared.array(0, numba.int8)
    first = cuda.blockDim.x * (WORDS + 1)  # words before the observations
    second = first + cuda.blockDim.x * width // 8  # words before the masks
    fetch(arrays.states)
    i, t = cuda.grid(1), cuda.threadIdx.x
    if i < arrays.mask.shape[0]:
        rows = memory[cuda.blockDim.x * 8 * (WORDS + 1) :]  # not `first`: that would need more registers
        masks = rows[cuda.blockDim.x * width :]
        observation, mask = rows[t * width : (t + 1) * width], masks[t * legal : (t + 1) * legal]
        play(records[t], arrays, i, np.int64(actions[i]), observation, mask)
    cuda.syncthreads()
    store(arrays.states)
    store_rows(first, width, arrays.observation)
    store_rows(second, legal, arrays.mask_words)


def look_block(arrays: Arrays, seat: Int) -> None:
    """Write the observations of a seat in a block's games."""
    width = arrays.width
    records = cuda.shared.array(0, PADDED)
    memory = cuda.shared.array(0, numba.int8)
    first = cuda.blockDim.x * (WORDS + 1)
    fetch(arrays.states)
    t = cuda.threadIdx.x
    if cuda.grid(1) < arrays.mask.shape[0]:
        observation = memory[8 * first + t * width : 8 * first + (t + 1) * width]
        look(records[t], arrays.config[0], seat, observation)
    cuda.syncthreads()
    store_rows(first, width, arrays.observation)


STEP, LOOK = cuda.jit(**OPTIONS)(step_block), cuda.jit(**OPTIONS)(look_block)

if not SIMULATED:
    from numba.cuda.extending import overload

    @overload(trailing_zeros, strict=False)  # type: ignore[untyped-decorator]
    def first_bit(bits: Any) -> Any:
        """Compile `trailing_zeros`, an intrinsic function of numba that numba-cuda does not know."""
        return lambda bits: cuda.ffs(bits) - 1


@contextmanager
def tables_in_global_memory() -> Iterator[None]:
    """Compile the tables of the engine into global memory.

    numba would compile them into constant memory, which is too small: it has 64 KB. It is also slow if threads read
    different entries.
    """
    if SIMULATED:
        yield
        return
    from numba.cuda.core.base import BaseContext
    from numba.cuda.target import CUDATargetContext

    usual = CUDATargetContext.make_constant_array
    CUDATargetContext.make_constant_array = BaseContext.make_constant_array
    try:
        yield
    finally:
        CUDATargetContext.make_constant_array = usual


# ------------------------------------------------------------------------------------------------------------ all games


class CudaGame:
    """N games on the current GPU. The same seed gives the same games as `wotd_env.Game`.

    `reset`, `load` and `step` fill the arrays below, which stay at the same place in the memory of the GPU. PyTorch,
    CuPy and JAX can share this memory, with `torch.as_tensor(array, device="cuda")`, `cupy.asarray(array)` and
    `jax.numpy.asarray(array)`. All kernels run asynchronously in the default stream of the GPU.

    In shapes, n is the number of players, A the number of actions, and D the length of an observation.

    Args:
        rules: the rules of all games.
        num_games: number of games, N.
        encoding: format of the observations, as for `wotd_env.Game`.

    Attributes:
        game: the same rules on the processor, a `wotd_env.Game`.
        observation: int8 (N, D), as the player to act sees the game. After the end of a game, this is the first
            observation of the next game.
        mask: int8 (N, A), the action mask of the player to act.
        player: int64 (N,), the player to act.
        rewards: float32 (N, n), the rewards of the last step.
        done: bool (N,), whether the last step ended a game.
        refused: bool (N,), whether the action of the last step was illegal. Such an action does not change its game.

    Raises:
        ValueError: for an invalid number of games or an unknown encoding.
        RuntimeError: if there is no GPU, or if its driver is too old.
    """

    def __init__(self, rules: Rules, num_games: int, encoding: str = "one_hot") -> None:
        self.game = game = Game(rules, encoding=encoding)
        self.num_games = n = check_integer("num_games", num_games, 1, MOST_GAMES)
        check_device()
        width, actions = game.observation_size, game.num_actions
        row = PADDED.size + width + actions
        # A block has a multiple of 8 games, so that its rows are whole words.
        threads = min(MOST_THREADS, MOST_SHARED // row // 32 * 32, -(-n // 8) * 8)
        self._launch = (-(-n // threads), threads, 0, threads * row)
        observation, self.observation = self._rows(width)
        masks, self.mask = self._rows(actions)
        self.rewards = _new((n, rules.players), np.float32)
        self.done, self.refused = _new((n,), np.bool_), _new((n,), np.bool_)
        self.player = _new((n,), np.int64)
        self._arrays = Arrays(
            config=_on_device(game.config), states=self._rows(STATE.itemsize)[0], observation=observation,
            mask_words=masks, width=width, mask=self.mask, rewards=self.rewards, done=self.done,
            refused=self.refused, player=self.player,
        )  # fmt: skip
        self.reset()

    def reset(self, seed: int = 0) -> None:
        """Start all games; game i is game i of `Game.reset(num_games, seed)`."""
        self.load(self.game.reset(self.num_games, seed))

    def load(self, records: States) -> None:
        """Replace all games by games of the processor, STATE (N,). If a roll is due in a game, roll.

        Raises:
            ValueError: for an invalid record, or another number of games.
        """
        self.game.check(records)
        if len(records) != self.num_games:
            raise ValueError(f"records must be {self.num_games} games, got {len(records)}")
        states = np.zeros(len(self._arrays.states) // WORDS, STATE)  # with the games that fill a block
        states[: self.num_games] = as_state(records)
        self._arrays = self._arrays._replace(states=_on_device(states.view(np.uint64)))
        self.step(_on_device(np.full(self.num_games, NOTHING)))

    def step(self, actions: DeviceArray) -> None:
        """Take the actions, int64 or int32 (N,) on the GPU, restart finished games, and fill the arrays.

        Raises:
            ValueError: for another dtype, shape or device.
        """
        here = SIMULATED or cuda.is_cuda_array(actions)
        given = np.asarray(actions) if SIMULATED or not here else cuda.as_cuda_array(actions)
        if not here or given.shape != (self.num_games,) or given.dtype not in (np.int64, np.int32):
            raise ValueError(
                f"actions must be int64 or int32 ({self.num_games},) on the GPU, got {kind_of(given)}"
            )
        with tables_in_global_memory():
            STEP[self._launch](self._arrays, given)

    def observe(self, seat: int) -> DeviceArray:
        """Return the observations of a seat, int8 (N, D)."""
        seat = check_integer("seat", seat, 0, self.game.rules.players - 1)
        words, observation = self._rows(self._arrays.width)
        with tables_in_global_memory():
            LOOK[self._launch](self._arrays._replace(observation=words), seat)
        return observation

    def records(self) -> States:
        """Return a copy of the games for the processor, STATE (N,)."""
        words: Any = self._arrays.states
        words = words if SIMULATED else words.copy_to_host()
        records: States = words.view(STATE)[: self.num_games].copy()
        return records

    def _rows(self, width: int) -> tuple[DeviceArray, DeviceArray]:
        """Return new memory for rows of `width` bytes: its words, and the rows of the games, int8 (N, width)."""
        blocks, threads, *_ = self._launch
        words = _new((blocks * threads * width // 8,), np.uint64)
        return words, words.view(np.int8)[: self.num_games * width].reshape(self.num_games, width)


def check_device() -> None:
    """Raise RuntimeError if numba cannot use a GPU."""
    cures = "play with wotd_env.Game, or set NUMBA_ENABLE_CUDASIM=1 to simulate a GPU slowly"
    if not cuda.is_available():
        raise RuntimeError(
            f"CudaGame needs an NVIDIA GPU, its driver, and the libraries of the extra cuda: {cures}"
        )
    if not SIMULATED and (has := cuda.driver.get_version()) < (needs := (cuda.runtime.get_version()[0], 0)):
        raise RuntimeError(
            f"the driver of the GPU supports CUDA {has[0]}.{has[1]}, but the installed libraries need "
            f"CUDA {needs[0]}: install a newer driver, or pip install 'numba-cuda[cu{has[0]}]'"
        )


def _new(shape: tuple[int, ...], dtype: Any) -> DeviceArray:
    return np.empty(shape, dtype) if SIMULATED else cuda.device_array(shape, dtype)


def _on_device(array: NDArray[Any]) -> DeviceArray:
    return array.copy() if SIMULATED else cuda.to_device(array)
