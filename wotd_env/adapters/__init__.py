"""Adapters to other libraries. The docstring of a module names the extra that it needs."""
