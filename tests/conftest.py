"""What all tests share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# The same examples in every run; no time limit for one, because the first compiles kernels.
settings.register_profile("reproducible", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("reproducible")


@pytest.fixture(autouse=True, scope="session")
def own_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither meet the user's tables nor leave any; matplotlib keeps its list of fonts where it was."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLCONFIGDIR", str(Path.home() / ".cache" / "matplotlib"))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture
def hidden_window(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The window opens where nobody sees it, and does not wait for anybody to follow."""
    from wotd_env.rendering import window

    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    monkeypatch.setattr(window, "FPS", 0)
    yield
    window.close_window()


@pytest.fixture
def powerless() -> Iterator[Path]:
    """A folder of one's own, in a process that may not write where permissions forbid it, as root may."""
    if not hasattr(os, "geteuid"):
        pytest.skip("permissions of other users are those of POSIX here")
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        if user == 0:
            os.chown(folder, 65534, -1)
            os.seteuid(65534)
        try:
            if not os.access(__file__, os.R_OK, effective_ids=True):
                pytest.skip("the user who may write nothing cannot read this checkout either")
            yield Path(folder)
        finally:
            os.seteuid(user)
            os.chmod(folder, 0o700)
