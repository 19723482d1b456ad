"""Learners by self-play, for a checkout of the repository; they are not installed."""

import os

# Waiting threads of torch must not use the cores: on a busy machine that makes training ten times slower. OpenMP reads
# this once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
