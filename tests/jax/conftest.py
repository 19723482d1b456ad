"""Shared by the tests of the JAX version."""

from tests.helpers.jax_compiling import few_optimizations as few_optimizations
