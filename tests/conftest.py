"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import settings

# Kernels compile inside the first example of a property, so no example is held to a time.
settings.register_profile("quick", deadline=None, max_examples=60)
settings.register_profile("slow", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))
