"""Experiments on top of the learners in agents/, with results in docs/training.md. Used from a checkout only."""
