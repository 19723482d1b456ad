"""What pictures need beyond the core: the extra `render`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needed_for"]


@contextmanager
def needed_for(what: str) -> Iterator[None]:
    """Let an import that fails say what it is needed for and how to install it.

    Raises:
        ImportError: if what is imported inside is not installed.
    """
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{what} needs {error.name}: pip install 'wotd-env[render]'", name=error.name
        ) from error
