"""What all tests share."""

from __future__ import annotations

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
