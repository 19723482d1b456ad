"""Keys of tables: random words that open a seat or a table. Only digests of them are stored."""

from __future__ import annotations

import hashlib
import secrets
from typing import NamedTuple


class Keys(NamedTuple):
    """The keys of a new table."""

    host: str
    watch: str
    invitations: dict[int, str]  # by seat


def new_key() -> str:
    """Return a new key of 256 random bits."""
    return secrets.token_urlsafe(32)


def digest_of(key: str) -> str:
    """Return the digest of a key."""
    return hashlib.sha256(key.encode("utf-8", "replace")).hexdigest()
