"""What all tests share."""

from __future__ import annotations

from hypothesis import settings

# The same examples in every run; no time limit for one, because the first compiles kernels.
settings.register_profile("reproducible", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("reproducible")
