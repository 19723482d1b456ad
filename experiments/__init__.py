"""Experiments on top of the learners in agents/, with results in docs/results/experiments.md; for checkouts only."""
