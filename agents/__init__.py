"""What learns: self-play, the network, and what is made of a training run. Used from a checkout, never installed."""

import os

# Threads of the network's arithmetic that wait for each other must not burn cores which others need: without this, a
# second thread makes training ten times slower on a busy machine. OpenMP reads it once, when torch is imported.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
