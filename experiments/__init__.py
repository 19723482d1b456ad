"""Experiments that use the learners in agents/, for checkouts only; docs/results/experiments.md has the results."""
