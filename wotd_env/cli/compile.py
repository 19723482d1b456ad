"""`wotd compile`: compile all kernels."""

from __future__ import annotations

from wotd_env.cli.common import explained, progress_bar
from wotd_env.cli.options import CORES
from wotd_env.kernels import compile_kernels


def command() -> None:
    """Compile all kernels in advance, so that nothing has to wait for the compiler later.

    This takes about 75 s of processor time. The compiled code is saved in the user's numba cache folder, or in the
    folder of the environment variable NUMBA_CACHE_DIR. All Python environments of the user with the same sources and
    the same versions of Python, NumPy and numba share it. In Python, call `wotd_env.compile_kernels()` instead.
    """
    with explained(), progress_bar("parts") as progress:
        compile_kernels(CORES, progress=progress)
