"""Checks and generators of documents. They are part of a checkout and not installed."""
