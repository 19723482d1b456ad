"""Experiments with the learners in agents/. They need a checkout; docs/results/experiments.md has the results."""
