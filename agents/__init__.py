"""Learners that train by self-play. This package is not installed; use it in a checkout of the repository."""

import os

# Waiting threads of torch must sleep: busy-waiting makes training ten times slower on a busy machine. OpenMP
# reads OMP_WAIT_POLICY only once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
