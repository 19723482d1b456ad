"""Adapters to other libraries. The docstring of each module names the extra to install."""
