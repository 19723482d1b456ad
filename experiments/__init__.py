"""Experiments on top of the learners in agents/, with results in docs/results/training.md; for checkouts only."""
