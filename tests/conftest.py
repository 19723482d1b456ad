"""Settings and fixtures for all tests."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings
from platformdirs import user_cache_dir

if TYPE_CHECKING:
    from wotd_env.solver import Table

# Every worker of xdist has a core. Threads of BLAS and OpenMP would wait for each other in busy loops.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# numba reads this variable when it is imported, and XDG_CACHE_HOME changes below.
os.environ.setdefault("NUMBA_CACHE_DIR", user_cache_dir("numba", appauthor=False))

# Every run uses the same examples. There is no deadline per example, because the first one compiles kernels.
settings.register_profile("reproducible", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("reproducible")


@pytest.fixture(autouse=True, scope="session")
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Isolate the tests from the user's tables; kernels and matplotlib's fonts are still cached as before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def table(tmp_path_factory: pytest.TempPathFactory) -> "Table":
    """Return the solution of the smallest board."""
    from wotd_env import solver

    return solver.solve(0, tmp_path_factory.mktemp("tables") / "0.wotd")


@pytest.fixture
def hidden_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Open the window off screen and without a frame rate limit."""
    from wotd_env.rendering import window

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(window, "FPS", 0)
    yield
    window.close_window()


@pytest.fixture(scope="module")
def small_ray() -> Iterator[None]:
    """Start a local Ray with two CPUs and little memory."""
    import ray

    memory = 200_000_000
    ray.init("local", num_cpus=2, object_store_memory=memory, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()


@pytest.fixture
def powerless() -> Iterator[Path]:
    """Return a temporary folder, in a process that is subject to file permissions (root is not)."""
    if not hasattr(os, "geteuid"):
        pytest.skip("the test needs POSIX permissions")
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        if user == 0:
            os.chown(folder, 65534, -1)
            os.seteuid(65534)
        try:
            if not os.access(__file__, os.R_OK, effective_ids=True):
                pytest.skip("the unprivileged user cannot read this checkout")
            yield Path(folder)
        finally:
            os.seteuid(user)
            os.chmod(folder, 0o700)
