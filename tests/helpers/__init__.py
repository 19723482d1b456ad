"""Helpers that several test modules share."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
"""The folder of this checkout."""
