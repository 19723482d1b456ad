"""Adapters to other libraries. Each module needs the extra of its name."""
