"""Measure the speed of this environment and of other environments (`make speed`)."""
