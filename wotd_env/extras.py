"""The error for a missing optional dependency."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from gymnasium.error import DependencyNotInstalled


class MissingExtraError(ModuleNotFoundError, DependencyNotInstalled):
    """Error for a missing package of an extra. Gymnasium's tools expect the base class DependencyNotInstalled."""


@contextmanager
def needed_for(what: str, extra: str) -> Iterator[None]:
    """Raise MissingExtraError if an import in the `with` block fails."""
    try:
        yield
    except ImportError as error:
        # `pip install` works without a release on PyPI: pip reads the extras of an installed package from its metadata.
        raise MissingExtraError(
            f"{what} needs {error.name}, part of the extra {extra}: pip install 'wotd-env[{extra}]', "
            f"or '.[{extra}]' in a checkout",
            name=error.name,
        ) from error
