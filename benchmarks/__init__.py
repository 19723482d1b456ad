"""Benchmarks of the speed of this environment and of other environments (`make bench`)."""
