"""The game on a GPU, without a GPU: in numba's simulator, and as code of the compiler for a GPU."""

import importlib
import json
import re
import shutil
import subprocess
from importlib.metadata import PackageNotFoundError, files
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.helpers import ROOT, run_python
from wotd_env import Rules
from wotd_env.core.actions import num_actions
from wotd_env.core.config import CONFIG
from wotd_env.extras import MissingExtraError

PAGE = ROOT / "docs" / "how-to" / "gpu.md"

if np.lib.NumpyVersion(np.__version__) >= "2.5.0":
    pytest.skip("numba-cuda does not work with this NumPy", allow_module_level=True)

try:
    importlib.import_module("wotd_env.cuda")
except MissingExtraError as missing:
    pytest.skip(str(missing), allow_module_level=True)

SIMULATOR = {"NUMBA_ENABLE_CUDASIM": "1"}


def simulated(every: int, steps: int) -> Any:
    """Compare games in the simulator, and return the output of tests/cuda/simulated.py."""
    return json.loads(run_python("-m", "tests.cuda.simulated", str(every), str(steps), **SIMULATOR).stdout)


def test_simulated_decisions_agree_with_the_engine():
    found = simulated(9, 10)
    assert found["decisions"] >= 1000
    assert {"hold", "stop", "move", "end of a game"} <= set(found["kinds"])


@pytest.mark.slow
def test_simulated_decisions_agree_in_all_variants():
    found = simulated(1, 21)
    assert found["decisions"] > 20_000
    assert {"wood", "jump", "equilibrium", "pass", "fear", "end", "swap", "end of a game"} <= set(
        found["kinds"]
    )


def test_example_trains_in_the_simulator():
    pytest.importorskip("torch")
    small = "--num-envs 4 --num-steps 4 --total-timesteps 16 --minibatch-size 8 --evaluation-games 2"
    done = run_python("examples/torch_gpu_ppo.py", *small.split(), **SIMULATOR)
    assert re.fullmatch(r"update 1, .* against greedy, .* against random\n", done.stdout)


def test_page_runs_in_the_simulator():
    pytest.importorskip("torch")
    (code,) = re.findall("^```py\n(.*?)^```", PAGE.read_text(), flags=re.DOTALL | re.MULTILINE)
    done = run_python("-c", code.replace('"cuda", 65_536', '"cpu", 8'), **SIMULATOR)
    assert done.stdout.startswith("torch.Size([8, ")


def assembler() -> str | None:
    """Return the path of ptxas, from the wheel `nvidia-cuda-nvcc` or from an installed CUDA."""
    for package in ("nvidia-cuda-nvcc", "nvidia-cuda-nvcc-cu12"):
        try:
            found = [file for file in files(package) or () if file.stem == "ptxas"]
        except PackageNotFoundError:
            continue
        return str(found[0].locate())
    return shutil.which("ptxas")


def has_nvrtc() -> bool:
    """Return whether NVIDIA's runtime compiler is installed, which numba-cuda needs beside ptxas."""
    try:
        importlib.import_module("cuda.pathfinder").load_nvidia_dynamic_lib("nvrtc")
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("name", ["step_block", "look_block"])
def test_kernels_compile_for_a_gpu_without_spilled_registers(
    name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
):
    from numba import cuda, from_dtype, types
    from numba.cuda import dispatcher
    from numba.cuda.cudadrv import nvvm

    from wotd_env import cuda as gpu

    ptxas = assembler()
    if not (ptxas and nvvm.is_available() and has_nvrtc()):
        pytest.skip("the compiler for GPUs is not installed: pip install 'numba-cuda[cu13]' nvidia-cuda-nvcc")
    # Compiling needs no GPU, but numba-cuda asks it for its version.
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))

    def array(dtype: Any, axes: int = 1) -> Any:
        return types.Array(from_dtype(np.dtype(dtype)), axes, "C")

    words = array(np.uint64)
    fields = {
        "config": array(CONFIG), "states": words, "observation": words, "mask_words": words, "width": types.int64,
        "mask": array(np.int8, 2), "rewards": array(np.float32, 2), "done": array(np.bool_),
        "refused": array(np.bool_), "player": array(np.int64),
    }  # fmt: skip
    arrays = types.NamedTuple([fields[name] for name in gpu.Arrays._fields], gpu.Arrays)
    signature = (arrays, words if name == "step_block" else types.int64)
    with gpu.tables_in_global_memory():
        code, _ = cuda.compile_ptx(getattr(gpu, name), signature, cc=(9, 0), device=False)
    assert ".const " not in code, "the tables must be in global memory"
    (tmp_path / "code.ptx").write_text(code)
    limit = f"--maxrregcount={gpu.OPTIONS['max_registers']}"
    command = [ptxas, "-v", "-arch=sm_90", limit, "code.ptx", "-o", "code.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads" in done.stderr
    (registers,) = re.findall(r"Used (\d+) registers", done.stderr)
    assert int(registers) <= 80


def test_numba_cuda_knows_this_numpy():
    # numba-cuda imports this module at the first compilation for a GPU. The simulator never imports it.
    run_python("-c", "import numba_cuda, numba.cuda.np.arrayobj", NUMBA_ENABLE_CUDASIM="0")


def test_missing_runtime_library_is_named():
    program = """
from cuda import pathfinder

def missing(name):
    raise pathfinder.DynamicLibNotFoundError(f"no {name}")

pathfinder.load_nvidia_dynamic_lib = missing
try:
    import wotd_env.cuda
except ImportError as error:
    print(error)
"""
    message = (
        "the game on a GPU needs CUDA's runtime library, part of the extra cuda: pip install 'wotd-env[cuda]'"
    )
    assert run_python("-c", program).stdout.startswith(message)


def test_games_fit_into_the_memory_of_a_block():
    from wotd_env import Game
    from wotd_env import cuda as gpu

    largest = Game(Rules(players=5, spaces=10, powers="any"))
    row = gpu.PADDED.size + largest.observation_size + num_actions(5)
    assert 32 * row <= gpu.MOST_SHARED


def test_missing_gpu_is_named():
    from wotd_env import cuda as gpu

    if gpu.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(
        RuntimeError, match=r"needs an NVIDIA GPU, .*: play with wotd_env.Game, or set NUMBA_EN"
    ):
        gpu.CudaGame(Rules(), 8)


def test_old_driver_is_named(monkeypatch: pytest.MonkeyPatch):
    from wotd_env import cuda as gpu

    numba_cuda = SimpleNamespace(
        is_available=lambda: True,
        driver=SimpleNamespace(get_version=lambda: (12, 4)),
        runtime=SimpleNamespace(get_version=lambda: (13, 5)),
    )
    monkeypatch.setattr(gpu, "cuda", numba_cuda)
    message = r"supports CUDA 12.4, but .* need CUDA 13: install a newer driver, or pip install 'numba-cuda\[cu12\]'"
    with pytest.raises(RuntimeError, match=message):
        gpu.CudaGame(Rules(), 8)
