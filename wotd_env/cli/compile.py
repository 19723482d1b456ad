"""`wotd compile`: compile all kernels."""

from __future__ import annotations

from wotd_env.cli.common import explained, progress_bar
from wotd_env.cli.options import CORES
from wotd_env.kernels import compile_kernels


def command() -> None:
    """Compile all kernels in advance, so that nothing has to wait for the compiler later.

    This takes about 75 s of processor time. All environments of the user with the same sources and the same versions
    of Python, NumPy and numba share the compiled code. It is saved in numba's cache folder of the user, or in the
    folder of the environment variable NUMBA_CACHE_DIR. Without this command: `wotd_env.compile_kernels()` in Python.
    """
    with explained(), progress_bar("parts") as progress:
        compile_kernels(CORES, progress=progress)
