"""Learners by self-play, for a checkout of the repository; they are not installed."""

import os

# Busy-waiting threads of torch would make training ten times slower on a busy machine. OpenMP reads this
# variable once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
